#include "supervisor/log_paint.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

void log_paint(struct text *out, const struct paint *paint, enum paint_style style,
               const char *text, size_t size) {
    if (size == 0)
        return;
    text_string(out, style == PAINT_PLAIN ? "" : paint_code(paint, style));
    text_add(out, text, size);
    text_string(out, style == PAINT_PLAIN ? "" : paint_code(paint, PAINT_PLAIN));
}

static bool begins(const char *text, size_t size, const char *with) {
    size_t length = strlen(with);
    return size >= length && memcmp(text, with, length) == 0;
}

static const char *find(const char *text, size_t size, const char *what) {
    return memmem(text, size, what, strlen(what));
}

static bool is_frame(const char *line, size_t size) {
    return begins(line, size, "   at 0x") || begins(line, size, "   by 0x");
}

// The address is faint, the function has a colour, the line stays plain.
static void paint_frame(struct text *out, const struct paint *paint, const char *line,
                        size_t size) {
    const char *end = line + size, *colon = find(line, size, ": ");
    const char *name = colon ? colon + 2 : end;
    // Parentheses of the name itself come before those of the place.
    const char *place = end;
    for (const char *at = name; at + 1 < end; at++)
        if (at[0] == ' ' && at[1] == '(')
            place = at;
    log_paint(out, paint, PAINT_FAINT, line, (size_t)(name - line));
    log_paint(out, paint, PAINT_NAME, name, (size_t)(place - name));
    bool has_source = !begins(place, (size_t)(end - place), " (in ");
    log_paint(out, paint, has_source ? PAINT_PLAIN : PAINT_FAINT, place, (size_t)(end - place));
}

static enum paint_style heading_style(const char *line, size_t size) {
    bool is_mild = find(line, size, "possibly lost") || find(line, size, "still reachable") ||
                   find(line, size, "suppressed");
    return is_mild ? PAINT_WARNING : PAINT_BAD;
}

// Whether the first number behind the label is 0.
static bool is_zero(const char *label, const char *end) {
    while (label < end && !isdigit((unsigned char)*label))
        label++;
    return label < end && *label == '0' && (label + 1 == end || !isdigit((unsigned char)label[1]));
}

// Lines of summaries; false: it is none.
static bool paint_sum(struct text *out, const struct paint *paint, const char *line, size_t size) {
    static const struct {
        const char *label;
        enum paint_style none, some;
    } sums[] = {
        {"ERROR SUMMARY:", PAINT_GOOD, PAINT_BAD},
        {"   definitely lost:", PAINT_PLAIN, PAINT_BAD},
        {"   indirectly lost:", PAINT_PLAIN, PAINT_BAD},
        {"     possibly lost:", PAINT_PLAIN, PAINT_WARNING},
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        if (!begins(line, size, sums[i].label))
            continue;
        const char *value = line + strlen(sums[i].label);
        log_paint(out, paint, is_zero(value, line + size) ? sums[i].none : sums[i].some, line,
                  size);
        return true;
    }
    return false;
}

static bool is_title(const char *line, size_t size) {
    return begins(line, size, "HEAP SUMMARY:") || begins(line, size, "LEAK SUMMARY:") ||
           begins(line, size, "Process terminating with");
}

static bool is_good(const char *line, size_t size) {
    return begins(line, size, "All heap blocks were freed");
}

void log_paint_line(struct text *out, const struct paint *paint, const char *line, size_t size,
                    const char *next) {
    bool is_heading = size && line[0] != ' ' && is_frame(next, strcspn(next, "\n"));
    if (is_frame(line, size))
        paint_frame(out, paint, line, size);
    else if (is_heading)
        log_paint(out, paint, heading_style(line, size), line, size);
    else if (is_title(line, size))
        log_paint(out, paint, PAINT_TITLE, line, size);
    else if (is_good(line, size))
        log_paint(out, paint, PAINT_GOOD, line, size);
    else if (!paint_sum(out, paint, line, size))
        text_add(out, line, size);
}

#include "report/shared/paint.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/shared/stack_text.h"

enum { NARROWEST = 20, EIGHTHS = 8 };

// ---- choosing ----------------------------------------------------------------------------------

// The variables in the order in which the C library looks at them.
static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static unsigned width_of(int fd) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    unsigned width = 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    else if (columns)
        width = (unsigned)strtoul(columns, NULL, 10);
    return width && width < NARROWEST ? NARROWEST : width;
}

bool paint_choose(struct paint *paint, enum paint_choice choice, int fd) {
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    *paint = (struct paint){0};
    if (choice == PAINT_NEVER)
        return false;
    bool is_dumb = !terminal || strcmp(terminal, "dumb") == 0;
    if (choice == PAINT_AUTO && (!isatty(fd) || is_dumb || (no_colour && *no_colour)))
        return false;
    *paint = (struct paint){.colour = true, .unicode = is_utf8(), .width = width_of(fd)};
    return true;
}

// ---- painting ----------------------------------------------------------------------------------

const char *paint_code(const struct paint *paint, enum paint_style style) {
    static const char *const codes[] = {
        [PAINT_PLAIN] = "\033[0m", [PAINT_TITLE] = "\033[1m", [PAINT_NAME] = "\033[36m",
        [PAINT_FAINT] = "\033[2m", [PAINT_BAD] = "\033[31m",  [PAINT_WARNING] = "\033[33m",
        [PAINT_GOOD] = "\033[32m",
    };
    return paint && paint->colour ? codes[style] : "";
}

const char *paint_bar(char bar[PAINT_BAR], const struct paint *paint, double share) {
    static const char *const parts[EIGHTHS] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!paint || !paint->colour)
        return "";
    share = share > 0 ? share < 1 ? share : 1 : 0;
    unsigned filled = (unsigned)(share * PAINT_CELLS * EIGHTHS + 0.5);
    // What is there at all can be seen.
    filled += !filled && share > 0;
    char *to = stpcpy(bar, paint_code(paint, PAINT_GOOD));
    for (unsigned i = 0; i < PAINT_CELLS; i++) {
        unsigned left = filled > i * EIGHTHS ? filled - i * EIGHTHS : 0;
        if (paint->unicode)
            to = stpcpy(to, left >= EIGHTHS ? "█" : parts[left]);
        else
            to = stpcpy(to, left >= EIGHTHS / 2 || (!i && left) ? "#" : " ");
    }
    to = stpcpy(to, paint_code(paint, PAINT_PLAIN));
    strcpy(to, " ");
    return bar;
}

// A character of a name as it is written: its bytes, and how many columns it takes. Wide
// characters are counted as one: a line that is cut a little late does no harm.
static size_t one_character(const char *at, char to[8], size_t *columns) {
    size_t length = stack_text_printable((const unsigned char *)at);
    if (!length) {
        *columns = (size_t)snprintf(to, 8, "\\x%02X", (unsigned char)*at);
        return 1;
    }
    memcpy(to, at, length);
    to[length] = 0;
    *columns = 1;
    return length;
}

static size_t columns_of(const char *name) {
    size_t all = 0, columns;
    char text[8];
    for (const char *at = name; *at; all += columns)
        at += one_character(at, text, &columns);
    return all;
}

size_t paint_name(FILE *out, const struct paint *paint, const char *name, size_t column) {
    size_t width = paint ? paint->width : 0;
    size_t room = !width ? SIZE_MAX : width > column ? width - column : 0;
    const char *dots = paint && paint->unicode ? "…" : "...";
    size_t dots_columns = paint && paint->unicode ? 1 : 3;
    size_t all = columns_of(name), written = 0, columns;
    char text[8];
    bool cut = all > room;
    size_t most = cut ? (room > dots_columns ? room - dots_columns : 0) : all;
    for (const char *at = name; *at;) {
        at += one_character(at, text, &columns);
        if (written + columns > most)
            break;
        fputs(text, out);
        written += columns;
    }
    if (cut && room >= dots_columns) {
        fputs(dots, out);
        written += dots_columns;
    }
    return written;
}

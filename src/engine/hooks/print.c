// The target's printf (VALGRIND_PRINTF and its kin): its format and its arguments, read from its
// memory, where either may be wrong. What cannot be read is shown as "(unreadable)".
//
// Lines go out whole; what has no end of line yet waits for it, or for a stack to be shown.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "engine/hooks/hooks.h"
#include "engine/tool.h"

enum { LINE = 8192, SPECIFICATION = 32, PAGE = 4096 };
enum { GENERAL_END = 48, FLOAT_END = 176 }; // of the registers that a variadic function saves

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char line[LINE + 1];
static size_t line_size;

// ---- output ------------------------------------------------------------------------------------

static void show(bool with_stack) {
    line[line_size] = 0;
    line_size = 0;
    tool_print(line, with_stack);
}

static void put(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' || line_size == LINE)
            show(false);
        if (text[i] != '\n')
            line[line_size++] = text[i];
    }
}

void print_end(void) {
    if (line_size)
        show(false);
}

// ---- arguments ---------------------------------------------------------------------------------

struct arguments { // as the calling convention lays them out
    uint32_t general, floating;
    uint64_t overflow, saved;
};

static uint64_t next_general(struct arguments *arguments) {
    uint64_t value = 0, at;
    if (arguments->general < GENERAL_END) {
        at = arguments->saved + arguments->general;
        arguments->general += 8;
    } else {
        at = arguments->overflow;
        arguments->overflow += 8;
    }
    return tool_read(&value, at, sizeof value) == 0 ? value : 0;
}

static double next_double(struct arguments *arguments) {
    double value = 0;
    uint64_t at;
    if (arguments->floating < FLOAT_END) {
        at = arguments->saved + arguments->floating;
        arguments->floating += 16;
    } else {
        at = arguments->overflow;
        arguments->overflow += 8;
    }
    return tool_read(&value, at, sizeof value) == 0 ? value : 0;
}

static long double next_long_double(struct arguments *arguments) {
    long double value = 0;
    uint64_t at = (arguments->overflow + 15) & ~15ul;
    arguments->overflow = at + 16;
    return tool_read(&value, at, 10) == 0 ? value : 0;
}

// A string of the target, cut to the buffer. False: unreadable.
static bool read_string(char *to, size_t room, uint64_t from) {
    size_t used = 0;
    while (used + 1 < room) {
        size_t part = PAGE - (from + used) % PAGE;
        if (part > room - 1 - used)
            part = room - 1 - used;
        if (tool_read(to + used, from + used, part))
            return false;
        size_t length = strnlen(to + used, part);
        used += length;
        if (length < part)
            return true;
    }
    to[used] = 0;
    return true;
}

// ---- conversions -------------------------------------------------------------------------------

struct conversion {
    char text[SPECIFICATION]; // % flags width . precision
    size_t size;
    bool has_precision;
    int precision;
    int longs; // h: -1, hh: -2, l: 1, ll and the like: 2
    bool long_double;
};

static void add(struct conversion *conversion, const char *text) {
    size_t size = strlen(text);
    if (conversion->size + size + 4 < sizeof conversion->text) {
        memcpy(conversion->text + conversion->size, text, size + 1);
        conversion->size += size;
    }
}

static const char *take_number(struct conversion *conversion, struct arguments *arguments,
                               const char *format, int *value) {
    char digits[16];
    *value = 0;
    if (*format == '*') {
        *value = (int)next_general(arguments);
        format++;
    } else {
        for (; *format >= '0' && *format <= '9'; format++)
            if (*value < LINE)
                *value = *value * 10 + *format - '0';
    }
    // More would not fit anyway.
    if (*value > LINE / 2)
        *value = LINE / 2;
    if (*value < -LINE / 2)
        *value = -LINE / 2;
    snprintf(digits, sizeof digits, "%d", *value);
    add(conversion, digits);
    return format;
}

static const char *take_specification(struct conversion *conversion, struct arguments *arguments,
                                      const char *format) {
    int width;
    add(conversion, "%");
    for (; *format && strchr("-+ #0'", *format); format++)
        add(conversion, (char[]){*format, 0});
    if (*format == '*' || (*format >= '1' && *format <= '9'))
        format = take_number(conversion, arguments, format, &width);
    if (*format == '.') {
        add(conversion, ".");
        conversion->has_precision = true;
        format = take_number(conversion, arguments, format + 1, &conversion->precision);
    }
    for (; *format && strchr("hlqjztL", *format); format++) {
        if (*format == 'h')
            conversion->longs--;
        else
            conversion->longs += *format == 'l' ? 1 : 2;
        conversion->long_double |= *format == 'L';
    }
    return format;
}

static uint64_t narrow(uint64_t value, int longs, bool is_signed) {
    unsigned bits = longs >= 1 ? 64 : longs == 0 ? 32 : longs == -1 ? 16 : 8;
    if (is_signed)
        return (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
    return value << (64 - bits) >> (64 - bits);
}

static int convert_string(char *out, size_t room, struct conversion *conversion,
                          struct arguments *arguments) {
    char text[LINE / 2];
    uint64_t from = next_general(arguments);
    size_t most = sizeof text;
    if (conversion->has_precision && conversion->precision >= 0 &&
        (size_t)conversion->precision + 1 < most)
        most = conversion->precision + 1;
    if (!from)
        snprintf(text, sizeof text, "(null)");
    else if (!read_string(text, most, from))
        snprintf(text, sizeof text, "(unreadable)");
    add(conversion, "s");
    return snprintf(out, room, conversion->text, text);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
// Returns the number of characters, as snprintf does; -1: no conversion that is known.
static int convert(char *out, size_t room, char kind, struct conversion *conversion,
                   struct arguments *arguments) {
    switch (kind) {
    case 'd':
    case 'i':
        add(conversion, "ld");
        return snprintf(out, room, conversion->text,
                        narrow(next_general(arguments), conversion->longs, true));
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        add(conversion, (char[]){'l', kind, 0});
        return snprintf(out, room, conversion->text,
                        narrow(next_general(arguments), conversion->longs, false));
    case 'p':
        add(conversion, "p");
        return snprintf(out, room, conversion->text, (void *)next_general(arguments));
    case 'c':
        add(conversion, "c");
        return snprintf(out, room, conversion->text, (int)next_general(arguments));
    case 's':
        return convert_string(out, room, conversion, arguments);
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        add(conversion, conversion->long_double ? (char[]){'L', kind, 0} : (char[]){kind, 0});
        if (conversion->long_double)
            return snprintf(out, room, conversion->text, next_long_double(arguments));
        return snprintf(out, room, conversion->text, next_double(arguments));
    case '%':
        return snprintf(out, room, "%%");
    default:
        return -1;
    }
}
#pragma GCC diagnostic pop

static unsigned long print_format(const char *format, struct arguments *arguments) {
    unsigned long printed = 0;
    while (*format) {
        size_t plain = strcspn(format, "%");
        put(format, plain);
        printed += plain;
        format += plain;
        if (!*format)
            break;
        char out[LINE];
        struct conversion conversion = {0};
        const char *kind = take_specification(&conversion, arguments, format + 1);
        if (!*kind)
            break;
        int size = convert(out, sizeof out, *kind, &conversion, arguments);
        if (size < 0) {
            put(format, (size_t)(kind + 1 - format));
            size = 0;
        }
        size_t shown = (size_t)size < sizeof out ? (size_t)size : sizeof out - 1;
        put(out, shown);
        printed += shown;
        format = kind + 1;
    }
    return printed;
}

unsigned long print_request(uint64_t format, uint64_t list, bool with_stack) {
    static char text[LINE];
    struct arguments arguments;
    unsigned long printed = 0;
    pthread_mutex_lock(&lock);
    if (!read_string(text, sizeof text, format))
        snprintf(text, sizeof text, "(unreadable)\n");
    if (tool_read(&arguments, list, sizeof arguments))
        arguments = (struct arguments){.general = GENERAL_END, .floating = FLOAT_END};
    // The stack belongs to the last line.
    size_t size = strlen(text);
    bool ends_line = with_stack && size && text[size - 1] == '\n';
    if (ends_line)
        text[size - 1] = 0;
    printed = print_format(text, &arguments) + ends_line;
    if (with_stack)
        show(true);
    pthread_mutex_unlock(&lock);
    return printed;
}

#include "report/shared/stack_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES_AT_ADDRESS = 64 };

static const char unknown_name[] = "???";

size_t stack_text_printable(const unsigned char *text) {
    unsigned char first = text[0];
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    /* U+0080 to U+009F steer terminals too; longer forms of short characters, surrogates and
     * what lies above U+10FFFF are not UTF-8. */
    unsigned char second = text[1];
    if ((first == 0xc2 && second < 0xa0) || (first == 0xe0 && second < 0xa0) ||
        (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

void stack_text_escaped(FILE *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t length = stack_text_printable(at);
        if (length) {
            fwrite(at, 1, length, out);
            at += length;
        } else {
            fprintf(out, "\\x%02X", *at++);
        }
    }
}

static bool is_below_main(const char *name) {
    static const char *const names[] = {"_start", "__libc_start_main", "__libc_start_call_main",
                                        "generic_start_main", "generic_start_main.isra.0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* The directory as the options want it, or "". */
static const char *directory_of(const struct symbol_frame *frame,
                                const struct stack_text_options *options) {
    if (!options->fullpath_after_count || !frame->directory)
        return "";
    const char *directory = frame->directory;
    for (size_t i = 0; i < options->fullpath_after_count; i++) {
        const char *found = strstr(directory, options->fullpath_after[i]);
        if (found) {
            directory = found + strlen(options->fullpath_after[i]);
            break;
        }
    }
    return strncmp(directory, "./", 2) ? directory : directory + 2;
}

void stack_text_frame(FILE *out, const struct symbol_frame *frame,
                      const struct stack_text_options *options) {
    static const struct symbol_frame unknown;
    if (!frame)
        frame = &unknown;
    if (!frame->name)
        fputs(unknown_name, out);
    else if (!options->show_below_main && stack_text_is_below_main(frame))
        fputs("(below main)", out);
    else
        stack_text_escaped(out, frame->name);
    if (options->symbol_offsets && frame->name && !frame->inlined && frame->offset)
        fprintf(out, "+%" PRIu64, frame->offset);
    if (frame->file && frame->line) {
        const char *directory = directory_of(frame, options);
        fputs(" (", out);
        stack_text_escaped(out, directory);
        if (directory[0])
            fputc('/', out);
        stack_text_escaped(out, frame->file);
        fprintf(out, ":%" PRIu32 ")", frame->line);
    } else if (frame->object) {
        fputs(" (in ", out);
        stack_text_escaped(out, frame->object);
        fputc(')', out);
    } else if (frame->name) {
        fprintf(out, " (in %s)", unknown_name);
    }
}

// A script may have functions of the same name.
bool stack_text_is_main(const struct symbol_frame *frame) {
    bool is_generated = frame->object && strcmp(frame->object, SYMBOLS_GENERATED_CODE) == 0;
    return frame->name && !is_generated && (!strcmp(frame->name, "main") || is_below_main(frame->name));
}

bool stack_text_is_below_main(const struct symbol_frame *frame) {
    return frame->name && !frame->inlined && is_below_main(frame->name);
}

void stack_text_line(bool first, uint64_t address, const struct symbol_frame *frame,
                     const struct stack_text_options *options,
                     void (*line)(void *context, const char *text), void *context) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    fprintf(out, "   %s 0x%" PRIX64 ": ", first ? "at" : "by", address);
    stack_text_frame(out, frame, options);
    if (fclose(out) == 0)
        line(context, text);
    free(text);
}

void stack_text(struct symbols *symbols, const struct stack *stack,
                const struct stack_text_options *options,
                void (*line)(void *context, const char *text), void *context) {
    static const struct stack_text_options defaults;
    if (!options)
        options = &defaults;
    size_t callers = options->callers ? options->callers : STACK_TEXT_DEFAULT_CALLERS;
    struct symbol_frame frames[MOST_FRAMES_AT_ADDRESS];
    for (size_t i = 0; i < stack->count && i < callers; i++) {
        uint64_t address = stack->addresses[i];
        if (i || stack->first_is_return_address)
            address--;
        size_t count =
            symbols_resolve(symbols, stack->pid, address, false, frames, MOST_FRAMES_AT_ADDRESS);
        if (!count)
            stack_text_line(i == 0, address, NULL, options, line, context);
        for (size_t j = 0; j < count; j++)
            stack_text_line(i == 0 && j == 0, address, &frames[j], options, line, context);
        if (count && !options->show_below_main && stack_text_is_main(&frames[count - 1]))
            return;
    }
}

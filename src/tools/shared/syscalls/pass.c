#include "tools/shared/syscalls/pass.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/tool.h"

// As the name of a piece: the argument with the number that follows.
static const char of_argument[] = "%u";

// ---- names -------------------------------------------------------------------------------------

unsigned pass_argument_name(const struct pass *pass, unsigned argument, bool *checks,
                            char name[PASS_NAME_SIZE]) {
    const char *at = pass->entry->arguments;
    for (unsigned i = 0; i < argument && *at; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    size_t length = strcspn(at, " :?");
    snprintf(name, PASS_NAME_SIZE, "%.*s", (int)length, at);
    at += length;
    *checks = *at != '?';
    at += *at == '?';
    return *at == ':' ? 4 : 8;
}

void pass_whole_name(const struct pass *pass, const char *name, char whole[PASS_WHOLE_SIZE]) {
    if (strchr(name, '('))
        snprintf(whole, PASS_WHOLE_SIZE, "%s", name);
    else
        snprintf(whole, PASS_WHOLE_SIZE, "%.60s(%s)", pass->entry->name, name);
}

void pass_format_name(const struct pass *pass, char whole[PASS_WHOLE_SIZE], const char *format,
                      va_list words) {
    char name[PASS_NAME_SIZE];
    bool checks;
    if (format == of_argument)
        pass_argument_name(pass, va_arg(words, unsigned), &checks, name);
    else
        vsnprintf(name, sizeof name, format, words);
    pass_whole_name(pass, name, whole);
}

// ---- for visits --------------------------------------------------------------------------------

void pass_in(const struct pass *pass, uint64_t address, uint64_t size, const char *name, ...) {
    va_list words;
    if (pass->after)
        return;
    va_start(words, name);
    pass->user->reads(pass, address, size, name, words);
    va_end(words);
}

void pass_string(const struct pass *pass, uint64_t address, const char *name, ...) {
    va_list words;
    if (pass->after)
        return;
    va_start(words, name);
    pass->user->reads_string(pass, address, name, words);
    va_end(words);
}

void pass_mark(const struct pass *pass, uint64_t address, uint64_t size) {
    if (pass->after && size && address)
        pass->user->wrote(address, size);
}

void pass_fill(const struct pass *pass, uint64_t address, uint64_t size) {
    if (!pass->after && size && address)
        pass->user->wrote(address, size);
}

void pass_out(const struct pass *pass, uint64_t address, uint64_t size, uint64_t written,
              const char *name, ...) {
    va_list words;
    if (pass->after) {
        pass_mark(pass, address, written < size ? written : size);
        return;
    }
    if (!pass->user->writes)
        return;
    va_start(words, name);
    pass->user->writes(pass, address, size, name, words);
    va_end(words);
}

void pass_register(const struct pass *pass, unsigned argument, unsigned size, const char *name) {
    char own[PASS_NAME_SIZE], whole[PASS_WHOLE_SIZE];
    bool checks;
    if (!pass->checks_arguments)
        return;
    pass_argument_name(pass, argument, &checks, own);
    pass_whole_name(pass, name ? name : own, whole);
    pass->user->argument(argument, size, whole);
}

void pass_unknown(const struct pass *pass, const char *what, unsigned long number) {
    if (pass->user->unknown)
        pass->user->unknown(what, number);
}

bool pass_read(void *to, uint64_t from, size_t size) {
    return tool_read(to, from, size) == 0;
}

// ---- a pass
// --------------------------------------------------------------------------------------

static uint64_t piece_size(const struct pass *pass, const struct piece *piece) {
    if (!piece->count)
        return piece->unit;
    uint64_t count = pass->arguments[piece->count - 1], size;
    if (piece->narrow)
        count = (uint32_t)count;
    if (!piece->unit)
        return node_mask_bytes(count);
    return __builtin_mul_overflow(count, piece->unit, &size) ? UINT64_MAX : size;
}

static void visit_piece(const struct pass *pass, const struct piece *piece) {
    uint64_t address = pass->arguments[piece->argument];
    if (!address && piece->optional)
        return;
    uint64_t size = piece_size(pass, piece);
    uint64_t written =
        piece->written == WRITTEN_RESULT ? (uint64_t)pass->result * piece->unit : size;
    const char *name = piece->name ? piece->name : of_argument;
    unsigned number = piece->argument;
    address += piece->offset;
    switch (piece->kind) {
    case PIECE_STRING:
        pass_string(pass, address, name, number);
        break;
    case PIECE_IN:
        pass_in(pass, address, size, name, number);
        break;
    case PIECE_IN_OUT:
        pass_in(pass, address, size, name, number);
        pass_mark(pass, address, written);
        break;
    case PIECE_OUT:
        pass_out(pass, address, size, written, name, number);
        break;
    }
}

static void walk(const struct pass *pass, bool pieces) {
    for (unsigned i = 0; pieces && i < PIECES && pass->entry->pieces[i].kind; i++)
        visit_piece(pass, &pass->entry->pieces[i]);
    if (pass->entry->visit)
        pass->entry->visit(pass);
}

// Arguments that a visit checks itself are left to it.
static void check_arguments(const struct pass *pass) {
    for (unsigned i = 0; i < 6; i++) {
        char name[PASS_NAME_SIZE], whole[PASS_WHOLE_SIZE];
        bool checks;
        unsigned size = pass_argument_name(pass, i, &checks, name);
        if (!*name)
            return;
        pass_whole_name(pass, name, whole);
        if (checks)
            pass->user->argument(i, size, whole);
    }
}

void syscalls_before(const struct syscalls_user *user, long number, const uint64_t arguments[6],
                     bool checks_arguments) {
    struct pass pass = {.user = user,
                        .entry = syscalls_entry(number),
                        .arguments = arguments,
                        .checks_arguments = checks_arguments};
    if (!pass.entry) {
        pass_unknown(&pass, "system call", number);
        return;
    }
    if (checks_arguments)
        check_arguments(&pass);
    walk(&pass, true);
}

void syscalls_after(const struct syscalls_user *user, long number, const uint64_t arguments[6],
                    long result) {
    struct pass pass = {.user = user,
                        .entry = syscalls_entry(number),
                        .arguments = arguments,
                        .after = true,
                        .result = result};
    bool failed = result < 0 && result >= -4095;
    if (pass.entry && (!failed || pass.entry->on_failure))
        walk(&pass, !failed);
}

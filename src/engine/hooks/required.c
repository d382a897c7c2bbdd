// --require-text-symbol: a run without a function that the user relies on is not begun.
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "engine/fatal.h"
#include "engine/hooks/module.h"
#include "wire/wire_target.h"

enum { PATTERN = 256 };

static const char *wanted; // while symbols are visited; NULL: found

static void look(struct module *module, const char *name, const Elf64_Sym *symbol) {
    if (wanted && fnmatch(wanted, name, 0) == 0)
        wanted = NULL;
}

// ":SONAME:SYMBOL", with any character for the colon; both are patterns.
static bool parse(const char *text, char soname[PATTERN], char symbol[PATTERN]) {
    const char *middle = text[0] ? strchr(text + 1, text[0]) : NULL;
    if (!middle || (size_t)(middle - text) > PATTERN || strlen(middle) > PATTERN)
        return false;
    snprintf(soname, PATTERN, "%.*s", (int)(middle - text - 1), text + 1);
    snprintf(symbol, PATTERN, "%s", middle + 1);
    return true;
}

void required_check(struct module *module, const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char soname[PATTERN], symbol[PATTERN];
    for (const char *text = NULL; (text = wire_option_next("require-text-symbol", text));) {
        if (!parse(text, soname, symbol))
            fatal("bad option: --require-text-symbol=%s: it must be :SONAME:SYMBOL", text);
        if (fnmatch(soname, file, 0) != 0)
            continue;
        wanted = symbol;
        module_visit_symbols(module, look);
        if (wanted)
            fatal("%s has no function %s, which --require-text-symbol asks for", path, symbol);
    }
}

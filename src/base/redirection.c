#include "base/redirection.h"

#include <stddef.h>
#include <string.h>

static char letter_meaning(char letter) {
    static const char letters[] = "acdhpsuADPLRSZ", meanings[] = "*:.-+ _@$%()/Z";
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? meanings[at - letters] : 0;
}

// Up to the end character; what follows, or NULL if it is no such text or does not fit.
static const char *decode(const char *text, char end, bool is_encoded, char *to, size_t size) {
    size_t used = 0;
    for (; *text && *text != end; text++) {
        char meaning = *text;
        if (is_encoded && meaning == 'Z')
            meaning = letter_meaning(*++text);
        if (!meaning || used + 1 >= size)
            return NULL;
        to[used++] = meaning;
    }
    to[used] = 0;
    return *text == end && used ? text : NULL;
}

bool redirection_parse(const char *symbol, struct redirection *redirection) {
    enum { DIGITS = 5 };
    if (strncmp(symbol, "_vgr", 4) != 0 && strncmp(symbol, "_vgw", 4) != 0)
        return false;
    const char *at = symbol + 4;
    if (strspn(at, "0123456789") != DIGITS)
        return false;
    at += DIGITS;
    if (at[0] != 'Z' || (at[1] != 'U' && at[1] != 'Z') || at[2] != '_')
        return false;
    redirection->wraps = symbol[3] == 'w';
    const char *name = decode(at + 3, '_', true, redirection->soname, sizeof redirection->soname);
    return name &&
           decode(name + 1, 0, at[1] == 'Z', redirection->function, sizeof redirection->function);
}

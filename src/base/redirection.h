// Names of functions that stand for others, as the macros of valgrind.h make them:
// _vgr00000ZU_SONAME_NAME replaces, _vgw00000ZU_SONAME_NAME wraps the function NAME of the shared
// object SONAME (NONE: of objects without one, such as programs). In SONAME some characters are
// written as Z and a letter; with ZZ for ZU, in NAME too. `*` and `?` are wild in both. Allocates
// nothing and calls nothing, so it serves both sides.
#ifndef QUERN_BASE_REDIRECTION_H
#define QUERN_BASE_REDIRECTION_H

#include <stdbool.h>

struct redirection {
    bool wraps;
    char soname[128], function[512];
};

// False: the symbol is an ordinary one.
bool redirection_parse(const char *symbol, struct redirection *);

#endif

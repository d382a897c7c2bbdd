// The loader's own string functions read beyond the end of a name, within its page.
//
// case loader_names --leak-check=no alone clean
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    for (int i = 1; i < 40; i++) {
        char text[100] = "$ORIGIN/lib";
        memset(text + strlen(text), 'n', i);
        strcat(text, ".so");
        char *name = strdup(text);
        if (dlopen(name, RTLD_NOW))
            puts("found");
        free(name);
    }
    return 0;
}

// Held from the data of libraries: one that stays, one that is closed.
#include <dlfcn.h>

#include "target.h"

static void hold(const char *path, int stays) {
    void *library = dlopen(path, RTLD_NOW);
    void (*function)(void) = library ? (void (*)(void))dlsym(library, "plugin_hold") : NULL;
    if (!function)
        _exit(2);
    function();
    if (!stays)
        dlclose(library);
}
int main(int argc, char **argv) {
    hold(argv[1], 1);
    hold(argv[2], 0);
    wipe();
    return 0;
}

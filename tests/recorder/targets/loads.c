// Loads a library, lets it allocate, and unloads it, three times.
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        void *(*make)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plugin_make") : NULL;
        if (!make)
            return 1;
        blocks[i] = make(100000);
        dlclose(library);
    }
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
    return 0;
}

// Loads the libraries that it is given, and calls their function `use`.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        void (*use)(void) = library ? (void (*)(void))dlsym(library, "use") : NULL;
        if (!use)
            return printf("%s\n", dlerror());
        use();
    }
    puts("done");
    return 0;
}

// mprotect with PROT_GROWSDOWN, by which the loader makes the whole stack executable when it loads
// a library that asks for it (GHC's runtime does).
#include "stress.h"

static const int RWX = PROT_READ | PROT_WRITE | PROT_EXEC;

static int NOINLINE call(const char *code) {
    return ((int (*)(void))(uintptr_t)code)();
}

// mov eax, 4711; ret: on the stack, deeper than the page whose rights were changed
static int NOINLINE run_on_stack(void) {
    static const char code[] = {(char)0xb8, 0x67, 0x12, 0, 0, (char)0xc3};
    char room[1 << 16];
    memset(room, (char)0xcc, sizeof room);
    memcpy(room, code, sizeof code);
    __asm__ volatile("" ::"r"(room) : "memory"); // the compiler does not see that it is read
    return call(room);
}

// Of the mapping at this address: the one that is called [stack] may lie above, and stay as it was.
static void show_stack(const char *at) {
    char line[512], rights[8] = "none", found[8];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, found) == 3 && start <= (uintptr_t)at &&
            (uintptr_t)at < end)
            strcpy(rights, found);
    fclose(maps);
    printf("stack %s\n", rights);
}

static void protect(const char *what, void *at, int rights) {
    int status = mprotect(at, 4096, rights);
    printf("%s: %s\n", what, status ? strerror(errno) : "done");
}

int main(void) {
    char here, *page = (char *)((uintptr_t)&here & ~4095ul);
    show_stack(&here);
    protect("both ways", page, RWX | PROT_GROWSDOWN | PROT_GROWSUP);
    protect("upwards", page, RWX | PROT_GROWSUP);
    protect("downwards", page, RWX | PROT_GROWSDOWN);
    show_stack(&here);
    SAME(run_on_stack(), 4711);

    char *plain = mmap(NULL, 1 << 16, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(plain != MAP_FAILED);
    protect("not a stack", plain + 8192, PROT_READ | PROT_GROWSDOWN);
    plain[0] = 1;
    char *grows =
        mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    CHECK(grows != MAP_FAILED);
    protect("a stack of its own", grows + 8192, PROT_READ | PROT_WRITE | PROT_GROWSDOWN);
    grows[0] = grows[8192] = 1;
    munmap(plain, 1 << 16);
    protect("nothing there", plain, PROT_READ | PROT_GROWSDOWN);
    return 0;
}

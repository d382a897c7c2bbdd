// What the programs share. They print nothing, so that the C library allocates nothing.
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

// Held to the end.
static void *volatile held[64] __attribute__((unused));

// A block of words, all zero, so that every word counts as known. Not inlined: Valgrind takes the
// header's lines for those of the program then.
static __attribute__((noinline, unused)) void **words(int count) {
    return (void **)calloc((size_t)count, sizeof(void *));
}
// Overwrites what calls have left on the stack and in registers.
static void __attribute__((noinline, unused)) wipe(void) {
    volatile char stack[4096];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 0;
}
// The loader notes how many cycles it has worked, and where blocks lie low, as Valgrind's do, that
// may look like a pointer to one of them, the more likely the more there are. It knows no block of
// the program: what looks like one from here to there is taken away.
static void __attribute__((noinline, unused)) forget_times(const void *from, const void *to) {
    const char *loader = (const char *)getauxval(AT_BASE);
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)loader;
    const Elf64_Phdr *parts = (const Elf64_Phdr *)(loader + head->e_phoff);
    for (int i = 0; i < head->e_phnum; i++) {
        uintptr_t *word = (uintptr_t *)(loader + (parts[i].p_vaddr + 7) / 8 * 8);
        uintptr_t *end = (uintptr_t *)(loader + (parts[i].p_vaddr + parts[i].p_memsz) / 8 * 8);
        if (parts[i].p_type != PT_LOAD || !(parts[i].p_flags & PF_W))
            continue;
        for (; word < end; word++)
            if (*word >= (uintptr_t)from && *word < (uintptr_t)to)
                *word = 0;
    }
}

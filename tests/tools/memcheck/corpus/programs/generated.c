// Code that the program has generated, and a stack of its own choice: Erlang's processes have heap
// and stack in one block, and what lies below their stack pointer is data.
//
// case generated_private arg:private
// case generated_shared arg:shared
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 64, TOP = 48 };

// Goes to the stack that ends at rdi, calls and returns there, moves the pointer, and comes back.
extern const char use_stack[], use_stack_end[];
__asm__("use_stack: mov %rsp, %rax; mov %rdi, %rsp; push %rdi; call 1f; pop %rdi; add $16, %rsp;"
        "sub $16, %rsp; push %rdi; pop %rsi; lea 8(%rsp), %rsp; jmp 2f;"
        "1: push %rdi; pop %rsi; ret;"
        "2: mov %rax, %rsp; ret; use_stack_end:");

static void (*generate(int is_shared))(long *) {
    size_t size = use_stack_end - use_stack;
    char *written, *run;
    if (is_shared) { // as programs do that keep code and the right to write it apart
        int file = memfd_create("code", 0);
        if (ftruncate(file, 4096) != 0)
            exit(1);
        written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        run = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    } else {
        run = written = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    memcpy(written, use_stack, size);
    return (void (*)(long *))run;
}

int main(int argc, char **argv) {
    void (*code)(long *) = generate(strcmp(argv[1], "shared") == 0);
    long *block = malloc(WORDS * sizeof *block), sum = 0;
    for (int i = 0; i < WORDS; i++)
        block[i] = i;
    code(&block[TOP]);
    for (int i = 0; i < TOP - 4; i++)     // below the deepest place that was used
        sum += block[i];                  // no bug, but Valgrind reports it
    if (sum == (TOP - 4) * (TOP - 5) / 2) // the same bug of Valgrind's
        puts("same");
    free(block);
    return 0;
}

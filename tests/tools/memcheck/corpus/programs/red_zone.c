// The 128 bytes below the stack pointer keep their contents when the pointer rises, and lose them
// when a call or a return ends the function.
//
// case red_zone_pop arg:pop clean
// case red_zone_add arg:add clean
// case red_zone_lea arg:lea clean
// case red_zone_leave arg:leave clean
// case red_zone_move arg:move clean
// case red_zone_far arg:far clean
// case red_zone_jump arg:jump clean
// case red_zone_pointer arg:pointer clean
// case red_zone_table arg:table clean
// case red_zone_again arg:again clean
// case red_zone_returned arg:returned
// case red_zone_called arg:called
// case red_zone_left arg:left
// case red_zone_tail arg:tail
#include <stdio.h>
#include <string.h>

// Each stores its argument on the stack, moves the pointer above it and reads it back.
#define KEPT(name, body)                                                                           \
    long name(long value);                                                                         \
    __asm__(".globl " #name "\n" #name ":\n" body "\n\tret\n")

KEPT(by_pop, "push %rdi; pop %rcx; mov -8(%rsp), %rax");
KEPT(by_add, "sub $40, %rsp; mov %rdi, 8(%rsp); add $40, %rsp; mov -32(%rsp), %rax");
KEPT(by_lea, "push %rbp; mov %rsp, %rbp; sub $64, %rsp; mov %rdi, -16(%rbp); lea (%rbp), %rsp;"
             "mov -16(%rsp), %rax; pop %rbp");
KEPT(by_leave, "push %rbp; mov %rsp, %rbp; sub $64, %rsp; mov %rdi, -16(%rbp); leave;"
               "mov -24(%rsp), %rax");
KEPT(by_move, "mov %rsp, %rdx; sub $64, %rsp; mov %rdi, (%rsp); mov %rdx, %rsp;"
              "mov -64(%rsp), %rax");
KEPT(by_far, "sub $400, %rsp; mov %rdi, 280(%rsp); add $400, %rsp; mov -120(%rsp), %rax");
KEPT(by_jump, "push %rdi; add $8, %rsp; jmp 1f; nop; 1: mov -8(%rsp), %rax; test %rax, %rax;"
              "jz 2f; mov -8(%rsp), %rax; 2:");
KEPT(by_pointer, "push %rdi; mov %rsp, %rdx; pop %rcx; mov (%rdx), %rax");
// As libffi does: the way on is computed.
KEPT(by_table, "push %rdi; lea 1f(%rip), %rdx; add $8, %rsp; lea -8(%rsp), %rsi; jmp *%rdx;"
               "1: mov (%rsi), %rax");

// As OCaml does: what was popped is taken back.
KEPT(by_taking_back,
     "push %rdi; pop %rcx; sub $8, %rsp; lea 1f(%rip), %rdx; jmp *%rdx; 1: pop %rax");

// What is read here was released.
long read_below(void);
__asm__("read_below: mov -16(%rsp), %rax; ret");
long after_call(long value);
__asm__("after_call: sub $24, %rsp; mov %rdi, (%rsp); mov %rdi, 8(%rsp); add $24, %rsp; test %rdi, "
        "%rdi;"
        "jz 1f; sub $8, %rsp; call read_below; add $8, %rsp; 1: ret");
void leave_values(long value);
__asm__("leave_values: push %rdi; push %rdi; push %rdi; add $24, %rsp; test %rdi, %rdi; jz 1f;"
        "nop; 1: ret");
void tail_values(long value);
__asm__("tail_values: push %rdi; push %rdi; push %rdi; add $24, %rsp; jmp 1f; nop; nop; 1: ret");
void normal_values(long value);
__asm__("normal_values: push %rdi; push %rdi; push %rdi; add $24, %rsp; ret");

static struct {
    const char *name;
    long (*function)(long);
} kept[] = {
    {"pop", by_pop},     {"add", by_add},           {"lea", by_lea},   {"leave", by_leave},
    {"move", by_move},   {"far", by_far},           {"jump", by_jump}, {"pointer", by_pointer},
    {"table", by_table}, {"again", by_taking_back},
};

int main(int argc, char **argv) {
    for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcmp(argv[1], kept[i].name) == 0) {
            if (kept[i].function(argc + 40) == 42)
                puts("kept");
            return 0;
        }
    if (strcmp(argv[1], "called") == 0) {
        if (after_call(argc) == 42) // bug
            puts("called");
        return 0;
    }
    if (strcmp(argv[1], "left") == 0)
        leave_values(argc);
    else if (strcmp(argv[1], "tail") == 0)
        tail_values(argc);
    else
        normal_values(argc);
    if (read_below() == 42) // bug
        puts("below");
    return 0;
}

// Functions that end by jumping to the next: thunk and outer_thunk jump at once, entered has work of
// its own before that; outside is called by way of the table that the linker makes; parted goes on in
// code that has no name. What is called by a pointer cannot be told from the call.
#include "work.h"

#define APART __attribute__((noipa))

APART void last(unsigned long times) {
    turn(times);
    sink++;
}

APART void thunk(unsigned long times) {
    last(times);
}

APART void outer_thunk(unsigned long times) {
    thunk(times);
}

APART void entered(unsigned long times) {
    sink++;
    thunk(times + 1);
}

__attribute__((noplt)) void outside(unsigned long times);
__asm__(".text\n"
        ".globl outside\n"
        ".type outside, @function\n"
        "outside: jmp last\n"
        ".size outside, . - outside\n");

void parted(unsigned long times);
__asm__(".text\n"
        ".globl parted\n"
        ".type parted, @function\n"
        "parted: .cfi_startproc\n"
        "jmp 1f\n"
        ".cfi_endproc\n"
        ".size parted, . - parted\n"
        "1: .cfi_startproc\n"
        "sub $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call last\n"
        "add $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n");

int main(int count, char **words) {
    void (*volatile pointer)(unsigned long) = entered;
    for (int i = 0; i < 100; i++) {
        entered(2000000);
        sink++;
        outer_thunk(2000000);
        sink++;
        outside(2000000);
        sink++;
        parted(2000000);
        sink++;
        if (count > 1)
            pointer(6000000);
        sink++;
    }
    return 0;
}

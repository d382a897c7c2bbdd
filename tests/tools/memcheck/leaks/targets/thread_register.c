// A thread that holds a block in a register only, while it runs and while it waits in the kernel.
#include <pthread.h>
#include <semaphore.h>

#include "target.h"

static sem_t ready;
static volatile int flag;

// The block is in r15 and nowhere else when `flag` is set.
static void *spin(void *argument) {
    void *block = calloc(10, 8);
    sem_post(&ready);
    __asm__ volatile("mov %1, %%r15\n\t"
                     "xor %%eax, %%eax\n\t"
                     "xor %%ecx, %%ecx\n\t"
                     "xor %%edx, %%edx\n\t"
                     "xor %%ebx, %%ebx\n\t"
                     "xor %%esi, %%esi\n\t"
                     "xor %%edi, %%edi\n\t"
                     "movl $1, %0\n"
                     "1: pause\n\t"
                     "jmp 1b"
                     : "=m"(flag)
                     : "r"(block)
                     : "rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r15", "memory");
    return NULL;
}
static void *sleep_long(void *argument) {
    void *block = calloc(11, 8);
    sem_post(&ready);
    __asm__ volatile("mov %0, %%r14\n\t"
                     "xor %%ecx, %%ecx\n\t"
                     "xor %%edx, %%edx\n\t"
                     "xor %%ebx, %%ebx\n\t"
                     "1: mov $34, %%eax\n\t" // pause(2)
                     "syscall\n\t"
                     "jmp 1b"
                     :
                     : "r"(block)
                     : "rax", "rcx", "rdx", "rbx", "r11", "r14", "memory");
    return NULL;
}
int main(void) {
    pthread_t thread;
    sem_init(&ready, 0, 0);
    pthread_create(&thread, NULL, spin, NULL);
    sem_wait(&ready);
    while (!flag)
        usleep(1000);
    pthread_create(&thread, NULL, sleep_long, NULL);
    sem_wait(&ready);
    usleep(50000);
    wipe();
    return 0;
}

// How a program can die, and what is said then; leaks of a program that did not come to its end.
//
// case die_segv_null -DHOW='*(volatile int *)0 = 1'
// case die_segv_read -DHOW='kept = *(volatile int *)0x123450'
// case die_segv_code -DHOW='*(volatile char *)main = 1'
// case die_abort -DHOW='abort()'
// case die_assert -DHOW='assert(kept == 1)'
// case die_divide -DHOW='kept = 1 / kept'
// case die_illegal -DHOW='__builtin_trap()'
// case die_raise_term -DHOW='raise(SIGTERM)'
// case die_raise_usr1 -DHOW='raise(SIGUSR1)'
// case die_raise_segv -DHOW='raise(SIGSEGV)'
// case die_noncanonical -DHOW='kept = *(volatile int *)0x8000000000001234ul'
// case die_bus -DHOW='beyond_file()'
// case die_overflow -DHOW='endless(1)'
// case die_breakpoint -DHOW='__asm__ volatile("int3")'
// case die_hlt -DHOW='__asm__ volatile("hlt")'
// case die_alarm -DHOW='alarm(1), pause()'
// case die_exit -DHOW='exit(3)'
// case die_quick_exit -DHOW='quick_exit(4)'
// case die_underscore_exit -DHOW='_exit(5)'
// case die_kill_pipe -DHOW='broken_pipe()'
// case die_in_thread -DHOW='in_thread()'
// case exit_in_thread -DHOW='exit_in_thread()'
// case die_segv_xml -DHOW='*(volatile int *)0 = 1' xml
// case die_error_exitcode -DHOW='exit(3)' --error-exitcode=77
// case die_error_exitcode_leak -DHOW='exit(0)' --error-exitcode=77 --errors-for-leak-kinds=definite
// case die_error_exitcode_no_leak -DHOW='exit(6)' --error-exitcode=77 --errors-for-leak-kinds=none
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

volatile int kept;
volatile char *held;

static void beyond_file(void)
{
    int file = open("empty", O_RDWR | O_CREAT, 0600);
    char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    kept = map[100]; // bug
}

static int endless(int depth)
{
    volatile char frame[1000];
    frame[0] = depth;
    return endless(depth + 1) + frame[0]; // bug
}

static void broken_pipe(void)
{
    int ends[2];
    pipe(ends);
    close(ends[0]);
    kept = write(ends[1], "x", 1); // bug
}

static void *dies(void *unused)
{
    *(volatile int *)8 = 1; // bug
    return NULL;
}

static void *leaves(void *unused)
{
    malloc(33); // leak
    exit(8);
}

static void in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, dies, NULL);
    pthread_join(thread, NULL);
}

static void exit_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, leaves, NULL);
    pthread_join(thread, NULL);
}

int main(void)
{
    held = malloc(10); // leak
    malloc(20); // leak
    HOW; // bug
    return 0;
}

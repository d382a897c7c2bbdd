// Every kind of leak, by every way to hold a block or to lose it.
//
// case leak_definite -DWAY=1
// case leak_indirect_list -DWAY=2
// case leak_indirect_tree -DWAY=3
// case leak_possible -DWAY=4
// case leak_reachable_global -DWAY=5
// case leak_reachable_static -DWAY=6
// case leak_reachable_chain -DWAY=7
// case leak_reachable_interior_chain -DWAY=8
// case leak_cycle -DWAY=9
// case leak_cycle_of_five -DWAY=10
// case leak_self_pointer -DWAY=11
// case leak_two_cycles_joined -DWAY=12
// case leak_zero_size -DWAY=13
// case leak_many_same_place -DWAY=14
// case leak_many_sizes -DWAY=15
// case leak_by_calloc -DWAY=16
// case leak_by_realloc -DWAY=17
// case leak_by_memalign -DWAY=18
// case leak_unaligned_pointer -DWAY=19
// case leak_pointer_past_end -DWAY=20
// case leak_held_by_mapping -DWAY=21
// case leak_held_by_thread_local -DWAY=22
// case leak_held_by_freed -DWAY=23
// case leak_held_by_undefined -DWAY=24
// case leak_held_by_stack -DWAY=25
// case leak_held_by_dead_stack -DWAY=26
// case leak_length64 -DWAY=27
// case leak_length64_off -DWAY=27 --leak-check-heuristics=none
// case leak_length64_other -DWAY=27 --leak-check-heuristics=stdstring,newarray
// case leak_five_callers -DWAY=28
// case leak_resolution_low -DWAY=28 --leak-resolution=low
// case leak_resolution_med -DWAY=28 --leak-resolution=med
// case leak_resolution_high -DWAY=28 --leak-resolution=high
// case leak_mixed -DWAY=29
// case leak_mixed_definite_only -DWAY=29 --show-leak-kinds=definite
// case leak_mixed_none -DWAY=29 --show-leak-kinds=none unmarked
// case leak_mixed_summary -DWAY=29 --leak-check=summary unmarked
// case leak_mixed_no -DWAY=29 --leak-check=no unmarked
// case leak_mixed_yes -DWAY=29 plain --leak-check=yes
// case leak_mixed_default -DWAY=29 plain unmarked
// case leak_mixed_show_reachable -DWAY=29 plain --leak-check=full --show-reachable=yes
// case leak_mixed_no_possible -DWAY=29 plain --leak-check=full --show-possibly-lost=no
// case leak_mixed_errors_all -DWAY=29 --errors-for-leak-kinds=all --error-exitcode=5
// case leak_mixed_errors_reachable -DWAY=29 --errors-for-leak-kinds=reachable --error-exitcode=5
// case leak_mixed_errors_none -DWAY=29 --errors-for-leak-kinds=none --error-exitcode=5
// case leak_mixed_xml -DWAY=29 xml
// case leak_mixed_quiet -DWAY=29 --quiet
// case leak_mixed_callers_2 -DWAY=29 --num-callers=2 unmarked
// case leak_callers_3 -DWAY=28 --num-callers=3
// case leak_no_stacks -DWAY=29 --keep-stacktraces=none unmarked
// case leak_overwritten -DWAY=30
// case leak_in_union -DWAY=31
// case leak_tagged_pointer -DWAY=32
// case leak_xored_pointer -DWAY=33
// case leak_forked_child -DWAY=34
// case leak_doubly_linked -DWAY=35
// case leak_at_exit_handler -DWAY=36
// case leak_longjmp -DWAY=37
// case leak_big -DWAY=38
// case leak_array_of_blocks -DWAY=39
// case leak_possible_and_indirect -DWAY=40
// case leak_reachable_via_possible -DWAY=41
// case leak_in_register -DWAY=42 -O2 -fno-builtin
// case leak_thousand_records -DWAY=43
// case leak_recursion_depth -DWAY=44
// case leak_recursion_merged -DWAY=44 --merge-recursive-frames=2
// case leak_definite_clang_O2 clang -DWAY=28 -O2 -fno-builtin
// case leak_definite_O2 -DWAY=2 -O2 -fno-builtin
// case leak_cycle_clang clang -DWAY=10
// case leak_brk -DWAY=45
// case leak_noaccess_holder -DWAY=46
// case leak_environment -DWAY=47
// case leak_hash_table -DWAY=48
// case leak_file -DWAY=49
// case leak_no_freeres -DWAY=51 --run-libc-freeres=no
// case leak_freeres -DWAY=51 clean
// case leak_nothing -DWAY=52 clean
// case leak_nothing_allocated -DWAY=53 clean
// case roundtrip_leaks -DWAY=29 roundtrip --errors-for-leak-kinds=all
// case roundtrip_cycle -DWAY=10 roundtrip
// case leak_static_program -DWAY=54 -static alone --show-leak-kinds=definite,possible
#define _GNU_SOURCE
#include <malloc.h>
#include <search.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

struct node {
    struct node *next, *other;
    long value;
};

void *global;
__thread void *own;
static jmp_buf back;
volatile int kept;

static struct node *node(struct node *next)
{
    struct node *made = malloc(sizeof(*made)); // leak
    made->next = next;
    made->other = NULL;
    made->value = 7;
    return made;
}

__attribute__((noinline)) static struct node *tree(int depth)
{
    struct node *made = node(depth ? tree(depth - 1) : NULL);
    if (depth)
        made->other = tree(depth - 1);
    return made;
}

__attribute__((noinline)) static void *lose(size_t size)
{
    return malloc(size); // leak, bug(leak_static_program): 123 bytes in 1 blocks are definitely lost
}

__attribute__((noinline)) static void clear_registers(void)
{
    volatile char filling[4000];
    for (int i = 0; i < 4000; i++)
        filling[i] = 0;
    __asm__ volatile("xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
                     "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d"
                     : : : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

__attribute__((noinline)) static void layer4(int by) { lose(100 + by); } // leak
__attribute__((noinline)) static void layer3(int by) { layer4(by); kept++; } // leak
__attribute__((noinline)) static void layer2a(int by) { layer3(by); kept++; } // leak
__attribute__((noinline)) static void layer2b(int by) { layer3(by); kept++; } // leak
__attribute__((noinline)) static void layer1a(int by) { layer2a(by); layer2b(by); kept++; }
__attribute__((noinline)) static void layer1b(int by) { layer2a(by); layer2b(by); kept++; }

__attribute__((noinline)) static void leave(void)
{
    char *lost = malloc(77); // leak
    lost[0] = 1;
    longjmp(back, 1);
}

static void at_exit(void)
{
    lose(55); // leak
}

__attribute__((noinline)) static void recurse(int depth)
{
    if (depth == 0)
        lose(13); // leak
    else
        recurse(depth - 1);
    kept++;
}

__attribute__((noinline)) static void way(void)
{
#if WAY == 1
    lose(123); // leak
#elif WAY == 2
    struct node *list = NULL;
    for (int i = 0; i < 10; i++)
        list = node(list); // leak
#elif WAY == 3
    tree(4); // leak
#elif WAY == 4
    global = (char *)lose(100) + 10; // leak
#elif WAY == 5
    global = lose(100); // leak
#elif WAY == 6
    static void *hidden;
    hidden = lose(100); // leak
#elif WAY == 7
    global = node(node(node(NULL))); // leak
#elif WAY == 8
    struct node *last = node(NULL);
    global = node((struct node *)&last->other); // leak
#elif WAY == 9
    struct node *one = node(NULL), *two = node(one); // leak
    one->next = two;
#elif WAY == 10
    struct node *first = node(NULL), *last = first; // leak
    for (int i = 0; i < 4; i++)
        last = node(last); // leak
    first->next = last;
    first->other = node(NULL);
#elif WAY == 11
    struct node *one = node(NULL); // leak
    one->next = one;
#elif WAY == 12
    struct node *one = node(NULL), *two = node(one), *three = node(NULL), *four = node(three); // leak
    one->next = two;
    three->next = four;
    one->other = three;
#elif WAY == 13
    lose(0); // leak
    global = lose(0); // leak
#elif WAY == 14
    for (int i = 0; i < 50; i++)
        lose(10); // leak
#elif WAY == 15
    for (int i = 0; i < 50; i++)
        lose(i * 3); // leak
#elif WAY == 16
    calloc(7, 9); // leak
#elif WAY == 17
    realloc(malloc(10), 4000); // leak
#elif WAY == 18
    void *place;
    memalign(64, 100); // leak
    if (posix_memalign(&place, 128, 200)) // leak
        return;
    aligned_alloc(256, 512); // leak
#elif WAY == 19
    static char room[40];
    void *lost = lose(100); // leak
    memcpy(room + 3, &lost, 8);
#elif WAY == 20
    global = (char *)lose(100) + 100; // leak
#elif WAY == 21
    void **map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map[5] = lose(100); // leak
#elif WAY == 22
    own = lose(100); // leak
#elif WAY == 23
    void **holder = malloc(64);
    holder[3] = lose(100); // leak
    global = holder;
    free(holder);
#elif WAY == 24
    static void *undefined[4];
    undefined[1] = lose(100); // leak
    VALGRIND_MAKE_MEM_UNDEFINED(&undefined[1], 8);
#elif WAY == 25
    void *volatile here = lose(100); // leak
    clear_registers();
    exit(0);
#elif WAY == 26
    void *volatile here[200];
    here[100] = lose(100); // leak
#elif WAY == 27
    long *block = lose(72); // leak
    block[0] = 64;
    global = block + 1;
#elif WAY == 28
    layer1a(0); // leak
    layer1b(5); // leak
#elif WAY == 29
    global = node(NULL); // leak
    lose(20); // leak
    struct node *lost = node(node(NULL)); // leak
    static char *inside;
    inside = (char *)lose(300) + 100; // leak
#elif WAY == 30
    global = lose(44); // leak
    global = lose(45); // leak
    global = NULL;
#elif WAY == 31
    static union {
        void *pointer;
        long number;
    } both;
    both.pointer = lose(17); // leak
#elif WAY == 32
    global = (void *)((uintptr_t)lose(50) | 1); // leak
#elif WAY == 33
    global = (void *)~(uintptr_t)lose(50); // leak
#elif WAY == 34
    lose(31); // leak
    if (fork() == 0) {
        lose(32); // leak
        clear_registers();
        exit(0);
    }
    wait(NULL);
#elif WAY == 35
    struct node *one = node(NULL), *two = node(one), *three = node(two); // leak
    one->other = two;
    two->other = three;
    global = &one->value;
#elif WAY == 36
    atexit(at_exit);
#elif WAY == 37
    if (!setjmp(back))
        leave(); // leak
#elif WAY == 38
    lose(20000000); // leak
#elif WAY == 39
    void **blocks = lose(100 * sizeof(void *)); // leak
    for (int i = 0; i < 100; i++)
        blocks[i] = lose(i % 3 + 1); // leak
#elif WAY == 40
    struct node *one = node(node(NULL)); // leak
    global = &one->value;
    one = node(node(NULL)); // leak
#elif WAY == 41
    struct node *shared = node(NULL), *one = node(shared); // leak
    global = node(shared); // leak
    static void *inside;
    inside = &one->value;
#elif WAY == 42
    lose(61); // leak
#elif WAY == 43
    for (int i = 0; i < 1000; i++)
        recurse(i % 100); // leak
#elif WAY == 44
    recurse(3); // leak
    recurse(4); // leak
    recurse(40); // leak
#elif WAY == 45
    void **end = sbrk(64);
    end[2] = lose(100); // leak
#elif WAY == 46
    static void *hidden[4];
    hidden[1] = lose(100); // leak
    VALGRIND_MAKE_MEM_NOACCESS(&hidden[1], 8);
#elif WAY == 47
    setenv("A_NAME", "a value that is not short", 1); // leak
    putenv(strcpy(lose(20), "B_NAME=other")); // leak
#elif WAY == 48
    hcreate(30); // leak
    ENTRY entry = {strdup("key"), lose(10)}; // leak
    hsearch(entry, ENTER);
#elif WAY == 49
    FILE *file = fopen("/dev/null", "r"); // leak
    global = file;
    getc(file); // leak
#elif WAY == 51
    puts("buffered"); // leak
    char *name = getenv("HOME");
    kept = name != NULL;
#elif WAY == 52
    for (int i = 0; i < 1000; i++)
        free(lose(i));
#elif WAY == 54
    lose(123); // leak
#endif
}

int main(void)
{
    way(); // leak
    clear_registers();
    return 0;
}

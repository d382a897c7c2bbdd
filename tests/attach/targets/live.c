// A program that knows its own live blocks. It takes commands from stdin and answers each by a line
// of JSON: the blocks that are alive by its own books, and what mallinfo2 says.
//
//   fill MODE   allocate, in all threads
//   drop        free half of it
//   leak N      allocate N blocks of 1,000 bytes and forget them
//   possible N  the same, with a pointer to the middle of each
//   books       only answer
// It uses no stdio, so that nobody else allocates.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 5, SLOTS = 4000 };

static struct slots {
    void *at[SLOTS];
    unsigned count;
    uint64_t seed;
} * all; // in mapped memory, as the books are no block themselves
static pthread_barrier_t begin, end;
static enum { NOTHING, FILL, DROP } task;
char *inner[1000];
unsigned inner_count;

static unsigned number(struct slots *slots, unsigned below) {
    slots->seed = slots->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(slots->seed >> 33) % below;
}

static void *one(struct slots *slots) {
    void *block = NULL;
    switch (number(slots, 12)) {
    case 0:
        return memalign(64u << number(slots, 8), 1 + number(slots, 9000));
    case 1:
        return realloc(malloc(1 + number(slots, 200)), 1 + number(slots, 5000));
    case 2:
        return calloc(1 + number(slots, 20), 1 + number(slots, 60));
    case 3:
        if (number(slots, 40) == 0) // mapped by itself
            return malloc(200000 + number(slots, 400000));
        return malloc(1 + number(slots, 30000));
    case 4:
        if (number(slots, 40) == 0 && posix_memalign(&block, 1u << (5 + number(slots, 17)), 300000))
            abort();
        return block ? block : malloc(20);
    default:
        return malloc(1 + number(slots, 400));
    }
}

static void work(struct slots *slots) {
    if (task == FILL)
        while (slots->count < SLOTS) {
            void *block = one(slots);
            slots->at[slots->count++] = block;
            // Holes, and full caches.
            if (number(slots, 3) == 0) {
                unsigned victim = number(slots, slots->count);
                free(slots->at[victim]);
                slots->at[victim] = slots->at[--slots->count];
            }
        }
    for (unsigned left = task == DROP ? slots->count / 2 : 0; left; left--) {
        unsigned victim = number(slots, slots->count);
        free(slots->at[victim]);
        slots->at[victim] = slots->at[--slots->count];
    }
}

static void *thread(void *argument) {
    for (;;) {
        pthread_barrier_wait(&begin);
        work(argument);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static void all_threads(int what) {
    task = what;
    pthread_barrier_wait(&begin);
    work(&all[0]);
    pthread_barrier_wait(&end);
}

static char line[512];
static unsigned used;

static void put(const char *name, uint64_t value) {
    char digits[24];
    unsigned count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    line[used++] = used ? ',' : '{';
    line[used++] = '"';
    memcpy(line + used, name, strlen(name));
    used += (unsigned)strlen(name);
    line[used++] = '"';
    line[used++] = ':';
    while (count)
        line[used++] = digits[--count];
}

static void answer(void) {
    uint64_t blocks = 0, bytes = 0;
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < all[t].count; i++) {
            blocks++;
            bytes += malloc_usable_size(all[t].at[i]);
        }
    struct mallinfo2 info = mallinfo2();
    used = 0;
    put("blocks", blocks);
    put("bytes", bytes);
    put("arena", info.arena);
    put("mapped_blocks", info.hblks);
    put("mapped_size", info.hblkhd);
    put("free", info.fordblks);
    put("fast", info.fsmblks);
    line[used++] = '}';
    line[used++] = '\n';
    if (write(1, line, used) < 0)
        _exit(1);
}

__attribute__((noinline)) static void leak(unsigned count) {
    for (unsigned i = 0; i < count; i++)
        memset(malloc(1000), 0, 1000);
}

// What free leaves behind: pointers on the stack and in registers.
__attribute__((noinline)) static void wipe(void) {
    volatile char room[60000];
    for (unsigned i = 0; i < sizeof room; i++)
        room[i] = 0;
}

int main(void) {
    char command[64];
    ssize_t size;
    all = mmap(NULL, THREADS * sizeof *all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0);
    pthread_barrier_init(&begin, NULL, THREADS);
    pthread_barrier_init(&end, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t id;
        all[i].seed = 12345 + i;
        if (i && pthread_create(&id, NULL, thread, &all[i]))
            return 1;
    }
    // A mapped block that is freed would raise the limit, and then none is mapped any more.
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    free(malloc(1)); // its cache is there
    answer();
    while ((size = read(0, command, sizeof command - 1)) > 0) {
        command[size] = 0;
        if (strncmp(command, "fill", 4) == 0)
            all_threads(FILL);
        if (strncmp(command, "drop", 4) == 0)
            all_threads(DROP);
        if (strncmp(command, "leak", 4) == 0)
            leak((unsigned)atoi(command + 5));
        if (strncmp(command, "possible", 8) == 0)
            for (int left = atoi(command + 9); left; left--)
                inner[inner_count++] = (char *)malloc(3000) + 1008;
        wipe();
        answer();
    }
    return 0;
}

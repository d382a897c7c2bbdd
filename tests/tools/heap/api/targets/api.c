/* Uses all of quern/heap.h and prints what it is told. */
#include <quern/heap.h>

#include <pthread.h>

static void show(const char *when) {
    struct quern_heap_stats stats;
    int source = quern_heap_stats(&stats);
    /* Printing allocates a buffer at the first time only. */
    printf("%s: source %d live %lu/%lu peak %lu total %lu/%lu releases %lu thread %lu/%lu\n", when,
           source, stats.live_bytes, stats.live_blocks, stats.peak_bytes, stats.total_bytes,
           stats.total_blocks, stats.releases, stats.thread_bytes, stats.thread_blocks);
}

static void *elsewhere(void *unused) {
    quern_heap_scope_begin("elsewhere");
    free(malloc(7777));
    quern_heap_scope_end();
    return unused;
}

int main(int count, char **arguments) {
    struct quern_heap_budget budget;
    pthread_t thread;
    void *blocks[10], *chunk;
    int i;
    printf("listener %d\n", quern_heap_listener());
    show("start");
    quern_heap_mark("start");
    quern_heap_scope_begin("load");
    for (i = 0; i < 10; i++)
        blocks[i] = malloc(100);
    blocks[0] = realloc(blocks[0], 300);
    free(blocks[9]);
    quern_heap_scope_end();
    show("loaded");
    quern_heap_budget_begin(&budget, "two", 2, ~0ul);
    free(malloc(1));
    free(malloc(1));
    pthread_create(&thread, NULL, elsewhere, NULL);
    pthread_join(thread, NULL);
    /* pthread_create itself allocates once. */
    printf("budget %d\n", quern_heap_budget_end(&budget));
    quern_heap_budget_begin(&budget, "bytes", ~0ul, 10);
    free(malloc(11));
    printf("budget %d\n", quern_heap_budget_end(&budget));
    quern_heap_budget_begin(&budget, "kept", 1, 11);
    free(malloc(11));
    printf("budget %d\n", quern_heap_budget_end(&budget));
    quern_heap_snapshot("with a \33[31mcolour and a name that is longer than sixty-four bytes are");
    chunk = malloc(10000);
    quern_heap_chunk(chunk, 10000);
    quern_heap_allocated(chunk, 50);
    quern_heap_allocated((char *)chunk + 64, 70);
    quern_heap_resized((char *)chunk + 64, 70, (char *)chunk + 64, 80);
    show("divided");
    quern_heap_freed(chunk);
    quern_heap_freed((char *)chunk + 64);
    free(chunk);
    for (i = 0; i < 9; i++)
        free(blocks[i]);
    show("end");
    fflush(stdout);
    QUERN_HEAP_BUDGET("scope", 0) {
        if (count > 1)
            free(malloc(3));
    }
    return arguments[0] == NULL;
}

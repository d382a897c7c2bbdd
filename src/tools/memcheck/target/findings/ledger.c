#include "tools/memcheck/target/findings/ledger.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/heap/heap.h"

#define WAIT_STEP_NS 200000
#define WAIT_STEPS   300000 // a minute

static struct ledger *ledger;
static bool has_sites;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t used_threads; // entries of ledger->threads that were ever given away

// Mapped at once, so that no descriptor is left for the target to meet.
static struct ledger *make(void *where) {
    int fd = memfd_create("quern-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t size = has_sites ? sizeof(struct ledger_and_sites) : sizeof(struct ledger);
    if (fd < 0 || !fd_set_size(fd, size) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        goto failed;
    struct ledger *made = mmap(where, size, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_NORESERVE | (where ? MAP_FIXED : 0), fd, 0);
    if (made == MAP_FAILED)
        goto failed;
    made->magic = LEDGER_MAGIC;
    tool_give_ledger(fd);
    close(fd);
    return made;
failed:
    tool_say(has_sites ? "memcheck: cannot make a file for the counts of --xtree-memory: is the "
                         "size of files limited (ulimit -f)?"
                       : "memcheck: cannot make a file for the error counts");
    _Exit(1);
}

void ledger_start(void) {
    const char *memory = tool_option("xtree-memory");
    has_sites = memory && strcmp(memory, "none") != 0;
    ledger = make(NULL);
}

// ---- places of the heap ------------------------------------------------------------------------
//
// The parent goes on counting in the file that the child copies from: the values are noted before
// the fork (without memory for that, they are taken as they are). Places and their stacks are only
// ever added, so that these may be taken afterwards.

static uint64_t (*noted)[SITE_VALUES];
static uint32_t noted_count;

struct ledger_sites *ledger_sites(void) {
    return has_sites ? &((struct ledger_and_sites *)ledger)->sites : NULL;
}

static uint32_t within(const uint32_t *taken, uint32_t room) {
    uint32_t count = __atomic_load_n(taken, __ATOMIC_ACQUIRE);
    return count < room ? count : room;
}

void ledger_forking(void) {
    struct ledger_sites *sites = ledger_sites();
    if (!sites)
        return;
    noted_count = within(&sites->count, LEDGER_SITES);
    noted = mmap(NULL, (noted_count + 1) * sizeof *noted, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (noted == MAP_FAILED)
        noted = NULL;
    for (uint32_t i = 0; noted && i < noted_count; i++)
        memcpy(noted[i], sites->sites[i].values, sizeof noted[i]);
}

void ledger_fork_made(void) {
    if (noted)
        munmap(noted, (noted_count + 1) * sizeof *noted);
    noted = NULL;
}

// The parent's once more, where the child's will not be. NULL: none.
static struct ledger_sites *map_again(void) {
    struct ledger_sites *sites = ledger_sites();
    if (!sites)
        return NULL;
    void *again = mremap(sites, 0, sizeof *sites, MREMAP_MAYMOVE); // 0: the old mapping stays
    if (again != MAP_FAILED)
        return again;
    tool_say("memcheck: out of memory");
    _Exit(1);
}

static void copy_sites(struct ledger_sites *from) {
    struct ledger_sites *to = ledger_sites();
    if (!from)
        return;
    to->count = within(&from->count, LEDGER_SITES);
    to->pc_count = within(&from->pc_count, LEDGER_SITE_PCS);
    memcpy(to->sites, from->sites, to->count * sizeof *to->sites);
    memcpy(to->pcs, from->pcs, to->pc_count * sizeof *to->pcs);
    for (uint32_t i = 0; noted && i < to->count; i++) {
        if (i < noted_count)
            memcpy(to->sites[i].values, noted[i], sizeof noted[i]);
        else
            memset(to->sites[i].values, 0, sizeof to->sites[i].values);
    }
    munmap(from, sizeof *from);
}

// The child's copy is made page by page through private memory: the old file must not be written.
void ledger_forked(void) {
    size_t used = ledger->contexts;
    uint64_t *counts = malloc((used + 1) * sizeof *counts);
    uint8_t *verdicts = malloc(used + 1);
    struct ledger_heap *threads = malloc((used_threads + 1) * sizeof *threads);
    if (!counts || !verdicts || !threads) {
        tool_say("memcheck: out of memory");
        _Exit(1);
    }
    uint32_t full = ledger->full;
    uint64_t found = ledger->found;
    struct heap_sums heap = ledger->heap;
    uint32_t shown = ledger->answers.shown, closed = ledger->answers.closed;
    uint32_t searches = ledger->answers.searches;
    memcpy(counts, ledger->counts, used * sizeof *counts);
    memcpy(verdicts, ledger->answers.verdicts, used);
    memcpy(threads, ledger->threads, used_threads * sizeof *threads);
    struct ledger_sites *sites = map_again();
    ledger = make(ledger);
    copy_sites(sites);
    ledger_fork_made();
    ledger->contexts = (uint32_t)used;
    ledger->full = full;
    ledger->found = found;
    ledger->heap = heap;
    ledger->answers.shown = shown;
    ledger->answers.closed = closed;
    ledger->answers.searches = searches;
    memcpy(ledger->counts, counts, used * sizeof *counts);
    memcpy(ledger->answers.verdicts, verdicts, used);
    memcpy(ledger->threads, threads, used_threads * sizeof *threads);
    free(counts);
    free(verdicts);
    free(threads);
    pthread_mutex_init(&lock, NULL);
}

// ---- the heap's counters -----------------------------------------------------------------------

struct ledger_heap *ledger_heap_counters(void) {
    pthread_mutex_lock(&lock);
    uint32_t entry = used_threads < LEDGER_THREADS - 1 ? used_threads++ : LEDGER_THREADS - 1;
    pthread_mutex_unlock(&lock);
    return &ledger->threads[entry];
}

void ledger_note_heap(void) {
    struct heap_totals totals = heap_totals();
    ledger->heap = (struct heap_sums){.allocations = totals.allocations,
                                      .frees = totals.frees,
                                      .bytes = totals.bytes,
                                      .live_blocks = totals.live_blocks,
                                      .live_bytes = totals.live_bytes};
}

// ---- contexts ----------------------------------------------------------------------------------

uint32_t ledger_new_context(void) {
    if (ledger->contexts == LEDGER_CONTEXTS) {
        ledger->full = 1;
        return 0;
    }
    return __atomic_add_fetch(&ledger->contexts, 1, __ATOMIC_RELEASE);
}

uint32_t ledger_contexts(void) {
    return __atomic_load_n(&ledger->contexts, __ATOMIC_ACQUIRE);
}

void ledger_count(uint32_t context) {
    __atomic_add_fetch(&ledger->counts[context], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&ledger->found, 1, __ATOMIC_RELAXED);
}

uint64_t ledger_count_of(uint32_t context) {
    return __atomic_load_n(&ledger->counts[context], __ATOMIC_RELAXED);
}

uint64_t ledger_found(void) {
    return __atomic_load_n(&ledger->found, __ATOMIC_RELAXED);
}

// ---- answers -----------------------------------------------------------------------------------

uint32_t ledger_shown(void) {
    return __atomic_load_n(&ledger->answers.shown, __ATOMIC_RELAXED);
}

bool ledger_is_closed(void) {
    return __atomic_load_n(&ledger->answers.closed, __ATOMIC_RELAXED);
}

static void wait_a_little(void) {
    struct timespec step = {.tv_nsec = WAIT_STEP_NS};
    nanosleep(&step, NULL);
}

enum ledger_verdict ledger_wait_verdict(uint32_t context) {
    uint8_t *verdict = &ledger->answers.verdicts[context];
    for (int i = 0; i < WAIT_STEPS && !__atomic_load_n(verdict, __ATOMIC_ACQUIRE); i++)
        wait_a_little();
    return *verdict;
}

bool ledger_wait_end(void) {
    uint32_t *end = &ledger->answers.end;
    for (int i = 0; i < WAIT_STEPS && !__atomic_load_n(end, __ATOMIC_ACQUIRE); i++)
        wait_a_little();
    return *end == 2;
}

bool ledger_has_failed(void) {
    return __atomic_load_n(&ledger->answers.end, __ATOMIC_ACQUIRE) == 2;
}

const struct ledger_answers *ledger_wait_search(uint32_t search) {
    uint32_t *taken = &ledger->answers.searches;
    for (int i = 0; i < WAIT_STEPS && __atomic_load_n(taken, __ATOMIC_ACQUIRE) < search; i++)
        wait_a_little();
    return &ledger->answers;
}

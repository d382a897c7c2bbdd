#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/bbv/target/target.h"

struct bbv_totals_file *bbv_totals;

static struct bbv_records_file *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *make_file(const char *name, size_t size, uint64_t magic) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || !fd_set_size(fd, (off_t)size) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        tool_give_up("exp-bbv: cannot make a file for what it counts");
    uint64_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        tool_give_up("exp-bbv: no room for what it counts");
    *memory = magic;
    tool_give_file(fd);
    close(fd);
    return memory;
}

static void make_totals(void) {
    bbv_totals = make_file("quern-bbv-totals", sizeof *bbv_totals, BBV_TOTALS_MAGIC);
}

static void make_records(void) {
    if (records)
        munmap(records, sizeof *records);
    records = make_file("quern-bbv-records", sizeof *records, BBV_RECORDS_MAGIC);
}

void bbv_records_start(void) {
    make_totals();
    make_records();
}

void bbv_records_lock(void) {
    pthread_mutex_lock(&lock);
}

void bbv_records_unlock(void) {
    pthread_mutex_unlock(&lock);
}

static uint64_t *reserve(uint64_t words) {
    if (records->used + words > BBV_RECORD_WORDS)
        make_records();
    return records->words + records->used;
}

static void complete(uint64_t words) {
    __atomic_store_n(&records->used, records->used + words, __ATOMIC_RELEASE);
}

void bbv_records_block(uint32_t number, uint64_t pc) {
    uint64_t *words = reserve(3);
    words[0] = BBV_BLOCK;
    words[1] = number;
    words[2] = pc;
    complete(3);
}

// Takes the last ones that were touched: as many as there is room for.
static void write_part(struct counts *counts) {
    uint64_t *words = reserve(4);
    uint64_t most = (BBV_RECORD_WORDS - records->used - 2) / 2, pairs = 0;
    while (counts->touched_count && pairs < most) {
        uint32_t index = counts->touched[--counts->touched_count];
        words[2 + 2 * pairs] = bbv_blocks[index].number;
        words[3 + 2 * pairs] = counts->by_block[index];
        counts->by_block[index] = 0;
        pairs += index != 0;
    }
    words[0] = BBV_COUNTS;
    words[1] = pairs;
    complete(2 + 2 * pairs);
}

static void clear(struct counts *counts) {
    while (counts->touched_count)
        counts->by_block[counts->touched[--counts->touched_count]] = 0;
}

void bbv_records_interval(struct counts *counts) {
    if (!bbv_wants_vectors || !counts->thread) {
        clear(counts);
        return;
    }
    bbv_records_lock();
    while (counts->touched_count)
        write_part(counts);
    uint64_t *words = reserve(2);
    words[0] = BBV_INTERVAL;
    words[1] = counts->thread;
    complete(2);
    bbv_records_unlock();
}

void bbv_records_fork(void) {
    struct bbv_totals_file *parents = bbv_totals;
    make_totals();
    for (unsigned i = 0; i < BBV_THREADS; i++)
        bbv_totals->threads[i] = parents->threads[i];
    bbv_totals->is_incomplete = parents->is_incomplete;
    munmap(parents, sizeof *parents);
    make_records();
    for (uint32_t i = 1; i < BLOCKS && bbv_blocks[i].pc; i++)
        if (bbv_blocks[i].number)
            bbv_records_block(bbv_blocks[i].number, bbv_blocks[i].pc);
}

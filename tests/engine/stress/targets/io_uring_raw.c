// io_uring through bare system calls: reads, writes, timeouts and polls whose results are written
// by the kernel. Where the kernel forbids it, the program says so (natively as well).
#include "stress.h"
#include <fcntl.h>
#include <linux/io_uring.h>

static int ring;
static struct io_uring_params params;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe *entries;
static struct io_uring_cqe *results;

static void setup(void) {
    char *sq = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(*results),
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
    entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    CHECK(sq != MAP_FAILED && cq != MAP_FAILED && entries != MAP_FAILED);
    sq_tail = (unsigned *)(sq + params.sq_off.tail);
    sq_mask = (unsigned *)(sq + params.sq_off.ring_mask);
    sq_array = (unsigned *)(sq + params.sq_off.array);
    cq_head = (unsigned *)(cq + params.cq_off.head);
    cq_tail = (unsigned *)(cq + params.cq_off.tail);
    cq_mask = (unsigned *)(cq + params.cq_off.ring_mask);
    results = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
}

static int submit(int opcode, int fd, void *buffer, unsigned length, uint64_t offset) {
    unsigned tail = *sq_tail, index = tail & *sq_mask;
    struct io_uring_sqe *e = &entries[index];
    memset(e, 0, sizeof(*e));
    e->opcode = (uint8_t)opcode;
    e->fd = fd;
    e->addr = (uint64_t)buffer;
    e->len = length;
    e->off = offset;
    e->user_data = tail;
    sq_array[index] = index;
    __atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
    long n;
    do
        n = syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    while (n < 0 && errno == EINTR);
    SAME(n, 1);
    unsigned head = *cq_head;
    while (__atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == head)
        syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    struct io_uring_cqe *c = &results[head & *cq_mask];
    SAME(c->user_data, tail);
    int result = c->res;
    __atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

int main(void) {
    ring = (int)syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0) {
        printf("io_uring: %s\n", strerror(errno));
        return 0;
    }
    setup();
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    uint64_t h = 0;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t block[64], back[64];
        for (unsigned k = 0; k < 64; k++)
            block[k] = stress_mix(i, k);
        SAME(submit(IORING_OP_WRITE, fd, block, sizeof(block), i * sizeof(block)), sizeof(block));
        memset(back, 0, sizeof(back));
        SAME(submit(IORING_OP_READ, fd, back, sizeof(back), i * sizeof(block)), sizeof(block));
        CHECK(memcmp(block, back, sizeof(back)) == 0);
        h = stress_mix(h, back[63]);
    }
    struct __kernel_timespec soon = {0, 1000000};
    printf("timeout %d\n", submit(IORING_OP_TIMEOUT, -1, &soon, 1, 0));
    printf("bad fd %d\n", submit(IORING_OP_READ, 999, &soon, 1, 0));
    printf("nop %d\n", submit(IORING_OP_NOP, -1, NULL, 0, 0));
    printf("%016llx\n", (unsigned long long)h);
    return 0;
}

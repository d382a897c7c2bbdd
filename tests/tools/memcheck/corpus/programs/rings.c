// case ring_read -DWAY=1 alone
// case ring_readv -DWAY=2 alone
// case ring_recvmsg -DWAY=3 alone
// case ring_statx -DWAY=4 alone
// case ring_accept -DWAY=5 alone
// case ring_provided_buffers -DWAY=6 alone
// case ring_buffer_ring -DWAY=7 alone
// case ring_called_by_index -DWAY=8 alone
// case ring_read_fixed -DWAY=9 alone
// case ring_other_thread -DWAY=10 alone
// case ring_not_read -DWAY=11 alone
// case ring_holds_block -DWAY=12 alone
// case ring_polled -DWAY=13 alone
//
// Memory that the kernel fills through io_uring. Valgrind calls it undefined.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/stat.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int ring, enter_fd, enter_flags;
static struct io_uring_params params;
static char *queue, *results;
static struct io_uring_sqe *requests;

#define SQ(field) ((unsigned *)(queue + params.sq_off.field))
#define CQ(field) ((unsigned *)(results + params.cq_off.field))

static void setup(void) {
#if WAY == 13
    params.flags = IORING_SETUP_SQPOLL;
    params.sq_thread_idle = 10000;
#endif
    ring = enter_fd = (int)syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0)
        exit(0); // not permitted here
    int both = PROT_READ | PROT_WRITE;
    queue = mmap(NULL, params.sq_off.array + params.sq_entries * 4, both, MAP_SHARED, ring,
                 IORING_OFF_SQ_RING);
    results = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), both,
                   MAP_SHARED, ring, IORING_OFF_CQ_RING);
    requests = mmap(NULL, params.sq_entries * sizeof *requests, both, MAP_SHARED, ring,
                    IORING_OFF_SQES);
}

static struct io_uring_sqe *request(int opcode, int fd, const void *address, unsigned length) {
    struct io_uring_sqe *entry = &requests[*SQ(tail) & *SQ(ring_mask)];
    memset(entry, 0, sizeof *entry);
    entry->opcode = opcode;
    entry->fd = fd;
    entry->addr = (unsigned long)address;
    entry->len = length;
    return entry;
}

static int take(void) {
    unsigned head = *CQ(head);
    while (__atomic_load_n(CQ(tail), __ATOMIC_ACQUIRE) == head)
        sched_yield();
    struct io_uring_cqe *list = (void *)(results + params.cq_off.cqes);
    int result = list[head & *CQ(ring_mask)].res;
    __atomic_store_n(CQ(head), head + 1, __ATOMIC_RELEASE);
    return result;
}

static void submit(unsigned wait) {
    unsigned tail = *SQ(tail);
    SQ(array)[tail & *SQ(ring_mask)] = tail & *SQ(ring_mask);
    __atomic_store_n(SQ(tail), tail + 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, enter_fd, 1, wait, IORING_ENTER_GETEVENTS | enter_flags, NULL, 0);
}

// The kernel's thread takes the request if it is awake.
static int make_polled(void) {
    unsigned tail = *SQ(tail);
    SQ(array)[tail & *SQ(ring_mask)] = tail & *SQ(ring_mask);
    __atomic_store_n(SQ(tail), tail + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(SQ(flags), __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
        syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
    return take();
}

static int make(void) {
    submit(1);
    return take();
}

static void use(const void *address, size_t size) {
    const char *bytes = address;
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += bytes[i];
    if (sum == 12345) // bug(ring_not_read): Conditional jump or move depends on uninitialised value(s)
        puts("unlikely");
}

static int text_file(void) {
    int fd = memfd_create("text", 0);
    if (write(fd, "0123456789abcdef", 16) != 16)
        exit(1);
    return fd;
}

static void *reap(void *buffer) {
    if (take() == 16)
        use(buffer, 16);
    write(*(int *)((char *)buffer + 16), "x", 1);
    return NULL;
}

int main(void) {
    setup();
    char *buffer = malloc(64);
    int pair[2], result = 0;
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    write(pair[1], "0123456789abcdef", 16);
#if WAY == 1
    request(IORING_OP_READ, text_file(), buffer, 16);
    if (make() == 16)
        use(buffer, 16);
#elif WAY == 2
    struct iovec parts[2] = {{buffer, 4}, {buffer + 32, 12}};
    request(IORING_OP_READV, text_file(), parts, 2);
    if (make() == 16) {
        use(buffer, 4);
        use(buffer + 32, 12);
    }
#elif WAY == 3
    struct iovec part = {buffer, 64};
    struct msghdr *message = malloc(sizeof *message);
    memset(message, 0, offsetof(struct msghdr, msg_flags));
    message->msg_iov = &part;
    message->msg_iovlen = 1;
    request(IORING_OP_RECVMSG, pair[0], message, 1);
    if (make() == 16)
        use(buffer, 16);
    use(&message->msg_flags, sizeof message->msg_flags);
    free(message);
#elif WAY == 4
    struct statx *status = malloc(sizeof *status);
    struct io_uring_sqe *entry = request(IORING_OP_STATX, AT_FDCWD, "/", STATX_BASIC_STATS);
    entry->off = (unsigned long)status;
    if (make() == 0)
        use(&status->stx_mode, sizeof status->stx_mode);
    free(status);
#elif WAY == 5
    struct sockaddr_in *name = malloc(sizeof *name), own = {.sin_family = AF_INET};
    socklen_t *size = malloc(sizeof *size), own_size = sizeof own;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (void *)&own, sizeof own);
    listen(listener, 1);
    getsockname(listener, (void *)&own, &own_size);
    connect(client, (void *)&own, sizeof own);
    *size = sizeof *name;
    struct io_uring_sqe *entry = request(IORING_OP_ACCEPT, listener, name, 0);
    entry->addr2 = (unsigned long)size;
    if (make() >= 0) {
        use(size, sizeof *size);
        use(&name->sin_port, sizeof name->sin_port);
    }
    free(name);
    free(size);
#elif WAY == 6
    struct io_uring_sqe *entry = request(IORING_OP_PROVIDE_BUFFERS, 2, buffer, 32);
    entry->buf_group = 7;
    make();
    entry = request(IORING_OP_RECV, pair[0], NULL, 32);
    entry->flags = IOSQE_BUFFER_SELECT;
    entry->buf_group = 7;
    if (make() == 16)
        use(buffer, 16);
#elif WAY == 7
    struct io_uring_buf *list = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                     -1, 0);
    struct io_uring_buf_reg group = {.ring_addr = (unsigned long)list, .ring_entries = 4, .bgid = 3};
    result = (int)syscall(SYS_io_uring_register, ring, IORING_REGISTER_PBUF_RING, &group, 1);
    for (unsigned i = 0; i < 2; i++)
        list[i] = (struct io_uring_buf){(unsigned long)buffer + 32 * i, 32, i};
    __atomic_store_n(&list[0].resv, 2, __ATOMIC_RELEASE);
    struct io_uring_sqe *entry = request(IORING_OP_RECV, pair[0], NULL, 32);
    entry->flags = IOSQE_BUFFER_SELECT;
    entry->buf_group = 3;
    if (result == 0 && make() == 16)
        use(buffer, 16);
#elif WAY == 8
    struct io_uring_rsrc_update update = {.offset = -1u, .data = ring};
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_RING_FDS, &update, 1) == 1) {
        enter_fd = update.offset;
        enter_flags = IORING_ENTER_REGISTERED_RING;
    }
    request(IORING_OP_READ, text_file(), buffer, 16);
    if (make() == 16)
        use(buffer, 16);
#elif WAY == 9
    struct iovec part = {buffer, 64};
    syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &part, 1);
    request(IORING_OP_READ_FIXED, text_file(), buffer, 16);
    if (make() == 16)
        use(buffer, 16);
#elif WAY == 10
    // Another thread sees the result while this one still waits for one more.
    pthread_t thread;
    int gate[2];
    pipe(gate);
    memcpy(buffer + 16, &gate[1], sizeof gate[1]);
    pthread_create(&thread, NULL, reap, buffer);
    struct io_uring_sqe *entry = request(IORING_OP_POLL_ADD, gate[0], NULL, 0);
    entry->poll32_events = 1;
    submit(0);
    request(IORING_OP_READ, text_file(), buffer, 16);
    submit(2);
    pthread_join(thread, NULL);
#elif WAY == 11
    request(IORING_OP_READ, text_file(), buffer, 16);
    if (make() == 16)
        use(buffer, 17);
#elif WAY == 12
    // Nothing but a request that is not done yet knows the block.
    request(IORING_OP_READ, text_file(), buffer, 16)->user_data =
        (unsigned long)malloc(10); // bug(ring_holds_block): 10 bytes in 1 blocks are still reachable
#elif WAY == 13
    for (int i = 0; i < 20; i++) {
        request(IORING_OP_READ, text_file(), buffer, 16);
        if (!(params.flags & IORING_SETUP_SQPOLL) || make_polled() != 16)
            return 1;
        use(buffer, 16);
        free(buffer);
        buffer = malloc(64);
    }
#endif
    free(buffer);
    return 0;
}

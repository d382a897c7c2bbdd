// io_uring: memory that the kernel fills through a ring.
//
// The program writes requests into a ring that it shares with the kernel and hands them over by
// io_uring_enter. The kernel may fill a buffer from then on, and another thread may see that it has
// while the call still waits. So a buffer counts as written just before the call that hands over
// its request: a program that looks too early is not found out, and one that is right is not
// accused. The engine sees to it that a ring with a kernel thread (IORING_SETUP_SQPOLL) needs such a
// call as well (engine/sys/rings.c).
//
// Words
//   ring      what io_uring_setup makes, known by its descriptor
//   request   an entry of the submission queue
//   group     a ring of buffers that the kernel may choose from (IORING_REGISTER_PBUF_RING)
//
// Rings and groups, once made, stay for good, so that looking up needs no lock, also in a forked
// child. A descriptor or a group number that occurs again takes the old place.
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "tools/shared/syscalls/pass.h"

// What older headers do not have.
enum {
    SETUP_NO_MMAP = 1 << 14,
    SETUP_NO_SQARRAY = 1 << 16,
    REGISTER_FLAGS = 1u << 31, // the descriptor is an index
    BUFFERS_MAPPED = 1,        // the kernel makes the ring of a group, and the program maps it
    USER_ADDRESS = 32,         // in the offsets of a queue
    GROUP_FLAGS = 14,          // in struct io_uring_buf_reg
    OFFSET_BUFFERS = 0x80000000,
    OFFSET_BUFFERS_SHIFT = 16,
    OP_READV_FIXED = 60,
    OP_WAITID = 50,
    OP_EPOLL_WAIT = 59,
    OP_PIPE = 62,
};

struct group {
    struct group *next;
    uint16_t number, seen; // seen: where the ring ended when it was looked at last
    uint32_t room;
    uint64_t address; // 0: not mapped yet
};

struct ring {
    struct ring *next;
    int fd;
    bool has_index, is_polled;
    uint32_t head, tail, mask, index; // offsets
    uint32_t seen;                    // requests that were looked at
    uint64_t queue, requests;         // addresses, 0: not mapped yet
    uint64_t request_size;
    _Atomic(struct group *) groups;
};

// ---- rings by descriptor -----------------------------------------------------------------------

enum { BUCKETS = 256, REGISTERED_MOST = 16 };

static _Atomic(struct ring *) buckets[BUCKETS];
// Rings that the thread calls by index.
static _Thread_local struct ring *registered[REGISTERED_MOST];

static struct ring *ring_of(int fd) {
    struct ring *ring =
        atomic_load_explicit(&buckets[(unsigned)fd % BUCKETS], memory_order_acquire);
    while (ring && ring->fd != fd)
        ring = ring->next;
    return ring;
}

static struct ring *make_ring(int fd) {
    struct ring *ring = ring_of(fd);
    if (ring)
        return ring;
    _Atomic(struct ring *) *bucket = &buckets[(unsigned)fd % BUCKETS];
    ring = calloc(1, sizeof *ring);
    if (!ring)
        return NULL;
    ring->fd = fd;
    ring->next = atomic_load(bucket);
    while (!atomic_compare_exchange_weak(bucket, &ring->next, ring))
        ;
    return ring;
}

static struct ring *ring_called(int fd, bool by_index) {
    if (!by_index)
        return ring_of(fd);
    return fd >= 0 && fd < REGISTERED_MOST ? registered[fd] : NULL;
}

void visit_io_uring_setup(const struct pass *pass) {
    struct io_uring_params given;
    if (!pass->after || !pass_read(&given, pass->arguments[1], sizeof given))
        return;
    struct ring *ring = make_ring((int)pass->result);
    if (!ring)
        return;
    ring->has_index = !(given.flags & SETUP_NO_SQARRAY);
    ring->is_polled = given.flags & IORING_SETUP_SQPOLL;
    ring->head = given.sq_off.head;
    ring->tail = given.sq_off.tail;
    ring->mask = given.sq_off.ring_mask;
    ring->index = given.sq_off.array;
    ring->seen = 0;
    ring->request_size = given.flags & IORING_SETUP_SQE128 ? 128 : 64;
    ring->requests = ring->queue = 0;
    atomic_store(&ring->groups, NULL);
    if (given.flags & SETUP_NO_MMAP) {
        memcpy(&ring->requests, (char *)&given.sq_off + USER_ADDRESS, sizeof ring->requests);
        memcpy(&ring->queue, (char *)&given.cq_off + USER_ADDRESS, sizeof ring->queue);
    }
}

static struct group *group_of(struct ring *ring, uint16_t number) {
    struct group *group = atomic_load(&ring->groups);
    while (group && group->number != number)
        group = group->next;
    return group;
}

void visit_mmap(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    struct ring *ring =
        pass->after && !(a[3] & MAP_ANONYMOUS) ? ring_of((int)pass->arguments[4]) : NULL;
    if (!ring)
        return;
    if (a[5] == IORING_OFF_SQ_RING) {
        ring->queue = pass->result;
    } else if (a[5] == IORING_OFF_SQES) {
        ring->requests = pass->result;
    } else if (a[5] & OFFSET_BUFFERS) {
        struct group *group = group_of(ring, (a[5] & ~OFFSET_BUFFERS) >> OFFSET_BUFFERS_SHIFT);
        if (group)
            group->address = pass->result;
    }
}

// ---- registering -------------------------------------------------------------------------------

static void register_rings(const struct pass *pass, uint64_t list, bool adds) {
    for (long i = 0; pass->after && i < pass->result; i++) {
        struct io_uring_rsrc_update update;
        if (!pass_read(&update, list + i * sizeof update, sizeof update))
            return;
        if (update.offset < REGISTERED_MOST)
            registered[update.offset] = adds ? ring_of((int)update.data) : NULL;
    }
}

static void register_group(const struct pass *pass, struct ring *ring, uint64_t address) {
    struct io_uring_buf_reg given;
    uint16_t flags;
    pass_in(pass, address, sizeof given, "arg");
    if (!pass->after || !ring || !pass_read(&given, address, sizeof given))
        return;
    struct group *group = group_of(ring, given.bgid);
    if (!group) {
        group = calloc(1, sizeof *group);
        if (!group)
            return;
        group->number = given.bgid;
        group->next = atomic_load(&ring->groups);
        while (!atomic_compare_exchange_weak(&ring->groups, &group->next, group))
            ;
    }
    memcpy(&flags, (char *)&given + GROUP_FLAGS, sizeof flags);
    group->seen = 0;
    group->room = given.ring_entries;
    group->address = flags & BUFFERS_MAPPED ? 0 : given.ring_addr;
}

void visit_io_uring_register(const struct pass *pass) {
    uint64_t address = pass->arguments[2], count = (uint32_t)pass->arguments[3];
    uint32_t operation = (uint32_t)pass->arguments[1];
    struct ring *ring = ring_called((int)pass->arguments[0], operation & REGISTER_FLAGS);
    switch (operation & ~REGISTER_FLAGS) {
    case IORING_REGISTER_BUFFERS:
        // The kernel may read into them from now on.
        for (uint64_t i = 0; i < count && count <= UIO_MAXIOV; i++) {
            struct iovec buffer;
            pass_in(pass, address + i * sizeof buffer, sizeof buffer, "arg");
            if (pass_read(&buffer, address + i * sizeof buffer, sizeof buffer))
                pass_mark(pass, (uint64_t)buffer.iov_base, buffer.iov_len);
        }
        break;
    case IORING_REGISTER_FILES:
        pass_in(pass, address, count * 4, "arg");
        break;
    case IORING_REGISTER_EVENTFD:
    case IORING_REGISTER_EVENTFD_ASYNC:
        pass_in(pass, address, 4, "arg");
        break;
    case IORING_REGISTER_PROBE:
        pass_in(pass, address, sizeof(struct io_uring_probe), "arg");
        pass_out(pass, address,
                 sizeof(struct io_uring_probe) + count * sizeof(struct io_uring_probe_op),
                 UINT64_MAX, "arg");
        break;
    case IORING_REGISTER_IOWQ_MAX_WORKERS:
        pass_in(pass, address, 8, "arg");
        pass_mark(pass, address, 8);
        break;
    case IORING_REGISTER_RING_FDS:
        register_rings(pass, address, true);
        pass_mark(pass, address, count * sizeof(struct io_uring_rsrc_update));
        break;
    case IORING_UNREGISTER_RING_FDS:
        register_rings(pass, address, false);
        break;
    case IORING_REGISTER_PBUF_RING:
        register_group(pass, ring, address);
        break;
    }
}

// ---- requests ----------------------------------------------------------------------------------

static void fill_vector(const struct pass *pass, uint64_t list, uint64_t count) {
    for (uint64_t i = 0; i < count && count <= UIO_MAXIOV; i++) {
        struct iovec part;
        if (pass_read(&part, list + i * sizeof part, sizeof part))
            pass_fill(pass, (uint64_t)part.iov_base, part.iov_len);
    }
}

static void fill_message(const struct pass *pass, const struct io_uring_sqe *request) {
    struct msghdr message;
    if (!pass_read(&message, request->addr, sizeof message))
        return;
    pass_fill(pass, request->addr, sizeof message);
    pass_fill(pass, (uint64_t)message.msg_name, message.msg_namelen);
    pass_fill(pass, (uint64_t)message.msg_control, message.msg_controllen);
    if (!(request->flags & IOSQE_BUFFER_SELECT))
        fill_vector(pass, (uint64_t)message.msg_iov, message.msg_iovlen);
}

static void fill_name(const struct pass *pass, const struct io_uring_sqe *request) {
    uint32_t size;
    if (!request->addr2 || !pass_read(&size, request->addr2, sizeof size))
        return;
    pass_fill(pass, request->addr, size);
    pass_fill(pass, request->addr2, sizeof size);
}

static void fill_of_request(const struct pass *pass, const struct io_uring_sqe *request) {
    bool chooses = request->flags & IOSQE_BUFFER_SELECT;
    enum { EPOLL_EVENT = 12 };
    switch (request->opcode) {
    case IORING_OP_READ:
    case IORING_OP_READ_FIXED:
    case IORING_OP_RECV:
        pass_fill(pass, request->addr, chooses ? 0 : request->len);
        break;
    case IORING_OP_READV:
    case OP_READV_FIXED:
        fill_vector(pass, request->addr, chooses ? 0 : request->len);
        break;
    case IORING_OP_RECVMSG:
        fill_message(pass, request);
        break;
    case IORING_OP_ACCEPT:
        fill_name(pass, request);
        break;
    case IORING_OP_STATX:
        pass_fill(pass, request->off, sizeof(struct statx));
        break;
    case IORING_OP_GETXATTR:
    case IORING_OP_FGETXATTR:
        pass_fill(pass, request->addr2, request->len);
        break;
    case IORING_OP_FILES_UPDATE:
        pass_fill(pass, request->addr, request->len * sizeof(int));
        break;
    case IORING_OP_PROVIDE_BUFFERS:
        pass_fill(pass, request->addr, (uint64_t)request->len * (uint32_t)request->fd);
        break;
    case OP_WAITID:
        pass_fill(pass, request->addr2, sizeof(siginfo_t));
        break;
    case OP_EPOLL_WAIT:
        pass_fill(pass, request->addr, (uint64_t)request->len * EPOLL_EVENT);
        break;
    case OP_PIPE:
        pass_fill(pass, request->addr, 2 * sizeof(int));
        break;
    }
}

static void fill_of_group(const struct pass *pass, struct group *group) {
    uint16_t tail;
    if (!group->address || !group->room ||
        !pass_read(&tail, group->address + offsetof(struct io_uring_buf, resv), sizeof tail))
        return;
    uint16_t count = tail - group->seen;
    group->seen = tail;
    if (count > group->room)
        count = group->room;
    for (uint16_t i = 0; i < count; i++) {
        struct io_uring_buf buffer;
        uint32_t place = (uint16_t)(tail - count + i) & (group->room - 1);
        if (pass_read(&buffer, group->address + place * sizeof buffer, sizeof buffer))
            pass_fill(pass, buffer.addr, buffer.len);
    }
}

static void fill_of_ring(const struct pass *pass, struct ring *ring) {
    uint32_t head, tail, mask;
    for (struct group *group = atomic_load(&ring->groups); group; group = group->next)
        fill_of_group(pass, group);
    if (!ring->queue || !ring->requests || !pass_read(&head, ring->queue + ring->head, 4) ||
        !pass_read(&tail, ring->queue + ring->tail, 4) ||
        !pass_read(&mask, ring->queue + ring->mask, 4))
        return;
    if (ring->is_polled)
        head = ring->seen; // the kernel has taken some, and what they were is still there
    ring->seen = tail;
    if (tail - head > mask + 1)
        head = tail - mask - 1;
    for (; head != tail; head++) {
        uint32_t number = head & mask;
        struct io_uring_sqe request;
        if (ring->has_index && !pass_read(&number, ring->queue + ring->index + number * 4, 4))
            return;
        if (number <= mask &&
            pass_read(&request, ring->requests + number * ring->request_size, sizeof request))
            fill_of_request(pass, &request);
    }
}

void visit_io_uring_enter(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    struct ring *ring =
        pass->after ? NULL : ring_called((int)a[0], a[3] & IORING_ENTER_REGISTERED_RING);
    if (a[4] && a[3] & IORING_ENTER_EXT_ARG)
        pass_in(pass, a[4], a[5], "sig");
    else if (a[4])
        pass_in(pass, a[4], a[5] ? a[5] : 8, "sig");
    if (ring)
        fill_of_ring(pass, ring);
}

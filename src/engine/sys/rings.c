// io_uring with a kernel thread that takes requests by itself (IORING_SETUP_SQPOLL).
//
// A tool with shadow memory must know of memory that the kernel fills, and nothing would say when a
// request is made. So the kernel thread appears to be always asleep: the ring is made without it,
// and the flag is set by which a program learns that it has to wake the thread
// (IORING_SQ_NEED_WAKEUP). The call that would wake it submits the requests.
#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/sys/sys.h"

// What older headers do not have.
enum { SINGLE_ISSUER = 1 << 12, NO_MMAP = 1 << 14, USER_ADDRESS = 32 };

static bool has_sleeping_rings;

static bool is_polled(uint32_t flags) {
    // With IORING_SETUP_IOPOLL the thread also waits for completions; that one stays.
    return tool->shadow_distance && flags & IORING_SETUP_SQPOLL && !(flags & IORING_SETUP_IOPOLL);
}

static void set_flag(char *ring, const struct io_uring_params *params) {
    __atomic_fetch_or((uint32_t *)(ring + params->sq_off.flags), IORING_SQ_NEED_WAKEUP,
                      __ATOMIC_SEQ_CST);
}

static bool put_to_sleep(int fd, const struct io_uring_params *params) {
    uint64_t given;
    if (params->flags & NO_MMAP) {
        memcpy(&given, (const char *)&params->cq_off + USER_ADDRESS, sizeof given);
        set_flag((char *)given, params);
        return true;
    }
    size_t size = params->sq_off.flags + sizeof(uint32_t);
    char *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    if (ring == MAP_FAILED)
        return false;
    set_flag(ring, params);
    munmap(ring, size);
    return true;
}

long sys_io_uring_setup(long number, struct sys_arguments *args) {
    struct io_uring_params params;
    if (target_read(&params, args->a[1], sizeof params) || !is_polled(params.flags))
        return sys_pass(number, args);
    const uint32_t polling = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF | SINGLE_ISSUER;
    uint32_t removed = params.flags & polling;
    params.flags &= ~polling;
    struct sys_arguments changed = {{args->a[0], (uint64_t)&params}};
    long fd = sys_pass(number, &changed);
    if (fd < 0)
        return fd;
    if (!put_to_sleep((int)fd, &params)) {
        close((int)fd);
        return sys_pass(number, args);
    }
    has_sleeping_rings = true;
    params.flags |= removed;
    target_write(args->a[1], &params, sizeof params);
    return fd;
}

long sys_io_uring_enter(long number, struct sys_arguments *args) {
    uint64_t flags = args->a[3];
    if (!has_sleeping_rings || !(flags & IORING_ENTER_SQ_WAKEUP))
        return sys_pass(number, args);
    struct sys_arguments submit = {
        {args->a[0], UINT32_MAX, 0, flags & IORING_ENTER_REGISTERED_RING}};
    long result = sys_pass(number, &submit);
    if (result < 0 && result != -EAGAIN && result != -EBUSY)
        return result;
    if (flags & IORING_ENTER_GETEVENTS) {
        struct sys_arguments wait = *args;
        wait.a[1] = 0;
        wait.a[3] &= ~(uint64_t)(IORING_ENTER_SQ_WAKEUP | IORING_ENTER_SQ_WAIT);
        result = sys_pass(number, &wait);
    }
    return result < 0 ? result : (long)(uint32_t)args->a[1];
}

// The target's limits: what it sees and sets of them, and what it may map.
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/rlimits.h"
#include "engine/memory/maps.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/process.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

// ---- what is mapped ----------------------------------------------------------------------------

enum {
    STACK_AT_START = 33 * SPACE_PAGE, // of the initial stack, what the kernel counts at first
    TOOL_PIECE = 4 << 20,             // a tool takes memory for small blocks in pieces of this size
};

static bool tool_has_pieces;

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

// Of the initial stack all is mapped at once, and of a tool's last piece only a part is in use.
static bool has_room(struct space_size more) {
    struct space_size used = space_size(&target_space);
    uint64_t piece = tool_has_pieces ? TOOL_PIECE : 0;
    uint64_t stack = less(process.stack_end - process.stack_start, STACK_AT_START);
    const struct rlimit *data = &self->limits->of[WIRE_LIMIT_DATA];
    // The kernel has this exception for a soft limit of 0.
    uint64_t data_limit = data->rlim_cur ? data->rlim_cur : data->rlim_max;
    uint64_t limit = rlimits_soft(WIRE_LIMIT_AS);
    return more.all <= less(limit, less(used.all, stack + piece)) &&
           (!more.data || more.data <= less(data_limit, less(used.data, piece)));
}

static bool is_limited(void) {
    return rlimits_soft(WIRE_LIMIT_AS) != RLIM_INFINITY ||
           rlimits_soft(WIRE_LIMIT_DATA) != RLIM_INFINITY;
}

bool limits_permit(uint64_t size, bool is_data) {
    return !is_limited() || has_room((struct space_size){size, is_data ? size : 0});
}

bool limits_permit_at(uint64_t start, uint64_t end, bool is_data) {
    if (limits_permit(end - start, is_data))
        return true;
    struct space_size there = space_size_in(&target_space, start, end);
    uint64_t size = end - start;
    return has_room((struct space_size){size - there.all, is_data ? less(size, there.all) : 0});
}

bool limits_permit_writing(uint64_t start, uint64_t end) {
    if (rlimits_soft(WIRE_LIMIT_DATA) == RLIM_INFINITY)
        return true;
    struct space_range range;
    uint64_t more = 0;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (!(range.attributes.prot & PROT_WRITE) &&
            !(range.attributes.flags & (SPACE_SHARED | SPACE_GROWSDOWN)))
            more += range.end - range.start;
    return !more || has_room((struct space_size){0, more});
}

bool limits_permit_tool(uint64_t size) {
    if (!is_limited())
        return true;
    bool permitted =
        size > TOOL_PIECE ? limits_permit(size, true) : limits_permit(SPACE_PAGE, true);
    tool_has_pieces |= size <= TOOL_PIECE;
    return permitted;
}

// ---- system calls ------------------------------------------------------------------------------

static bool is_privileged(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    return syscall(SYS_capget, &header, sets) == 0 &&
           sets[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE);
}

static long set_limit(enum wire_limit limit, const struct rlimit *value) {
    const struct rlimit *old = &self->limits->of[limit];
    if (value->rlim_cur > value->rlim_max)
        return -EINVAL;
    if (value->rlim_max > old->rlim_max && !is_privileged())
        return -EPERM;
    // Nobody may have more descriptors than the kernel has numbers for; it says so itself.
    if (limit == WIRE_LIMIT_NOFILE && value->rlim_max > old->rlim_max &&
        setrlimit(RLIMIT_NOFILE, value) != 0)
        return -errno;
    rlimits_set(limit, value);
    if (limit == WIRE_LIMIT_NOFILE)
        files_hide();
    if (limit == WIRE_LIMIT_STACK)
        main_stack_limit(value->rlim_cur);
    return 0;
}

static long change_limit(int resource, uint64_t new_address, uint64_t old_address) {
    enum wire_limit limit = wire_limit_of(resource);
    struct rlimit value, old = self->limits->of[limit];
    if (new_address && target_read(&value, new_address, sizeof value))
        return -EFAULT;
    long result = new_address ? set_limit(limit, &value) : 0;
    if (result == 0 && old_address && target_write(old_address, &old, sizeof old))
        return -EFAULT;
    return result;
}

long sys_getrlimit(long number, struct sys_arguments *args) {
    if (wire_limit_of(args->a[0]) < 0)
        return sys_pass(number, args);
    return args->a[1] ? change_limit(args->a[0], 0, args->a[1]) : -EFAULT;
}

long sys_setrlimit(long number, struct sys_arguments *args) {
    if (wire_limit_of(args->a[0]) < 0)
        return sys_pass(number, args);
    return args->a[1] ? change_limit(args->a[0], args->a[1], 0) : -EFAULT;
}

long sys_prlimit64(long number, struct sys_arguments *args) {
    int pid = args->a[0];
    bool own = pid == 0 || pid == self->tid || pid == getpid();
    if (!own || wire_limit_of(args->a[1]) < 0)
        return sys_pass(number, args);
    return change_limit(args->a[1], args->a[2], args->a[3]);
}

// ---- /proc/self/limits -------------------------------------------------------------------------

static const char *const proc_names[WIRE_LIMITS] = {
    [WIRE_LIMIT_AS] = "Max address space",  [WIRE_LIMIT_DATA] = "Max data size",
    [WIRE_LIMIT_STACK] = "Max stack size",  [WIRE_LIMIT_FSIZE] = "Max file size",
    [WIRE_LIMIT_NOFILE] = "Max open files",
};

static void write_value(FILE *out, rlim_t value) {
    if (value == RLIM_INFINITY)
        fprintf(out, "%-20s ", "unlimited");
    else
        fprintf(out, "%-20lu ", value);
}

static void write_line(FILE *out, const char *line) {
    enum { VALUES_AT = 26, UNITS_AT = 68 }; // columns of proc(5)
    for (int i = 0; i < WIRE_LIMITS; i++) {
        if (strncmp(line, proc_names[i], strlen(proc_names[i])) != 0 || strlen(line) < UNITS_AT)
            continue;
        fprintf(out, "%.*s", VALUES_AT, line);
        write_value(out, self->limits->of[i].rlim_cur);
        write_value(out, self->limits->of[i].rlim_max);
        fputs(line + UNITS_AT, out);
        return;
    }
    fputs(line, out);
}

int limits_of_target(void) {
    char line[256];
    int fd = memfd_create(MAPS_FILE, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    rlimits_lift();
    FILE *in = fopen("/proc/self/limits", "re"), *out = fdopen(dup(fd), "w");
    while (in && out && fgets(line, sizeof line, in))
        write_line(out, line);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    rlimits_restore();
    lseek(fd, 0, SEEK_SET);
    return fd;
}

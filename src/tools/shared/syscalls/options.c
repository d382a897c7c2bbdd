// prctl, bpf, and structures that carry their own size.
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <fcntl.h>

#include "tools/shared/syscalls/pass.h"

// ---- prctl -------------------------------------------------------------------------------------

enum option_way { OPTION_NOTHING, OPTION_NUMBER, OPTION_GIVES, OPTION_NAME };

struct option {
    uint8_t way, size;
    const char *argument, *memory; // names of the second argument
};

static const struct option options[] = {
    [PR_SET_PDEATHSIG] = {OPTION_NUMBER, 0, "signal", NULL},
    [PR_GET_PDEATHSIG] = {OPTION_GIVES, 4, "signal", "get-death-signal"},
    [PR_GET_DUMPABLE] = {OPTION_NOTHING, 0, NULL, NULL},
    [PR_SET_DUMPABLE] = {OPTION_NUMBER, 0, "dump", NULL},
    [PR_GET_UNALIGN] = {OPTION_GIVES, 4, "value", "get-unalign"},
    [PR_SET_UNALIGN] = {OPTION_NUMBER, 0, "value", NULL},
    [PR_GET_KEEPCAPS] = {OPTION_NOTHING, 0, NULL, NULL},
    [PR_SET_KEEPCAPS] = {OPTION_NUMBER, 0, "keepcaps", NULL},
    [PR_GET_FPEMU] = {OPTION_GIVES, 4, "value", "get-fpemu"},
    [PR_SET_FPEMU] = {OPTION_NUMBER, 0, "value", NULL},
    [PR_GET_FPEXC] = {OPTION_GIVES, 4, "value", "get-fpexc"},
    [PR_SET_FPEXC] = {OPTION_NUMBER, 0, "value", NULL},
    [PR_GET_TIMING] = {OPTION_NOTHING, 0, NULL, NULL},
    [PR_SET_TIMING] = {OPTION_NUMBER, 0, "timing", NULL},
    [PR_SET_NAME] = {OPTION_NAME, 0, "name", "set-name"},
    [PR_GET_NAME] = {OPTION_GIVES, 16, "name", "get-name"},
    [PR_GET_ENDIAN] = {OPTION_GIVES, 4, "value", "get-endian"},
    [PR_SET_ENDIAN] = {OPTION_NUMBER, 0, "value", NULL},
    [PR_CAPBSET_READ] = {OPTION_NUMBER, 0, "capability", NULL},
    [PR_CAPBSET_DROP] = {OPTION_NUMBER, 0, "capability", NULL},
};

// Arguments that are not looked at by name; how many of them the option uses.
static void pass_other_option(const struct pass *pass, unsigned option) {
    uint64_t address = pass->arguments[1];
    switch (option) {
    case PR_SET_PTRACER:
        pass_register(pass, 1, 8, "ptracer_process_ID");
        return;
    case PR_SET_SECCOMP:
        pass_register(pass, 1, 8, "mode");
        if (address == 2 /* a filter */) {
            const char *name = "prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter)";
            pass_register(pass, 2, 8, "filter");
            pass_in(pass, pass->arguments[2], sizeof(uint16_t), "%s", name);
            pass_filter(pass, pass->arguments[2], name);
        }
        return;
    case PR_GET_TSC:
    case PR_GET_CHILD_SUBREAPER:
        pass_register(pass, 1, 8, NULL);
        pass_mark(pass, address, 4);
        return;
    case PR_GET_TID_ADDRESS:
        pass_register(pass, 1, 8, NULL);
        pass_mark(pass, address, 8);
        return;
    case PR_GET_TIMERSLACK:
    case PR_GET_SECUREBITS:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_THP_DISABLE:
        break;
    }
    for (unsigned i = 1; i < 5; i++)
        pass_register(pass, i, 8, NULL);
}

void visit_prctl(const struct pass *pass) {
    uint32_t number = (uint32_t)pass->arguments[0];
    uint64_t address = pass->arguments[1];
    bool is_known = number < sizeof options / sizeof *options &&
                    (options[number].argument || number == PR_GET_DUMPABLE ||
                     number == PR_GET_KEEPCAPS || number == PR_GET_TIMING);
    if (!is_known) {
        pass_other_option(pass, number);
        return;
    }
    const struct option *option = &options[number];
    if (option->way != OPTION_NOTHING)
        pass_register(pass, 1, 8, option->argument);
    if (option->way == OPTION_GIVES)
        pass_out(pass, address, option->size, option->size, "%s", option->memory);
    else if (option->way == OPTION_NAME)
        pass_string(pass, address, "%s", option->memory);
}

// ---- bpf ---------------------------------------------------------------------------------------
//
// What a command reads of its union differs from kernel to kernel; a program that sets the first
// fields only, and says so by the size, is right. So the bytes that it counts are marked and not
// checked, but for what they point to where a command writes there.

static void mark_bpf_info(const struct pass *pass, const union bpf_attr *attributes) {
    pass_mark(pass, attributes->info.info, attributes->info.info_len);
}

void visit_bpf(const struct pass *pass) {
    union bpf_attr attributes = {0};
    uint64_t address = pass->arguments[1], size = (uint32_t)pass->arguments[2];
    if (size > sizeof attributes)
        size = sizeof attributes;
    if (!pass_read(&attributes, address, size))
        return;
    pass_mark(pass, address, size);
    switch (pass->arguments[0]) {
    case BPF_MAP_LOOKUP_ELEM:
    case BPF_MAP_GET_NEXT_KEY: {
        // How large a value is, only the kernel knows; a page at most is called defined.
        enum { MOST = 4096 };
        pass_mark(pass, attributes.value, MOST);
        break;
    }
    case BPF_PROG_LOAD:
        pass_mark(pass, attributes.log_buf, attributes.log_size);
        break;
    case BPF_OBJ_GET_INFO_BY_FD:
        mark_bpf_info(pass, &attributes);
        break;
    case BPF_PROG_QUERY:
        pass_mark(pass, attributes.query.prog_ids, attributes.query.prog_cnt * 4ul);
        break;
    }
}

// ---- structures that say their size ------------------------------------------------------------

void visit_perf_event_open(const struct pass *pass) {
    uint64_t address = pass->arguments[0];
    uint32_t size;
    pass_in(pass, address + offsetof(struct perf_event_attr, size), sizeof size,
            "perf_event_open(attr->size)");
    if (!pass_read(&size, address + offsetof(struct perf_event_attr, size), sizeof size))
        return;
    pass_in(pass, address, size ? size : PERF_ATTR_SIZE_VER0, "attr");
}

void visit_sched_setattr(const struct pass *pass) {
    uint64_t address = pass->arguments[1];
    uint32_t size;
    if (!address)
        return;
    pass_in(pass, address, sizeof size, "attr->size");
    if (pass_read(&size, address, sizeof size))
        pass_in(pass, address, size, "attr");
}

void visit_sched_getattr(const struct pass *pass) {
    uint64_t address = pass->arguments[1];
    uint32_t size;
    if (!address)
        return;
    pass_out(pass, address, (uint32_t)pass->arguments[2], 0, "sched_getattr(attr)");
    // The kernel says how much it has written.
    if (pass_read(&size, address, sizeof size))
        pass_mark(pass, address, size < pass->arguments[2] ? size : pass->arguments[2]);
}

void visit_name_to_handle_at(const struct pass *pass) {
    uint64_t handle = pass->arguments[2];
    uint32_t size;
    pass_string(pass, pass->arguments[1], "name");
    pass_in(pass, handle, sizeof size, "handle");
    if (pass_read(&size, handle, sizeof size))
        pass_out(pass, handle, sizeof(struct file_handle) + size, UINT64_MAX, "handle");
    pass_out(pass, pass->arguments[3], 4, 4, "mnt_id");
}

void visit_open_by_handle_at(const struct pass *pass) {
    uint64_t handle = pass->arguments[1];
    uint32_t size;
    pass_in(pass, handle, sizeof size, "handle");
    if (pass_read(&size, handle, sizeof size) && size)
        pass_in(pass, handle, sizeof(struct file_handle) + size, "handle");
}

void visit_fsconfig(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    enum { SET_FLAG, SET_STRING, SET_BINARY, SET_PATH, SET_PATH_EMPTY };
    if (a[2])
        pass_string(pass, a[2], "key");
    if (!a[3])
        return;
    if (a[1] == SET_STRING || a[1] == SET_PATH || a[1] == SET_PATH_EMPTY)
        pass_string(pass, a[3], "value");
    else if (a[1] == SET_BINARY)
        pass_in(pass, a[3], (uint32_t)a[4], "value");
}

// ---- capabilities ------------------------------------------------------------------------------

enum { CAPABILITY_HEADER = 8, CAPABILITY_DATA = 12, CAPABILITY_VERSION_1 = 0x19980330 };

// How much data there is depends on the version that the header names.
static uint64_t capability_size(uint64_t header) {
    uint32_t version;
    if (pass_read(&version, header, sizeof version) && version != CAPABILITY_VERSION_1)
        return 2 * CAPABILITY_DATA;
    return CAPABILITY_DATA;
}

void visit_capget(const struct pass *pass) {
    uint64_t data = pass->arguments[1];
    pass_in(pass, pass->arguments[0], CAPABILITY_HEADER, "header");
    pass_mark(pass, pass->arguments[0], 4);
    if (data)
        pass_out(pass, data, capability_size(pass->arguments[0]), UINT64_MAX, "data");
}

void visit_capset(const struct pass *pass) {
    pass_in(pass, pass->arguments[0], CAPABILITY_HEADER, "header");
    pass_in(pass, pass->arguments[1], capability_size(pass->arguments[0]), "data");
}

// ---- threads and processes ---------------------------------------------------------------------

void visit_clone(const struct pass *pass) {
    uint64_t flags = pass->arguments[0];
    if (flags & (CLONE_PARENT_SETTID | CLONE_PIDFD)) {
        pass_register(pass, 2, 8, NULL);
        pass_out(pass, pass->arguments[2], 4, 4, "parent_tidptr");
    }
    if (flags & CLONE_SETTLS)
        pass_register(pass, 4, 8, NULL);
    if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) {
        pass_register(pass, 3, 8, NULL);
        pass_out(pass, pass->arguments[3], 4, 4, "child_tidptr");
    }
}

void visit_clone3(const struct pass *pass) {
    struct clone_arguments {
        uint64_t flags, pidfd, child_tid, parent_tid;
    } given = {0};
    pass_in(pass, pass->arguments[0], pass->arguments[1], "cl_args");
    if (pass->arguments[1] < sizeof given || !pass_read(&given, pass->arguments[0], sizeof given))
        return;
    if (given.flags & CLONE_PIDFD)
        pass_out(pass, given.pidfd, 4, 4, "cl_args->pidfd");
    if (given.flags & CLONE_PARENT_SETTID)
        pass_out(pass, given.parent_tid, 4, 4, "cl_args->parent_tid");
    if (given.flags & CLONE_CHILD_SETTID)
        pass_out(pass, given.child_tid, 4, 4, "cl_args->child_tid");
}

void visit_futex_waitv(const struct pass *pass) {
    enum { WAITER = 24, MOST = 128 };
    uint64_t list = pass->arguments[0], count = (uint32_t)pass->arguments[1];
    if (count <= MOST)
        pass_in(pass, list, count * WAITER, "waiters");
    if (pass->arguments[3])
        pass_in(pass, pass->arguments[3], 16, "timeout");
}

// ---- mounts and security modules ---------------------------------------------------------------

void visit_statmount(const struct pass *pass) {
    uint32_t size = 0;
    pass_in(pass, pass->arguments[0], 24, "req");
    pass_out(pass, pass->arguments[1], pass->arguments[2], 0, "buf");
    if (pass_read(&size, pass->arguments[1], sizeof size))
        pass_mark(pass, pass->arguments[1], size < pass->arguments[2] ? size : pass->arguments[2]);
}

static void pass_sized(const struct pass *pass, uint64_t address, uint64_t size_at,
                       const char *name) {
    uint32_t size;
    pass_in(pass, size_at, sizeof size, "size");
    if (pass_read(&size, size_at, sizeof size) && address)
        pass_out(pass, address, size, size, "%s", name);
    pass_mark(pass, size_at, sizeof size);
}

void visit_lsm_get_self_attr(const struct pass *pass) {
    pass_sized(pass, pass->arguments[1], pass->arguments[2], "ctx");
}

void visit_lsm_list_modules(const struct pass *pass) {
    pass_sized(pass, pass->arguments[0], pass->arguments[1], "ids");
}

// How a system call's use of memory is described, once for both sides of the call.
//
// Words
//   entry   what the table (table.c) says of a call: its arguments and pieces
//   piece   a range of memory that an argument points to
//   visit   a function that describes memory which a list of pieces cannot: lengths in memory,
//           structures that depend on a command
//   pass    one walk through the description, before the call or after one that succeeded. The same
//           description serves both; a visit does not ask which.
//   user    the tool that makes the pass. Before the call it hears of what the kernel reads and may
//           write, after it of what the kernel has written.
//
// Names are those of Valgrind's reports, because suppressions contain them: `write(buf)`. A name
// without a parenthesis is put into those of the call; others stand as they are. Names are
// formatted only when there is something to report.
//
// All of this runs on the thread that makes the call, in the tool's hooks.
#ifndef QUERN_TOOLS_SYSCALLS_PASS_H
#define QUERN_TOOLS_SYSCALLS_PASS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct syscall_entry;
struct pass;

// What a tool wants to hear. Names are made from format and words by pass_format_name.
struct syscalls_user {
    // Before the call.
    void (*reads)(const struct pass *, uint64_t address, uint64_t size, const char *format,
                  va_list words);
    void (*reads_string)(const struct pass *, uint64_t address, const char *format, va_list words);
    void (*writes)(const struct pass *, uint64_t address, uint64_t size, const char *format,
                   va_list words);                                        // NULL: not wanted
    void (*argument)(unsigned argument, unsigned size, const char *name); // that the call uses
    // After it.
    void (*wrote)(uint64_t address, uint64_t size);
    // The table does not know a call or a command of one. NULL: not wanted.
    void (*unknown)(const char *what, unsigned long number);
};

struct pass {
    const struct syscalls_user *user;
    const struct syscall_entry *entry;
    const uint64_t *arguments;
    bool checks_arguments; // the user wants to hear of them
    bool after;
    long result; // of the call; before it: 0
};

// For a tool: makes the passes of a system call.
void syscalls_before(const struct syscalls_user *, long number, const uint64_t arguments[6],
                     bool checks_arguments);
void syscalls_after(const struct syscalls_user *, long number, const uint64_t arguments[6],
                    long result);

// ---- names ----

enum { PASS_NAME_SIZE = 128, PASS_WHOLE_SIZE = PASS_NAME_SIZE + 64 };
// The name of an argument. Returns how many bytes of it the call uses; *checks: the pass checks it,
// not a visit.
unsigned pass_argument_name(const struct pass *, unsigned argument, bool *checks,
                            char name[PASS_NAME_SIZE]);
// With the call's name: `write(buf)`.
void pass_whole_name(const struct pass *, const char *name, char whole[PASS_WHOLE_SIZE]);
void pass_format_name(const struct pass *, char whole[PASS_WHOLE_SIZE], const char *format,
                      va_list words);

// ---- the table ----

enum piece_kind { PIECE_NONE, PIECE_STRING, PIECE_IN, PIECE_OUT, PIECE_IN_OUT };
enum piece_written { WRITTEN_ALL, WRITTEN_RESULT };

struct piece {
    uint8_t kind, argument;
    uint8_t count;    // the argument that counts units, plus one; 0: one unit
    uint8_t written;  // of what a piece takes, how much a call writes
    bool optional;    // a null pointer is in order
    bool narrow;      // of the count, only the low half matters
    uint16_t offset;  // from where the argument points to
    uint32_t unit;    // bytes; 0: the count is that of a mask of nodes
    const char *name; // NULL: the argument's
};

// Of a mask of NUMA nodes: the kernel takes one bit less than the caller says, in whole words.
static inline uint64_t node_mask_bytes(uint64_t max_node) {
    uint64_t bits = max_node ? max_node - 1 : 0;
    return bits / 64 * 8 + (bits % 64 ? 8 : 0);
}

enum { PIECES = 4 };

struct syscall_entry {
    const char *name; // as reports give it
    const char
        *arguments; // their names; ":4" where only the low half counts, "?" where visit checks
    struct piece pieces[PIECES];
    void (*visit)(const struct pass *);
    bool on_failure; // may write although it fails; visit looks at the result
};

// By number; NULL: not known.
const struct syscall_entry *syscalls_entry(long number);

// ---- for visits ----

#define PASS_NAME(format_index) __attribute__((format(printf, format_index, format_index + 1)))

void pass_in(const struct pass *, uint64_t address, uint64_t size, const char *name, ...)
    PASS_NAME(4);
void pass_string(const struct pass *, uint64_t address, const char *name, ...) PASS_NAME(3);
// `size` bytes may be written, `written` have been.
void pass_out(const struct pass *, uint64_t address, uint64_t size, uint64_t written,
              const char *name, ...) PASS_NAME(5);
// The kernel may write it from the call on, before that has returned.
void pass_fill(const struct pass *, uint64_t address, uint64_t size);
// Written by a call that succeeded, and checked otherwise.
void pass_mark(const struct pass *, uint64_t address, uint64_t size);
// An argument whose use depends on others; size in bytes. NULL: the name that the entry gives it.
void pass_register(const struct pass *, unsigned argument, unsigned size, const char *name);
// The target's memory. False: it cannot be read.
bool pass_read(void *to, uint64_t from, size_t size);
// Something that the table does not know.
void pass_unknown(const struct pass *, const char *what, unsigned long number);

// ---- visits, by the file that has them ----

// syscalls/vectors.c
void visit_readv(const struct pass *);
void visit_writev(const struct pass *);
void visit_preadv(const struct pass *);
void visit_pwritev(const struct pass *);
void visit_vmsplice(const struct pass *);
void visit_process_vm_readv(const struct pass *);
void visit_process_vm_writev(const struct pass *);
void visit_process_madvise(const struct pass *);
void visit_execve(const struct pass *);
void visit_execveat(const struct pass *);
void visit_io_submit(const struct pass *);
// Each buffer of an array of struct iovec; `limit` bytes of them have been written, if any are.
struct vector {
    uint64_t address, count;
    bool written;
    uint64_t limit;
    const char *prefix;  // before `array` and `element` in names
    const char *array;   // the name of the array
    const char *element; // of a buffer, with %lu for its number or without
};
void pass_vector(const struct pass *, const struct vector *);

// syscalls/rings.c
void visit_io_uring_setup(const struct pass *);
void visit_io_uring_register(const struct pass *);
void visit_io_uring_enter(const struct pass *);
void visit_mmap(const struct pass *);

// syscalls/sockets.c
void visit_connect(const struct pass *);
void visit_bind(const struct pass *);
void visit_accept(const struct pass *);
void visit_getsockname(const struct pass *);
void visit_getpeername(const struct pass *);
void visit_sendto(const struct pass *);
void visit_recvfrom(const struct pass *);
void visit_sendmsg(const struct pass *);
void visit_recvmsg(const struct pass *);
void visit_sendmmsg(const struct pass *);
void visit_recvmmsg(const struct pass *);
void visit_setsockopt(const struct pass *);
void visit_getsockopt(const struct pass *);

// syscalls/ioctl.c
void visit_ioctl(const struct pass *);

// syscalls/commands.c: what depends on a command
void visit_fcntl(const struct pass *);
void visit_futex(const struct pass *);
void visit_semctl(const struct pass *);
void visit_shmctl(const struct pass *);
void visit_msgctl(const struct pass *);
void visit_msgrcv(const struct pass *);
void visit_keyctl(const struct pass *);
void visit_ptrace(const struct pass *);
void visit_quotactl(const struct pass *);
void visit_arch_prctl(const struct pass *);
void visit_syslog(const struct pass *);
void visit_seccomp(const struct pass *);
void visit_modify_ldt(const struct pass *);
// Instructions of a socket filter.
void pass_filter(const struct pass *, uint64_t program, const char *name);

// syscalls/options.c: prctl, bpf and structures that say their own size
void visit_prctl(const struct pass *);
void visit_bpf(const struct pass *);
void visit_perf_event_open(const struct pass *);
void visit_sched_setattr(const struct pass *);
void visit_sched_getattr(const struct pass *);
void visit_name_to_handle_at(const struct pass *);
void visit_open_by_handle_at(const struct pass *);
void visit_fsconfig(const struct pass *);
void visit_capget(const struct pass *);
void visit_capset(const struct pass *);
void visit_clone(const struct pass *);
void visit_clone3(const struct pass *);
void visit_futex_waitv(const struct pass *);
void visit_statmount(const struct pass *);
void visit_lsm_get_self_attr(const struct pass *);
void visit_lsm_list_modules(const struct pass *);

// syscalls/waiting.c: files, time and signals, where fields are looked at one by one
void visit_open(const struct pass *);
void visit_openat(const struct pass *);
void visit_poll(const struct pass *);
void visit_ppoll(const struct pass *);
void visit_select(const struct pass *);
void visit_pselect6(const struct pass *);
void visit_epoll_ctl(const struct pass *);
void visit_sleep(const struct pass *);
void visit_clock_sleep(const struct pass *);
void visit_rt_sigaction(const struct pass *);
void visit_sigaltstack(const struct pass *);
void visit_utimensat(const struct pass *);
void visit_timer_create(const struct pass *);
void visit_adjtimex(const struct pass *);
void visit_clock_adjtime(const struct pass *);
void visit_mq_open(const struct pass *);
void visit_mincore(const struct pass *);
void visit_getgroups(const struct pass *);
void visit_get_mempolicy(const struct pass *);
void visit_mbind(const struct pass *);
void visit_mremap(const struct pass *);
void visit_statx(const struct pass *);
void visit_mount(const struct pass *);

#endif

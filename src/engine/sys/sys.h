// System calls of the target.
//
// Most go to the kernel as they are, straight from the cache where possible. Those that
// concern the engine (memory map, signals, threads, processes, a few files of /proc, the engine's
// own descriptors) have a handler in the table of sys.c. A handler returns what the kernel would,
// or SYS_DONE when it has set the registers itself.
#ifndef QUERN_ENGINE_SYS_H
#define QUERN_ENGINE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYS_DONE (-0x51517152l)

struct sys_arguments {
    uint64_t a[6];
};

// Once, when the tool is known: says which calls need not come here at all. New threads and
// processes begin in `run`, which does not return.
typedef void sys_run_function(void);
void sys_init(__attribute__((noreturn)) sys_run_function *run);
extern __attribute__((noreturn)) sys_run_function *sys_run;
// Performs the system call in self->gpr; self->pc is after the instruction.
void sys_handle(void);

// The call as it is, interruptible: see target_syscall (enter.h).
long sys_pass(long number, const struct sys_arguments *);

typedef long sys_handler(long number, struct sys_arguments *);

// memory.c
sys_handler sys_mmap, sys_munmap, sys_mprotect, sys_mremap, sys_brk, sys_madvise, sys_shmat,
    sys_shmdt, sys_remap_file_pages;
// thread.c
sys_handler sys_clone, sys_clone3, sys_fork, sys_vfork, sys_exit, sys_exit_group,
    sys_set_tid_address, sys_set_robust_list;
// exec.c
sys_handler sys_execve, sys_execveat;
// filters.c
sys_handler sys_seccomp, sys_prctl;
// filters.c: whether the target wants to hear of the system call instead (syscall user dispatch).
bool filters_dispatch(long number);
// files.c
sys_handler sys_open, sys_openat, sys_openat2, sys_truncate, sys_readlink, sys_readlinkat,
    sys_close, sys_close_range, sys_dup2, sys_dup3, sys_getdents64, sys_with_path, sys_with_path_at,
    sys_fstat, sys_fstat_at;

// rings.c
sys_handler sys_io_uring_setup, sys_io_uring_enter;

// main_stack.c: the soft limit of the stack has been set.
void main_stack_limit(uint64_t limit);

// limits.c
sys_handler sys_getrlimit, sys_setrlimit, sys_prlimit64;

// files.c: keeps the engine's descriptors out of the target's way; again when the limit on
// descriptors has been changed.
void files_hide(void);
// If path names the target's executable in /proc (/proc/self/exe …), what it should lead to.
const char *files_exe_alias(const char *path);

// order.c
sys_handler sys_wait4, sys_waitid;
// Whether sys_handle sees all system calls.
void order_init(bool all_calls_are_seen);
// After a message that is shown, if it was not raised in sys_handle.
void order_raised(void);
// Before a call, while messages are outstanding.
void order_before_call(long number, const struct sys_arguments *);

// limits.c: whether the target's limits permit this much more memory, private and writable if it is
// data; in place of what is mapped there; to be written to from now on; for a tool. The space lock
// is held.
bool limits_permit(uint64_t size, bool is_data);
bool limits_permit_at(uint64_t start, uint64_t end, bool is_data);
bool limits_permit_writing(uint64_t start, uint64_t end);
bool limits_permit_tool(uint64_t size);
// A memory file in the form of /proc/self/limits; a descriptor or -errno.
int limits_of_target(void);

// memory.c: target memory on the engine's or a tool's behalf; they take the space lock.
uint64_t memory_map_anonymous(uint64_t size, uint64_t align); // 0: no room
bool memory_map_at(uint64_t start, uint64_t size);            // false: there is something
void memory_unmap(uint64_t start, uint64_t size);
bool memory_move_pages(uint64_t to, uint64_t from, uint64_t size);

#endif

// Why a process cannot be attached to: which rule of the kernel forbids it, and what to do.
//
// The text says something about the process ("it belongs to user 1000; …"), so that the caller can
// put "cannot attach to process 4711: " in front. Supervisor context.
#ifndef QUERN_ATTACH_REFUSAL_H
#define QUERN_ATTACH_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// What decides, as far as it is known.
struct refusal_facts {
    int pid;
    bool exists;
    bool is_self;
    int process; // that the thread of this number belongs to
    char state;  // of /proc/PID/status: 'Z' for a zombie
    int parent;
    bool is_kernel_thread;
    int tracer; // 0: none
    char tracer_name[32];
    bool is_32_bit;
    uid_t uids[3], own_uid; // real, effective, saved
    gid_t gids[3], own_gid;
    bool has_capability;   // CAP_SYS_PTRACE is ours
    bool is_other_users;   // in another user namespace
    uint64_t capabilities; // that it has and we lack
    bool is_not_dumpable;
    int scope;        // kernel.yama.ptrace_scope; -1: there is no Yama
    bool is_child;    // a descendant of ours
    bool is_filtered; // a seccomp filter is on us
};

void refusal_gather(struct refusal_facts *facts, int pid);
// What is known before anything is tried: no such process, zombie, kernel thread and so on. NULL:
// it may be tried.
char *refusal_before(const struct refusal_facts *facts);
// Why ptrace failed with EPERM or EACCES.
char *refusal_after(const struct refusal_facts *facts);

// Both for a process: what forbids it, NULL: nothing known.
char *refusal_check(int pid);
// After a call failed with this error number. NULL: it says nothing about permissions.
char *refusal_explain(int pid, int error);

#endif

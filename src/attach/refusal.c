#include "attach/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/text.h"

#define CAP_SYS_PTRACE 19
#define KERNEL_THREAD  0x00200000u // PF_KTHREAD, in the flags of /proc/PID/stat
#define ANCESTORS_MOST 64

// ---- gathering ---------------------------------------------------------------------------------

static FILE *open_of(int pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return fopen(path, "re");
}

struct status {
    int process, parent, tracer, seccomp;
    char state;
    unsigned uids[3], gids[3];
    unsigned long long effective, permitted;
};

static bool read_status(int pid, struct status *status) {
    char line[512];
    *status = (struct status){0};
    FILE *file = open_of(pid, "status");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "State: %c", &status->state);
        sscanf(line, "Tgid: %d", &status->process);
        sscanf(line, "PPid: %d", &status->parent);
        sscanf(line, "TracerPid: %d", &status->tracer);
        sscanf(line, "Uid: %u %u %u", &status->uids[0], &status->uids[1], &status->uids[2]);
        sscanf(line, "Gid: %u %u %u", &status->gids[0], &status->gids[1], &status->gids[2]);
        sscanf(line, "CapEff: %llx", &status->effective);
        sscanf(line, "CapPrm: %llx", &status->permitted);
        sscanf(line, "Seccomp: %d", &status->seccomp);
    }
    fclose(file);
    return true;
}

static bool is_kernel_thread(int pid) {
    char line[1024] = "";
    unsigned flags = 0;
    FILE *file = open_of(pid, "stat");
    size_t size = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[size] = 0;
    const char *behind = strrchr(line, ')'); // the name may hold anything
    if (behind)
        sscanf(behind, ") %*c %*d %*d %*d %*d %*d %u", &flags);
    return flags & KERNEL_THREAD;
}

static void read_name(int pid, char name[32]) {
    FILE *file = open_of(pid, "comm");
    name[0] = 0;
    if (file && fgets(name, 32, file))
        name[strcspn(name, "\n")] = 0;
    if (file)
        fclose(file);
    for (char *at = name; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

static bool is_32_bit(int pid) {
    char path[64];
    unsigned char ident[EI_NIDENT];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_read = elf_file_read(fd, 0, ident, sizeof ident);
    if (fd >= 0)
        close(fd);
    return is_read && memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

static bool is_descendant(int pid) {
    struct status status;
    for (unsigned i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
        if (pid == getpid())
            return true;
        if (!read_status(pid, &status))
            return false;
        pid = status.parent;
    }
    return false;
}

static int read_scope(void) {
    int scope = -1;
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file && fscanf(file, "%d", &scope) != 1)
        scope = -1;
    if (file)
        fclose(file);
    return scope;
}

static bool is_other_namespace(int pid) {
    struct stat ours, theirs;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    return stat("/proc/self/ns/user", &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino != theirs.st_ino;
}

// The kernel gives the folder of a process that is not dumpable to root.
static bool is_not_dumpable(int pid, uid_t owner) {
    struct stat folder;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    return stat(path, &folder) == 0 && folder.st_uid != owner;
}

void refusal_gather(struct refusal_facts *facts, int pid) {
    struct status theirs, ours;
    *facts = (struct refusal_facts){.pid = pid, .is_self = pid == getpid(), .scope = read_scope()};
    if (!read_status(pid, &theirs) || !read_status(getpid(), &ours))
        return;
    facts->exists = true;
    facts->process = theirs.process;
    facts->state = theirs.state;
    facts->parent = theirs.parent;
    facts->tracer = theirs.tracer;
    read_name(theirs.tracer, facts->tracer_name);
    facts->is_kernel_thread = is_kernel_thread(pid);
    facts->is_32_bit = is_32_bit(pid);
    for (unsigned i = 0; i < 3; i++) {
        facts->uids[i] = theirs.uids[i];
        facts->gids[i] = theirs.gids[i];
    }
    facts->own_uid = ours.uids[1];
    facts->own_gid = ours.gids[1];
    facts->has_capability = ours.effective >> CAP_SYS_PTRACE & 1;
    facts->capabilities = theirs.permitted & ~ours.permitted;
    facts->is_other_users = is_other_namespace(pid);
    facts->is_not_dumpable = is_not_dumpable(pid, theirs.uids[1]);
    facts->is_child = is_descendant(pid);
    facts->is_filtered = ours.seccomp == 2;
}

// ---- what is known before ----------------------------------------------------------------------

char *refusal_before(const struct refusal_facts *facts) {
    struct text text = {0};
    if (!facts->exists)
        text_string(&text, "there is no such process");
    else if (facts->is_self)
        text_string(&text, "that is quern itself");
    else if (facts->process != facts->pid)
        text_format(&text, "it is a thread of process %d; give that number", facts->process);
    else if (facts->state == 'Z' || facts->state == 'X')
        text_format(&text,
                    "it has ended; its parent, process %d, has not collected its status yet (a "
                    "zombie has no memory)",
                    facts->parent);
    else if (facts->is_kernel_thread)
        text_string(&text, "it is a thread of the kernel, which has no heap of a program");
    else if (facts->tracer)
        text_format(&text,
                    "process %d (%s) traces it already, and a process has one tracer at a time; "
                    "end or detach that one first",
                    facts->tracer, facts->tracer_name);
    else if (facts->is_32_bit)
        text_string(&text, "it is a 32-bit program; Quern knows x86-64 programs only");
    else
        return NULL;
    return text_take(&text);
}

// ---- why it failed -----------------------------------------------------------------------------

static bool is_other_user(const struct refusal_facts *facts) {
    for (unsigned i = 0; i < 3; i++)
        if (facts->uids[i] != facts->own_uid)
            return true;
    return false;
}

static bool is_other_group(const struct refusal_facts *facts) {
    for (unsigned i = 0; i < 3; i++)
        if (facts->gids[i] != facts->own_gid)
            return true;
    return false;
}

static void add_user(struct text *text, uid_t uid) {
    const struct passwd *user = getpwuid(uid);
    text_format(text, "user %u", (unsigned)uid);
    if (user)
        text_format(text, " (%s)", user->pw_name);
}

static void explain_scope(const struct refusal_facts *facts, struct text *text) {
    if (facts->scope >= 3) {
        text_format(text,
                    "kernel.yama.ptrace_scope is %d: nobody may attach until the machine starts "
                    "anew",
                    facts->scope);
        return;
    }
    text_format(text, "kernel.yama.ptrace_scope is %d: ", facts->scope);
    text_string(text, facts->scope == 2
                          ? "only root may attach (CAP_SYS_PTRACE). Run quern as root"
                          : "a process may attach to its descendants only. Run quern as root, or "
                            "as root: sysctl kernel.yama.ptrace_scope=0. The program may also "
                            "permit it by prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY)");
}

char *refusal_after(const struct refusal_facts *facts) {
    struct text text = {0};
    if (facts->scope >= 3) {
        explain_scope(facts, &text);
    } else if (facts->has_capability && !facts->is_other_users) {
        text_format(&text,
                    "the kernel forbids it although quern has CAP_SYS_PTRACE: a security "
                    "module (SELinux, AppArmor) %s",
                    facts->is_filtered ? "or the seccomp filter of this container forbids ptrace"
                                       : "forbids ptrace; its log says which rule");
    } else if (is_other_user(facts)) {
        text_string(&text, "it belongs to ");
        add_user(&text, facts->uids[1] != facts->own_uid ? facts->uids[1] : facts->uids[0]);
        text_string(&text, ", and quern runs as ");
        add_user(&text, facts->own_uid);
        text_string(&text, ". Run quern as that user or as root (or with CAP_SYS_PTRACE)");
    } else if (is_other_group(facts)) {
        text_format(&text,
                    "it runs with group %u, and quern with group %u. Run quern with the same "
                    "group, or as root",
                    (unsigned)facts->gids[1], (unsigned)facts->own_gid);
    } else if (facts->is_not_dumpable) {
        text_string(&text, "it is not dumpable: it was started from a set-user-ID file, has "
                           "changed its user, or has called prctl(PR_SET_DUMPABLE, 0). Run quern "
                           "as root (or with CAP_SYS_PTRACE)");
    } else if (facts->capabilities) {
        text_format(&text,
                    "it has capabilities that quern lacks (0x%llx). Run quern as root (or with "
                    "CAP_SYS_PTRACE)",
                    (unsigned long long)facts->capabilities);
    } else if (facts->is_other_users) {
        text_string(&text, "it lives in another user namespace (a container), and quern has no "
                           "CAP_SYS_PTRACE there. Run quern as root of the machine");
    } else if (facts->scope > 0 && (facts->scope > 1 || !facts->is_child)) {
        explain_scope(facts, &text);
    } else {
        text_string(&text, facts->is_filtered
                               ? "the kernel forbids it: probably the seccomp filter of this "
                                 "container. Give it --cap-add=SYS_PTRACE, or run quern outside"
                               : "the kernel forbids it, by a security module (SELinux, AppArmor); "
                                 "its log says which rule");
    }
    return text_take(&text);
}

// ---- both --------------------------------------------------------------------------------------

// Reading the list of mappings asks for the same rights as ptrace, except for Yama's, which apply
// to attaching only.
static bool is_readable(int pid) {
    struct text path = {0};
    text_format(&path, "/proc/%d/maps", pid);
    int fd = open(path.bytes, O_RDONLY | O_CLOEXEC);
    text_free(&path);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return fd >= 0;
}

char *refusal_check(int pid) {
    struct refusal_facts facts;
    refusal_gather(&facts, pid);
    char *refusal = refusal_before(&facts);
    if (refusal || is_readable(pid))
        return refusal;
    return refusal_explain(pid, errno);
}

char *refusal_explain(int pid, int error) {
    struct refusal_facts facts;
    if (error != EPERM && error != EACCES && error != ESRCH)
        return NULL;
    refusal_gather(&facts, pid);
    char *refusal = refusal_before(&facts);
    if (refusal)
        return refusal;
    return error == ESRCH ? base_copy("it has ended") : refusal_after(&facts);
}

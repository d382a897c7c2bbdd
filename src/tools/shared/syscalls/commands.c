// Calls whose use of an argument depends on a command among the others.
#include <asm/ldt.h>
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/quota.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "tools/shared/syscalls/pass.h"

// ---- fcntl -------------------------------------------------------------------------------------

static void pass_lock(const struct pass *pass, uint64_t lock, bool asks) {
    struct flock fields;
    pass_register(pass, 2, 8, "lock");
    pass_in(pass, lock + offsetof(struct flock, l_type), sizeof fields.l_type, "lock->l_type");
    pass_in(pass, lock + offsetof(struct flock, l_whence), sizeof fields.l_whence,
            "lock->l_whence");
    pass_in(pass, lock + offsetof(struct flock, l_start), sizeof fields.l_start, "lock->l_start");
    pass_in(pass, lock + offsetof(struct flock, l_len), sizeof fields.l_len, "lock->l_len");
    if (!asks)
        return;
    // When nothing stands in its way, only the type is changed.
    if (pass->after && pass_read(&fields, lock, sizeof fields) && fields.l_type == F_UNLCK)
        return;
    pass_out(pass, lock + offsetof(struct flock, l_pid), sizeof fields.l_pid, sizeof fields.l_pid,
             "lock->l_pid");
}

void visit_fcntl(const struct pass *pass) {
    uint64_t address = pass->arguments[2];
    switch (pass->arguments[1]) {
    case F_GETFD:
    case F_GETFL:
    case F_GETOWN:
    case F_GETSIG:
    case F_GETLEASE:
    case F_GETPIPE_SZ:
    case F_GET_SEALS:
        return;
    case F_GETLK:
    case F_OFD_GETLK:
        pass_lock(pass, address, true);
        return;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        pass_lock(pass, address, false);
        return;
    }
    pass_register(pass, 2, 8, NULL);
    switch (pass->arguments[1]) {
    case F_GETOWN_EX:
        pass_out(pass, address, 8, 8, "F_GETOWN_EX");
        break;
    case F_SETOWN_EX:
        pass_in(pass, address, 8, "F_SETOWN_EX");
        break;
    case F_GET_RW_HINT:
    case F_GET_FILE_RW_HINT:
        pass_out(pass, address, 8, 8, "F_GET_RW_HINT");
        break;
    case F_SET_RW_HINT:
    case F_SET_FILE_RW_HINT:
        pass_in(pass, address, 8, "F_SET_RW_HINT");
        break;
    }
}

// ---- futex -------------------------------------------------------------------------------------

enum { USES_VALUE = 1, USES_TIMEOUT = 2, USES_COUNT = 4, USES_SECOND = 8, USES_VALUE3 = 16 };

static const uint8_t futex_uses[] = {
    [FUTEX_WAIT] = USES_VALUE | USES_TIMEOUT,
    [FUTEX_WAKE] = USES_VALUE,
    [FUTEX_REQUEUE] = USES_VALUE | USES_COUNT | USES_SECOND,
    [FUTEX_CMP_REQUEUE] = USES_VALUE | USES_COUNT | USES_SECOND | USES_VALUE3,
    [FUTEX_WAKE_OP] = USES_VALUE | USES_COUNT | USES_SECOND | USES_VALUE3,
    [FUTEX_LOCK_PI] = USES_VALUE | USES_TIMEOUT,
    [FUTEX_UNLOCK_PI] = 0,
    [FUTEX_TRYLOCK_PI] = 0,
    [FUTEX_WAIT_BITSET] = USES_VALUE | USES_TIMEOUT,
    [FUTEX_WAKE_BITSET] = USES_VALUE | USES_VALUE3,
    [FUTEX_WAIT_REQUEUE_PI] = USES_VALUE | USES_TIMEOUT | USES_SECOND,
    [FUTEX_CMP_REQUEUE_PI] = USES_VALUE | USES_COUNT | USES_SECOND | USES_VALUE3,
    [FUTEX_LOCK_PI2] = USES_VALUE | USES_TIMEOUT,
};

void visit_futex(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    unsigned command = a[1] & FUTEX_CMD_MASK;
    if (command >= sizeof futex_uses)
        return;
    unsigned uses = futex_uses[command];
    if (uses & USES_VALUE)
        pass_register(pass, 2, 4, NULL);
    if (uses & (USES_TIMEOUT | USES_COUNT))
        pass_register(pass, 3, 8, NULL);
    if (uses & USES_SECOND)
        pass_register(pass, 4, 8, NULL);
    if (uses & USES_VALUE3)
        pass_register(pass, 5, 4, NULL);
    pass_in(pass, a[0], 4, "futex");
    if (uses & USES_SECOND && command != FUTEX_WAIT_REQUEUE_PI)
        pass_in(pass, a[4], 4, "futex2");
    if (uses & USES_TIMEOUT && a[3])
        pass_in(pass, a[3], 16, "timeout");
    pass_mark(pass, a[0], 4);
}

// ---- System V ----------------------------------------------------------------------------------

enum { IPC_64_BIT = 0x100, SEM_STAT_ANY_ = 20, SHM_STAT_ANY_ = 15, MSG_STAT_ANY_ = 13 };

static uint64_t semaphores(int id) {
    struct semid_ds state;
    return semctl(id, 0, IPC_STAT, &state) ? 0 : state.sem_nsems;
}

void visit_semctl(const struct pass *pass) {
    uint64_t address = pass->arguments[3];
    unsigned command = (unsigned)pass->arguments[2] & ~IPC_64_BIT;
    switch (command) {
    case IPC_INFO:
    case SEM_INFO:
        pass_register(pass, 3, 8, NULL);
        pass_out(pass, address, sizeof(struct seminfo), UINT64_MAX, "semctl(IPC_INFO, arg.buf)");
        break;
    case IPC_STAT:
    case SEM_STAT:
    case SEM_STAT_ANY_:
        pass_register(pass, 3, 8, NULL);
        pass_out(pass, address, sizeof(struct semid_ds), UINT64_MAX, "semctl(IPC_STAT, arg.buf)");
        break;
    case GETALL:
    case SETALL: {
        pass_register(pass, 3, 8, NULL);
        uint64_t size = semaphores((int)pass->arguments[0]) * sizeof(short);
        if (command == GETALL)
            pass_out(pass, address, size, size, "semctl(IPC_GETALL, arg.array)");
        else
            pass_in(pass, address, size, "semctl(IPC_SETALL, arg.array)");
        break;
    }
    }
}

void visit_shmctl(const struct pass *pass) {
    uint64_t address = pass->arguments[2];
    switch ((unsigned)pass->arguments[1] & ~IPC_64_BIT) {
    case IPC_INFO:
        pass_out(pass, address, sizeof(struct shminfo), UINT64_MAX, "shmctl(IPC_INFO, buf)");
        break;
    case SHM_INFO:
        pass_out(pass, address, sizeof(struct shm_info), UINT64_MAX, "shmctl(SHM_INFO, buf)");
        break;
    case IPC_STAT:
    case SHM_STAT:
    case SHM_STAT_ANY_:
        pass_out(pass, address, sizeof(struct shmid_ds), UINT64_MAX, "shmctl(IPC_STAT, arg.buf)");
        break;
    case IPC_SET:
        pass_in(pass, address, sizeof(struct shmid_ds), "shmctl(IPC_SET, arg.buf)");
        break;
    }
}

void visit_msgctl(const struct pass *pass) {
    uint64_t address = pass->arguments[2];
    switch ((unsigned)pass->arguments[1] & ~IPC_64_BIT) {
    case IPC_INFO:
    case MSG_INFO:
        pass_out(pass, address, sizeof(struct msginfo), UINT64_MAX, "msgctl(IPC_INFO, buf)");
        break;
    case IPC_STAT:
    case MSG_STAT:
    case MSG_STAT_ANY_:
        pass_out(pass, address, sizeof(struct msqid_ds), UINT64_MAX, "msgctl(IPC_STAT, buf)");
        break;
    case IPC_SET:
        pass_in(pass, address, sizeof(struct msqid_ds), "msgctl(IPC_SET, arg.buf)");
        break;
    }
}

void visit_msgrcv(const struct pass *pass) {
    uint64_t address = pass->arguments[1];
    pass_out(pass, address, 8, 8, "msgp->mtype");
    pass_out(pass, address + 8, pass->arguments[2], pass->result, "msgp->mtext");
}

// ---- keys --------------------------------------------------------------------------------------

struct key_command {
    const char *registers[4]; // names of the arguments after the command, NULL: not used
    uint8_t in, out;          // an argument that points to memory; the next one is its length
    const char *memory;
};

#define KEY(command, argument) "keyctl(KEYCTL_" #command ")(" #argument ")"

static const struct key_command key_commands[] = {
    [KEYCTL_GET_KEYRING_ID] = {{KEY(GET_KEYRING_ID, id), KEY(GET_KEYRING_ID, create)}},
    [KEYCTL_JOIN_SESSION_KEYRING] = {{KEY(JOIN_SESSION_KEYRING, name)}},
    [KEYCTL_UPDATE] = {{KEY(UPDATE, key), KEY(UPDATE, payload), KEY(UPDATE, plen)},
                       .in = 2,
                       .memory = "keyctl(KEYCTL_UPDATE, payload)"},
    [KEYCTL_REVOKE] = {{KEY(REVOKE, id)}},
    [KEYCTL_CHOWN] = {{KEY(CHOWN, id), KEY(CHOWN, uid), KEY(CHOWN, gid)}},
    [KEYCTL_SETPERM] = {{KEY(SETPERM, id), KEY(SETPERM, perm)}},
    [KEYCTL_DESCRIBE] = {{KEY(DESCRIBE, id), KEY(DESCRIBE, buffer), KEY(DESCRIBE, buflen)},
                         .out = 2,
                         .memory = "keyctl(KEYCTL_DESCRIBE, buffer)"},
    [KEYCTL_CLEAR] = {{KEY(CLEAR, keyring)}},
    [KEYCTL_LINK] = {{KEY(LINK, keyring), KEY(LINK, key)}},
    [KEYCTL_UNLINK] = {{KEY(UNLINK, keyring), KEY(UNLINK, key)}},
    [KEYCTL_SEARCH] = {{KEY(SEARCH, keyring), KEY(SEARCH, type), KEY(SEARCH, description),
                        KEY(SEARCH, destring)}},
    [KEYCTL_READ] = {{KEY(READ, keyring), KEY(READ, buffer), KEY(READ, buflen)},
                     .out = 2,
                     .memory = "keyctl(KEYCTL_READ, buffer)"},
    [KEYCTL_INSTANTIATE] = {{KEY(INSTANTIATE, key), KEY(INSTANTIATE, payload),
                             KEY(INSTANTIATE, plen), KEY(INSTANTIATE, keyring)},
                            .in = 2,
                            .memory = "keyctl(KEYCTL_INSTANTIATE, payload)"},
    [KEYCTL_NEGATE] = {{KEY(NEGATE, key), KEY(NEGATE, timeout), KEY(NEGATE, keyring)}},
    [KEYCTL_SET_REQKEY_KEYRING] = {{KEY(SET_REQKEY_KEYRING, reqkey_defl)}},
    [KEYCTL_SET_TIMEOUT] = {{KEY(SET_TIMEOUT, key), KEY(SET_TIMEOUT, timeout)}},
    [KEYCTL_ASSUME_AUTHORITY] = {{KEY(ASSUME_AUTHORITY, key)}},
    [KEYCTL_GET_SECURITY] = {{KEY(GET_SECURITY, key), KEY(GET_SECURITY, buffer),
                              KEY(GET_SECURITY, buflen)},
                             .out = 2,
                             .memory = "keyctl(KEYCTL_GET_SECURITY, buffer)"},
};

void visit_keyctl(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    uint32_t number = (uint32_t)a[0];
    if (number >= sizeof key_commands / sizeof *key_commands) {
        pass_unknown(pass, "keyctl", number);
        return;
    }
    const struct key_command *command = &key_commands[number];
    for (unsigned i = 0; i < 4 && command->registers[i]; i++)
        pass_register(pass, i + 1, 8, command->registers[i]);
    if (command->in && a[command->in])
        pass_in(pass, a[command->in], a[command->in + 1], "%s", command->memory);
    if (command->out && a[command->out])
        pass_out(pass, a[command->out], a[command->out + 1], pass->result, "%s", command->memory);
    if (number == KEYCTL_JOIN_SESSION_KEYRING && a[1])
        pass_string(pass, a[1], "keyctl(KEYCTL_JOIN_SESSION_KEYRING, name)");
    if (number == KEYCTL_SEARCH) {
        pass_string(pass, a[2], "sys_keyctl(KEYCTL_SEARCH, type)");
        pass_string(pass, a[3], "sys_keyctl(KEYCTL_SEARCH, description)");
    }
}

// ---- ptrace ------------------------------------------------------------------------------------

static void pass_register_set(const struct pass *pass, uint64_t address, bool gives) {
    struct iovec vector;
    const char *name = gives ? "getregset" : "setregset";
    pass_in(pass, address, 8, "%s iovec->iov_base", name);
    pass_in(pass, address + 8, 8, "%s iovec->iov_len", name);
    if (!pass_read(&vector, address, sizeof vector))
        return;
    if (gives)
        pass_out(pass, (uint64_t)vector.iov_base, vector.iov_len, vector.iov_len,
                 "ptrace(getregset *(iovec->iov_base))");
    else
        pass_in(pass, (uint64_t)vector.iov_base, vector.iov_len,
                "ptrace(setregset *(iovec->iov_base))");
}

void visit_ptrace(const struct pass *pass) {
    uint64_t data = pass->arguments[3];
    switch (pass->arguments[0]) {
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA:
    case PTRACE_PEEKUSER:
        pass_out(pass, data, 8, 8, "peek");
        break;
    case PTRACE_GETREGS:
        pass_out(pass, data, sizeof(struct user_regs_struct), UINT64_MAX, "getregs");
        break;
    case PTRACE_SETREGS:
        pass_in(pass, data, sizeof(struct user_regs_struct), "setregs");
        break;
    case PTRACE_GETFPREGS:
        pass_out(pass, data, sizeof(struct user_fpregs_struct), UINT64_MAX, "getfpregs");
        break;
    case PTRACE_SETFPREGS:
        pass_in(pass, data, sizeof(struct user_fpregs_struct), "setfpregs");
        break;
    case PTRACE_GETSIGINFO:
        pass_out(pass, data, sizeof(siginfo_t), UINT64_MAX, "getsiginfo");
        break;
    case PTRACE_SETSIGINFO:
        pass_in(pass, data, sizeof(siginfo_t), "setsiginfo");
        break;
    case PTRACE_GETEVENTMSG:
        pass_out(pass, data, 8, 8, "geteventmsg");
        break;
    case PTRACE_GETSIGMASK:
        pass_out(pass, data, 8, 8, "getsigmask");
        break;
    case PTRACE_SETSIGMASK:
        pass_in(pass, data, 8, "setsigmask");
        break;
    case PTRACE_GETREGSET:
        pass_register_set(pass, data, true);
        break;
    case PTRACE_SETREGSET:
        pass_register_set(pass, data, false);
        break;
    }
}

// ---- others ------------------------------------------------------------------------------------

void visit_quotactl(const struct pass *pass) {
    uint64_t address = pass->arguments[3];
    switch ((uint32_t)pass->arguments[0] >> SUBCMDSHIFT) {
    case Q_GETQUOTA:
        pass_mark(pass, address, sizeof(struct if_dqblk));
        break;
    case Q_GETNEXTQUOTA:
        pass_mark(pass, address, sizeof(struct if_nextdqblk));
        break;
    case Q_GETINFO:
        pass_mark(pass, address, sizeof(struct if_dqinfo));
        break;
    case Q_GETFMT:
        pass_mark(pass, address, 4);
        break;
    }
}

void visit_arch_prctl(const struct pass *pass) {
    uint64_t command = pass->arguments[0];
    if (command == ARCH_GET_FS || command == ARCH_GET_GS)
        pass_out(pass, pass->arguments[1], 8, 8, "addr");
    else if (command >= 0x1021 && command <= 0x1024 && command != 0x1023) // states permitted
        pass_out(pass, pass->arguments[1], 8, 8, "addr");
}

void visit_syslog(const struct pass *pass) {
    switch ((int)pass->arguments[0]) {
    case 2: // read
    case 3: // read all
    case 4: // read and clear
        pass_out(pass, pass->arguments[1], (uint32_t)pass->arguments[2], pass->result, "bufp");
        break;
    }
}

void pass_filter(const struct pass *pass, uint64_t program, const char *name) {
    struct sock_fprog filter;
    if (pass_read(&filter, program, sizeof filter))
        pass_in(pass, (uint64_t)filter.filter, filter.len * sizeof(struct sock_filter), "%s", name);
}

// libseccomp asks which operations the kernel knows by null pointers: the answer is EFAULT.
void visit_seccomp(const struct pass *pass) {
    uint64_t address = pass->arguments[2];
    if (!address)
        return;
    switch (pass->arguments[0]) {
    case SECCOMP_SET_MODE_FILTER:
        pass_in(pass, address, 2, "args");
        pass_in(pass, address + 8, 8, "args");
        pass_filter(pass, address, "seccomp(args->filter)");
        break;
    case SECCOMP_GET_ACTION_AVAIL:
        pass_in(pass, address, 4, "args");
        break;
    case SECCOMP_GET_NOTIF_SIZES:
        pass_out(pass, address, sizeof(struct seccomp_notif_sizes), UINT64_MAX, "args");
        break;
    }
}

void visit_modify_ldt(const struct pass *pass) {
    uint64_t address = pass->arguments[1], size = pass->arguments[2];
    if (pass->arguments[0] == 0 || pass->arguments[0] == 2)
        pass_out(pass, address, size, pass->result, "ptr");
    else
        pass_in(pass, address, size, "ptr");
}

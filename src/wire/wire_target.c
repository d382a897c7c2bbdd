#include "wire/wire_target.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <asm/ioctls.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include "base/in_target.h"

// A supervisor that is busy with debug information may not read for a while. Only after this many
// waits of this length is it taken for stopped.
#define WAIT_ROUNDS      600
#define WAIT_NANOSECONDS 100000000

// Room for the path and arguments of a program in a HELLO.
#define HELLO_WORDS 6144
// Frames of a stack that is printed: what --num-callers permits.
#define PRINT_PCS 500

static int wire_socket = -1;
// Set when waiting was in vain: later messages are tried once, until one gets through.
static bool wire_stalled;
static bool wire_dead;
static const struct wire_config *config;

uint32_t wire_raised, wire_settled;
// Set when waiting for the log was in vain: it is only looked at, until it is written again.
static bool log_stalled;

static long raw_call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static size_t length(const char *string) {
    size_t size = 0;
    while (string[size])
        size++;
    return size;
}

void wire_init(int fd) {
    wire_socket = fd;
    wire_dead = false;
    wire_stalled = false;
}

int wire_fd(void) {
    return wire_socket;
}

static void wait_for_room(void) {
    struct pollfd wait = {.fd = wire_socket, .events = POLLOUT};
    struct timespec time = {.tv_nsec = WAIT_NANOSECONDS};
    raw_call(SYS_ppoll, (long)&wait, 1, (long)&time, 0, 8, 0);
}

// Whether the supervisor may write something for a message of this type.
static bool is_shown(unsigned type) {
    return type != WIRE_FORKED && type != WIRE_MODULE_MAP && type != WIRE_MODULE_UNMAP &&
           type != WIRE_FILE && type != WIRE_LEDGER && type != WIRE_HEAP && type != WIRE_ENDING &&
           type != WIRE_EXITING && type != WIRE_EXEC_AWAY;
}

static void send_packet(const struct msghdr *packet) {
    const struct wire_header *header = packet->msg_iov[0].iov_base;
    for (int round = 0; round < WAIT_ROUNDS;) {
        long sent =
            raw_call(SYS_sendmsg, wire_socket, (long)packet, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0, 0);
        if (sent >= 0) {
            wire_stalled = false;
            if (is_shown(header->type))
                __atomic_add_fetch(&wire_raised, 1, __ATOMIC_SEQ_CST);
            return;
        }
        if (sent == -EINTR)
            continue;
        if (sent != -EAGAIN && sent != -ENOBUFS && sent != -ENOMEM) {
            wire_dead = sent == -EPIPE || sent == -ECONNRESET || sent == -EBADF;
            return;
        }
        if (wire_stalled)
            return;
        wait_for_room();
        round++;
    }
    wire_stalled = true;
}

// Sends a message whose payload is a fixed part followed by a variable one.
static void send_parts(enum wire_type type, const void *fixed, size_t fixed_size,
                       const void *variable, size_t variable_size) {
    if (wire_socket < 0 || wire_dead || fixed_size > WIRE_PAYLOAD_MAX ||
        variable_size > WIRE_PAYLOAD_MAX - fixed_size)
        return;
    struct wire_header header = {
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = (uint16_t)type,
        .size = (uint32_t)(fixed_size + variable_size),
        .pid = (int32_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
        .tid = (int32_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
    };
    struct iovec parts[3] = {
        {&header, sizeof header},
        {(void *)fixed, fixed_size},
        {(void *)variable, variable_size},
    };
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 3};
    send_packet(&packet);
}

// Adds a terminated word to a buffer of HELLO_WORDS bytes, cut where it ends; the bytes now used.
static size_t append_word(char *words, size_t used, const char *word) {
    while (*word && used < HELLO_WORDS - 1)
        words[used++] = *word++;
    words[used++] = 0;
    return used;
}

// A payload that ends with a string: cut to what fits, the terminator always included.
static void send_with_string(enum wire_type type, const void *fixed, size_t fixed_size,
                             const char *string) {
    size_t most = WIRE_PAYLOAD_MAX - fixed_size - 1;
    size_t size = length(string);
    if (size <= most) {
        send_parts(type, fixed, fixed_size, string, size + 1);
        return;
    }
    struct wire_header header = {
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = (uint16_t)type,
        .size = (uint32_t)(fixed_size + most + 1),
        .pid = (int32_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
        .tid = (int32_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
    };
    char end = 0;
    struct iovec parts[4] = {
        {&header, sizeof header},
        {(void *)fixed, fixed_size},
        {(void *)string, most},
        {&end, 1},
    };
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 4};
    if (wire_socket >= 0 && !wire_dead)
        send_packet(&packet);
}

void wire_send(enum wire_type type, const void *payload, size_t size) {
    send_parts(type, payload, size, NULL, 0);
}

void wire_send_parts(enum wire_type type, const void *first, size_t first_size, const void *second,
                     size_t second_size) {
    send_parts(type, first, first_size, second, second_size);
}

void wire_send_hello(int pid, int ppid, const char *path, char *const *argv) {
    struct wire_hello hello = {.pid = pid, .ppid = ppid};
    char words[HELLO_WORDS];
    size_t used = append_word(words, 0, path);
    while (argv && *argv && used < sizeof words)
        used = append_word(words, used, *argv++);
    send_parts(WIRE_HELLO, &hello, sizeof hello, words, used);
}

void wire_send_forked(int parent, int child) {
    struct wire_forked forked = {.parent = parent, .child = child};
    wire_send(WIRE_FORKED, &forked, sizeof forked);
}

void wire_send_exec_away(enum wire_away reason, const char *path) {
    struct wire_exec_away away = {.reason = reason};
    send_with_string(WIRE_EXEC_AWAY, &away, sizeof away, path);
}

void wire_send_ending(void) {
    wire_send(WIRE_ENDING, NULL, 0);
}

void wire_send_exiting(int status) {
    struct wire_exiting exiting = {.status = status};
    wire_send(WIRE_EXITING, &exiting, sizeof exiting);
}

void wire_send_reaped(int pid) {
    struct wire_reaped reaped = {.pid = pid};
    wire_send(WIRE_REAPED, &reaped, sizeof reaped);
}

void wire_send_fatal_signal(int signal, int code, uint64_t address, int tid, const uint64_t *pcs,
                            size_t count) {
    size_t most = (WIRE_PAYLOAD_MAX - sizeof(struct wire_fatal_signal)) / sizeof *pcs;
    if (count > most)
        count = most;
    struct wire_fatal_signal fatal = {
        .signal = signal,
        .code = code,
        .address = address,
        .tid = tid,
        .pc_count = (uint32_t)count,
    };
    send_parts(WIRE_FATAL_SIGNAL, &fatal, sizeof fatal, pcs, count * sizeof *pcs);
}

void wire_send_module_map(uint64_t start, uint64_t end, uint64_t offset, unsigned prot,
                          const char *path) {
    struct wire_module_map map = {.start = start, .end = end, .offset = offset, .prot = prot};
    send_with_string(WIRE_MODULE_MAP, &map, sizeof map, path);
}

void wire_send_module_unmap(uint64_t start, uint64_t end) {
    struct wire_module_unmap unmap = {.start = start, .end = end};
    wire_send(WIRE_MODULE_UNMAP, &unmap, sizeof unmap);
}

void wire_send_print(int thread, const char name[WIRE_THREAD_NAME], const char *text,
                     const uint64_t *pcs, size_t count) {
    struct {
        struct wire_print print;
        uint64_t pcs[PRINT_PCS];
    } fixed;
    if (count > PRINT_PCS)
        count = PRINT_PCS;
    fixed.print = (struct wire_print){.thread = thread, .pc_count = (uint32_t)count};
    for (unsigned i = 0; i + 1 < WIRE_THREAD_NAME && name[i]; i++)
        fixed.print.thread_name[i] = name[i];
    for (size_t i = 0; i < count; i++)
        fixed.print.pcs[i] = pcs[i];
    send_with_string(WIRE_PRINT, &fixed, sizeof fixed.print + count * sizeof *pcs, text);
}

void wire_send_heap(int fd, uint64_t size) {
    struct wire_heap heap = {.size = size};
    struct wire_header header = {
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = WIRE_HEAP,
        .size = sizeof heap,
        .pid = (int32_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
        .tid = (int32_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
    };
    struct iovec parts[2] = {{&header, sizeof header}, {&heap, sizeof heap}};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {0};
    struct msghdr packet = {
        .msg_iov = parts,
        .msg_iovlen = 2,
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    struct cmsghdr *gift = CMSG_FIRSTHDR(&packet);
    gift->cmsg_level = SOL_SOCKET;
    gift->cmsg_type = SCM_RIGHTS;
    gift->cmsg_len = CMSG_LEN(sizeof fd);
    *(int *)CMSG_DATA(gift) = fd;
    if (wire_socket >= 0 && !wire_dead)
        send_packet(&packet);
}

void wire_send_notice(int level, const char *text) {
    struct wire_text notice = {.level = level};
    send_with_string(WIRE_NOTICE, &notice, sizeof notice, text);
}

void wire_send_dump(int level, const char *text) {
    struct wire_text dump = {.level = level};
    send_with_string(WIRE_DUMP, &dump, sizeof dump, text);
}

void wire_send_debug(const char *text) {
    struct wire_text debug = {.level = 0};
    send_with_string(WIRE_DEBUG, &debug, sizeof debug, text);
}

void wire_send_monitor(int level, const char *text) {
    struct wire_text command = {.level = level};
    send_with_string(WIRE_MONITOR, &command, sizeof command, text);
}

void wire_send_file(enum wire_type type, int fd) {
    struct wire_header header = {
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = (uint16_t)type,
        .pid = (int32_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
        .tid = (int32_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
    };
    struct iovec part = {&header, sizeof header};
    struct {
        struct cmsghdr header;
        int fd;
        int padding;
    } control = {{CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}, fd, 0};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    if (wire_socket >= 0 && !wire_dead)
        send_packet(&packet);
}

// ---- waiting for the log ----

// At least this much is charged for a packet that waits in the socket.
#define PACKET_BYTES 512
// Waits of WAIT_NANOSECONDS for a supervisor that writes. Whoever reads the log may be waiting for
// the target.
#define WRITE_ROUNDS 20

static uint64_t taken(void) {
    return __atomic_load_n(&config->board.taken, __ATOMIC_SEQ_CST);
}

// The bytes charged for packets that the supervisor has not received yet, of all processes.
static int bytes_waiting(void) {
    int bytes = 0;
    raw_call(SYS_ioctl, wire_socket, SIOCOUTQ, (long)&bytes, 0, 0, 0);
    return bytes;
}

// A supervisor receives only while it is not idle. So if nothing waits first, and it is idle then,
// it has taken everything. If others send all the time, it never is: then as many messages as can
// have been before ours must have been taken.
static bool all_is_taken(uint64_t enough) {
    if (bytes_waiting() == 0 &&
        __atomic_load_n(&config->board.state, __ATOMIC_SEQ_CST) == WIRE_IDLE)
        return true;
    return taken() >= enough;
}

static bool supervisor_is_gone(void) {
    struct pollfd look = {.fd = wire_socket};
    struct timespec none = {0};
    return raw_call(SYS_ppoll, (long)&look, 1, (long)&none, 0, 8, 0) != 0;
}

// False: a signal has arrived first.
static bool wait_until_taken(void) {
    const struct wire_board *board = &config->board;
    uint64_t before = taken();
    uint64_t enough = before + (uint64_t)bytes_waiting() / PACKET_BYTES + 1;
    int writing = 0;
    for (int round = 0; round < WAIT_ROUNDS && writing < WRITE_ROUNDS;) {
        uint32_t turn = __atomic_load_n(&board->turn, __ATOMIC_SEQ_CST);
        if (all_is_taken(enough)) {
            log_stalled = false;
            return true;
        }
        if (log_stalled)
            return true;
        struct timespec time = {.tv_nsec = WAIT_NANOSECONDS};
        long result = raw_call(SYS_futex, (long)&board->turn, FUTEX_WAIT, turn, (long)&time, 0, 0);
        if (result == -EINTR)
            return false;
        if (result != -ETIMEDOUT)
            continue;
        if (supervisor_is_gone())
            return true;
        round++;
        writing = board->state == WIRE_WRITING && taken() == before ? writing + 1 : 0;
        before = taken();
    }
    log_stalled = true;
    return true;
}

bool wire_settle(void) {
    uint32_t raised = __atomic_load_n(&wire_raised, __ATOMIC_SEQ_CST);
    if (wire_socket >= 0 && !wire_dead && config && !wait_until_taken())
        return false;
    // Another thread may have settled more.
    uint32_t settled = __atomic_load_n(&wire_settled, __ATOMIC_SEQ_CST);
    while ((int32_t)(raised - settled) > 0 &&
           !__atomic_compare_exchange_n(&wire_settled, &settled, raised, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        ;
    return true;
}

const struct wire_board *wire_board(void) {
    return config ? &config->board : NULL;
}

// ---- the configuration ----

// The file is sealed by the supervisor, but a descriptor number may lie: everything is checked
// against the size once, so that the accessors can trust the strings.
static bool config_sound(const struct wire_config *candidate, size_t size) {
    if (candidate->size != size - sizeof *candidate)
        return false;
    uint32_t strings = 0;
    for (uint32_t i = 0; i < candidate->size; i++)
        strings += candidate->options[i] == 0;
    return strings == candidate->count &&
           (candidate->size == 0 || candidate->options[candidate->size - 1] == 0);
}

int wire_config_load(int fd) {
    struct stat info;
    long result = raw_call(SYS_fstat, fd, (long)&info, 0, 0, 0, 0);
    if (result < 0)
        return (int)result;
    if (info.st_size < (long)sizeof(struct wire_config) || info.st_size > 1 << 24)
        return -EPROTO;
    result = raw_call(SYS_mmap, 0, info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (result < 0 && result > -4096)
        return (int)result;
    const struct wire_config *candidate = (const struct wire_config *)result;
    if (candidate->magic != WIRE_MAGIC || candidate->version != WIRE_VERSION ||
        !config_sound(candidate, (size_t)info.st_size)) {
        raw_call(SYS_munmap, result, info.st_size, 0, 0, 0, 0);
        return -EPROTO;
    }
    config = candidate;
    return 0;
}

// The value if `entry` is "name=value" for this name.
static const char *value_if_named(const char *entry, const char *name) {
    while (*name && *entry == *name) {
        entry++;
        name++;
    }
    return *name == 0 && *entry == '=' ? entry + 1 : NULL;
}

const char *wire_option_next(const char *name, const char *previous) {
    if (!config)
        return NULL;
    const char *end = config->options + config->size;
    const char *entry = previous ? previous + length(previous) + 1 : config->options;
    for (; entry < end; entry += length(entry) + 1) {
        const char *value = value_if_named(entry, name);
        if (value)
            return value;
    }
    return NULL;
}

const char *wire_option(const char *name) {
    return wire_option_next(name, NULL);
}

bool wire_option_yes(const char *name) {
    const char *value = wire_option(name);
    return value && value[0] == 'y' && value[1] == 'e' && value[2] == 's' && value[3] == 0;
}

long wire_option_number(const char *name, long otherwise) {
    const char *value = wire_option(name);
    if (!value || !*value)
        return otherwise;
    bool negative = *value == '-';
    value += negative;
    long base = 10;
    if (value[0] == '0' && (value[1] == 'x' || value[1] == 'X')) {
        base = 16;
        value += 2;
    }
    unsigned long number = 0;
    for (; *value; value++) {
        int digit = *value >= '0' && *value <= '9'   ? *value - '0'
                    : *value >= 'a' && *value <= 'f' ? *value - 'a' + 10
                    : *value >= 'A' && *value <= 'F' ? *value - 'A' + 10
                                                     : 99;
        if (digit >= base)
            return otherwise;
        number = number * (unsigned long)base + (unsigned long)digit;
    }
    return negative ? -(long)number : (long)number;
}

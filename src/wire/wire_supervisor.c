#include "wire/wire_supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

static struct wire_board nowhere;
static struct wire_board *board = &nowhere; // until there is a configuration

// Whether a payload of `size` bytes is a fixed part of `fixed` bytes and one terminated string.
static bool ends_with_string(const char *payload, size_t size, size_t fixed) {
    return size > fixed && memchr(payload + fixed, 0, size - fixed) == payload + size - 1;
}

// Whether the payload is a finding whose parts are as long as it says.
static bool finding_sound(const char *payload, size_t size) {
    const struct wire_finding *finding = (const struct wire_finding *)payload;
    const struct finding_facts *facts = &finding->facts;
    if (size < sizeof *finding || facts->place >= PLACES || facts->origin >= MADE_KINDS ||
        (facts->kind >= FINDING_KINDS && facts->kind < FINDING_PLACE) ||
        finding->context >= LEDGER_CONTEXTS || facts->thread_name[THREAD_NAME - 1])
        return false;
    size_t at = sizeof *finding;
    for (int i = 0; i < FINDING_STACKS; i++) {
        if (finding->pc_counts[i] > FINDING_STACK_MAX)
            return false;
        at += finding->pc_counts[i] * sizeof finding->pcs[0];
    }
    const char *name = at < size ? memchr(payload + at, 0, size - at) : NULL;
    return name && ends_with_string(payload, size, (size_t)(name + 1 - payload));
}

struct finding wire_finding_parts(const struct wire_finding *message) {
    struct finding finding = {.facts = message->facts};
    const uint64_t *pcs = message->pcs;
    for (unsigned i = 0; i < FINDING_STACKS; i++) {
        finding.stacks[i] = (struct finding_stack){pcs, message->pc_counts[i]};
        pcs += message->pc_counts[i];
    }
    finding.names[0] = (const char *)pcs;
    finding.names[1] = finding.names[0] + strlen(finding.names[0]) + 1;
    return finding;
}

static bool losses_sound(const char *payload, size_t size) {
    for (size_t at = 0; at < size;) {
        const struct wire_loss *loss = (const struct wire_loss *)(payload + at);
        if (size - at < sizeof *loss || loss->loss.kind >= LEAK_KINDS ||
            loss->loss.holder >= LOSS_HOLDERS || loss->pc_count > FINDING_STACK_MAX ||
            size - at - sizeof *loss < loss->pc_count * sizeof loss->pcs[0])
            return false;
        at += sizeof *loss + loss->pc_count * sizeof loss->pcs[0];
    }
    return true;
}

static bool payload_sound(enum wire_type type, const void *payload, size_t size) {
    const struct wire_fatal_signal *fatal = payload;
    const struct wire_module_map *map = payload;
    const struct wire_module_unmap *unmap = payload;
    const struct wire_print *print = payload;
    switch (type) {
    case WIRE_HELLO:
        return size > sizeof(struct wire_hello) && ((const char *)payload)[size - 1] == 0;
    case WIRE_FORKED:
        return size == sizeof(struct wire_forked);
    case WIRE_EXEC_AWAY:
        return ends_with_string(payload, size, sizeof(struct wire_exec_away));
    case WIRE_EXITING:
        return size == sizeof(struct wire_exiting);
    case WIRE_REAPED:
        return size == sizeof(struct wire_reaped);
    case WIRE_FATAL_SIGNAL:
        return size >= sizeof *fatal && (size - sizeof *fatal) % sizeof fatal->pcs[0] == 0 &&
               fatal->pc_count == (size - sizeof *fatal) / sizeof fatal->pcs[0];
    case WIRE_MODULE_MAP:
        return ends_with_string(payload, size, sizeof *map) && map->start < map->end;
    case WIRE_MODULE_UNMAP:
        return size == sizeof *unmap && unmap->start < unmap->end;
    case WIRE_FILE:
    case WIRE_LEDGER:
    case WIRE_HEAP_ENDING:
    case WIRE_ENDING:
    case WIRE_DEBUGGER:
    case WIRE_WAITS_FOR_DEBUGGER:
    case WIRE_EXEC:
    case WIRE_ATTACHED:
        return size == 0;
    case WIRE_FINDING:
        return finding_sound(payload, size);
    case WIRE_LEAKS:
        return size == sizeof(struct wire_leaks);
    case WIRE_LOSSES:
        return losses_sound(payload, size);
    case WIRE_FINDINGS_END:
        return size == sizeof(struct wire_findings_end);
    case WIRE_DUMP:
    case WIRE_MONITOR:
    case WIRE_OPTION:
    case WIRE_NOTICE:
    case WIRE_DEBUG:
        return ends_with_string(payload, size, sizeof(struct wire_text));
    case WIRE_PRINT:
        return size >= sizeof *print && !print->thread_name[WIRE_THREAD_NAME - 1] &&
               print->pc_count <= size / sizeof print->pcs[0] &&
               ends_with_string(payload, size,
                                sizeof *print + print->pc_count * sizeof print->pcs[0]);
    case WIRE_HEAP:
        return size == sizeof(struct wire_heap);
    }
    return false;
}

enum wire_result wire_decode(const void *bytes, size_t size, struct wire_message *message) {
    const struct wire_header *header = bytes;
    if (size < sizeof *header || header->magic != WIRE_MAGIC)
        return WIRE_BAD;
    if (header->version != WIRE_VERSION)
        return WIRE_OTHER;
    const void *payload = header + 1;
    if (size > WIRE_MESSAGE_MAX || header->size != size - sizeof *header ||
        !payload_sound(header->type, payload, header->size))
        return WIRE_BAD;
    *message = (struct wire_message){
        .type = header->type,
        .pid = header->pid,
        .tid = header->tid,
        .fd = -1,
        .size = header->size,
        .payload = payload,
    };
    return WIRE_GOT;
}

int wire_open(int ends[2]) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return errno;
    int yes = 1;
    ends[0] = fd_move_high(ends[0]);
    ends[1] = fd_move_high(ends[1]);
    if (ends[0] < 0 || ends[1] < 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0 ||
        fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        return errno;
    return 0;
}

// The kernel says who sent the packet; a pid in the header may be of another pid namespace.
static int sender_of(struct msghdr *packet) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(packet); part; part = CMSG_NXTHDR(packet, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS &&
            part->cmsg_len >= CMSG_LEN(sizeof(struct ucred))) {
            struct ucred credentials;
            memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
            return credentials.pid;
        }
    }
    return 0;
}

// The first descriptor that came with the packet, or -1. Further ones, which a hostile sender may
// have slipped in, would pile up here and are closed.
static int take_gift(struct msghdr *packet) {
    int gift = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(packet); part; part = CMSG_NXTHDR(packet, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            if (gift < 0)
                gift = fd;
            else
                close(fd);
        }
    }
    return gift;
}

static bool brings_file(enum wire_type type) {
    return type == WIRE_HEAP || type == WIRE_FILE || type == WIRE_LEDGER || type == WIRE_DEBUGGER ||
           type == WIRE_WAITS_FOR_DEBUGGER;
}

enum wire_result wire_receive(int fd, void *buffer, struct wire_message *message) {
    _Alignas(struct cmsghdr) char control[512];
    struct iovec part = {buffer, WIRE_MESSAGE_MAX};
    struct msghdr packet = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    ssize_t size;
    do
        size = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno == EAGAIN ? WIRE_NOTHING : WIRE_CLOSED;
    int gift = take_gift(&packet);
    int sender = sender_of(&packet);
    // An empty packet can be sent; the end of the stream has no sender.
    enum wire_result result = size == 0 && !sender ? WIRE_CLOSED : WIRE_BAD;
    if (size > 0 && !(packet.msg_flags & MSG_TRUNC))
        result = wire_decode(buffer, (size_t)size, message);
    if (result == WIRE_GOT && brings_file(message->type) && gift < 0)
        result = WIRE_BAD;
    if (result == WIRE_GOT && sender > 0)
        message->pid = sender;
    if (result == WIRE_GOT && brings_file(message->type))
        message->fd = gift;
    else if (gift >= 0)
        close(gift);
    return result;
}

// Maps the board for writing, which nobody can do once the file is sealed.
static bool map_board(int fd, size_t size) {
    struct wire_config *config = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (config != MAP_FAILED)
        board = &config->board;
    return config != MAP_FAILED;
}

int wire_config_write(const char *const *options, size_t count) {
    struct text strings = {0};
    for (size_t i = 0; i < count; i++)
        text_add(&strings, options[i], strlen(options[i]) + 1);
    struct wire_config header = {
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .size = (uint32_t)strings.size,
        .count = (uint32_t)count,
    };
    int fd = fd_move_high(memfd_create("quern-options", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    int error = fd < 0 ? errno : fd_write_all(fd, (const char *)&header, sizeof header);
    if (!error && strings.size)
        error = fd_write_all(fd, strings.bytes, strings.size);
    if (!error && (!map_board(fd, sizeof header + strings.size) ||
                   fcntl(fd, F_ADD_SEALS,
                         F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0))
        error = errno;
    text_free(&strings);
    if (error && fd >= 0) {
        close(fd);
        fd = -1;
    }
    errno = error;
    return fd;
}

// ---- the board ----

void wire_board_working(void) {
    __atomic_store_n(&board->state, WIRE_WORKING, __ATOMIC_SEQ_CST);
}

void wire_board_took(void) {
    __atomic_add_fetch(&board->taken, 1, __ATOMIC_SEQ_CST);
}

void wire_board_end_turn(bool is_idle) {
    if (is_idle)
        __atomic_store_n(&board->state, WIRE_IDLE, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&board->turn, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &board->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int wire_board_write(int fd, const char *bytes, size_t size) {
    uint32_t before = board->state;
    if (before == WIRE_WORKING)
        __atomic_store_n(&board->state, WIRE_WRITING, __ATOMIC_SEQ_CST);
    int error = fd_write_all(fd, bytes, size);
    __atomic_store_n(&board->state, before, __ATOMIC_SEQ_CST);
    return error;
}

static struct wire_place place_of(int fd) {
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return (struct wire_place){0};
    return (struct wire_place){.device = status.st_dev, .inode = status.st_ino};
}

void wire_board_set_places(int log, int xml) {
    board->log = place_of(log);
    board->xml = place_of(xml);
}

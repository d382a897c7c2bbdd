#include "engine/report/track_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/log.h"
#include "engine/memory/target.h"
#include "engine/process.h"
#include "engine/stack/stack.h"
#include "engine/report/descriptor_calls.h"
#include "engine/task.h"
#include "wire/finding.h"
#include "wire/wire_target.h"

enum { HIGHEST = 1 << 16, FRAMES = 500, DESCRIPTION = 600 };

struct kept_stack {
    uint64_t *pcs;
    size_t count;
};

struct descriptor {
    bool is_known, is_open, is_inherited;
    char *description; // of what it leads or led to; NULL: nothing to say
    struct kept_stack opened, closed;
};

static enum { TRACK_NOTHING, TRACK_BAD, TRACK_LEFT, TRACK_ALL } level;
static enum { NUMBERS_LOWEST, NUMBERS_HIGHEST, NUMBERS_HIGHEST_BUT_STANDARD } numbers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct descriptor *known; // by number
static int known_count;
static unsigned callers = 12;
static bool has_failed;

// ---- what is known -----------------------------------------------------------------------------

static struct descriptor *descriptor_at(int fd) {
    return fd >= 0 && fd < known_count && known[fd].is_known ? &known[fd] : NULL;
}

static struct descriptor *add_descriptor(int fd) {
    if (fd < 0 || fd >= HIGHEST)
        return NULL;
    if (fd >= known_count) {
        int count = (fd + 64) & ~63;
        struct descriptor *more = realloc(known, (size_t)count * sizeof *known);
        if (!more)
            return NULL;
        memset(more + known_count, 0, (size_t)(count - known_count) * sizeof *known);
        known = more;
        known_count = count;
    }
    return &known[fd];
}

static void drop_stack(struct kept_stack *stack) {
    free(stack->pcs);
    *stack = (struct kept_stack){0};
}

static void keep_stack(struct kept_stack *stack) {
    uint64_t pcs[FRAMES];
    drop_stack(stack);
    size_t count = stack_of_task(pcs, callers);
    stack->pcs = malloc(count * sizeof *pcs);
    if (!stack->pcs)
        return;
    memcpy(stack->pcs, pcs, count * sizeof *pcs);
    stack->count = count;
}

static void describe(struct descriptor *it, int fd) {
    char description[DESCRIPTION];
    free(it->description);
    it->description =
        descriptor_describe(fd, description, sizeof description) ? strdup(description) : NULL;
}

static void note_opened(int fd) {
    struct descriptor *it = add_descriptor(fd);
    if (!it)
        return;
    *it = (struct descriptor){.is_known = true,
                              .is_open = true,
                              .description = it->description,
                              .opened = it->opened,
                              .closed = it->closed};
    drop_stack(&it->closed);
    keep_stack(&it->opened);
    describe(it, fd);
}

static void note_closed(int fd) {
    struct descriptor *it = descriptor_at(fd);
    if (!it || !it->is_open)
        return;
    it->is_open = false;
    keep_stack(&it->closed);
}

static void note_inherited(int fd) {
    struct descriptor *it = add_descriptor(fd);
    if (!it)
        return;
    it->is_known = it->is_open = it->is_inherited = true;
    describe(it, fd);
}

// ---- faults ------------------------------------------------------------------------------------

// For tools that take no findings.
static void send_fault(const struct tool_descriptor_fault *fault) {
    struct {
        struct wire_finding head;
        uint64_t pcs[2 * FRAMES];
    } message;
    char rest[DESCRIPTION + 1];
    const struct tool_stack_words *parts[] = {&fault->stack, &fault->opened, &fault->closed};
    static const unsigned places[] = {STACK_OF_FINDING, STACK_OF_MAKING, STACK_OF_FREEING};
    size_t used = 0;
    message.head = (struct wire_finding){
        .facts = {.kind = fault->kind, .fault = fault->was_open, .thread = self->number}};
    message.head.facts.value = fault->fd;
    message.head.facts.size = fault->is_inherited;
    for (unsigned i = 0; i < 3; i++) {
        size_t count = parts[i]->count;
        if (used + count > 2 * FRAMES)
            count = 2 * FRAMES - used;
        memcpy(message.pcs + used, parts[i]->pcs, count * sizeof *message.pcs);
        message.head.pc_counts[places[i]] = (uint32_t)count;
        used += count;
    }
    strcpy(rest, fault->description);
    rest[strlen(rest) + 1] = 0;
    has_failed = true;
    wire_send_parts(WIRE_FINDING, &message, sizeof message.head + used * sizeof *message.pcs, rest,
                    strlen(rest) + 2);
}

static struct tool_stack_words words_of(const struct kept_stack *stack) {
    return (struct tool_stack_words){stack->pcs, stack->count};
}

// The lock is held; `it` may be NULL: never open.
static void report(unsigned kind, int fd, const struct descriptor *it) {
    uint64_t pcs[FRAMES];
    struct tool_descriptor_fault fault = {.kind = kind, .fd = fd, .description = ""};
    if (it) {
        fault.was_open = true;
        fault.is_inherited = it->is_inherited;
        fault.description = it->description ? it->description : "";
        fault.closed = words_of(&it->closed);
        fault.opened = words_of(&it->opened);
    }
    if (kind == FINDING_LEFT_OPEN) {
        fault.stack = fault.opened;
        fault.opened = (struct tool_stack_words){0};
    } else {
        fault.stack = (struct tool_stack_words){pcs, stack_of_task(pcs, callers)};
    }
    if (tool->descriptor_fault)
        tool->descriptor_fault(&fault);
    else
        send_fault(&fault);
}

bool track_descriptors_failed(void) {
    return has_failed;
}

// ---- numbers -----------------------------------------------------------------------------------

static bool is_free(int fd) {
    return fcntl(fd, F_GETFD) < 0;
}

static long move_to_high(int fd) {
    int limit = (int)sysconf(_SC_OPEN_MAX);
    if (limit <= 0 || limit > HIGHEST)
        limit = HIGHEST;
    if (numbers == NUMBERS_HIGHEST_BUT_STANDARD && fd <= STDERR_FILENO)
        return fd;
    for (int to = limit - 1; to > fd; to--) {
        if (!is_free(to))
            continue;
        if (dup3(fd, to, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
            return fd;
        close(fd);
        return to;
    }
    return fd;
}

// ---- calls -------------------------------------------------------------------------------------

static void check_use(long number, int fd) {
    const struct descriptor *it = descriptor_at(fd);
    if (it && it->is_open)
        return; // open, but not for this
    report(number == SYS_close && it ? FINDING_CLOSED_AGAIN : FINDING_NOT_OPEN, fd, it);
}

// The numbers that a call has stored in the target's memory.
static void take_stored(uint64_t place, unsigned count) {
    int fds[2];
    if (count > 2 || target_read(fds, place, count * sizeof *fds))
        return;
    for (unsigned i = 0; i < count; i++) {
        if (numbers != NUMBERS_LOWEST) {
            fds[i] = (int)move_to_high(fds[i]);
            target_write(place + i * sizeof *fds, &fds[i], sizeof *fds);
        }
        note_opened(fds[i]);
    }
}

static void take_received(uint64_t message) {
    struct msghdr header;
    unsigned char control[4096];
    if (target_read(&header, message, sizeof header) || header.msg_controllen > sizeof control ||
        target_read(control, (uint64_t)header.msg_control, header.msg_controllen))
        return;
    header.msg_control = control;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + CMSG_LEN(sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
            note_opened(fd);
        }
    }
}

static void take_closed_range(uint64_t first, uint64_t last, uint64_t flags) {
    enum { LATER = 4 }; // CLOSE_RANGE_CLOEXEC
    for (int fd = (int)first; !(flags & LATER) && fd < known_count && (uint64_t)fd <= last; fd++)
        note_closed(fd);
}

static void take_call(const struct descriptor_call *call, long number, const uint64_t arguments[6],
                      long *result) {
    switch (call->opens) {
    case OPENS_RESULT:
        if (numbers != NUMBERS_LOWEST && call->may_move)
            *result = move_to_high((int)*result);
        note_opened((int)*result);
        break;
    case OPENS_PAIR:
        take_stored(arguments[call->argument], 2);
        break;
    case OPENS_RECEIVED:
        take_received(arguments[1]);
        break;
    case OPENS_NOTHING:
        break;
    }
    if (number == SYS_close)
        note_closed((int)arguments[0]);
    else if (number == SYS_close_range)
        take_closed_range(arguments[0], arguments[1], arguments[2]);
}

void track_descriptors_before(long number, const uint64_t arguments[6]) {
    if (number != SYS_close || self->is_borrowed || level == TRACK_NOTHING)
        return;
    pthread_mutex_lock(&lock);
    struct descriptor *it = descriptor_at((int)arguments[0]);
    if (it && it->is_open)
        describe(it, (int)arguments[0]); // a socket may have been bound since
    pthread_mutex_unlock(&lock);
}

void track_descriptors_after(long number, const uint64_t arguments[6], long *result) {
    struct descriptor_call call;
    if (self->is_borrowed || (level == TRACK_NOTHING && numbers == NUMBERS_LOWEST) ||
        !descriptor_call_of(number, arguments, &call))
        return;
    pthread_mutex_lock(&lock);
    if (*result >= 0)
        take_call(&call, number, arguments, result);
    else if (*result == -EBADF && call.uses >= 0 && level != TRACK_NOTHING)
        check_use(number, (int)arguments[call.uses]);
    pthread_mutex_unlock(&lock);
}

// ---- the run -----------------------------------------------------------------------------------

bool track_descriptors_start(void) {
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"yes", TRACK_LEFT}, {"all", TRACK_ALL}, {"bad", TRACK_BAD}};
    const char *track = wire_option("track-fds"), *modify = wire_option("modify-fds");
    for (unsigned i = 0; track && i < sizeof levels / sizeof *levels; i++)
        if (strcmp(track, levels[i].name) == 0)
            level = levels[i].level;
    if (modify && strcmp(modify, "no") != 0)
        numbers = strcmp(modify, "high") == 0 ? NUMBERS_HIGHEST : NUMBERS_HIGHEST_BUT_STANDARD;
    if (level == TRACK_NOTHING && numbers == NUMBERS_LOWEST)
        return false;
    callers = (unsigned)wire_option_number("num-callers", 12);
    if (callers > FRAMES)
        callers = FRAMES;
    descriptors_each_open(note_inherited);
    return true;
}

static bool is_reported(const struct descriptor *it) {
    return it->is_open && (level == TRACK_ALL || !it->is_inherited);
}

void track_descriptors_end(void) {
    static int ended;
    unsigned open = 0, inherited = 0;
    if ((level != TRACK_LEFT && level != TRACK_ALL) ||
        __atomic_exchange_n(&ended, 1, __ATOMIC_SEQ_CST))
        return;
    pthread_mutex_lock(&lock);
    for (int fd = 0; fd < known_count; fd++) {
        open += known[fd].is_open;
        inherited += known[fd].is_open && known[fd].is_inherited;
    }
    if (!wire_option_yes("xml"))
        log_notice("\nFILE DESCRIPTORS: %u open (%u inherited) at exit.", open, inherited);
    for (int fd = known_count - 1; fd >= 0; fd--) {
        if (!is_reported(&known[fd]))
            continue;
        describe(&known[fd], fd);
        report(FINDING_LEFT_OPEN, fd, &known[fd]);
    }
    pthread_mutex_unlock(&lock);
}

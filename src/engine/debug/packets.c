// gdb's packets: what each asks for, and the answers. The remote protocol is described in gdb's
// manual, "Remote Protocol".
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/remote.h"
#include "engine/debug/channel.h"
#include "engine/debug/registers.h"
#include "engine/debug/stop.h"
#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/process.h"
#include "engine/task.h"
#include "engine/translate/watch.h"

enum { MEMORY_MOST = REMOTE_MOST / 2 - 8 };

static char answer[REMOTE_MOST + 1];
static int chosen;             // thread for registers and memory (Hg), by its tid; 0: the server
static int continued;          // thread for `c` and `s` (Hc); 0 or -1: all
static uint64_t passed[2];     // signals, by gdb's numbers, that gdb does not want to hear of
static bool knows_breakpoints; // gdb understands "swbreak"
static char stop_reply[128];
static bool is_running; // gdb waits for news

void packets_begin(void) {
    chosen = continued = 0;
    passed[0] = passed[1] = 0;
    knows_breakpoints = is_running = false;
}

static void reply_ok(void) {
    channel_reply("OK");
}

static void reply_error(void) {
    channel_reply("E01");
}

// ---- signals -----------------------------------------------------------------------------------

// gdb's own numbers.
static const uint8_t gdb_numbers[32] = {
    [SIGHUP] = 1,   [SIGINT] = 2,    [SIGQUIT] = 3,  [SIGILL] = 4,   [SIGTRAP] = 5,
    [SIGABRT] = 6,  [SIGFPE] = 8,    [SIGKILL] = 9,  [SIGBUS] = 10,  [SIGSEGV] = 11,
    [SIGSYS] = 12,  [SIGPIPE] = 13,  [SIGALRM] = 14, [SIGTERM] = 15, [SIGURG] = 16,
    [SIGSTOP] = 17, [SIGTSTP] = 18,  [SIGCONT] = 19, [SIGCHLD] = 20, [SIGTTIN] = 21,
    [SIGTTOU] = 22, [SIGIO] = 23,    [SIGXCPU] = 24, [SIGXFSZ] = 25, [SIGVTALRM] = 26,
    [SIGPROF] = 27, [SIGWINCH] = 28, [SIGUSR1] = 30, [SIGUSR2] = 31, [SIGPWR] = 32,
};
enum { GDB_UNKNOWN = 143, GDB_REALTIME_33 = 45, GDB_REALTIME_32 = 77, GDB_REALTIME_64 = 78 };

static int to_gdb(int number) {
    if (number == 32 || number == 64)
        return number == 32 ? GDB_REALTIME_32 : GDB_REALTIME_64;
    if (number > 32 && number < 64)
        return number - 33 + GDB_REALTIME_33;
    return number > 0 && number < 32 && gdb_numbers[number] ? gdb_numbers[number] : GDB_UNKNOWN;
}

static int from_gdb(int number) {
    for (int i = 1; i <= 64; i++)
        if (to_gdb(i) == number)
            return i;
    return 0;
}

bool packets_wants_signal(int number) {
    int theirs = to_gdb(number);
    return theirs >= 128 || !(passed[theirs / 64] & 1ull << theirs % 64);
}

static void pass_signals(const char *list) {
    uint64_t number;
    passed[0] = passed[1] = 0;
    while (remote_number(&list, &number)) {
        if (number < 128)
            passed[number / 64] |= 1ull << number % 64;
        if (*list == ';')
            list++;
    }
    reply_ok();
}

// ---- threads -----------------------------------------------------------------------------------

static struct task *find_thread(int tid) {
    task_lock_list();
    struct task *task = (struct task *)task_first();
    while (task && task->tid != tid)
        task = task->next;
    task_unlock_list();
    return task;
}

// The thread that registers and memory are about.
static struct task *chosen_thread(void) {
    struct task *task = chosen > 0 ? find_thread(chosen) : NULL;
    return task ? task : self;
}

// A thread id; 0: any, -1: all.
static bool read_thread(const char **text, int *tid) {
    uint64_t value;
    if ((*text)[0] == '-' && (*text)[1] == '1') {
        *text += 2;
        *tid = -1;
        return true;
    }
    if (!remote_number(text, &value))
        return false;
    *tid = (int)value;
    return true;
}

static void choose_thread(const char *text) {
    char purpose = *text++;
    int tid;
    if (!read_thread(&text, &tid) || (tid > 0 && !find_thread(tid))) {
        reply_error();
        return;
    }
    if (purpose == 'g')
        chosen = tid;
    else
        continued = tid;
    reply_ok();
}

// The thread with the lowest number above this one; NULL: none.
static const struct task *next_thread(int number) {
    const struct task *next = NULL;
    for (const struct task *task = task_first(); task; task = task->next)
        if (task->pid == self->pid && task->number > number &&
            (!next || task->number < next->number))
            next = task;
    return next;
}

// gdb numbers them in this order.
static void list_threads(void) {
    char *at = answer;
    task_lock_list();
    for (const struct task *task = next_thread(0); task; task = next_thread(task->number))
        if (at < answer + REMOTE_MOST - 16)
            at += sprintf(at, "%c%x", at == answer ? 'm' : ',', task->tid);
    task_unlock_list();
    channel_reply(answer);
}

// In Valgrind's words, with the thread's name.
static void describe_thread(const char *text) {
    char line[128], name[32] = "", path[64];
    int tid;
    struct task *task = read_thread(&text, &tid) ? find_thread(tid) : NULL;
    if (!task) {
        reply_error();
        return;
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
    if (fd >= 0)
        close(fd);
    name[size > 0 ? size - 1 : 0] = 0;
    int length = snprintf(line, sizeof line, "tid %d %s", task->number, name);
    *remote_put_hex(answer, line, (size_t)length) = 0;
    channel_reply(answer);
}

// ---- registers ---------------------------------------------------------------------------------

static void read_all_registers(void) {
    uint8_t bytes[REGISTER_MOST];
    const struct task *task = chosen_thread();
    char *at = answer;
    for (unsigned i = 0; i < registers_count(); i++)
        at = remote_put_hex(at, bytes, registers_read(task, i, bytes));
    channel_send(answer, (size_t)(at - answer));
}

static void read_register(const char *text) {
    uint8_t bytes[REGISTER_MOST];
    uint64_t number = 0;
    remote_number(&text, &number);
    unsigned size = registers_read(chosen_thread(), (unsigned)number, bytes);
    if (!size) {
        reply_error();
        return;
    }
    channel_send(answer, (size_t)(remote_put_hex(answer, bytes, size) - answer));
}

static bool change_register(struct task *task, unsigned number, const char *digits) {
    uint8_t bytes[REGISTER_MOST];
    unsigned size = registers_size(number);
    if (!size || remote_get_hex(bytes, size, digits) != size ||
        !registers_write(task, number, bytes))
        return false;
    if (task == self && tool->register_set)
        for (unsigned i = 0; i < GPR_COUNT; i++)
            tool->register_set(i);
    return true;
}

static void write_register(const char *text) {
    uint64_t number;
    bool done = remote_number(&text, &number) && *text == '=' &&
                change_register(chosen_thread(), (unsigned)number, text + 1);
    channel_reply(done ? "OK" : "E01");
}

// gdb sends all of them to change one. Those that keep their values need no change.
static void write_all_registers(const char *text) {
    uint8_t now[REGISTER_MOST], wanted[REGISTER_MOST];
    struct task *task = chosen_thread();
    bool done = true;
    for (unsigned i = 0; i < registers_count(); i++) {
        unsigned size = registers_read(task, i, now);
        if (remote_get_hex(wanted, size, text) != size) {
            done = false;
            break;
        }
        if (memcmp(now, wanted, size) != 0)
            done &= change_register(task, i, text);
        text += 2 * size;
    }
    channel_reply(done ? "OK" : "E01");
}

// ---- memory ------------------------------------------------------------------------------------

static bool read_range(const char **text, uint64_t *address, uint64_t *size) {
    if (!remote_number(text, address) || **text != ',')
        return false;
    ++*text;
    return remote_number(text, size);
}

static void read_memory(const char *text) {
    static uint8_t bytes[MEMORY_MOST];
    uint64_t address, size;
    if (!read_range(&text, &address, &size)) {
        reply_error();
        return;
    }
    if (size > sizeof bytes)
        size = sizeof bytes;
    // Up to where there is memory: gdb reads ahead.
    while (size && target_read(bytes, address, size)) {
        uint64_t part = 4096 - (address & 4095);
        size = part < size ? (size - 1 - part) / 4096 * 4096 + part : 0;
    }
    if (!size) {
        reply_error();
        return;
    }
    channel_send(answer, (size_t)(remote_put_hex(answer, bytes, size) - answer));
}

// Also where the target may not write, as natively.
static bool write_anyway(uint64_t address, const void *bytes, size_t size) {
    int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = pwrite(fd, bytes, size, (off_t)address) == (ssize_t)size;
    close(fd);
    return done;
}

static bool change_memory(uint64_t address, const void *bytes, size_t size) {
    if (!size)
        return true;
    if (target_write(address, bytes, size) && !write_anyway(address, bytes, size))
        return false;
    debug_drop_code(address, address + size);
    TOOL_HOOK(stored, address, size);
    return true;
}

static void write_memory(const char *text, const char *end, bool is_binary) {
    static uint8_t bytes[MEMORY_MOST];
    uint64_t address, size;
    bool done = read_range(&text, &address, &size) && *text == ':' && size <= sizeof bytes;
    text++;
    if (done && is_binary)
        done = (uint64_t)(end - text) == size && change_memory(address, text, size);
    else if (done)
        done = remote_get_hex(bytes, size, text) == size && change_memory(address, bytes, size);
    channel_reply(done ? "OK" : "E01");
}

// ---- breakpoints -------------------------------------------------------------------------------

static bool change_watch(const char *packet) {
    static const enum watch_kind kinds[] = {WATCH_WRITES, WATCH_READS, WATCH_ACCESSES};
    const char *text = packet + 3;
    struct watch watch = {.kind = kinds[packet[1] - '2']};
    if (!read_range(&text, &watch.start, &watch.size))
        return false;
    debug_flush_later();
    return *packet == 'Z' ? watch_add(&watch) : watch_remove(&watch);
}

static void change_breakpoint(const char *packet) {
    enum { SOFTWARE = '0', HARDWARE = '1', WRITES = '2', ACCESSES = '4' };
    const char *text = packet + 3;
    uint64_t address;
    if (packet[1] >= WRITES && packet[1] <= ACCESSES) {
        channel_reply(change_watch(packet) ? "OK" : "E01");
        return;
    }
    if (packet[1] != SOFTWARE && packet[1] != HARDWARE) {
        channel_reply(""); // gdb then says that it cannot
        return;
    }
    bool done = remote_number(&text, &address);
    if (done && *packet == 'Z')
        done = debug_insert(address);
    else if (done)
        debug_remove(address);
    channel_reply(done ? "OK" : "E01");
}

// ---- going on ----------------------------------------------------------------------------------

static void forget_steps(void) {
    task_lock_list();
    for (struct task *task = (struct task *)task_first(); task; task = task->next) {
        task->debug.step = STEP_NONE;
        task->debug.signal = 0;
        task->debug.step_start = task->debug.step_end = 0;
    }
    task_unlock_list();
}

// One action: c, C and a signal, s, S and a signal, or r and a range.
static const char *read_action(const char *text, char *kind, int *signal, uint64_t range[2]) {
    uint64_t number;
    *kind = *text++;
    *signal = 0;
    range[0] = range[1] = 0;
    if ((*kind == 'C' || *kind == 'S') && remote_number(&text, &number))
        *signal = from_gdb((int)number);
    if (*kind == 'r' && remote_number(&text, &range[0]) && *text++ == ',')
        remote_number(&text, &range[1]);
    return text;
}

static void set_action(struct task *task, char kind, int signal, const uint64_t range[2]) {
    if (kind == 's' || kind == 'S' || kind == 'r')
        task->debug.step = STEP_REPORT;
    task->debug.step_start = range[0];
    task->debug.step_end = range[1];
    task->debug.signal = signal;
}

// vCont;s:1a2;c  The first action that names a thread, or none, holds for it. Without an action for
// all, the others stand still.
static bool read_actions(const char *text, struct debug_resume *resume) {
    forget_steps();
    bool is_for_all = false;
    struct task *first = NULL;
    while (*text == ';') {
        char kind;
        int signal, tid = -1;
        uint64_t range[2];
        text = read_action(text + 1, &kind, &signal, range);
        if (*text == ':') {
            text++;
            if (!read_thread(&text, &tid))
                return false;
        }
        struct task *task = tid > 0 ? find_thread(tid) : NULL;
        if (!task) {
            is_for_all = true;
            task = first ? NULL : self;
        } else if (!first) {
            first = task;
        }
        if (task)
            set_action(task, kind, signal, range);
    }
    resume->only = is_for_all ? NULL : first;
    return is_for_all || first;
}

// c, C, s and S without vCont.
static void read_plain_action(const char *text, struct debug_resume *resume) {
    char kind;
    int signal;
    uint64_t range[2];
    forget_steps();
    read_action(text, &kind, &signal, range);
    struct task *task = continued > 0 ? find_thread(continued) : NULL;
    set_action(task ? task : self, kind, signal, range);
    resume->only = task;
}

// ---- questions ---------------------------------------------------------------------------------

static void reply_part(const char *data, size_t size, const char *range) {
    uint64_t offset, most;
    if (!read_range(&range, &offset, &most)) {
        reply_error();
        return;
    }
    if (offset > size)
        offset = size;
    size_t part = size - offset;
    if (most > REMOTE_MOST / 2 - 8) // every byte may need an escape
        most = REMOTE_MOST / 2 - 8;
    if (part > most)
        part = most;
    answer[0] = offset + part < size ? 'm' : 'l';
    memcpy(answer + 1, data + offset, part);
    channel_send(answer, 1 + part);
}

static void transfer(const char *text) {
    static const char features[] = "features:read:target.xml:", auxv[] = "auxv:read::",
                      file[] = "exec-file:read:";
    char vector[1024];
    if (strncmp(text, features, sizeof features - 1) == 0) {
        const char *xml = registers_description();
        reply_part(xml, strlen(xml), text + sizeof features - 1);
    } else if (strncmp(text, auxv, sizeof auxv - 1) == 0) {
        size_t size = process.auxv_size < sizeof vector ? process.auxv_size : sizeof vector;
        if (target_read(vector, process.auxv, size))
            reply_error();
        else
            reply_part(vector, size, text + sizeof auxv - 1);
    } else if (strncmp(text, file, sizeof file - 1) == 0) {
        const char *range = strchr(text + sizeof file - 1, ':');
        reply_part(process.program, strlen(process.program), range ? range + 1 : "");
    } else {
        channel_reply("");
    }
}

static void answer_supported(const char *text) {
    knows_breakpoints = strstr(text, "swbreak+") != NULL;
    snprintf(answer, sizeof answer,
             "PacketSize=%x;QStartNoAckMode+;QPassSignals+;qXfer:features:read+;qXfer:auxv:read+;"
             "qXfer:exec-file:read+;vContSupported+%s",
             REMOTE_MOST, knows_breakpoints ? ";swbreak+" : "");
    channel_reply(answer);
}

static void run_monitor(const char *digits) {
    static char command[REMOTE_MOST / 2 + 1];
    command[remote_get_hex(command, sizeof command - 1, digits)] = 0;
    monitor_command(command);
}

static bool starts(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static void answer_question(const char *text) {
    if (starts(text, "qSupported")) {
        answer_supported(text);
    } else if (starts(text, "qXfer:")) {
        transfer(text + strlen("qXfer:"));
    } else if (starts(text, "qRcmd,")) {
        run_monitor(text + strlen("qRcmd,"));
    } else if (starts(text, "qThreadExtraInfo,")) {
        describe_thread(text + strlen("qThreadExtraInfo,"));
    } else if (strcmp(text, "qfThreadInfo") == 0) {
        list_threads();
    } else if (strcmp(text, "qsThreadInfo") == 0) {
        channel_reply("l");
    } else if (strcmp(text, "qC") == 0) {
        snprintf(answer, sizeof answer, "QC%x", self->tid);
        channel_reply(answer);
    } else if (starts(text, "qAttached")) {
        channel_reply("1");
    } else if (starts(text, "qSymbol")) {
        reply_ok();
    } else {
        channel_reply("");
    }
}

static void change_setting(const char *text) {
    if (strcmp(text, "QStartNoAckMode") == 0) {
        reply_ok();
        channel_stop_acknowledging();
    } else if (starts(text, "QPassSignals:")) {
        pass_signals(text + strlen("QPassSignals:"));
    } else {
        channel_reply("");
    }
}

static void check_thread(const char *text) {
    int tid;
    channel_reply(read_thread(&text, &tid) && find_thread(tid) ? "OK" : "E01");
}

// ---- the loop ----------------------------------------------------------------------------------

static void make_stop_reply(enum debug_event event, int signal) {
    int used = snprintf(stop_reply, sizeof stop_reply, "T%02xthread:%x;",
                        signal ? to_gdb(signal) : 0, self->tid);
    if (event == DEBUG_BREAKPOINT && knows_breakpoints)
        snprintf(stop_reply + used, sizeof stop_reply - (size_t)used, "swbreak:;");
    const struct watch *watch = watch_take_hit();
    static const char *const words[] = {
        [WATCH_WRITES] = "watch", [WATCH_READS] = "rwatch", [WATCH_ACCESSES] = "awatch"};
    if (event == DEBUG_WATCHED && watch)
        snprintf(stop_reply + used, sizeof stop_reply - (size_t)used, "%s:%lx;", words[watch->kind],
                 watch->start);
}

__attribute__((noreturn)) static void kill_target(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;)
        pause();
}

// Packets after which the target goes on, or ends.
static bool is_resumption(const char *packet) {
    return (*packet && strchr("cCsSDk", *packet)) || starts(packet, "vCont;") ||
           starts(packet, "vKill");
}

// False: it makes no sense.
static bool take_resumption(const char *packet, struct debug_resume *resume) {
    if (starts(packet, "vCont;"))
        return read_actions(packet + strlen("vCont"), resume);
    if (*packet == 'D' || *packet == 'v')
        reply_ok();
    if (*packet == 'k' || *packet == 'v')
        kill_target();
    if (*packet == 'D')
        resume->detaches = true;
    else
        read_plain_action(packet, resume);
    return true;
}

static void take_packet(const char *packet, long size) {
    switch (*packet) {
    case '?':
        channel_reply(stop_reply);
        break;
    case 'g':
        read_all_registers();
        break;
    case 'G':
        write_all_registers(packet + 1);
        break;
    case 'p':
        read_register(packet + 1);
        break;
    case 'P':
        write_register(packet + 1);
        break;
    case 'm':
        read_memory(packet + 1);
        break;
    case 'M':
    case 'X':
        write_memory(packet + 1, packet + size, *packet == 'X');
        break;
    case 'Z':
    case 'z':
        change_breakpoint(packet);
        break;
    case 'H':
        choose_thread(packet + 1);
        break;
    case 'T':
        check_thread(packet + 1);
        break;
    case 'q':
        answer_question(packet);
        break;
    case 'Q':
        change_setting(packet);
        break;
    default:
        channel_reply(strcmp(packet, "vCont?") == 0 ? "vCont;c;C;s;S;r" : "");
    }
}

void packets_serve(enum debug_event event, int signal, struct debug_resume *resume) {
    make_stop_reply(event, signal);
    chosen = 0;
    if (is_running)
        channel_reply(stop_reply);
    is_running = false;
    for (;;) {
        const char *packet;
        long size = channel_receive(&packet);
        if (size == CHANNEL_CLOSED || size == CHANNEL_SIGNALLED) {
            resume->detaches = true;
            return;
        }
        if (size == CHANNEL_INTERRUPT) // it stands still already
            continue;
        if (is_resumption(packet)) {
            if (take_resumption(packet, resume))
                break;
            reply_error();
        } else {
            take_packet(packet, size);
        }
    }
    is_running = !resume->detaches;
}

void packets_report_end(char how, int value) {
    snprintf(answer, sizeof answer, "%c%02x", how, how == 'X' ? to_gdb(value) : value);
    channel_reply(answer);
}

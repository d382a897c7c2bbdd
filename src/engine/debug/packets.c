// gdb's packets: the conversation at a stop, and questions about the process. The remote protocol
// is described in gdb's manual, "Remote Protocol".
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/debug/channel.h"
#include "engine/debug/packets.h"
#include "engine/debug/registers.h"
#include "engine/debug/stop.h"
#include "engine/memory/target.h"
#include "engine/process.h"
#include "engine/task.h"
#include "engine/translate/watch.h"

char packets_answer[REMOTE_MOST + 1];
static bool knows_breakpoints; // gdb understands "swbreak"
static char stop_reply[128];
static bool is_running; // gdb waits for news

void packets_begin(void) {
    threads_begin();
    resume_begin();
    knows_breakpoints = is_running = false;
}

void packets_reply_done(bool done) {
    channel_reply(done ? "OK" : "E01");
}

bool packets_read_range(const char **text, uint64_t *address, uint64_t *size) {
    if (!remote_number(text, address) || **text != ',')
        return false;
    ++*text;
    return remote_number(text, size);
}

// ---- questions ---------------------------------------------------------------------------------

static void reply_part(const char *data, size_t size, const char *range) {
    uint64_t offset, most;
    if (!packets_read_range(&range, &offset, &most)) {
        packets_reply_done(false);
        return;
    }
    if (offset > size)
        offset = size;
    size_t part = size - offset;
    if (most > REMOTE_MOST / 2 - 8) // every byte may need an escape
        most = REMOTE_MOST / 2 - 8;
    if (part > most)
        part = most;
    packets_answer[0] = offset + part < size ? 'm' : 'l';
    memcpy(packets_answer + 1, data + offset, part);
    channel_send(packets_answer, 1 + part);
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
            packets_reply_done(false);
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
    snprintf(packets_answer, sizeof packets_answer,
             "PacketSize=%x;QStartNoAckMode+;QPassSignals+;qXfer:features:read+;qXfer:auxv:read+;"
             "qXfer:exec-file:read+;vContSupported+%s",
             REMOTE_MOST, knows_breakpoints ? ";swbreak+" : "");
    channel_reply(packets_answer);
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
        threads_describe(text + strlen("qThreadExtraInfo,"));
    } else if (strcmp(text, "qfThreadInfo") == 0) {
        threads_list();
    } else if (strcmp(text, "qsThreadInfo") == 0) {
        channel_reply("l");
    } else if (strcmp(text, "qC") == 0) {
        snprintf(packets_answer, sizeof packets_answer, "QC%x", self->tid);
        channel_reply(packets_answer);
    } else if (starts(text, "qAttached")) {
        channel_reply("1");
    } else if (starts(text, "qSymbol")) {
        packets_reply_done(true);
    } else {
        channel_reply("");
    }
}

static void change_setting(const char *text) {
    if (strcmp(text, "QStartNoAckMode") == 0) {
        packets_reply_done(true);
        channel_stop_acknowledging();
    } else if (starts(text, "QPassSignals:")) {
        resume_pass_signals(text + strlen("QPassSignals:"));
    } else {
        channel_reply("");
    }
}

// ---- the loop ----------------------------------------------------------------------------------

static void make_stop_reply(enum debug_event event, int signal) {
    int used = snprintf(stop_reply, sizeof stop_reply, "T%02xthread:%x;",
                        signal ? resume_signal_to_gdb(signal) : 0, self->tid);
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
        return resume_read_actions(packet + strlen("vCont"), resume);
    if (*packet == 'D' || *packet == 'v')
        packets_reply_done(true);
    if (*packet == 'k' || *packet == 'v')
        kill_target();
    if (*packet == 'D')
        resume->detaches = true;
    else
        resume_read_plain_action(packet, resume);
    return true;
}

static void take_packet(const char *packet, long size) {
    switch (*packet) {
    case '?':
        channel_reply(stop_reply);
        break;
    case 'g':
        state_read_registers();
        break;
    case 'G':
        state_write_registers(packet + 1);
        break;
    case 'p':
        state_read_register(packet + 1);
        break;
    case 'P':
        state_write_register(packet + 1);
        break;
    case 'm':
        state_read_memory(packet + 1);
        break;
    case 'M':
    case 'X':
        state_write_memory(packet + 1, packet + size, *packet == 'X');
        break;
    case 'Z':
    case 'z':
        state_change_breakpoint(packet);
        break;
    case 'H':
        threads_choose(packet + 1);
        break;
    case 'T':
        threads_check(packet + 1);
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
    threads_choose_server();
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
            packets_reply_done(false);
        } else {
            take_packet(packet, size);
        }
    }
    is_running = !resume->detaches;
}

void packets_report_end(char how, int value) {
    snprintf(packets_answer, sizeof packets_answer, "%c%02x", how,
             how == 'X' ? resume_signal_to_gdb(value) : value);
    channel_reply(packets_answer);
}

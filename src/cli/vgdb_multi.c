#include "cli/vgdb_multi.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remote.h"
#include "base/text.h"
#include "base/vector.h"
#include "cli/words.h"

enum { PATH_SIZE = 4096, WORD_SIZE = 4096 };

extern char **environ;

// The conversation while no program runs.
struct multi {
    const struct arguments *arguments;
    const struct debug_ends *gdb;
    struct remote_reader reader;
    bool acknowledges;
    char *program;      // of the last run, which gdb may ask for again without its name
    char *pass_signals; // what gdb has set before the program was there
    char *supported;    // gdb's own words
    pid_t run;          // that was started; 0: none
    unsigned runs;      // so far; each has a name of its own
};

static const char features[] =
    "PacketSize=4000;QStartNoAckMode+;QPassSignals+;qXfer:features:read+;qXfer:auxv:read+;"
    "qXfer:exec-file:read+;vContSupported+;swbreak+";

static bool starts(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool reply(const struct multi *multi, const char *payload) {
    static char frame[2 * REMOTE_MOST + REMOTE_OVERHEAD];
    size_t size = remote_frame(frame, payload, strlen(payload));
    return fd_write_all(multi->gdb->out, frame, size) == 0;
}

// The next packet of gdb's; NULL: gdb is gone.
static const char *next_packet(struct multi *multi) {
    char byte;
    for (;;) {
        ssize_t got = read(multi->gdb->in, &byte, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        enum remote_event event = remote_take(&multi->reader, (uint8_t)byte);
        if (event != REMOTE_PACKET && event != REMOTE_DAMAGED)
            continue;
        if (multi->acknowledges &&
            fd_write_all(multi->gdb->out, event == REMOTE_PACKET ? "+" : "-", 1) != 0)
            return NULL;
        if (event == REMOTE_PACKET)
            return multi->reader.payload;
    }
}

static void keep(char **text, const char *value) {
    free(*text);
    *text = base_copy(value);
}

// ---- starting a program ------------------------------------------------------------------------

struct words {
    char **at;
    size_t count;
};

static void add_word(struct words *words, const char *word) {
    *vector_push(words->at, words->count) = base_copy(word);
}

static void free_words(struct words *words) {
    for (size_t i = 0; i < words->count; i++)
        free(words->at[i]);
    free(words->at);
}

static void add_prefix(const struct multi *multi, struct text *text) {
    text_format(text, "vgdb-multi-%d-%u", (int)getpid(), multi->runs);
}

// quern --vgdb-error=0 ... PROGRAM: the words behind --vargs come last, so that they win.
static struct words words_of_run(const struct multi *multi) {
    char path[PATH_SIZE];
    struct words words = {0};
    struct text prefix = {0};
    const char *quern = argument_text(multi->arguments, "valgrind");
    ssize_t size = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    path[size < 0 ? 0 : size] = 0;
    add_word(&words, quern ? quern : path);
    text_string(&prefix, "--vgdb-prefix=");
    add_prefix(multi, &prefix);
    add_word(&words, "--vgdb=yes");
    add_word(&words, "--vgdb-error=0");
    add_word(&words, prefix.bytes);
    text_free(&prefix);
    for (size_t i = 0; i < multi->arguments->operand_count; i++)
        add_word(&words, multi->arguments->operands[i]);
    add_word(&words, "--");
    return words;
}

// PROGRAM;ARGUMENT;... in hexadecimal digits, as in vRun. False: there is no program.
static bool add_program(struct multi *multi, struct words *words, const char *packet) {
    static char word[WORD_SIZE];
    for (bool is_first = true;; is_first = false) {
        word[remote_get_hex(word, sizeof word - 1, packet)] = 0;
        if (is_first && *word)
            keep(&multi->program, word);
        if (is_first && !multi->program)
            return false;
        add_word(words, is_first ? multi->program : word);
        packet = strchr(packet, ';');
        if (!packet++)
            break;
    }
    *vector_push(words->at, words->count) = NULL;
    return true;
}

// What the program prints must not get into the conversation: standard error takes it.
static pid_t start(char **words) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid = 0;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
    posix_spawnattr_init(&attributes);
    // gdb's Ctrl+C is a packet; the terminal's must not reach the program, too.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    if (posix_spawnp(&pid, words[0], &actions, &attributes, words, environ) != 0)
        pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return pid;
}

static bool has_ended(struct multi *multi) {
    if (multi->run && waitpid(multi->run, NULL, WNOHANG) == multi->run)
        multi->run = 0;
    return !multi->run;
}

// The connection to what was started, when it waits for gdb; -1: it has ended.
static int connect_to_run(struct multi *multi) {
    struct text prefix = {0};
    int connection = -1;
    add_prefix(multi, &prefix);
    while (connection < 0 && !has_ended(multi)) {
        struct debug_processes list = debug_list();
        for (size_t i = 0; i < list.count && connection < 0; i++)
            if (strcmp(list.at[i].prefix, prefix.bytes) == 0)
                connection = debug_connect(list.at[i].run, list.at[i].pid);
        debug_list_free(&list);
        if (connection < 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    text_free(&prefix);
    return connection;
}

// What gdb has agreed on with us, the program's side must know; the first stop in answer.
static const char *introduce(const struct multi *multi, int connection) {
    const char *answer = "";
    if (multi->supported)
        answer = debug_ask(connection, multi->supported);
    if (answer && !multi->acknowledges)
        answer = debug_ask(connection, "QStartNoAckMode");
    if (answer && multi->pass_signals)
        answer = debug_ask(connection, multi->pass_signals);
    return answer ? debug_ask(connection, "?") : NULL;
}

// Runs the program until gdb or it is gone. False: gdb is.
static bool run_program(struct multi *multi, const char *packet) {
    multi->runs++;
    struct words words = words_of_run(multi);
    bool stays = true;
    int connection = -1;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ; // runs before this one
    if (add_program(multi, &words, packet))
        multi->run = start(words.at);
    free_words(&words);
    if (multi->run)
        connection = connect_to_run(multi);
    const char *stop = connection < 0 ? NULL : introduce(multi, connection);
    if (!stop)
        stays = reply(multi, "E01");
    else
        stays = reply(multi, stop) && debug_relay(multi->gdb, connection) == DEBUG_PROCESS_GONE;
    if (connection >= 0)
        close(connection);
    return stays;
}

// ---- without a program -------------------------------------------------------------------------

// The answer to a packet that needs no program; "" is one that gdb takes for "not supported".
static const char *answer_to(struct multi *multi, const char *packet) {
    static const struct {
        const char *packet, *answer;
    } answers[] = {{"qSupported", features},
                   {"!", "OK"},
                   {"?", "W00"},
                   {"qfThreadInfo", "l"},
                   {"qsThreadInfo", "l"},
                   {"QPassSignals", "OK"},
                   {"vCont?", "vCont;c;C;s;S;r"},
                   {"vKill", "OK"},
                   {"D", "OK"},
                   {"H", "E01"},
                   {"qXfer:", "E01"},
                   {"qAttached", "0"},
                   {"QStartNoAckMode", "OK"}};
    if (starts(packet, "qSupported"))
        keep(&multi->supported, packet);
    if (starts(packet, "QPassSignals"))
        keep(&multi->pass_signals, packet);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (starts(packet, answers[i].packet))
            return answers[i].answer;
    return "";
}

int vgdb_multi(const struct arguments *arguments, const struct debug_ends *gdb) {
    struct multi multi = {.arguments = arguments, .gdb = gdb, .acknowledges = true};
    bool stays = true;
    for (const char *packet; stays && (packet = next_packet(&multi));) {
        if (starts(packet, "vRun;")) {
            char *copy = base_copy(packet + strlen("vRun;"));
            stays = run_program(&multi, copy);
            free(copy);
            continue;
        }
        bool leaves = *packet == 'k';
        bool is_last_acknowledged = strcmp(packet, "QStartNoAckMode") == 0;
        stays = !leaves && reply(&multi, answer_to(&multi, packet));
        if (is_last_acknowledged)
            multi.acknowledges = false;
    }
    free(multi.program);
    free(multi.pass_signals);
    free(multi.supported);
    return WORDS_DONE;
}

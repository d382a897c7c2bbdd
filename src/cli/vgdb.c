// quern vgdb: between gdb, or a shell, and a process that runs under Quern.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/option_table.h"
#include "base/text.h"
#include "base/vector.h"
#include "cli/arguments.h"
#include "cli/debug_client.h"
#include "cli/verbs.h"
#include "cli/vgdb_multi.h"
#include "cli/words.h"

static const struct option options[] = {
    {NUMBER("pid", NULL, 1, 1 << 30), .help = "process to connect to; default: the only one"},
    {STRING("vgdb-prefix", "PREFIX", NULL), .help = "consider runs with this --vgdb-prefix only"},
    {NUMBER("port", NULL, 1, 65535),
     .help = "wait for gdb on this TCP port of this machine: target remote localhost:PORT"},
    {FLAG("multi", 0),
     .help = "start programs for gdb: target extended-remote | quern vgdb --multi"},
    {STRING("valgrind", "PROGRAM", NULL), .help = "with --multi: run this in place of quern"},
    {FLAG("vargs", 0), .help = "with --multi: all words behind this are options for the runs"},
    {NUMBER("wait", "0", 0, 1000000), .value = "SECONDS",
     .help = "seconds to wait for a process to appear"},
    {NUMBER("max-invoke-ms", "100", 0, 1000000), .help = "accepted for Valgrind; no effect"},
    {NUMBER("cmd-time-out", "0", 0, 1000000), .help = "accepted for Valgrind; no effect"},
    {FLAG("l", 'l'), .help = "list the processes that run under Quern"},
    {FLAG("c", 'c'), .help = "begin a command: -c COMMAND -c COMMAND"},
    {FLAG("T", 'T'), .help = "accepted for Valgrind; no effect"},
    {FLAG("D", 'D'), .help = "same as -l"},
    {FLAG("d", 'd'), .help = "accepted for Valgrind; no effect"},
    {0},
};

// ---- the process -------------------------------------------------------------------------------

static bool is_considered(const struct debug_process *process, const char *prefix) {
    return strcmp(process->prefix, prefix ? prefix : "-") == 0;
}

// The process that is meant. NULL: none, or several; *count says how many.
static const struct debug_process *choose(const struct debug_processes *list, long pid,
                                          const char *prefix, size_t *count) {
    const struct debug_process *found = NULL;
    *count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct debug_process *process = &list->at[i];
        if (pid ? process->pid != pid : !is_considered(process, prefix))
            continue;
        found = process;
        ++*count;
    }
    return *count == 1 ? found : NULL;
}

static void show_list(FILE *out, const struct debug_processes *list, const char *prefix) {
    for (size_t i = 0; i < list->count; i++)
        if (is_considered(&list->at[i], prefix))
            fprintf(out, "use --pid=%d for %s\n", list->at[i].pid, list->at[i].command);
}

static int refuse(const struct debug_processes *list, long pid, const char *prefix, size_t count) {
    if (pid)
        return words_fail("process %ld does not run under Quern", pid);
    if (!count)
        return words_fail("no process runs under Quern; start one with quern");
    words_fail("several processes run under Quern; choose one of them:");
    show_list(stderr, list, prefix);
    return WORDS_FAILED;
}

// A connection to the process that is meant; -1 after a message.
static int connect_to_process(const struct arguments *arguments, int *pid) {
    long wanted = argument_given(arguments, "pid") ? (long)argument_number(arguments, "pid") : 0;
    const char *prefix = argument_text(arguments, "vgdb-prefix");
    time_t end = time(NULL) + (time_t)argument_number(arguments, "wait");
    for (;;) {
        size_t count;
        struct debug_processes list = debug_list();
        const struct debug_process *process = choose(&list, wanted, prefix, &count);
        int connection = -1;
        if (process) {
            *pid = process->pid;
            connection = debug_connect(process->run, process->pid);
        } else if (count || time(NULL) >= end) {
            refuse(&list, wanted, prefix, count);
        }
        debug_list_free(&list);
        if (process || count || time(NULL) >= end)
            return connection;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

// ---- gdb ---------------------------------------------------------------------------------------

// A socket that gdb has connected to on this port of the loopback interface; -1 after a message.
static int wait_for_gdb(size_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1, gdb = -1;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listening >= 0) {
        setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(listening, (struct sockaddr *)&address, sizeof address) == 0 &&
            listen(listening, 1) == 0) {
            fprintf(stderr, "listening on port %zu; in gdb: target remote localhost:%zu\n", port,
                    port);
            do
                gdb = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
            while (gdb < 0 && errno == EINTR);
        }
    }
    if (gdb < 0)
        words_fail("cannot wait for gdb on port %zu: %s", port, strerror(errno));
    if (listening >= 0)
        close(listening);
    return gdb;
}

static int relay_to_gdb(const struct arguments *arguments, int connection) {
    struct debug_ends gdb = {0, 1};
    if (argument_given(arguments, "port")) {
        gdb.in = gdb.out = wait_for_gdb(argument_number(arguments, "port"));
        if (gdb.in < 0)
            return WORDS_FAILED;
    }
    return debug_relay(&gdb, connection) == DEBUG_FAILED ? WORDS_FAILED : WORDS_DONE;
}

// ---- commands ----------------------------------------------------------------------------------

struct commands {
    char **at;
    size_t count;
};

// Operands are one command; after -c each is one of its own, up to the next -c.
static struct commands read_commands(const struct arguments *arguments) {
    struct commands commands = {0};
    struct text command = {0};
    bool has_begun = false;
    for (char *const *word = arguments->words; *word; word++) {
        bool is_start = strcmp(*word, "-c") == 0;
        if (is_start && command.size)
            *vector_push(commands.at, commands.count) = text_take(&command);
        else if (!is_start && (has_begun || **word != '-'))
            text_format(&command, "%s%s", command.size ? " " : "", *word);
        has_begun |= is_start || **word != '-';
    }
    if (command.size)
        *vector_push(commands.at, commands.count) = text_take(&command);
    return commands;
}

static int give_commands(int connection, const struct commands *commands) {
    bool done = true;
    for (size_t i = 0; i < commands->count && done; i++)
        done = debug_command(connection, commands->at[i]);
    debug_disconnect(connection);
    return done && words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

static int run_vgdb(const struct arguments *arguments) {
    if (argument_given(arguments, "multi")) {
        struct debug_ends gdb = {0, 1};
        if (argument_given(arguments, "port"))
            gdb.in = gdb.out = wait_for_gdb(argument_number(arguments, "port"));
        return gdb.in < 0 ? WORDS_FAILED : vgdb_multi(arguments, &gdb);
    }
    if (argument_given(arguments, "l") || argument_given(arguments, "D")) {
        struct debug_processes list = debug_list();
        show_list(stdout, &list, argument_text(arguments, "vgdb-prefix"));
        debug_list_free(&list);
        return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
    }
    int pid = 0, status;
    int connection = connect_to_process(arguments, &pid);
    if (connection < 0)
        return WORDS_FAILED;
    struct commands commands = read_commands(arguments);
    if (commands.count) {
        status = give_commands(connection, &commands);
    } else {
        fprintf(stderr, "relaying data between gdb and process %d\n", pid);
        status = relay_to_gdb(arguments, connection);
    }
    for (size_t i = 0; i < commands.count; i++)
        free(commands.at[i]);
    free(commands.at);
    return status;
}

const struct verb verb_vgdb = {
    .name = "vgdb",
    .usage = "[OPTIONS] [COMMAND]",
    .help = "connect gdb to a run: target remote | quern vgdb",
    .usage_other = "--multi [--vargs OPTIONS]",
    .description = "Without a command, gdb's packets are passed on between standard input and "
                   "output and the process. With one, the process stops, performs it and goes on: "
                   "quern vgdb help.",
    .options = options,
    .takes_dashes = true,
    .rest = "vargs",
    .run = run_vgdb,
};

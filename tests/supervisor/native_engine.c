// A stand-in for quern-engine that runs the target natively, and a mouthpiece for tests.
//
// It takes the engine's command line. A target named `say` is not run: its arguments are played as
// wire messages, in order, so that a test can make the supervisor see anything:
//
//     forked PARENT CHILD (PARENT 0: this process)              stay (an exec that fails)
//     hello PATH        notice LEVEL TEXT      debug TEXT       option NAME   (tells its values)
//     map START END OFFSET PATH                unmap START END
//     fork (the child goes on with what follows the next `end`)
//     fatal SIGNAL CODE ADDRESS PC...          (to the next word that is no number; then dies of
//     it) garbage SIZE      version N              exec (runs the rest natively, says EXEC_AWAY)
//     detach (forks; the parent exits 0, the child goes on)     quiet (closes 0, 1 and 2)
//     await PATH (until there is such a file)                   sleep MS     exit STATUS
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/wire_start.h"
#include "wire/wire_target.h"

static char **next_word;

static const char *word(void) {
    if (!*next_word) {
        fprintf(stderr, "native-engine: a word is missing\n");
        exit(99);
    }
    return *next_word++;
}

static unsigned long number(void) {
    return strtoul(word(), NULL, 0);
}

static void play_fatal(void) {
    uint64_t pcs[64];
    size_t count = 0;
    int signal_number = (int)number();
    int code = (int)number();
    uint64_t address = number();
    while (*next_word && strncmp(*next_word, "0x", 2) == 0 && count < 64)
        pcs[count++] = number();
    wire_send_fatal_signal(signal_number, code, address, getpid(), pcs, count);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void play_garbage(void) {
    static char bytes[100000];
    size_t size = number();
    memset(bytes, 0xa5, sizeof bytes);
    send(wire_fd(), bytes, size < sizeof bytes ? size : sizeof bytes, MSG_NOSIGNAL);
}

static void play_version(void) {
    struct wire_header header = {.magic = WIRE_MAGIC, .version = (uint16_t)number(), .type = 1};
    send(wire_fd(), &header, sizeof header, MSG_NOSIGNAL);
}

static void play_fork(void) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        wire_send_forked(parent, getpid());
        return;
    }
    while (*next_word && strcmp(*next_word, "end") != 0)
        next_word++;
    if (*next_word)
        next_word++;
    int status;
    waitpid(child, &status, 0);
}

static void play_map(void) {
    uint64_t start = number();
    uint64_t end = number();
    uint64_t offset = number();
    wire_send_module_map(start, end, offset, 5, word());
}

static void play_option(void) {
    const char *name = word();
    const char *value = NULL;
    char line[4200];
    int used = snprintf(line, sizeof line, "%s is", name);
    while ((value = wire_option_next(name, value)))
        used += snprintf(line + used, sizeof line - (size_t)used, " %s", value);
    if (!wire_option(name))
        snprintf(line + used, sizeof line - (size_t)used, " absent");
    wire_send_notice(0, line);
}

static void play_detach(void) {
    pid_t parent = getpid();
    if (fork() != 0)
        _exit(0);
    setsid();
    wire_send_forked(parent, getpid());
}

static int play(char **words) {
    next_word = words;
    while (*next_word) {
        const char *verb = word();
        if (strcmp(verb, "hello") == 0) {
            char *words[] = {*next_word, NULL};
            wire_send_hello(getpid(), getppid(), word(), words);
        } else if (strcmp(verb, "forked") == 0) {
            int parent = (int)number();
            wire_send_forked(parent ? parent : getpid(), (int)number());
        } else if (strcmp(verb, "stay") == 0) {
            wire_send_exec_away(WIRE_AWAY_NOT_ASKED, "/bin/no");
            wire_send_hello(getpid(), getppid(), "/bin/no", NULL);
        } else if (strcmp(verb, "notice") == 0) {
            int level = atoi(word());
            wire_send_notice(level, word());
        } else if (strcmp(verb, "debug") == 0) {
            wire_send_debug(word());
        } else if (strcmp(verb, "option") == 0) {
            play_option();
        } else if (strcmp(verb, "map") == 0) {
            play_map();
        } else if (strcmp(verb, "unmap") == 0) {
            uint64_t start = number();
            wire_send_module_unmap(start, number());
        } else if (strcmp(verb, "fork") == 0) {
            play_fork();
        } else if (strcmp(verb, "fatal") == 0) {
            play_fatal();
        } else if (strcmp(verb, "garbage") == 0) {
            play_garbage();
        } else if (strcmp(verb, "version") == 0) {
            play_version();
        } else if (strcmp(verb, "detach") == 0) {
            play_detach();
        } else if (strcmp(verb, "await") == 0) {
            const char *path = word();
            while (access(path, F_OK) != 0)
                usleep(10000);
        } else if (strcmp(verb, "quiet") == 0) {
            for (int fd = 0; fd < 3; fd++)
                close(fd);
        } else if (strcmp(verb, "sleep") == 0) {
            usleep((useconds_t)number() * 1000);
        } else if (strcmp(verb, "exec") == 0) {
            wire_send_exec_away(WIRE_AWAY_NOT_ASKED, *next_word);
            fcntl(wire_fd(), F_SETFD, FD_CLOEXEC);
            execvp(*next_word, next_word);
            return 98;
        } else if (strcmp(verb, "exit") == 0) {
            int status = (int)number();
            wire_send_exiting(status);
            return status;
        } else if (strcmp(verb, "end") == 0) {
            return 0;
        } else {
            fprintf(stderr, "native-engine: no such word: %s\n", verb);
            return 99;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    struct wire_start start;
    if (!wire_start_read(argc, argv, &start) || wire_config_load(start.config) < 0)
        return 97;
    wire_init(start.wire);
    close(start.config);
    for (int i = 0; i < WIRE_LIMITS; i++)
        setrlimit(wire_limit_resources[i], &start.limits[i]);
    wire_send_hello(getpid(), getppid(), start.path, start.argv);
    const char *base = strrchr(start.path, '/');
    if (strcmp(base ? base + 1 : start.path, "say") == 0)
        return play(start.argv + 1);
    fcntl(wire_fd(), F_SETFD, FD_CLOEXEC);
    execve(start.path, start.argv, start.envp);
    return 96;
}

#include "symbols/asker.h"

#include "base/guard.h"
#include "base/vector.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the questions come from, after the standard descriptors. */
enum { SOCKET = 3 };

/* The part of libdebuginfod that is used. libdw loads the library at run time, too. */
struct client;
static struct client *client;
static int (*find_debuginfo)(struct client *, const unsigned char *id, int size, char **path);

static const char *extra_path;

static bool open_client(void) {
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);
    struct client *(*begin)(void) = library ? dlsym(library, "debuginfod_begin") : NULL;
    find_debuginfo = library ? dlsym(library, "debuginfod_find_debuginfo") : NULL;
    client = begin ? begin() : NULL;
    return client && find_debuginfo;
}

/* ------------------------------------------------------------------ objects */

static bool is_there(const char *root, const struct asker_question *question) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/.build-id/%02x/", root, question->id[0]);
    for (uint32_t i = 1; i < question->id_size && length < (int)sizeof path; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", question->id[i]);
    if (length < (int)sizeof path)
        snprintf(path + length, sizeof path - (size_t)length, ".debug");
    return access(path, F_OK) == 0;
}

static bool has_section(Elf *elf, const char *wanted) {
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

/* Completes a question about an object with its build-id, if it lacks debug information. */
static void look_at_object(void *context) {
    struct asker_question *question = context;
    struct stat status;
    if (stat(question->path, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    int fd = open(question->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const void *id;
    ssize_t size = elf && !has_section(elf, ".debug_info") ? dwelf_elf_gnu_build_id(elf, &id) : 0;
    if (size > 0 && size <= ASKER_ID_MOST) {
        question->id_size = (uint32_t)size;
        memcpy(question->id, id, (size_t)size);
        if (is_there("/usr/lib/debug", question) || (extra_path && is_there(extra_path, question)))
            question->id_size = 0;
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
}

/* ------------------------------------------------------------------ questions */

static struct asker_question *waiting;
static size_t waiting_count;

static void take_questions(void) {
    struct asker_question next;
    for (;;) {
        ssize_t size = recv(SOCKET, &next, sizeof next, waiting_count ? MSG_DONTWAIT : 0);
        if (size < 0 && errno == EAGAIN)
            return;
        if (size != sizeof next)
            _exit(0);
        *vector_push(waiting, waiting_count) = next;
    }
}

/* Questions that somebody waits for come first. */
static struct asker_question next_question(void) {
    size_t at = 0;
    for (size_t i = 0; i < waiting_count && !waiting[at].id_size; i++)
        if (waiting[i].id_size)
            at = i;
    struct asker_question question = waiting[at];
    memmove(&waiting[at], &waiting[at + 1], (--waiting_count - at) * sizeof question);
    return question;
}

static void answer(const struct asker_question *question) {
    static struct asker_answer to_send;
    char *path = NULL;
    to_send = (struct asker_answer){.id_size = question->id_size};
    memcpy(to_send.id, question->id, sizeof to_send.id);
    int fd = find_debuginfo(client, question->id, (int)question->id_size, &path);
    to_send.result = fd < 0 ? fd : 0;
    if (fd >= 0)
        close(fd);
    if (path)
        snprintf(to_send.path, sizeof to_send.path, "%s", path);
    free(path);
    if (send(SOCKET, &to_send, sizeof to_send, MSG_NOSIGNAL) < 0)
        _exit(0);
}

/* ------------------------------------------------------------------ the end */

enum { DESCRIPTORS = 256, NUMBER_AT = sizeof "/proc/self/fd/" - 1, RANDOM_LETTERS = 6 };

/* Whether the library has made this file for a download that is not complete. */
static bool is_incomplete(const char *path) {
    const char *name = strrchr(path, '/');
    static const char prefix[] = "/debuginfo.";
    return name && strncmp(name, prefix, sizeof prefix - 1) == 0 &&
           strlen(name) == sizeof prefix - 1 + RANDOM_LETTERS;
}

/* Ends at once, in the middle of a download, and removes what there is of it. It may interrupt
 * anything, so it only makes system calls. */
static void stop(int number) {
    for (int fd = SOCKET + 1; fd < DESCRIPTORS; fd++) {
        char link[NUMBER_AT + 4] = "/proc/self/fd/", path[PATH_MAX];
        char *at = link + NUMBER_AT;
        if (fd >= 100)
            *at++ = (char)('0' + fd / 100);
        if (fd >= 10)
            *at++ = (char)('0' + fd / 10 % 10);
        *at = (char)('0' + fd % 10);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        if (is_incomplete(path))
            unlink(path);
    }
    _exit(0);
}

static void stop_on_request(void) {
    struct sigaction action = {.sa_handler = stop};
    sigset_t set;
    sigaction(SIGTERM, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ------------------------------------------------------------------ the start */

/* Nothing of the supervisor's stays open: others may wait for the end of a pipe. */
static void let_go(int fd) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < SOCKET; i++)
        dup2(null, i);
    dup2(fd, SOCKET);
    close_range(SOCKET + 1, ~0u, 0);
}

_Noreturn void asker_run(int fd, const char *extra) {
    extra_path = extra;
    prctl(PR_SET_NAME, "quern-asker");
    let_go(fd);
    stop_on_request();
    if (!open_client())
        _exit(1);
    elf_version(EV_CURRENT);
    for (;;) {
        take_questions();
        struct asker_question question = next_question();
        if (!question.id_size)
            guard_run(look_at_object, &question);
        if (question.id_size)
            answer(&question);
    }
}

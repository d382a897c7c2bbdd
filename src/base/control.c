#include "base/control.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define FRESH 2 // seconds

static int is_own_folder(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

// The socket's path, to be freed. NULL: there is no safe place for it.
static char *path_of(int pid, int make_folder) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct text path = {0};
    if (runtime && *runtime == '/' && is_own_folder(runtime))
        text_format(&path, "%s/quern", runtime);
    else
        text_format(&path, "/tmp/quern-%u", (unsigned)geteuid());
    if (make_folder)
        mkdir(path.bytes, 0700);
    if (!is_own_folder(path.bytes)) {
        text_free(&path);
        return NULL;
    }
    text_format(&path, "/%d", pid);
    return text_take(&path);
}

static int fill_address(int pid, int make_folder, struct sockaddr_un *address) {
    char *path = path_of(pid, make_folder);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof address->sun_path) {
        free(path);
        return ENOENT;
    }
    strcpy(address->sun_path, path);
    free(path);
    return 0;
}

// Whether nobody listens any more. Asked of the socket, not of the pid: that may be another
// process's by now, or one of another namespace. A socket is made before it listens, so a fresh one
// is left alone.
static int is_stale(const struct sockaddr_un *address) {
    struct stat st;
    if (lstat(address->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) ||
        st.st_mtime + FRESH > time(NULL))
        return 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int refused = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                  errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

void control_each(void (*fn)(int pid, void *context), void *context) {
    char *folder = path_of(0, 0);
    if (folder)
        *strrchr(folder, '/') = 0;
    DIR *entries = folder ? opendir(folder) : NULL;
    free(folder);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (end != entry->d_name && !*end && pid > 0 && pid <= 1 << 30)
            fn((int)pid, context);
    }
    if (entries)
        closedir(entries);
}

static void remove_stale(int pid, void *unused) {
    struct sockaddr_un address;
    if (!fill_address(pid, 0, &address) && is_stale(&address))
        unlink(address.sun_path);
}

int control_open(int pid) {
    struct sockaddr_un address;
    if (fill_address(pid, 1, &address))
        return -1;
    control_each(remove_stale, NULL); // what supervisors that were killed have left behind
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(address.sun_path); // of a process that had the same pid
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
                    chmod(address.sun_path, 0600) != 0 || listen(fd, 8) != 0)) {
        close(fd);
        return -1;
    }
    return fd < 0 ? -1 : fd_move_high(fd);
}

// Nobody may hold the supervisor up for long.
static void limit_waiting(int fd, long milliseconds) {
    struct timeval limit = {milliseconds / 1000, milliseconds % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

int control_next(int listening, char wish[CONTROL_MOST]) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -1;
    limit_waiting(fd, 2000); // on a busy machine, who asks may take a while
    ssize_t got = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid())
        got = recv(fd, wish, CONTROL_MOST - 1, 0);
    if (got <= 0) {
        close(fd);
        return -1;
    }
    wish[got] = 0;
    wish[strcspn(wish, "\n")] = 0;
    return fd;
}

void control_answer(int fd, const char *text) {
    send(fd, text, strlen(text), MSG_NOSIGNAL);
    close(fd);
}

void control_close(int listening, int pid) {
    struct sockaddr_un address;
    if (listening < 0)
        return;
    close(listening);
    if (!fill_address(pid, 0, &address))
        unlink(address.sun_path);
}

// Sends a wish: a descriptor for the answer, or an errno in *failure.
static int send_wish(int pid, const char *wish, int *failure) {
    struct sockaddr_un address;
    *failure = fill_address(pid, 0, &address);
    if (*failure)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        limit_waiting(fd, 30000);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, wish, strlen(wish), MSG_NOSIGNAL) < 0)
        *failure = errno;
    if (*failure && fd >= 0)
        close(fd);
    return *failure ? -1 : fd;
}

int control_ask(int pid, const char *wish, char *answer, size_t room) {
    int failure;
    int fd = send_wish(pid, wish, &failure);
    size_t used = 0;
    ssize_t got = 0;
    if (fd < 0)
        return failure;
    while (used + 1 < room && (got = recv(fd, answer + used, room - 1 - used, 0)) > 0)
        used += (size_t)got;
    if (got < 0)
        failure = errno;
    answer[used] = 0;
    close(fd);
    return failure;
}

int control_connect(int pid, const char *wish, char *answer, size_t room) {
    int failure;
    int fd = send_wish(pid, wish, &failure);
    size_t used = 0;
    if (fd < 0) {
        snprintf(answer, room, "%s", strerror(failure));
        return -1;
    }
    // Byte by byte: what follows the line is not ours.
    while (used + 1 < room && recv(fd, answer + used, 1, 0) == 1 && answer[used] != '\n')
        used++;
    answer[used] = 0;
    if (strcmp(answer, "ok") == 0) {
        limit_waiting(fd, 0);
        return fd;
    }
    close(fd);
    return -1;
}

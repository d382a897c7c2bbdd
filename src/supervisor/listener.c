#include "supervisor/listener.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INODES_MOST = 64, GENERATIONS_MOST = 1000 };

// The kernel's tables of sockets, and the state of those that wait for anybody.
static const struct {
    const char *tables[2], *verb;
    unsigned state;
} kinds[] = {
    [LISTENER_TCP] = {{"/proc/self/net/tcp", "/proc/self/net/tcp6"}, "accepts connections", 0x0a},
    [LISTENER_UDP] = {{"/proc/self/net/udp", "/proc/self/net/udp6"}, "receives", 0x07},
};

struct inodes {
    unsigned long items[INODES_MOST];
    size_t count;
};

static bool accepts(int family, const struct sockaddr *address, socklen_t size) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool connected = connect(fd, address, size) == 0;
    close(fd);
    return connected;
}

static bool accepts_connections(int port) {
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return accepts(AF_INET, (const struct sockaddr *)&four, sizeof four) ||
           accepts(AF_INET6, (const struct sockaddr *)&six, sizeof six);
}

// The sockets of a table of the kernel that wait on the port.
static void add_inodes(struct inodes *inodes, const char *table, unsigned waiting, int port) {
    FILE *file = fopen(table, "re");
    if (!file)
        return;
    char line[512];
    while (inodes->count < INODES_MOST && fgets(line, sizeof line, file)) {
        unsigned local, state;
        unsigned long inode;
        if (sscanf(line, "%*s %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", &local, &state,
                   &inode) == 3 &&
            local == (unsigned)port && state == waiting)
            inodes->items[inodes->count++] = inode;
    }
    fclose(file);
}

static struct inodes find_inodes(enum listener_kind kind, int port) {
    struct inodes inodes = {.count = 0};
    for (size_t i = 0; i < sizeof kinds->tables / sizeof *kinds->tables; i++)
        add_inodes(&inodes, kinds[kind].tables[i], kinds[kind].state, port);
    return inodes;
}

bool listener_is_used(enum listener_kind kind, int port) {
    return kind == LISTENER_TCP ? accepts_connections(port) : find_inodes(kind, port).count > 0;
}

const char *listener_verb(enum listener_kind kind) {
    return kinds[kind].verb;
}

static bool is_one_of(const struct inodes *inodes, const char *link) {
    unsigned long inode;
    if (sscanf(link, "socket:[%lu]", &inode) != 1)
        return false;
    for (size_t i = 0; i < inodes->count; i++)
        if (inodes->items[i] == inode)
            return true;
    return false;
}

static bool holds_one(int pid, const struct inodes *inodes) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    bool found = false;
    struct dirent *entry;
    while (folder && !found && (entry = readdir(folder))) {
        char link[64];
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        link[size > 0 ? size : 0] = 0;
        found = is_one_of(inodes, link);
    }
    if (folder)
        closedir(folder);
    return found;
}

size_t listener_processes(enum listener_kind kind, int port, int *pids, size_t most) {
    struct inodes inodes = find_inodes(kind, port);
    size_t count = 0;
    DIR *folder = inodes.count ? opendir("/proc") : NULL;
    struct dirent *entry;
    while (folder && count < most && (entry = readdir(folder))) {
        int pid = atoi(entry->d_name);
        if (pid > 0 && holds_one(pid, &inodes))
            pids[count++] = pid;
    }
    if (folder)
        closedir(folder);
    return count;
}

// What stands behind a word of the file /proc/PID/status, or "".
static void status_word(int pid, const char *word, char *value, size_t size) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    *value = 0;
    while (file && !*value && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, word, strlen(word)) == 0)
            snprintf(value, size, "%s", line + strlen(word));
    }
    if (file)
        fclose(file);
}

bool listener_descends(int pid, int ancestor) {
    for (int i = 0; pid > 1 && i < GENERATIONS_MOST; i++) {
        if (pid == ancestor)
            return true;
        char parent[32];
        status_word(pid, "PPid:\t", parent, sizeof parent);
        pid = atoi(parent);
    }
    return false;
}

void listener_name(struct text *text, int pid) {
    char name[64];
    status_word(pid, "Name:\t", name, sizeof name);
    text_format(text, "process %d", pid);
    if (*name)
        text_format(text, " (%s)", name);
}

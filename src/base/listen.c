#include "base/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union any_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

// The size of the address; 0: it is none.
static socklen_t make_address(const struct listen_address *from, union any_address *to) {
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, from->host, &to->four.sin_addr) == 1) {
        to->four.sin_family = AF_INET;
        to->four.sin_port = htons(from->port);
        return sizeof to->four;
    }
    if (inet_pton(AF_INET6, from->host, &to->six.sin6_addr) != 1)
        return 0;
    to->six.sin6_family = AF_INET6;
    to->six.sin6_port = htons(from->port);
    return sizeof to->six;
}

static bool is_loopback(const union any_address *address) {
    return address->any.sa_family == AF_INET ? ntohl(address->four.sin_addr.s_addr) >> 24 == 127
                                             : IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
}

bool listen_parse(const char *text, struct listen_address *address) {
    const char *host = "127.0.0.1", *port = strrchr(text, ':');
    size_t size = strlen(host);
    if (port) {
        host = text;
        size = (size_t)(port - text);
        if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
            host++;
            size -= 2;
        }
    }
    port = port ? port + 1 : text;
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    if (size >= sizeof address->host || *port < '0' || *port > '9' || *end || number > 65535)
        return false;
    *address = (struct listen_address){.port = (uint16_t)number};
    memcpy(address->host, host, size);
    union any_address full;
    if (!make_address(address, &full))
        return false;
    address->is_loopback = is_loopback(&full);
    return true;
}

int listen_open(struct listen_address *address) {
    union any_address full;
    socklen_t size = make_address(address, &full);
    int fd = socket(full.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // A server that has just ended must not keep its successor from listening.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (fd >= 0 && bind(fd, &full.any, size) == 0 && listen(fd, 64) == 0 &&
        getsockname(fd, &full.any, &size) == 0) {
        address->port =
            ntohs(full.any.sa_family == AF_INET ? full.four.sin_port : full.six.sin6_port);
        return fd;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

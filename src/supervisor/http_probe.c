#include "supervisor/http_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

// A server that does not answer is asked again.
enum { PATIENCE_MS = 5000 };

static bool is_loopback(const struct addrinfo *address) {
    if (address->ai_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address->ai_addr)->sin_addr.s_addr) >> 24 == 127;
    return address->ai_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address->ai_addr)->sin6_addr);
}

static char *wrong_url(const char *url, const char *reason) {
    struct text text = {0};
    text_format(&text, "--ready-url=%s: %s", url, reason);
    return text_take(&text);
}

// Takes "host:port" apart; an address of IPv6 stands in brackets. False: it is neither.
static bool split_authority(char *authority, char **host, char **port) {
    bool in_brackets = authority[0] == '[';
    char *end = in_brackets ? strchr(authority, ']') : strchrnul(authority, ':');
    if (!end)
        return false;
    *host = authority + in_brackets;
    *port = "80";
    char *colon = in_brackets ? end + 1 : end;
    if (*colon == ':')
        *port = colon + 1;
    else if (*colon)
        return false;
    *end = 0;
    char *number_end;
    long number = strtol(*port, &number_end, 10);
    return **host && **port && !*number_end && number > 0 && number < 65536;
}

void http_probe_init(struct http_probe *probe) {
    *probe = (struct http_probe){.connection = -1};
}

char *http_probe_begin(struct http_probe *probe, const char *url) {
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return wrong_url(url, "the URL must begin with http://");
    const char *authority = url + sizeof scheme - 1, *page = authority + strcspn(authority, "/?#");
    char *copy = strndup(authority, (size_t)(page - authority)), *host, *port;
    char *whole = strndup(authority, (size_t)(page - authority));
    char *error = NULL;
    if (!split_authority(copy, &host, &port)) {
        error = wrong_url(url, "this is not a URL; it looks like http://127.0.0.1:3000/health");
    } else {
        struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
        int problem = getaddrinfo(host, port, &wanted, &probe->addresses);
        if (problem)
            error = wrong_url(url, gai_strerror(problem));
        else
            probe->local_port = is_loopback(probe->addresses) ? atoi(port) : 0;
        probe->next_address = probe->addresses;
        text_format(&probe->question,
                    "GET %s%.*s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n",
                    *page == '/' ? "" : "/", (int)strcspn(page, "#"), page, whole);
    }
    free(copy);
    free(whole);
    return error;
}

static void hang_up(struct http_probe *probe) {
    if (probe->connection >= 0)
        close(probe->connection);
    probe->connection = -1;
}

// A name such as localhost has several addresses: each question goes to the next of them.
static void ask(struct http_probe *probe) {
    if (!probe->next_address)
        probe->next_address = probe->addresses;
    struct addrinfo *to = probe->next_address;
    probe->next_address = to->ai_next;
    int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    probe->connection = fd_move_high(socket(to->ai_family, type, 0));
    probe->is_sent = false;
    probe->answer_size = 0;
    probe->asked = clock_milliseconds();
    if (probe->connection >= 0 && connect(probe->connection, to->ai_addr, to->ai_addrlen) < 0 &&
        errno != EINPROGRESS)
        hang_up(probe);
}

// The status of an answer that begins like this; 0: it is no answer.
static int read_status(struct http_probe *probe) {
    int status;
    probe->answer[probe->answer_size] = 0;
    return sscanf(probe->answer, "HTTP/%*1d.%*1d %3d", &status) == 1 ? status : 0;
}

// Reads what has come. True: that is enough.
static bool take_answer(struct http_probe *probe) {
    ssize_t got = recv(probe->connection, probe->answer + probe->answer_size,
                       HTTP_ANSWER_SIZE - probe->answer_size, 0);
    if (got > 0)
        probe->answer_size += (size_t)got;
    return probe->answer_size == HTTP_ANSWER_SIZE || got == 0 ||
           (got < 0 && errno != EAGAIN && errno != EINTR);
}

// Goes on with the question that is under way. False: it is over.
static bool go_on(struct http_probe *probe) {
    struct pollfd ready = {.fd = probe->connection, .events = probe->is_sent ? POLLIN : POLLOUT};
    if (poll(&ready, 1, 0) != 1)
        return clock_milliseconds() - probe->asked <= PATIENCE_MS;
    if (probe->is_sent)
        return !take_answer(probe);
    probe->is_sent = true;
    const struct text *question = &probe->question;
    return send(probe->connection, question->bytes, question->size, MSG_NOSIGNAL) ==
           (ssize_t)question->size;
}

bool http_probe_look(struct http_probe *probe) {
    if (probe->connection < 0)
        ask(probe);
    if (probe->connection < 0 || go_on(probe))
        return false;
    hang_up(probe);
    int status = read_status(probe);
    if (status)
        probe->status = status;
    return status >= 200 && status < 400;
}

void http_probe_end(struct http_probe *probe) {
    hang_up(probe);
    if (probe->addresses)
        freeaddrinfo(probe->addresses);
    probe->addresses = probe->next_address = NULL;
    text_free(&probe->question);
}

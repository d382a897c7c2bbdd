// Asks a server for a page, again and again, until the answer is a success.
//
// Nothing here waits: each look does what can be done at once. One question is under way at a time.
// http only, and only what readiness needs: the status of the answer. Supervisor only.
#ifndef QUERN_SUPERVISOR_HTTP_PROBE_H
#define QUERN_SUPERVISOR_HTTP_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

// An answer begins with "HTTP/1.1 200".
enum { HTTP_ANSWER_SIZE = 12 };

struct http_probe {
    struct addrinfo *addresses, *next_address;
    struct text question;
    int local_port; // of a server on the loopback interface; 0: it is elsewhere
    int status;     // of the latest answer; 0: there was none
    int connection; // of the question that is under way; -1: none is
    bool is_sent;
    char answer[HTTP_ANSWER_SIZE + 1];
    size_t answer_size;
    int64_t asked; // when the question began, in milliseconds
};

// A probe that asks nobody.
void http_probe_init(struct http_probe *probe);
// Finds the server of a URL such as http://127.0.0.1:3000/health. NULL, or a message that the
// caller frees.
char *http_probe_begin(struct http_probe *probe, const char *url);
// Goes on. True: the server has answered with a status of 200 to 399.
bool http_probe_look(struct http_probe *probe);
void http_probe_end(struct http_probe *probe);

#endif

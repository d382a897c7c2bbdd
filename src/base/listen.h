// Listening for TCP connections: loopback unless somebody names another address.
//
// Supervisor's side.
#ifndef QUERN_BASE_LISTEN_H
#define QUERN_BASE_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

struct listen_address {
    char host[64]; // numeric; IPv6 without brackets
    uint16_t port; // 0: any
    bool is_loopback;
};

// Reads "[ADDRESS:]PORT"; an IPv6 address stands in brackets. False: it is invalid.
bool listen_parse(const char *text, struct listen_address *address);
// Listens there, and sets the port if it was 0. The descriptor, close-on-exec, or -1 with errno.
int listen_open(struct listen_address *address);

#endif

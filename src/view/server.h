// The page on loopback: serves the bundled page and answers about the files that were opened.
//
// Who may ask: only who knows the token, which is in the address and nowhere else. A request is
// refused before anything is done for it unless it comes to 127.0.0.1 by that name (Host: a page
// elsewhere whose name was made to point here has another), from the page itself or from no page
// (Origin, Sec-Fetch-Site), and below the token. Files are named by number: no path is ever taken
// from a request.
//
// Threads: one for each connection. Questions that take long (SQL, a second reading, a part of a
// recording) are answered beside all others; how far they are can be asked (works.h), and a client
// that closes its connection cancels its question. Files are read by a thread of their own, and how
// far that is can be asked, too. Supervisor context.
#ifndef QUERN_VIEW_SERVER_H
#define QUERN_VIEW_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view_server;

struct view_server_options {
    char *const *paths;
    size_t path_count;
    uint16_t port; // 0: any
    // May be NULL. Called by the thread that reads when a file of a known format cannot be shown;
    // others can be told beforehand (document_refusal).
    void (*unreadable)(const char *path, const char *problem);
};

// Serves until the process ends. NULL after *problem was set to why not, to be freed.
struct view_server *view_server_start(const struct view_server_options *options, char **problem);
// The address to open, token included. Lives as long as the server.
const char *view_server_address(const struct view_server *server);

#endif

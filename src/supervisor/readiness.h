// When a server is ready, as far as that shows outside of it. (What it prints: scenario.c.)
//
//   --ready-port=PORT       the target, and no other process, accepts TCP connections
//   --ready-udp-port=PORT   the target, and no other process, has bound this UDP port
//   --ready-path=PATH       a file has appeared or changed; a socket accepts connections
//   --ready-url=URL         the server answers with a status of 200 to 399
//
// If several are given, the first that holds is enough. Supervisor only.
#ifndef QUERN_SUPERVISOR_READINESS_H
#define QUERN_SUPERVISOR_READINESS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/text.h"
#include "supervisor/http_probe.h"
#include "supervisor/listener.h"
#include "supervisor/supervisor.h"

struct job;

// What is known so far. The scenario owns it.
struct readiness {
    const struct scenario_settings *settings;
    const struct job *job;
    struct http_probe page;
    struct stat before; // the file of --ready-path when the run began
    bool was_there;
    int stranger;                // the pid of who serves instead of the target; 0: nobody
    const char *stranger_option; // where
    enum listener_kind stranger_kind;
};

// Before the target runs. False after a message: a URL is invalid, or another process has the port.
bool readiness_may_begin(struct readiness *readiness, const struct scenario_settings *settings,
                         const struct job *job);
// Whether the target is ready.
bool readiness_look(struct readiness *readiness);
// Milliseconds until the next look is worth its cost.
int readiness_pause(const struct readiness *readiness);
// Appends why the target is not ready: "the program does not ... after 60 s".
void readiness_explain(const struct readiness *readiness, struct text *text);
void readiness_end(struct readiness *readiness);

#endif

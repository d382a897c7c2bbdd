/*
 * asker: the process that speaks with debuginfod servers (servers.h).
 *
 * It gets one question in a packet, and answers each that has a build-id with a packet. It ends
 * when the other end of the socket is closed, at SIGTERM, and with the supervisor.
 *
 * Supervisor only; part of symbols.
 */
#ifndef QUERN_SYMBOLS_ASKER_H
#define QUERN_SYMBOLS_ASKER_H

#include <limits.h>
#include <stdint.h>

enum { ASKER_ID_MOST = 64 };

/* About an object (a path, no build-id: is there a debug file for it?), or about a build-id, which
 * somebody waits for. */
struct asker_question {
    uint32_t id_size;
    uint8_t id[ASKER_ID_MOST];
    char path[PATH_MAX];
};

struct asker_answer {
    uint32_t id_size;
    uint8_t id[ASKER_ID_MOST];
    int32_t result;      /* 0: found; or a negative error number */
    char path[PATH_MAX]; /* of the debug file, if found */
};

/* Never returns. `extra_path` is a further root with debug files, or NULL. */
_Noreturn void asker_run(int fd, const char *extra_path);

#endif

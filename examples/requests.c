/* A server in miniature: requests are parsed into an arena, sessions come from a pool.
 *
 *   quern --tool=heap build/examples/requests      what each part of the work allocates
 *   quern --tool=memcheck build/examples/requests overrun     objects of the pool are checked
 *   quern --tool=memcheck --leak-check=full build/examples/requests lost
 */
#include <quern/heap.h>

enum { REQUESTS = 200, SESSIONS = 8 };

struct session {
    int number, requests;
    char *name; /* in the arena, until the request is answered */
};

static struct quern_arena words;
static struct quern_pool sessions;

static struct session *open_session(int number) {
    struct session *session = (struct session *)quern_pool_take(&sessions);
    session->number = number;
    session->requests = 0;
    session->name = NULL;
    return session;
}

static size_t answer(struct session *session, int request) {
    size_t size;
    session->requests++;
    session->name = (char *)quern_arena_take(&words, 32);
    size = (size_t)snprintf(session->name, 32, "session %d, request %d", session->number, request);
    quern_arena_reset(&words);
    return size;
}

static size_t serve(void) {
    struct session *open[SESSIONS] = {NULL};
    size_t bytes = 0;
    int i;
    for (i = 0; i < REQUESTS; i++) {
        struct session **session = &open[i * 5 % SESSIONS];
        quern_heap_scope_begin("request");
        if (!*session)
            *session = open_session(i);
        bytes += answer(*session, i);
        if ((*session)->requests == 3) {
            quern_pool_give(&sessions, *session);
            *session = NULL;
        }
        quern_heap_scope_end();
    }
    for (i = 0; i < SESSIONS; i++)
        quern_pool_give(&sessions, open[i]);
    return bytes;
}

static void overrun(void) {
    struct session *session = open_session(0);
    memset(session, 0, sizeof *session + 1);
    quern_pool_give(&sessions, session);
}

static void lose(void) {
    open_session(1)->requests = 1;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    size_t bytes = 0;
    quern_arena_begin(&words, "words", 4096);
    quern_pool_begin(&sessions, "sessions", sizeof(struct session), SESSIONS);
    quern_heap_mark("ready");
    bytes = serve();
    quern_heap_snapshot("served");
    if (strcmp(what, "overrun") == 0)
        overrun();
    if (strcmp(what, "lost") == 0)
        lose();
    printf("%zu bytes; sessions: %zu taken, at most %zu at once, %.0f %% used before; arena: %zu "
           "objects in %zu chunks\n",
           bytes, sessions.stats.taken, sessions.stats.peak, 100 * quern_pool_hit_ratio(&sessions),
           words.stats.taken, words.stats.chunks);
    if (!*what) {
        quern_pool_end(&sessions);
        quern_arena_end(&words);
    }
    return 0;
}

// The listener: Prometheus' metrics, and profiles where programs in Go serve theirs.
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/exporter.h"

#define CONNECTIONS  32
#define IDLE_SECONDS 30
#define SECONDS_MOST 3600 // of a profile
#define TEXT         "text/plain; charset=utf-8"

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *type,
                               struct text *body) {
    size_t size = body->size;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, text_take(body), MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (strcmp(type, "application/octet-stream") == 0)
        MHD_add_response_header(response, "Content-Disposition",
                                "attachment; filename=\"profile\"");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned status,
                                    const char *text) {
    struct text body = {0};
    text_string(&body, text);
    return respond(connection, status, TEXT, &body);
}

// ---- who may ask -------------------------------------------------------------------------------

// Whether the header names a host that means this machine, whoever resolves it.
static bool is_loopback_host(const char *host) {
    const char *port = strrchr(host, ':');
    size_t size = port && !strchr(port, ']') ? (size_t)(port - host) : strlen(host);
    char name[64];
    struct listen_address address;
    if (size == strlen("localhost") && strncmp(host, "localhost", size) == 0)
        return true;
    snprintf(name, sizeof name, "%.*s:0", size < 48 ? (int)size : 48, host);
    return listen_parse(name, &address) && address.is_loopback;
}

// A page of some web site in a browser must not read what is on loopback by a name that its owner
// points there.
static bool may_ask(const struct exporter *exporter, struct MHD_Connection *connection) {
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"))
        return false;
    if (!exporter->address.is_loopback || !host)
        return true;
    return is_loopback_host(host);
}

// ---- profiles ----------------------------------------------------------------------------------

static long number_of(struct MHD_Connection *connection, const char *name, long most) {
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    char *end;
    long number = text ? strtol(text, &end, 10) : 0;
    return text && (*end || end == text || number < 0 || number > most) ? -1 : number;
}

// Waits, and notes what there was before. False: there is no such process.
static bool wait_since(struct exporter *exporter, int pid, long seconds,
                       struct profile_base *base) {
    struct follower *follower = exporter_take(exporter, pid);
    if (follower) {
        pthread_mutex_lock(&follower->lock);
        profile_note(follower, base);
        pthread_mutex_unlock(&follower->lock);
    }
    exporter_leave(exporter);
    if (follower)
        poll(NULL, 0, (int)seconds * 1000);
    return follower != NULL;
}

static enum MHD_Result give_heap(struct exporter *exporter, struct MHD_Connection *connection) {
    long pid = number_of(connection, "pid", INT32_MAX);
    long seconds = number_of(connection, "seconds", SECONDS_MOST);
    struct profile_base base = {0};
    struct text body = {0};
    // The connection is idle while the profile is made.
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)(IDLE_SECONDS + (seconds > 0 ? seconds : 0)));
    if (pid < 0 || seconds < 0)
        return respond_text(connection, MHD_HTTP_BAD_REQUEST,
                            "pid and seconds are numbers; seconds are at most 3600\n");
    bool is_there = !seconds || wait_since(exporter, (int)pid, seconds, &base), is_same = true;
    struct follower *follower = exporter_take(exporter, (int)pid);
    if (follower && is_there) {
        pthread_mutex_lock(&follower->lock);
        is_same = profile_heap(follower, seconds ? &base : NULL, &body);
        pthread_mutex_unlock(&follower->lock);
    }
    exporter_leave(exporter);
    free(base.sites);
    if (!follower || !is_there)
        return respond_text(connection, MHD_HTTP_NOT_FOUND, "no such process is recorded\n");
    if (!is_same)
        return respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "the recording was merged meanwhile (--max-size); ask again\n");
    return respond(connection, MHD_HTTP_OK, "application/octet-stream", &body);
}

// ---- requests ----------------------------------------------------------------------------------

static enum MHD_Result give_metrics(struct exporter *exporter, struct MHD_Connection *connection) {
    char *bytes = NULL;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    if (!out)
        abort();
    metrics_write(exporter, out);
    fclose(out);
    struct text body = {0};
    text_add(&body, bytes, size);
    free(bytes);
    return respond(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &body);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **own) {
    struct exporter *exporter = context;
    if (!may_ask(exporter, connection))
        return respond_text(connection, MHD_HTTP_FORBIDDEN, "forbidden\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (strcmp(url, "/metrics") == 0)
        return give_metrics(exporter, connection);
    if (strcmp(url, "/debug/pprof/heap") == 0 || strcmp(url, "/debug/pprof/allocs") == 0)
        return give_heap(exporter, connection);
    if (strcmp(url, "/debug/pprof/profile") == 0)
        return respond_text(connection, MHD_HTTP_NOT_FOUND,
                            "profiles of CPU time are not supported yet here: this run records the "
                            "heap. quern flame writes one\n");
    if (strcmp(url, "/") == 0 || strcmp(url, "/debug/pprof/") == 0)
        return respond_text(connection, MHD_HTTP_OK,
                            "/metrics\n/debug/pprof/heap[?pid=PID][&seconds=N]\n"
                            "/debug/pprof/allocs[?pid=PID][&seconds=N]\n");
    return respond_text(connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

bool serve_start(struct exporter *exporter, int listening) {
    return MHD_start_daemon(
               MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
               NULL, NULL, on_request, exporter, MHD_OPTION_LISTEN_SOCKET, listening,
               MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
               (unsigned)IDLE_SECONDS, MHD_OPTION_END) != NULL;
}

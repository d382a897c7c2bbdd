#include "view/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/listen.h"
#include "profile/heap/timeline.h"
#include "view/answers/answers.h"
#include "view/html.h"
#include "view/page.h"
#include "view/windows.h"
#include "view/works.h"

#define TOKEN_BYTES 16
#define CONNECTIONS 400
// Who does not know the token must not keep those out who do, by opening connections and saying
// nothing.
#define STRANGER_SECONDS 5
#define IDLE_SECONDS     600 // longer than any answer takes
#define HEADERS_SIZE     (1 << 16)
#define POINTS           256 // of the heap over time, while a recording is read

// What is known of a recording while its events are read.
struct so_far {
    uint64_t time, held, peak, allocations; // time 0: nothing
    size_t count;
    struct {
        uint64_t time, most;
    } points[POINTS];
};

struct server_file {
    const char *path;
    struct document *document; // NULL: not read yet
    int fd;                    // while it is read, else -1
    uint64_t size;
    struct so_far so_far;
};

struct view_server {
    struct MHD_Daemon *daemon;
    char token[2 * TOKEN_BYTES + 1];
    char host[32], local[32]; // what Host may say
    char *address;
    struct server_file *files;
    size_t file_count;
    pthread_t loader;
    void (*unreadable)(const char *path, const char *problem);
    pthread_mutex_t state; // protects files[], but for what a document holds
    pthread_cond_t loaded;
    struct windows windows;
    struct works works;
};

// ---- reading the files ----

struct watch {
    struct view_server *server;
    struct server_file *file;
};

static void watch_file(void *context, int fd) {
    struct watch *watch = context;
    struct stat status;
    pthread_mutex_lock(&watch->server->state);
    watch->file->fd = fd;
    if (fd >= 0 && fstat(fd, &status) == 0)
        watch->file->size = (uint64_t)status.st_size;
    pthread_mutex_unlock(&watch->server->state);
}

// The maximum over neighbouring steps.
static void note_points(struct so_far *so_far, const struct timeline *timeline) {
    size_t group = timeline->count / POINTS + 1;
    so_far->count = 0;
    so_far->peak = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        size_t at = i / group;
        if (i % group == 0)
            so_far->points[at].most = 0;
        so_far->points[at].time = timeline->length * (i + 1);
        if (timeline->steps[i].most > so_far->points[at].most)
            so_far->points[at].most = timeline->steps[i].most;
        if (timeline->steps[i].most > so_far->peak)
            so_far->peak = timeline->steps[i].most;
        so_far->count = at + 1;
    }
}

static void watch_sums(void *context, const struct document_so_far *known) {
    struct watch *watch = context;
    struct so_far *so_far = &watch->file->so_far;
    pthread_mutex_lock(&watch->server->state);
    note_points(so_far, known->timeline);
    so_far->time = so_far->count ? so_far->points[so_far->count - 1].time : 0;
    so_far->held = known->timeline->held;
    so_far->allocations = known->allocations;
    pthread_mutex_unlock(&watch->server->state);
}

static void *load(void *context) {
    struct view_server *server = context;
    for (size_t i = 0; i < server->file_count; i++) {
        struct server_file *file = &server->files[i];
        struct watch own = {server, file};
        struct document_watch watch = {watch_file, watch_sums, &own};
        struct document *document = document_open(file->path, DOCUMENT_WINDOW_ALL, &watch);
        if (document->problem && document->format && server->unreadable)
            server->unreadable(file->path, document->problem);
        pthread_mutex_lock(&server->state);
        file->document = document;
        pthread_cond_broadcast(&server->loaded);
        pthread_mutex_unlock(&server->state);
    }
    return NULL;
}

static struct document *wait_for(struct view_server *server, size_t file) {
    pthread_mutex_lock(&server->state);
    while (!server->files[file].document)
        pthread_cond_wait(&server->loaded, &server->state);
    pthread_mutex_unlock(&server->state);
    return server->files[file].document;
}

// ---- sending ----

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static enum MHD_Result send_bytes(struct MHD_Connection *connection, unsigned status,
                                  const char *type, struct MHD_Response *response) {
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", policy);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *type, const char *text) {
    return send_bytes(
        connection, status, type,
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result send_constant(struct MHD_Connection *connection, const char *type,
                                     const struct page_file *file) {
    return send_bytes(
        connection, MHD_HTTP_OK, type,
        MHD_create_response_from_buffer(file->size, (void *)file->bytes, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_json(struct MHD_Connection *connection, unsigned status,
                                 struct json *json) {
    size_t size = json->text.size;
    return send_bytes(
        connection, status, "application/json; charset=utf-8",
        MHD_create_response_from_buffer(size, text_take(&json->text), MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result send_problem(struct MHD_Connection *connection, unsigned status,
                                    const char *problem) {
    struct json json = {0};
    json_open(&json, '{');
    json_string_at(&json, "problem", problem);
    json_close(&json, '}');
    return send_json(connection, status, &json);
}

// ---- who may ask ----

static const char *header_of(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// Takes as long whatever is different.
static bool is_token(const struct view_server *server, const char *text, size_t size) {
    unsigned char difference = size != 2 * TOKEN_BYTES;
    for (size_t i = 0; i < 2 * TOKEN_BYTES; i++)
        difference |= (unsigned char)(server->token[i] ^ (i < size ? text[i] : 0));
    return difference == 0;
}

static bool is_own_host(const struct view_server *server, const char *host) {
    return strcmp(host, server->host) == 0 || strcmp(host, server->local) == 0;
}

static bool may_ask(const struct view_server *server, struct MHD_Connection *connection) {
    const char *host = header_of(connection, "Host");
    const char *origin = header_of(connection, "Origin");
    const char *site = header_of(connection, "Sec-Fetch-Site");
    if (!host || !is_own_host(server, host))
        return false;
    if (origin && (strncmp(origin, "http://", 7) != 0 || strcmp(origin + 7, host) != 0))
        return false;
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

// ---- answers ----

static void add_so_far(const struct so_far *so_far, struct json *json) {
    json_open_at(json, "so_far", '{');
    json_number_at(json, "time", so_far->time);
    json_number_at(json, "held", so_far->held);
    json_number_at(json, "peak", so_far->peak);
    json_number_at(json, "allocations", so_far->allocations);
    json_open_at(json, "points", '[');
    for (size_t i = 0; i < so_far->count; i++) {
        json_open(json, '[');
        json_number(json, so_far->points[i].time);
        json_number(json, so_far->points[i].most);
        json_close(json, ']');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void add_progress(struct view_server *server, struct json *json) {
    json_open(json, '{');
    json_open_at(json, "files", '[');
    pthread_mutex_lock(&server->state);
    for (size_t i = 0; i < server->file_count; i++) {
        const struct server_file *file = &server->files[i];
        off_t at = file->fd >= 0 ? lseek(file->fd, 0, SEEK_CUR) : 0;
        json_open(json, '{');
        json_string_at(json, "name", heap_file_base(file->path));
        json_bool_at(json, "ready", file->document != NULL);
        json_string_at(json, "problem", file->document ? file->document->problem : NULL);
        bool is_known = file->document && file->document->format && !file->document->problem;
        json_string_at(json, "kind", is_known ? file->document->format->name : NULL);
        json_number_at(json, "read", at > 0 ? (uint64_t)at : 0);
        json_number_at(json, "size", file->size);
        if (!file->document && file->so_far.time)
            add_so_far(&file->so_far, json);
        json_close(json, '}');
    }
    pthread_mutex_unlock(&server->state);
    json_close(json, ']');
    json_close(json, '}');
}

static const char *argument_of(void *context, const char *name) {
    return MHD_lookup_connection_value(context, MHD_GET_ARGUMENT_KIND, name);
}

static bool file_of(const struct view_server *server, const struct ask *ask, const char *name,
                    size_t *file) {
    *file = ask_number(ask, name, 0, SIZE_MAX);
    return *file < server->file_count;
}

// Two at once, and one that is both only once; in an order, so that nobody waits for ever.
static void lock_both(struct document *one, struct document *other, bool lock) {
    struct document *first = one < other ? one : other, *second = one < other ? other : one;
    int (*change)(pthread_mutex_t *) = lock ? pthread_mutex_lock : pthread_mutex_unlock;
    change(&first->lock);
    if (second != first)
        change(&second->lock);
}

static char *compare(struct document *before, struct document *after, const struct ask *ask,
                     struct json *json) {
    lock_both(before, after, true);
    char *problem = answer_diff(before, after, ask, json);
    lock_both(before, after, false);
    return problem;
}

static char *answer_part(struct view_server *server, size_t file, struct document_window part,
                         const char *question, const struct ask *ask, struct json *json) {
    struct window *window = windows_take(&server->windows, file, server->files[file].path, part);
    if (!window)
        return base_copy(PROGRESS_CANCELLED);
    char *problem = answer(window->document, question, ask, json);
    windows_leave(&server->windows, window);
    return problem;
}

static int socket_of(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static enum MHD_Result give_answer(struct view_server *server, struct MHD_Connection *connection,
                                   const char *question) {
    struct ask ask = {argument_of, connection};
    struct json json = {0};
    size_t file, other = 0;
    if (strcmp(question, "files") == 0) {
        add_progress(server, &json);
        return send_json(connection, MHD_HTTP_OK, &json);
    }
    if (strcmp(question, "works") == 0) {
        works_write(&server->works, &json);
        return send_json(connection, MHD_HTTP_OK, &json);
    }
    bool is_diff = strcmp(question, "diff") == 0;
    if (!file_of(server, &ask, "file", &file) ||
        (is_diff && !file_of(server, &ask, "after", &other)))
        return send_problem(connection, MHD_HTTP_NOT_FOUND, "there is no such file");
    struct document *document = wait_for(server, file);
    struct document *after = is_diff ? wait_for(server, other) : NULL;
    struct document_window part = {ask_number(&ask, "from", 0, UINT64_MAX),
                                   ask_number(&ask, "to", UINT64_MAX, UINT64_MAX)};
    struct work work;
    works_begin(&server->works, &work, ask_value(&ask, "work"), socket_of(connection));
    char *problem = is_diff ? compare(document, after, &ask, &json)
                    : part.from || part.to != UINT64_MAX
                        ? answer_part(server, file, part, question, &ask, &json)
                        : answer(document, question, &ask, &json);
    works_end(&work);
    if (!problem)
        return send_json(connection, MHD_HTTP_OK, &json);
    text_free(&json.text);
    enum MHD_Result result = send_problem(connection, MHD_HTTP_UNPROCESSABLE_CONTENT, problem);
    free(problem);
    return result;
}

static enum MHD_Result give_page(struct MHD_Connection *connection, const char *path) {
    if (page_missing)
        return send_text(connection, MHD_HTTP_OK, "text/plain; charset=utf-8", page_missing);
    if (!*path)
        return send_text(connection, MHD_HTTP_OK, "text/html; charset=utf-8", html_served);
    if (strcmp(path, "page.js") == 0)
        return send_constant(connection, "text/javascript; charset=utf-8", &page_script);
    if (strcmp(path, "page.css") == 0)
        return send_constant(connection, "text/css; charset=utf-8", &page_style);
    return send_text(connection, MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8", "not found\n");
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **own) {
    struct view_server *server = context;
    if (!may_ask(server, connection))
        return send_text(connection, MHD_HTTP_FORBIDDEN, "text/plain; charset=utf-8",
                         "forbidden\n");
    size_t size = *url == '/' ? strcspn(url + 1, "/") : 0;
    if (!is_token(server, url + 1, size))
        return send_text(connection, MHD_HTTP_FORBIDDEN, "text/plain; charset=utf-8",
                         "forbidden: this address lacks the token that quern view printed\n");
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_SECONDS);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain; charset=utf-8",
                         "only GET\n");
    const char *path = url + 1 + size;
    if (!*path)
        return send_text(connection, MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8",
                         "not found\n");
    if (strncmp(path, "/ask/", 5) == 0)
        return give_answer(server, connection, path + 5);
    return give_page(connection, path + 1);
}

// ---- starting and stopping ----

static bool make_token(char *token) {
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        token[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        token[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    return true;
}

static struct view_server *new_server(const struct view_server_options *options) {
    struct view_server *server = base_allocate(sizeof *server);
    *server =
        (struct view_server){.file_count = options->path_count, .unreadable = options->unreadable};
    server->files = base_allocate((options->path_count + 1) * sizeof *server->files);
    for (size_t i = 0; i < options->path_count; i++)
        server->files[i] = (struct server_file){.path = options->paths[i], .fd = -1};
    pthread_mutex_init(&server->state, NULL);
    windows_init(&server->windows);
    works_init(&server->works);
    pthread_cond_init(&server->loaded, NULL);
    return server;
}

static char *start(struct view_server *server, uint16_t port) {
    if (!make_token(server->token))
        return base_copy("the system gives no random numbers");
    struct listen_address on = {.host = "127.0.0.1", .port = port};
    int fd = listen_open(&on);
    if (fd < 0)
        return base_copy(strerror(errno));
    port = on.port;
    struct text address = {0};
    snprintf(server->host, sizeof server->host, "127.0.0.1:%u", port);
    snprintf(server->local, sizeof server->local, "localhost:%u", port);
    text_format(&address, "http://%s/%s/", server->host, server->token);
    server->address = text_take(&address);
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL,
        NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STRANGER_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(2 * HEADERS_SIZE), MHD_OPTION_END);
    if (!server->daemon) {
        close(fd);
        return base_copy("the server cannot be started");
    }
    return NULL;
}

struct view_server *view_server_start(const struct view_server_options *options, char **problem) {
    struct view_server *server = new_server(options);
    *problem = start(server, options->port);
    if (!*problem && pthread_create(&server->loader, NULL, load, server) != 0) {
        *problem = base_copy("no thread can be made");
        MHD_stop_daemon(server->daemon);
    }
    if (!*problem)
        return server;
    return NULL;
}

const char *view_server_address(const struct view_server *server) {
    return server->address;
}

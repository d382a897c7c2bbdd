#include "supervisor/xml_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "report/findings/xml.h"
#include "supervisor/log.h"
#include "supervisor/present.h"
#include "supervisor/tool.h"

// A document. Those that share the main process's file are held back until that is complete.
struct document {
    int pid;
    int fd;
    bool complete;
    struct text held;
};

static const struct supervisor_request *request;
static struct document *documents; // the first is the main process's
static size_t document_count;
static bool broken;

static int open_file(int pid) {
    char *error = NULL;
    char *name = template_expand(request->xml.place, pid, 1, &error);
    if (!name) {
        log_complain("--xml-file=%s: %s", request->xml.place, error);
        free(error);
        return -1;
    }
    int fd = fd_move_high(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0)
        log_complain("cannot write XML file '%s': %s", name, strerror(errno));
    free(name);
    return fd;
}

static int open_place(int pid) {
    int fd;
    switch (request->xml.kind) {
    case LOG_TO_FILE:
        return open_file(pid);
    case LOG_TO_SOCKET:
        fd = log_connect(request->xml.place);
        if (fd < 0)
            log_complain("cannot reach an XML listener at %s", request->xml.place);
        return fd;
    case LOG_TO_FD:
        break;
    }
    fd = fd_move_high(fcntl(request->xml.fd, F_DUPFD_CLOEXEC, 3));
    if (fd < 0)
        log_complain("--xml-fd=%d: %s; open it first, as in %d>FILE", request->xml.fd,
                     strerror(errno), request->xml.fd);
    return fd;
}

static struct document *add(int pid, int fd) {
    documents = base_reallocate(documents, (document_count + 1) * sizeof *documents);
    documents[document_count] = (struct document){.pid = pid, .fd = fd};
    return &documents[document_count++];
}

bool xml_open(const struct supervisor_request *of, int pid) {
    request = of;
    if (!request->xml.wanted)
        return true;
    int fd = open_place(pid);
    if (fd >= 0)
        add(pid, fd);
    return fd >= 0;
}

static struct document *document_of(int pid) {
    for (size_t i = 0; i < document_count; i++)
        if (documents[i].pid == pid)
            return &documents[i];
    if (!document_count)
        return NULL;
    bool own = request->xml.kind == LOG_TO_FILE && template_has_pid(request->xml.place);
    return add(pid, own ? open_file(pid) : -1);
}

static void put(int fd, const struct text *text) {
    int error = text->size ? fd_write_all(fd, text->bytes, text->size) : 0;
    if (error && !broken)
        log_complain("cannot write XML: %s; it is incomplete; the run continues", strerror(error));
    broken |= error != 0;
}

void xml_put(int pid, const struct text *text) {
    struct document *document = document_of(pid);
    if (!document)
        return;
    if (document->fd >= 0)
        put(document->fd, text);
    else
        text_add(&document->held, text->bytes, text->size);
}

static void flush_held(void) {
    for (size_t i = 1; i < document_count; i++) {
        if (documents[i].fd < 0 && documents[i].complete && documents[0].complete) {
            put(documents[0].fd, &documents[i].held);
            text_clear(&documents[i].held);
        }
    }
}

void xml_drop(int pid) {
    if (!request || !request->xml.wanted)
        return;
    struct document *document = document_of(pid);
    if (!document)
        return;
    document->complete = true;
    flush_held();
}

void xml_close(void) {
    for (size_t i = 0; i < document_count; i++) {
        if (documents[i].fd >= 0)
            close(documents[i].fd);
        text_free(&documents[i].held);
    }
    free(documents);
    documents = NULL;
    document_count = 0;
}

// ---- the head ----------------------------------------------------------------------------------

// The variables of %q{NAME} in the file's name and their values; the list ends with NULL.
static const char **qualifiers(void) {
    const char **list = base_allocate(sizeof *list);
    size_t count = 0;
    const char *at = request->xml.kind == LOG_TO_FILE ? request->xml.place : "";
    while ((at = strstr(at, "%q{"))) {
        at += 3;
        const char *end = strchr(at, '}');
        if (!end)
            break;
        struct text name = {0};
        text_add(&name, at, (size_t)(end - at));
        list = base_reallocate(list, (count + 3) * sizeof *list);
        list[count + 1] = getenv(name.bytes) ? getenv(name.bytes) : "";
        list[count] = text_take(&name);
        count += 2;
        list[count] = NULL;
    }
    return list;
}

void xml_greet(int pid, int parent, const char *const *words, size_t count) {
    struct text lines[4] = {{0}};
    present_preamble(request, lines, words, count);
    const char *preamble[5] = {lines[0].bytes, lines[1].bytes, lines[2].bytes, lines[3].bytes};
    const char **command = base_allocate((count + 1) * sizeof *command);
    memcpy(command, words, count * sizeof *command);
    const char **names = qualifiers();
    struct xml_head head = {.preamble = preamble,
                            .pid = pid,
                            .parent = parent,
                            .tool = request->tool->name,
                            .comment = request->xml.comment,
                            .qualifiers = names,
                            .own_words = request->own_words,
                            .words = command};
    struct text text = {0};
    xml_begin(&text, &head);
    xml_status(&text, "RUNNING", log_milliseconds());
    xml_put(pid, &text);
    text_free(&text);
    for (size_t i = 0; names[i]; i += 2)
        free((char *)names[i]);
    free(names);
    free(command);
    for (size_t i = 0; i < 4; i++)
        text_free(&lines[i]);
}

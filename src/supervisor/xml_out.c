#include "supervisor/xml_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "base/vector.h"
#include "report/findings/xml.h"
#include "supervisor/job.h"
#include "supervisor/log.h"
#include "supervisor/present.h"
#include "supervisor/tool.h"
#include "wire/wire_supervisor.h"

// A document. Those that share the main process's file are held back until that is complete.
struct xml_document {
    int pid;
    int fd;
    bool complete;
    struct text held;
};

static int open_file(const struct supervisor_request *request, int pid) {
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

static int open_place(const struct supervisor_request *request, int pid) {
    int fd;
    switch (request->xml.kind) {
    case LOG_TO_FILE:
        return open_file(request, pid);
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

static struct xml_document *add(struct job *job, int pid, int fd) {
    struct xml_document *document = vector_push(job->documents, job->document_count);
    *document = (struct xml_document){.pid = pid, .fd = fd};
    return document;
}

bool xml_open(const struct supervisor_request *request, int pid) {
    if (!request->xml.wanted)
        return true;
    int fd = open_place(request, pid);
    if (fd >= 0)
        add(request->job, pid, fd);
    return fd >= 0;
}

int xml_descriptor(const struct supervisor_request *request) {
    const struct job *job = request->job;
    return job->document_count ? job->documents[0].fd : -1;
}

static struct xml_document *document_of(const struct supervisor_request *request, int pid) {
    struct job *job = request->job;
    for (size_t i = 0; i < job->document_count; i++)
        if (job->documents[i].pid == pid)
            return &job->documents[i];
    if (!job->document_count)
        return NULL;
    bool own = request->xml.kind == LOG_TO_FILE && template_has_pid(request->xml.place);
    return add(job, pid, own ? open_file(request, pid) : -1);
}

static void put(struct job *job, int fd, const struct text *text) {
    int error = text->size ? wire_board_write(fd, text->bytes, text->size) : 0;
    if (error && !job->xml_broken)
        log_complain("cannot write XML: %s; the run continues, and the XML stays incomplete",
                     strerror(error));
    job->xml_broken |= error != 0;
}

void xml_put(const struct supervisor_request *request, int pid, const struct text *text) {
    struct xml_document *document = document_of(request, pid);
    if (!document)
        return;
    if (document->fd >= 0)
        put(request->job, document->fd, text);
    else
        text_add(&document->held, text->bytes, text->size);
}

static void flush_held(struct job *job) {
    struct xml_document *documents = job->documents;
    for (size_t i = 1; i < job->document_count; i++) {
        if (documents[i].fd < 0 && documents[i].complete && documents[0].complete) {
            put(job, documents[0].fd, &documents[i].held);
            text_clear(&documents[i].held);
        }
    }
}

void xml_drop(const struct supervisor_request *request, int pid) {
    struct xml_document *document = request->xml.wanted ? document_of(request, pid) : NULL;
    if (!document)
        return;
    document->complete = true;
    flush_held(request->job);
}

void xml_close(const struct supervisor_request *request) {
    struct job *job = request->job;
    for (size_t i = 0; i < job->document_count; i++) {
        if (job->documents[i].fd >= 0)
            close(job->documents[i].fd);
        text_free(&job->documents[i].held);
    }
    free(job->documents);
    job->documents = NULL;
    job->document_count = 0;
}

// ---- the head ----------------------------------------------------------------------------------

// The variables of %q{NAME} in the file's name and their values; the list ends with NULL.
static const char **qualifiers(const struct supervisor_request *request) {
    const char **list = NULL;
    size_t count = 0;
    const char *at = request->xml.kind == LOG_TO_FILE ? request->xml.place : "";
    while ((at = strstr(at, "%q{"))) {
        at += 3;
        const char *end = strchr(at, '}');
        if (!end)
            break;
        struct text name = {0};
        text_add(&name, at, (size_t)(end - at));
        const char *value = getenv(name.bytes);
        *vector_push(list, count) = text_take(&name);
        *vector_push(list, count) = value ? value : "";
    }
    *vector_push(list, count) = NULL;
    return list;
}

void xml_greet(const struct supervisor_request *request, int pid, int parent,
               const char *const *words, size_t count) {
    struct text lines[4] = {{0}};
    present_preamble(request, lines, words, count);
    const char *preamble[5] = {lines[0].bytes, lines[1].bytes, lines[2].bytes, lines[3].bytes};
    const char **command = base_allocate((count + 1) * sizeof *command);
    memcpy(command, words, count * sizeof *command);
    const char **names = qualifiers(request);
    struct xml_head head = {.preamble = preamble,
                            .pid = pid,
                            .parent = parent,
                            .tool = request->tool->name,
                            .protocol = request->xml.protocol,
                            .comment = request->xml.comment,
                            .qualifiers = names,
                            .own_words = request->own_words,
                            .words = command};
    struct text text = {0};
    xml_begin(&text, &head);
    xml_status(&text, "RUNNING", log_milliseconds(request->job->log));
    xml_put(request, pid, &text);
    text_free(&text);
    for (size_t i = 0; names[i]; i += 2)
        free((char *)names[i]);
    free(names);
    free(command);
    for (size_t i = 0; i < 4; i++)
        text_free(&lines[i]);
}

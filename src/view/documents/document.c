#include "view/documents/document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/diagnose/diagnose.h"

#define START 4096 // bytes that tell the format

// In this order: a cachegrind.out may begin as a massif.out does, and collapsed stacks as anything.
static const struct document_format *const formats[] = {
    &document_recording, &document_callgrind, &document_cachegrind, &document_massif,
    &document_findings,  &document_dhat,      &document_folded,
};
#define FORMATS (sizeof formats / sizeof *formats)

// ---- opening ----

static const struct document_format *format_of(int fd) {
    char start[START];
    ssize_t size = pread(fd, start, sizeof start, 0);
    for (size_t i = 0; size > 0 && i < FORMATS; i++)
        if (formats[i]->is_one(start, (size_t)size))
            return formats[i];
    return NULL;
}

static char *not_known(void) {
    struct text text = {0};
    text_string(&text, "it is none of these: ");
    for (size_t i = 0; i < FORMATS; i++)
        text_format(&text, "%s%s", i ? ", " : "", formats[i]->help);
    return text_take(&text);
}

// Opening a pipe must not wait for somebody to write.
static int open_file(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static char *recognise(int fd, const struct document_format **format) {
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return base_copy(strerror(errno));
    if (!S_ISREG(status.st_mode))
        return base_copy("it is not a regular file");
    if (status.st_size == 0)
        return base_copy("it is empty");
    *format = format_of(fd);
    return *format ? NULL : not_known();
}

static char *read_document(struct document *document, int fd) {
    char *problem = recognise(fd, &document->format);
    return problem ? problem : document->format->read(document, fd);
}

char *document_refusal(const char *path) {
    const struct document_format *format = NULL;
    int fd = open_file(path);
    char *problem = recognise(fd, &format);
    if (fd >= 0)
        close(fd);
    return problem;
}

static void tell_opened(const struct document_watch *watch, int fd) {
    if (watch && watch->opened)
        watch->opened(watch->context, fd);
}

struct document *document_open(const char *path, struct document_window window,
                               const struct document_watch *watch) {
    struct document *document = base_allocate(sizeof *document);
    *document = (struct document){.path = base_copy(path), .window = window, .watch = watch};
    pthread_mutex_init(&document->lock, NULL);
    pthread_mutex_init(&document->reading, NULL);
    int fd = open_file(path);
    if (fd >= 0)
        tell_opened(watch, fd);
    document->problem = read_document(document, fd);
    tell_opened(watch, -1);
    document->watch = NULL;
    if (fd >= 0)
        close(fd);
    return document;
}

static void drop_tree(struct document_tree *slot) {
    if (slot->tree)
        calltree_free(slot->tree);
    free(slot->part);
    *slot = (struct document_tree){0};
}

void document_free(struct document *document) {
    for (size_t i = 0; i < DOCUMENT_TREES; i++)
        drop_tree(&document->trees[i]);
    if (document->format)
        document->format->free(document);
    if (document->diagnoses) {
        diagnoses_free(document->diagnoses);
        free(document->diagnoses);
    }
    pthread_mutex_destroy(&document->lock);
    pthread_mutex_destroy(&document->reading);
    free(document->problem);
    free(document->notice);
    free(document->path);
    free(document);
}

// ---- what is wrong ----

// With names of its own: the document's may be in use.
static char *diagnose_recording(const char *path, struct diagnoses *diagnoses) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_copy("the file cannot be read again");
    struct heap_file file;
    char *problem = heap_file_read_sums(fd, &file, NULL, NULL);
    if (!problem)
        problem = diagnose(fd, &file, diagnoses);
    heap_file_free(&file);
    close(fd);
    return problem;
}

const struct diagnoses *document_diagnoses(struct document *document, char **problem) {
    *problem = NULL;
    pthread_mutex_lock(&document->reading);
    if (!document->diagnoses) {
        struct diagnoses made = {0};
        if (document->format == &document_dhat)
            diagnose_dhat(document->dhat, &made);
        else
            *problem = diagnose_recording(document->path, &made);
        if (!*problem) {
            document->diagnoses = base_allocate(sizeof made);
            *document->diagnoses = made;
        } else {
            diagnoses_free(&made);
        }
    }
    pthread_mutex_unlock(&document->reading);
    return *problem ? NULL : document->diagnoses;
}

// ---- what is in it ----

int document_metric(struct document *document, const char *name) {
    if (!name)
        return document->metric_count ? 0 : -1;
    for (unsigned i = 0; i < document->metric_count; i++)
        if (strcmp(document->metrics[i].name, name) == 0)
            return (int)i;
    bool is_added = !document->problem && document->format && document->format->add_metric &&
                    document->format->add_metric(document, name);
    return is_added ? (int)document->metric_count - 1 : -1;
}

static bool is_same_part(const char *left, const char *right) {
    return left && right ? strcmp(left, right) == 0 : left == right;
}

static struct document_tree *find_tree(struct document *document, unsigned metric, unsigned shape,
                                       const char *part) {
    for (size_t i = 0; i < DOCUMENT_TREES; i++) {
        struct document_tree *slot = &document->trees[i];
        if (slot->tree && slot->metric == metric && slot->shape == shape &&
            is_same_part(slot->part, part))
            return slot;
    }
    return NULL;
}

static struct document_tree *oldest_slot(struct document *document) {
    struct document_tree *oldest = &document->trees[0];
    for (size_t i = 1; i < DOCUMENT_TREES; i++)
        if (document->trees[i].used < oldest->used)
            oldest = &document->trees[i];
    drop_tree(oldest);
    return oldest;
}

static struct calltree *make_tree(struct document *document, unsigned metric, unsigned shape) {
    if (!shape)
        return document->format->tree(document, metric);
    const struct calltree *plain = document_tree(document, metric, 0);
    return plain ? calltree_shaped(plain, shape, DOCUMENT_NODES_MAX) : NULL;
}

const struct calltree *document_kept_tree(struct document *document, unsigned metric,
                                          unsigned shape, const char *part) {
    struct document_tree *slot = find_tree(document, metric, shape, part);
    if (!slot)
        return NULL;
    slot->used = ++document->uses;
    return slot->tree;
}

const struct calltree *document_keep_tree(struct document *document, unsigned metric,
                                          unsigned shape, const char *part, struct calltree *tree) {
    struct document_tree *slot = oldest_slot(document);
    *slot = (struct document_tree){.tree = tree,
                                   .metric = metric,
                                   .shape = shape,
                                   .part = part ? base_copy(part) : NULL,
                                   .used = ++document->uses};
    return tree;
}

const struct calltree *document_tree(struct document *document, unsigned metric, unsigned shape) {
    if (document->problem || !document->format->tree || metric >= document->metric_count)
        return NULL;
    const struct calltree *kept = document_kept_tree(document, metric, shape, NULL);
    if (kept)
        return kept;
    struct calltree *tree = make_tree(document, metric, shape);
    return tree ? document_keep_tree(document, metric, shape, NULL, tree) : NULL;
}

bool document_has_view(const struct document *document, const char *view) {
    const char *const *views = document->problem ? NULL : document->format->views;
    for (; views && *views; views++)
        if (strcmp(*views, view) == 0)
            return true;
    return false;
}

const char *document_name(const struct document *document) {
    return heap_file_base(document->path);
}

void document_fact(const struct document_sink *sink, const char *label, uint64_t value,
                   const char *unit) {
    sink->take(sink->context,
               &(struct document_fact){.label = label, .value = value, .unit = unit});
}

void document_fact_text(const struct document_sink *sink, const char *label, const char *text) {
    sink->take(sink->context, &(struct document_fact){.label = label, .text = text, .unit = ""});
}

#include "report/heap/file.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PROCESS 1 // the only one there is in a recording

static void on_mapping(void *context, const struct heap_mapping *mapping) {
    struct symbols_identity identity = {
        .device = mapping->device,
        .inode = mapping->inode,
        .size = mapping->size,
        .changed_seconds = (int64_t)mapping->changed_seconds,
        .changed_nanoseconds = mapping->changed_nanoseconds,
    };
    symbols_map(context, PROCESS, mapping->start, mapping->end, mapping->offset, mapping->path,
                mapping->inode ? &identity : NULL);
}

static void on_code(void *context, const struct heap_code *code) {
    symbols_add_code(context, PROCESS, code->start, code->end, code->name, code->file, code->line);
}

bool heap_file_is_one(const char *start, size_t size) {
    size_t length = strlen(RECORDING_MAGIC);
    return size >= length && memcmp(start, RECORDING_MAGIC, length) == 0;
}

static void open_file(struct heap_file *file) {
    *file = (struct heap_file){0};
    file->symbols = symbols_new(
        &(struct symbols_options){.keep_unmapped = true, .plain_libc = true, .full_names = true});
    file->names = heap_names_new(file->symbols, PROCESS,
                                 &(struct heap_names_options){.depth = HEAP_FRAMES_MAX});
}

static char *read_to(int fd, struct heap_file *file, const struct heap_sink *sinks, size_t count) {
    return recording_read(fd, sinks, count, &file->info) ? NULL : base_copy(file->info.damage);
}

static char *read_all(int fd, struct heap_file *file, const struct heap_sink *sinks, size_t count) {
    struct heap_sink all[HEAP_FILE_SINKS + 2];
    if (count > HEAP_FILE_SINKS)
        abort();
    open_file(file);
    summary_sink(&file->summary, &all[0]);
    all[1] = (struct heap_sink){.context = file->symbols, .mapping = on_mapping, .code = on_code};
    for (size_t i = 0; i < count; i++)
        all[i + 2] = sinks[i];
    return read_to(fd, file, all, count + 2);
}

char *heap_file_read_sums(int fd, struct heap_file *file, struct timeline *timeline,
                          const struct heap_sink *watch) {
    struct heap_sink sinks[4];
    size_t count = timeline ? 3 : 2;
    open_file(file);
    summary_sink(&file->summary, &sinks[0]);
    sinks[1] = (struct heap_sink){.context = file->symbols, .mapping = on_mapping, .code = on_code};
    if (timeline)
        timeline_sink(timeline, &sinks[2]);
    file->is_indexed = recording_read_sums(fd, sinks, count, &file->summary, timeline, &file->info);
    if (file->is_indexed)
        return NULL;
    heap_file_free(file);
    if (timeline)
        *timeline = (struct timeline){0};
    if (watch)
        sinks[count++] = *watch;
    return read_all(fd, file, &sinks[2], count - 2);
}

char *heap_file_read(int fd, struct heap_file *file, const struct heap_sink *sinks, size_t count) {
    return count ? read_all(fd, file, sinks, count) : heap_file_read_sums(fd, file, NULL, NULL);
}

char *heap_file_read_through(int fd, struct heap_file *file, const struct heap_sink *sink,
                             struct heap_sink *own) {
    open_file(file);
    summary_sink(&file->summary, own);
    struct heap_sink all[] = {*sink,
                              {.context = file->symbols, .mapping = on_mapping, .code = on_code}};
    return read_to(fd, file, all, 2);
}

char *heap_file_follow(int fd, struct heap_file *file, const struct recording_wait *wait) {
    struct heap_sink sinks[2];
    open_file(file);
    summary_sink(&file->summary, &sinks[0]);
    sinks[1] = (struct heap_sink){.context = file->symbols, .mapping = on_mapping, .code = on_code};
    return recording_follow(fd, sinks, 2, &file->info, wait) ? NULL : base_copy(file->info.damage);
}

void heap_file_free(struct heap_file *file) {
    recording_info_free(&file->info);
    summary_free(&file->summary);
    // One that was never opened has neither.
    if (file->names)
        heap_names_free(file->names);
    if (file->symbols)
        symbols_free(file->symbols);
}

char *heap_file_notice(const struct heap_file *file) {
    const struct recording_info *info = &file->info;
    struct text text = {0};
    if (info->damage)
        text_format(&text, "%s; the result is of what comes before that", info->damage);
    else if (info->is_live)
        text_string(&text, "the recording is still being written: the result is of the run so far; "
                           "it may lack the last second");
    else if (!info->is_complete)
        text_string(&text, "the recording is cut off: Quern was ended before the program; the "
                           "result may lack the last second");
    else if (info->end.missed)
        text_format(&text, "%llu events could not be recorded",
                    (unsigned long long)info->end.missed);
    else
        return NULL;
    return text_take(&text);
}

const char *heap_file_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

// quern push: files to a store. A recording becomes one interval, its whole run; intervals are what
// a spool holds. Either may be pushed twice: the store has it once.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/ask.h"
#include "fleet/fleet.h"
#include "fleet/interval.h"
#include "fleet/spool.h"
#include "fleet/store.h"

struct sending {
    const struct store_kind *kind;
    struct store *store;
    const char *service, *version;
};

static char *push(struct sending *sending, struct batch *batch) {
    char *problem = NULL;
    sending->kind->push(sending->store, batch, true, &problem);
    batch_free(batch);
    return problem;
}

// The program is the first word of the command.
static struct identity identity_of(const struct sending *sending, const char *command) {
    size_t size = strcspn(command, " ");
    char *program = strndup(command, size);
    struct identity identity =
        identity_make(&(struct fleet_settings){.program = program ? program : "",
                                               .service = sending->service,
                                               .service_version = sending->version});
    free(program);
    return identity;
}

static char *push_recording(struct sending *sending, int fd) {
    struct follower follower = {.edition = 1};
    struct batch batch;
    char *problem = heap_file_read(fd, &follower.file, NULL, 0);
    const struct recording_process *process = &follower.file.info.process;
    if (problem || !process->command) {
        heap_file_free(&follower.file);
        return problem ? problem : base_copy("it does not say which process it is of");
    }
    struct identity identity = identity_of(sending, process->command);
    struct timespec began = {.tv_sec = (time_t)process->started}, ended = began;
    ended.tv_sec += (time_t)(follower.file.summary.time / 1000000000);
    ended.tv_nsec = (long)(follower.file.summary.time % 1000000000);
    follower.is_open = true;
    struct interval_maker *maker = interval_maker_new(process->pid, &identity, began);
    interval_make(maker, &follower, 0, true, ended, &batch);
    problem = push(sending, &batch);
    interval_maker_free(maker);
    identity_free(&identity);
    heap_file_free(&follower.file);
    return problem;
}

static char *push_interval(struct sending *sending, const char *path) {
    struct batch batch;
    if (!batch_read(&batch, AT_FDCWD, path))
        return base_copy(errno == EINVAL ? "it is damaged" : strerror(errno));
    char *problem = push(sending, &batch);
    if (!problem)
        unlink(path);
    return problem;
}

static char *push_file(struct sending *sending, const char *path) {
    size_t size = strlen(path), end = strlen(SPOOL_END);
    if (size > end && strcmp(path + size - end, SPOOL_END) == 0)
        return push_interval(sending, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_copy(strerror(errno));
    char *problem = push_recording(sending, fd);
    close(fd);
    return problem;
}

int send_files(char *const *words) {
    struct sending sending = {.service = ask_word(words, "service"),
                              .version = ask_word(words, "version")};
    int status = 0;
    sending.store = ask_open(words, "push", &sending.kind);
    if (!sending.store)
        return 1;
    for (; *words; words++) {
        if (strncmp(*words, "file=", 5) != 0)
            continue;
        struct text what = {0};
        char *problem = push_file(&sending, *words + 5);
        text_format(&what, "cannot push '%s'", *words + 5);
        if (problem)
            status = ask_fail(what.bytes, problem);
        text_free(&what);
    }
    sending.kind->close(sending.store);
    return status;
}

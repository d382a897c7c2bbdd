#include "supervisor/attached.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/hooks.h"
#include "supervisor/log.h"
#include "supervisor/tool.h"

// For threads that wait for room in their rings, or are about to write a last record.
#define LAST_ROUNDS 10
#define LAST_PAUSE  2000000 // nanoseconds

static void complain(const struct attached *attached, char *problem) {
    log_complain("cannot attach to process %d: %s", attached->load.pid, problem);
    free(problem);
}

static bool send_file(int wire, int fd) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    struct cmsghdr *gift = CMSG_FIRSTHDR(&packet);
    gift->cmsg_level = SOL_SOCKET;
    gift->cmsg_type = SCM_RIGHTS;
    gift->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(gift), &fd, sizeof fd);
    return sendmsg(wire, &packet, MSG_NOSIGNAL) == 1;
}

bool attached_start(struct attached *attached, struct launch *launch, const struct tool_run *run) {
    const struct supervisor_request *request = run->request;
    int wire = -1, yes = 1;
    char *problem = load_begin(&attached->load, launch->pid, request->attach_library, &wire);
    if (problem) {
        complain(attached, problem);
        return false;
    }
    int config = launch_config(request);
    bool is_fine = config >= 0 &&
                   setsockopt(wire, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
                   fcntl(wire, F_SETFL, O_NONBLOCK) == 0 && send_file(wire, config);
    int error = errno;
    if (config >= 0)
        close(config);
    launch->wire = wire;
    if (!is_fine)
        log_complain("cannot set up the run: %s", strerror(error));
    return is_fine;
}

static void say_pause(const struct attached *attached, const struct tool_run *run,
                      const char *done) {
    const struct load *load = &attached->load;
    if (!log_shows(run->log, 0))
        return;
    log_format(run->log, load->pid, LOG_USER,
               "%s process %d: it was stopped %u time%s, for %.1f ms at most", done, load->pid,
               load->stops, load->stops == 1 ? "" : "s", (double)load->pause / 1e6);
}

bool attached_begin(struct attached *attached, const struct tool_run *run) {
    struct wire_attach ready;
    char *problem = NULL;
    if (!load_look(&attached->load, &ready))
        return false; // its end is noticed elsewhere
    if (ready.state != WIRE_ATTACH_READY)
        problem = base_copy("the recorder in it is damaged");
    if (!problem)
        problem = load_patch(&attached->load, &ready, true);
    attached->is_recording = !problem;
    if (!problem)
        say_pause(attached, run, "Attached to");
    if (problem)
        complain(attached, problem);
    return attached->is_recording;
}

void attached_leave(struct attached *attached, const struct launch *launch, struct tool_run *run,
                    bool is_gone) {
    struct wire_attach ready;
    struct load *load = &attached->load;
    char *problem = NULL;
    if (attached->is_recording && !is_gone && load_look(load, &ready)) {
        load->pause = load->stops = 0;
        problem = load_patch(load, &ready, false);
        attached->is_recording = false;
        if (problem)
            complain(attached, problem);
        else
            say_pause(attached, run, "Detached from");
        for (int i = 0; i < LAST_ROUNDS; i++) {
            struct timespec time = {.tv_nsec = LAST_PAUSE};
            hooks_drain(run);
            nanosleep(&time, NULL);
        }
    }
    // Without this word, the recorder's thread ends as well, but leaves the scratch.
    char end = WIRE_ATTACH_END;
    if (!is_gone && !problem && load->cave_size == 0 && launch->wire >= 0)
        (void)!send(launch->wire, &end, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    load_end(load);
}

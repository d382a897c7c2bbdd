#include "supervisor/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervisor/followed.h"

#define GRACE_MS            5000
#define SECOND_INTERRUPT_MS 5000

void stop_after(struct stop *stop, long seconds) {
    if (seconds <= 0)
        return;
    stop->is_planned = true;
    stop->next_step = STOP_INTERRUPT;
    stop->deadline = clock_milliseconds() + (int64_t)seconds * 1000;
}

void stop_now(struct stop *stop) {
    stop->is_planned = true;
    if (stop->next_step == STOP_NOTHING)
        stop->next_step = STOP_INTERRUPT;
    stop->deadline = clock_milliseconds();
}

int stop_timeout(const struct stop *stop) {
    if (stop->next_step == STOP_NOTHING || stop->next_step == STOP_DONE)
        return -1;
    int64_t left = stop->deadline - clock_milliseconds();
    // Longer waits are cut short; waking up early does no harm.
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left + 1;
}

// A stopped process would only act on it when continued.
static void ask_to_end(const struct followed *process, int signal) {
    followed_signal(process, signal);
    followed_signal(process, SIGCONT);
}

static void signal_main(const struct stop *stop, int signal) {
    const struct followed_table *processes = stop->processes;
    const struct followed *process = followed_find(processes, stop->main_pid);
    if (process)
        ask_to_end(process, signal);
    for (size_t i = 0; !process && i < processes->count; i++)
        ask_to_end(processes->items[i], signal);
}

static void kill_all(const struct stop *stop) {
    for (size_t i = 0; i < stop->processes->count; i++) {
        const struct followed *process = stop->processes->items[i];
        if (!process->away || process->pid == stop->main_pid)
            followed_signal(process, SIGKILL);
    }
}

static void take_step(struct stop *stop) {
    switch (stop->next_step) {
    case STOP_INTERRUPT:
        signal_main(stop, SIGINT);
        stop->next_step = STOP_TERMINATE;
        break;
    case STOP_TERMINATE:
        signal_main(stop, SIGTERM);
        stop->next_step = STOP_KILL;
        break;
    case STOP_KILL:
        kill_all(stop);
        stop->next_step = STOP_DONE;
        break;
    case STOP_NOTHING:
    case STOP_DONE:
        break;
    }
    stop->deadline = clock_milliseconds() + GRACE_MS;
}

bool stop_is_next(const struct stop *stop) {
    return stop->next_step == STOP_INTERRUPT && stop_timeout(stop) == 0;
}

static bool is_reported_on(const struct followed_table *processes) {
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->ending)
            return true;
    return false;
}

void stop_tick(struct stop *stop) {
    if (stop_timeout(stop) != 0)
        return;
    if (stop->next_step == STOP_KILL && is_reported_on(stop->processes))
        stop->deadline = clock_milliseconds() + GRACE_MS;
    else
        take_step(stop);
}

// Programs that talk to a terminal character by character (editors, pagers, shells) take Ctrl+C as
// a command, often and in quick succession. It ends nothing there.
static bool terminal_is_interactive(void) {
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct termios mode;
    bool raw = tcgetattr(fd, &mode) == 0 && !(mode.c_lflag & ICANON);
    close(fd);
    return raw;
}

void stop_interrupted(struct stop *stop) {
    int64_t now = clock_milliseconds();
    bool again = stop->last_interrupt && now - stop->last_interrupt < SECOND_INTERRUPT_MS;
    stop->last_interrupt = now;
    if (!again || terminal_is_interactive())
        return;
    stop->is_planned = false;
    if (stop->next_step < STOP_TERMINATE)
        stop->next_step = STOP_TERMINATE;
    take_step(stop);
}

bool stop_was_planned(const struct stop *stop, int signal) {
    return stop->is_planned && ((signal == SIGINT && stop->next_step > STOP_INTERRUPT) ||
                                (signal == SIGTERM && stop->next_step > STOP_TERMINATE));
}

#include "supervisor/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/log.h"
#include "supervisor/followed.h"

#define GRACE_MS            5000
#define SECOND_INTERRUPT_MS 5000

enum step { STEP_NONE, STEP_INTERRUPT, STEP_TERMINATE, STEP_KILL, STEP_DONE };

static enum step next_step; // what happens at the deadline
static int64_t deadline;
static int64_t last_interrupt = -SECOND_INTERRUPT_MS;
static bool planned;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void stop_after(long seconds) {
    if (seconds <= 0)
        return;
    planned = true;
    next_step = STEP_INTERRUPT;
    deadline = now_ms() + (int64_t)seconds * 1000;
}

void stop_now(void) {
    planned = true;
    if (next_step == STEP_NONE)
        next_step = STEP_INTERRUPT;
    deadline = now_ms();
}

int stop_timeout(void) {
    if (next_step == STEP_NONE || next_step == STEP_DONE)
        return -1;
    int64_t left = deadline - now_ms();
    // Longer waits are cut short; waking up early does no harm.
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left + 1;
}

// A stopped process would only act on it when continued.
static void ask_to_end(const struct followed *process, int signal) {
    followed_signal(process, signal);
    followed_signal(process, SIGCONT);
}

static void signal_main(int main_pid, int signal) {
    const struct followed *process = followed_find(main_pid);
    if (process)
        ask_to_end(process, signal);
    for (size_t i = 0; !process && i < followed_count(); i++)
        ask_to_end(followed_at(i), signal);
}

static void take_step(int main_pid) {
    switch (next_step) {
    case STEP_INTERRUPT:
        signal_main(main_pid, SIGINT);
        next_step = STEP_TERMINATE;
        break;
    case STEP_TERMINATE:
        signal_main(main_pid, SIGTERM);
        next_step = STEP_KILL;
        break;
    case STEP_KILL:
        for (size_t i = 0; i < followed_count(); i++)
            if (!followed_at(i)->away || followed_at(i)->pid == main_pid)
                followed_signal(followed_at(i), SIGKILL);
        next_step = STEP_DONE;
        break;
    case STEP_NONE:
    case STEP_DONE:
        break;
    }
    deadline = now_ms() + GRACE_MS;
}

bool stop_is_next(void) {
    return next_step == STEP_INTERRUPT && stop_timeout() == 0;
}

static bool is_reported_on(void) {
    for (size_t i = 0; i < followed_count(); i++)
        if (followed_at(i)->ending)
            return true;
    return false;
}

void stop_tick(int main_pid) {
    if (stop_timeout() != 0)
        return;
    if (next_step == STEP_KILL && is_reported_on())
        deadline = now_ms() + GRACE_MS;
    else
        take_step(main_pid);
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

void stop_interrupted(int main_pid) {
    int64_t now = now_ms();
    bool again = now - last_interrupt < SECOND_INTERRUPT_MS;
    last_interrupt = now;
    if (!again || terminal_is_interactive())
        return;
    planned = false;
    if (next_step < STEP_TERMINATE)
        next_step = STEP_TERMINATE;
    take_step(main_pid);
}

bool stop_was_planned(int signal) {
    return planned && ((signal == SIGINT && next_step > STEP_INTERRUPT) ||
                       (signal == SIGTERM && next_step > STEP_TERMINATE));
}

#include "supervisor/job.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCH_NANOSECONDS 50000000

// The state letter of a process (R, S, T, Z, ...); 0 when there is none. The command's name may
// hold anything, so the letter is looked for behind the last parenthesis.
static char state_of(pid_t pid) {
    char path[32];
    char line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    if (size <= 0)
        return 0;
    line[size] = 0;
    char *end = strrchr(line, ')');
    return end && end[1] ? end[2] : 0;
}

// Lets a signal have its default effect here. Returns when it was to stop and is continued.
static void deliver_to_self(int signal) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t only;
    sigset_t before;
    sigaction(signal, &plain, NULL);
    sigemptyset(&only);
    sigaddset(&only, signal);
    kill(getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &only, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void hand_on(pid_t main_pid, const struct signalfd_siginfo *info) {
    if (info->ssi_code == SI_QUEUE) {
        union sigval value = {.sival_ptr = (void *)(uintptr_t)info->ssi_ptr};
        sigqueue(main_pid, (int)info->ssi_signo, value);
    } else {
        kill(main_pid, (int)info->ssi_signo);
    }
}

void job_signal(struct job *job, const struct signalfd_siginfo *info) {
    pid_t main_pid = job->main_pid;
    int signal = (int)info->ssi_signo;
    bool from_kernel = info->ssi_code > 0;
    pid_t sender = (pid_t)info->ssi_pid;
    if (signal == SIGCHLD)
        return;
    if (job->attached) {
        if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
            stop_now(&job->stop);
        return;
    }
    if (signal == SIGCONT) {
        // Where its time is over, what ends it must come first.
        if (state_of(main_pid) == 'T' && stop_timeout(&job->stop) != 0)
            kill(main_pid, SIGCONT);
    } else if (from_kernel) {
        if (signal == SIGINT)
            stop_interrupted(&job->stop);
        // Ctrl+Z while the target is stopped already: only the supervisor is left to stop.
        if (signal == SIGTSTP && state_of(main_pid) == 'T')
            job_stopped(job, SIGTSTP);
    } else if (sender != getpid() && !followed_find(&job->processes, sender)) {
        // What a followed process sent to its whole group has reached the target already.
        hand_on(main_pid, info);
    }
}

// Runs beside a stopped supervisor, which cannot see that the target goes on, or that its time is
// over.
static void watch(const struct job *job, pid_t supervisor) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == supervisor) {
        struct timespec time = {.tv_nsec = WATCH_NANOSECONDS};
        nanosleep(&time, NULL);
        if (state_of(supervisor) == 'T' &&
            (state_of(job->main_pid) != 'T' || stop_timeout(&job->stop) == 0))
            kill(supervisor, SIGCONT);
    }
    _exit(0);
}

void job_stopped(const struct job *job, int signal) {
    pid_t supervisor = getpid();
    pid_t watcher = fork();
    if (watcher == 0)
        watch(job, supervisor);
    if (signal == SIGSTOP)
        raise(SIGSTOP);
    else
        deliver_to_self(signal);
    if (watcher > 0) {
        kill(watcher, SIGKILL);
        waitpid(watcher, NULL, 0);
    }
}

_Noreturn void job_die_by(int signal) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    deliver_to_self(signal);
    _exit(128 + signal);
}

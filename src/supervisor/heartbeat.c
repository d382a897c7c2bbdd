#include "supervisor/heartbeat.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervisor/log.h"

void heartbeat_start(struct heartbeat *heartbeat, long seconds) {
    *heartbeat =
        (struct heartbeat){.interval_ms = seconds * 1000, .start_ms = clock_milliseconds()};
    heartbeat->next_ms = heartbeat->start_ms + heartbeat->interval_ms;
}

int heartbeat_timeout(const struct heartbeat *heartbeat) {
    if (!heartbeat->interval_ms)
        return -1;
    int64_t left = heartbeat->next_ms - clock_milliseconds();
    return left < 0 ? 0 : (int)left + 1;
}

// The CPU time in milliseconds and the threads of a process, from its line in /proc. False: it is
// gone.
static bool read_usage(int pid, int64_t *cpu_ms, long *threads) {
    char path[40], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[size] = 0;
    // The name may hold anything; what follows its last parenthesis is numbers.
    const char *rest = strrchr(line, ')');
    unsigned long user, system;
    if (!rest ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %ld",
               &user, &system, threads) != 3)
        return false;
    *cpu_ms = (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
    return true;
}

void heartbeat_step(struct heartbeat *heartbeat, struct log *log, int pid) {
    int64_t now = clock_milliseconds(), cpu_ms;
    long threads;
    if (!heartbeat->interval_ms || now < heartbeat->next_ms)
        return;
    heartbeat->next_ms = now + heartbeat->interval_ms;
    if (!read_usage(pid, &cpu_ms, &threads))
        return;
    int64_t wall = now - heartbeat->start_ms;
    log_format(log, pid, LOG_DEBUGGING, "PROGRESS: U %llds, W %llds, %.1f%% CPU, %ld thread%s",
               (long long)cpu_ms / 1000, (long long)wall / 1000,
               100.0 * (double)cpu_ms / (double)wall, threads, threads == 1 ? "" : "s");
}

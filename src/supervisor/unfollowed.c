#include "supervisor/unfollowed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORTH_SECONDS 0.2 // of CPU time; less is no work

void unfollowed_read(pid_t pid, struct unfollowed *unfollowed) {
    char path[64], line[1024];
    *unfollowed = (struct unfollowed){0};
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[size] = '\0';
    // The name may contain anything, parentheses too.
    const char *name = strchr(line, '('), *end = strrchr(line, ')');
    if (!name || !end || end < name)
        return;
    snprintf(unfollowed->name, sizeof unfollowed->name, "%.*s", (int)(end - name - 1), name + 1);
    unsigned long user, kernel;
    long waited_user, waited_kernel;
    if (sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &user,
               &kernel, &waited_user, &waited_kernel) != 4)
        return;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    unfollowed->own = (double)(user + kernel) / ticks;
    unfollowed->others = (double)(waited_user + waited_kernel) / ticks;
}

bool unfollowed_had_the_work(const struct unfollowed *unfollowed) {
    return unfollowed->others >= WORTH_SECONDS && unfollowed->others > unfollowed->own;
}

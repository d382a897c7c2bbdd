// posix_spawn with file actions and attributes, its reports of failure; system and popen.
#include "stress.h"
#include <fcntl.h>
#include <spawn.h>

extern char **environ;

static int spawn(const char *path, char *const argv[], posix_spawn_file_actions_t *actions,
                 posix_spawnattr_t *attributes) {
    pid_t pid;
    int error = posix_spawn(&pid, path, actions, attributes, argv, environ);
    if (error) {
        printf("%s: %s\n", path, strerror(error));
        return -1;
    }
    return stress_wait(pid);
}

int main(void) {
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)"echo spawned; exit 3", NULL};
    setbuf(stdout, NULL);
    printf("%x\n", (unsigned)spawn("/bin/sh", arguments, NULL, NULL));
    printf("%d\n", spawn("/nonexistent", arguments, NULL, NULL));
    printf("%d\n", spawn("/etc/passwd", arguments, NULL, NULL));
    printf("%d\n", spawn("/tmp", arguments, NULL, NULL));

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int fds[2];
    char text[64];
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addopen(&actions, 9, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init(&attributes);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    char *grep[] = {(char *)"grep", (char *)"SigBlk", (char *)"/proc/self/status", NULL};
    char *readlink[] = {(char *)"readlink", (char *)"/proc/self/fd/9", NULL};
    printf("%x\n", (unsigned)spawn("/bin/grep", grep, &actions, &attributes));
    printf("%x\n", (unsigned)spawn("/bin/readlink", readlink, &actions, &attributes));
    close(fds[1]);
    long n = 0, total = 0;
    while ((n = read(fds[0], text + total, sizeof(text) - 1 - (size_t)total)) > 0)
        total += n;
    text[total] = 0;
    printf("read: %s", text);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 8, "/nonexistent", O_RDONLY, 0);
    printf("%d\n", spawn("/bin/sh", arguments, &actions, NULL));

    printf("system %x\n", (unsigned)system("exit 9"));
    printf("system %x\n", (unsigned)system("kill -9 $$"));
    printf("system %d\n", system(NULL) != 0);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "echo $((%d * %d)); exit %d", i, i, i);
        FILE *f = popen(text, "r");
        CHECK(f && fgets(text, sizeof(text), f));
        int status = pclose(f);
        printf("%d %x %s", i, (unsigned)status, text);
    }
    FILE *f = popen("cat", "w");
    fputs("through cat\n", f);
    printf("%x\n", (unsigned)pclose(f));
    return 0;
}

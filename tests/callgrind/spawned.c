// Children that share their parent's memory until they execute a program.
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void await(pid_t child) {
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        exit(1);
}

__attribute__((noinline)) static void by_vfork(char **words) {
    pid_t child = vfork();
    if (!child) {
        execv(words[0], words);
        _exit(1);
    }
    await(child);
}

__attribute__((noinline)) static void by_spawn(char **words) {
    pid_t child;
    if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0)
        exit(1);
    await(child);
}

int main(void) {
    char *words[] = {"/bin/true", NULL};
    for (int i = 0; i < 3; i++) {
        by_vfork(words);
        by_spawn(words);
    }
}

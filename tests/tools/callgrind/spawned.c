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

__attribute__((noinline)) static void work(int rounds) {
    for (volatile int i = 0; i < rounds; i++)
        ;
}

__attribute__((noinline)) static void work_in_child(int rounds) {
    work(rounds);
}

__attribute__((noinline)) static void by_vfork(char **words) {
    pid_t child = vfork();
    if (!child) {
        work_in_child(100);
        if (words)
            execv(words[0], words);
        _exit(words != NULL);
    }
    work(10);
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
        by_vfork(NULL);
        by_spawn(words);
    }
}

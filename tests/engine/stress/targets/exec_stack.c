// Where the first stack pointer lies within its page, for environments and arguments of different
// sizes, without randomisation: as the kernel puts it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void show(char **arguments) {
    unsigned long entry = (unsigned long)(arguments - 1);
    size_t variables = 0;
    while (environ[variables])
        variables++;
    printf("%#lx with %ld arguments, %zu variables\n", entry & 4095, *(long *)entry, variables);
}

static void execute(const char *path, int count, int length) {
    char value[64] = "NAME=";
    char *variables[] = {value, "OTHER=1", "THIRD=2", NULL};
    char *arguments[] = {"exec_stack", "show", "one", "two", NULL};
    memset(value + 5, 'x', (size_t)length);
    variables[1 + length % 3] = NULL;
    arguments[2 + count] = NULL;
    execve(path, arguments, variables);
    perror("execve");
    _exit(1);
}

int main(int count, char **words) {
    if (count > 1) {
        show(words);
        return 0;
    }
    if (personality(ADDR_NO_RANDOMIZE) < 0) {
        puts("not permitted");
        return 0;
    }
    for (int i = 0; i < 48; i++) {
        int status;
        if (fork() == 0)
            execute(words[0], i % 3, i);
        wait(&status);
        if (status)
            return 1;
    }
    return 0;
}

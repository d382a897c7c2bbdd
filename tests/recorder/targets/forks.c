// Children that allocate and end in several ways; the parent's heap must not show it.
// Prints the children's pids.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    void *mine = malloc(50000);
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            void *block = NULL;
            for (int j = 0; j < 1000; j++)
                block = realloc(block, 1000 * (j + 1));
            free(block);
            if (i % 2)
                free(mine);
            if (i < 2)
                _exit(0);
            exit(0);
        }
        printf("%d\n", child);
        fflush(stdout);
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    if (system("exit 3") != 3 << 8)
        return 1;
    free(mine);
    return 0;
}

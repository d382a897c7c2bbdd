// Runs with standard input, output and error closed, and says by its status that all went well.
#include "stress.h"
#include <fcntl.h>

int main(void) {
    puts("before closing");
    fflush(stdout);
    close(0);
    close(1);
    close(2);
    int fd = open("/dev/null", O_RDWR);
    if (fd != 0)
        return 2;
    if (open("/dev/null", O_RDWR) != 1 || open("/dev/null", O_RDWR) != 2)
        return 3;
    close(0);
    close(1);
    close(2);
    pid_t pid = fork();
    if (pid == 0)
        _exit(write(1, "x", 1) == -1 && errno == EBADF ? 4 : 5);
    int status;
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 4)
        return 6;
    return 44;
}

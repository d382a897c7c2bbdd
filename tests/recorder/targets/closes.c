// Closes every descriptor it did not open, then opens files of its own in their numbers and
// allocates more than a ring holds: nothing may be written into them.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    for (int fd = 3; fd < 70000; fd++)
        close(fd);
    int fds[200];
    for (int i = 0; i < 200; i++)
        fds[i] = open("mine", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 200; i++)
        dup2(fds[0], 1000 + i);
    for (int i = 0; i < 100000; i++)
        free(malloc(100));
    pid_t child = fork();
    if (child == 0)
        free(malloc(10)), _exit(0);
    return lseek(fds[0], 0, SEEK_END) != 0;
}

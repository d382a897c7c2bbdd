// Prints what a recorded program and its children can see of the recorder: environment and
// descriptors.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "LD_PRELOAD", 10) == 0 || strncmp(*entry, "QUERN_R", 7) == 0)
            printf("%s\n", *entry);
    if (argc > 1) {
        int count = 0;
        DIR *folder = opendir("/proc/self/fd");
        while (readdir(folder))
            count++;
        printf("%d descriptors\n", count - 3);
        return 0;
    }
    fflush(stdout);
    execl(argv[0], argv[0], "again", NULL);
    return 1;
}

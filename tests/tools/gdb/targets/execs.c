// Becomes itself again as often as its argument says, then ends with status 4.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char left[16];
    int count = argc > 1 ? atoi(argv[1]) : 0;
    if (!count)
        return 4;
    snprintf(left, sizeof left, "%d", count - 1);
    execl("/proc/self/exe", argv[0], left, (char *)NULL);
    return 1;
}

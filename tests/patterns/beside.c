// Preloaded beside a pattern: fails, or lets every run but the first take a second longer.
#include <string.h>
#include <time.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(int count, char **words) {
    if (count < 2 || !strstr(words[0], "quern-patterns") || words[1][0] == '-')
        return;
    if (FAILS)
        _exit(3);
    if (access(MARK, F_OK) == 0)
        while (clock() < CLOCKS_PER_SEC)
            ;
    symlink("/", MARK);
}

// 10,000 environment strings and a thousand arguments through exec.
#include "stress.h"

extern char **environ;

int main(int argc, char **argv) {
    if (argc > 1) {
        uint64_t h = 0;
        long n = 0;
        for (char **e = environ; *e; e++, n++)
            for (char *p = *e; *p; p++)
                h = stress_mix(h, (uint64_t)*p);
        for (int i = 1; i < argc; i++)
            h = stress_mix(h, (uint64_t)atoi(argv[i]));
        printf("%ld strings %d arguments %016llx\n", n, argc, (unsigned long long)h);
        CHECK(strcmp(getenv("VARIABLE_9999"), "value 9999") == 0);
        setenv("VARIABLE_5", "changed", 1);
        return system("test \"$VARIABLE_5\" = changed && test \"$VARIABLE_77\" = 'value 77'") >> 8;
    }
    static char text[10000][32], number[1000][8];
    static char *strings[10001], *arguments[1002];
    for (int i = 0; i < 10000; i++) {
        snprintf(text[i], sizeof(text[i]), "VARIABLE_%d=value %d", i, i);
        strings[i] = text[i];
    }
    arguments[0] = argv[0];
    for (int i = 1; i <= 1000; i++) {
        snprintf(number[i - 1], sizeof(number[0]), "%d", i);
        arguments[i] = number[i - 1];
    }
    execve("/proc/self/exe", arguments, strings);
    return 1;
}

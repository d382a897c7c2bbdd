// Runs the case that is named; without a name, lists them.
#include "cases.h"

#include <stdio.h>
#include <string.h>

volatile long sink;

int main(int count, char **words) {
    const struct test_case *themes[] = {blocks_cases, library_cases, instructions_cases,
                                        processes_cases};
    for (size_t i = 0; i < sizeof themes / sizeof *themes; i++) {
        for (const struct test_case *each = themes[i]; each->name; each++) {
            if (count == 1)
                puts(each->name);
            else if (strcmp(each->name, words[1]) == 0)
                each->run();
        }
    }
    return 0;
}

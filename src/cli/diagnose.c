#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/verbs.h"
#include "report/diagnose.h"

static const char usage[] = "usage: quern diagnose FILE...\n"
                            "Says what is wrong with a program's memory, and what to do. FILE is a "
                            "recording of --tool=heap.\n"
                            "A run of a second or more under its usual load tells most.\n";

enum { STATUS_FAILED = 1, STATUS_USAGE = 2 };

static char *diagnose_file(int fd) {
    struct heap_file file;
    struct diagnoses diagnoses = {0};
    char *problem = heap_file_read(fd, &file, NULL, 0);
    if (!problem)
        problem = diagnose(fd, &file, &diagnoses);
    if (!problem) {
        char *notice = heap_file_notice(&file);
        if (notice)
            printf("%s\n", notice);
        free(notice);
        diagnoses_print(stdout, &diagnoses, &file, DIAGNOSIS_CALLERS);
    }
    diagnoses_free(&diagnoses);
    heap_file_free(&file);
    return problem;
}

int verb_diagnose(char **words) {
    int status = 0;
    if (words[0] && (strcmp(words[0], "-h") == 0 || strcmp(words[0], "--help") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (!words[0]) {
        fputs(usage, stderr);
        return STATUS_USAGE;
    }
    for (char **path = words; *path; path++) {
        int fd = open(*path, O_RDONLY | O_CLOEXEC);
        char *problem = fd < 0 ? base_copy(strerror(errno)) : NULL;
        if (words[1])
            printf("%s%s:\n", path == words ? "" : "\n", *path);
        if (!problem)
            problem = diagnose_file(fd);
        if (problem) {
            fprintf(stderr, "quern: %s: %s\n", *path, problem);
            status = STATUS_FAILED;
        }
        free(problem);
        if (fd >= 0)
            close(fd);
    }
    return status;
}

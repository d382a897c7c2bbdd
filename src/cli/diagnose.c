// quern diagnose FILE...: reports problems in the use of memory.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/diagnose/diagnose.h"

static char *diagnose_usage_of(FILE *in) {
    struct dhat_file file;
    char *problem = dhat_file_read(in, &file);
    struct diagnoses diagnoses = {0};
    if (!problem && !file.bkacc) {
        puts("This file does not record reads and writes.");
    } else if (!problem) {
        diagnose_dhat(&file, &diagnoses);
        diagnoses_print(stdout, &diagnoses, DIAGNOSIS_CALLERS);
    }
    diagnoses_free(&diagnoses);
    dhat_file_free(&file);
    return problem;
}

static char *diagnose_recording(int fd, bool *partial) {
    struct heap_file file;
    struct diagnoses diagnoses = {0};
    char *problem = heap_file_read(fd, &file, NULL, 0);
    if (!problem)
        problem = diagnose(fd, &file, &diagnoses);
    if (!problem) {
        char *notice = heap_file_notice(&file);
        if (notice)
            printf("%s\n", notice);
        *partial |= notice != NULL;
        free(notice);
        diagnoses_print(stdout, &diagnoses, DIAGNOSIS_CALLERS);
    }
    diagnoses_free(&diagnoses);
    heap_file_free(&file);
    return problem;
}

// Closes the descriptor. Sets *partial if the file does not hold the whole run.
static char *diagnose_file(int fd, bool *partial) {
    char start[64];
    ssize_t size = pread(fd, start, sizeof start, 0);
    char *problem = NULL;
    if (size < 0)
        problem = base_copy(strerror(errno));
    else if (size == 0)
        problem = base_copy("it is empty");
    if (!problem && dhat_file_is_one(start, (size_t)size)) {
        FILE *in = fdopen(fd, "r");
        problem = in ? diagnose_usage_of(in) : base_copy(strerror(errno));
        if (in)
            fclose(in);
        return problem;
    }
    if (!problem && !heap_file_is_one(start, (size_t)size))
        problem = base_copy("it is neither a recording of --tool=heap nor a dhat.out");
    if (!problem)
        problem = diagnose_recording(fd, partial);
    close(fd);
    return problem;
}

static int run_diagnose(const struct arguments *arguments) {
    words_choose_own(arguments);
    int status = WORDS_DONE;
    bool partial = false;
    for (size_t i = 0; i < arguments->operand_count; i++) {
        const char *path = arguments->operands[i];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        char *problem = fd < 0 ? base_copy(strerror(errno)) : NULL;
        if (arguments->operand_count > 1)
            printf("%s%s:\n", i ? "\n" : "", path);
        if (!problem)
            problem = diagnose_file(fd, &partial);
        if (problem)
            status = words_fail("cannot read '%s': %s", path, problem);
        free(problem);
    }
    return status ? status : partial ? WORDS_PARTIAL : WORDS_DONE;
}

static const struct option options[] = {
    WORDS_MINE,
    {0},
};

const struct verb verb_diagnose = {
    .name = "diagnose",
    .usage = "[options] FILE...",
    .help = "report problems in the use of memory",
    .description = "Reports problems in a program's use of memory, and what to do about them. FILE "
                   "is a recording of --tool=heap or a dhat.out. A run of at least a second under "
                   "the usual load gives the best results.",
    .options = options,
    .operands_least = 1,
    .run = run_diagnose,
};

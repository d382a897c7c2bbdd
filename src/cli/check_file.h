// The files that `quern check` judges: the numbers that limits are compared with, and findings.
//
// Any format that quern view opens may be given. A recording is read a second time only if a limit
// needs its growth or its diagnosis. Supervisor's side, no target runs.
#ifndef QUERN_CLI_CHECK_FILE_H
#define QUERN_CLI_CHECK_FILE_H

#include "report/results/budgets.h"
#include "report/diagnose/diagnose.h"
#include "report/results/results.h"

struct check_needs {
    bool growth;    // needs a second reading
    bool diagnosis; // needs a second reading too
};

struct check_file {
    struct budget_numbers numbers;
    struct diagnoses diagnoses;
    bool is_diagnosed; // whether its format permits a diagnosis
    size_t found;      // errors and leaks of memcheck's XML, added to the results
    char *notice;      // for example that it is cut off; NULL: none
};

// Reads the file and adds errors and leaks to the results. NULL, or the problem, to be freed.
char *check_file_read(const char *path, const struct check_needs *, struct results *,
                      struct check_file *);
void check_file_free(struct check_file *);

#endif

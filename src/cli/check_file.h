// What quern check reads: the numbers that limits are compared with, and findings, of any file that
// knows some.
#ifndef QUERN_CLI_CHECK_FILE_H
#define QUERN_CLI_CHECK_FILE_H

#include "report/results/budgets.h"
#include "report/diagnose/diagnose.h"
#include "report/results/results.h"

struct check_wish {
    bool growth;    // it takes a second reading
    bool diagnosis; // so does that
};

struct check_file {
    struct budget_numbers numbers;
    struct diagnoses diagnoses;
    bool is_diagnosed; // its format can be
    size_t found;      // errors and leaks of memcheck's XML that were added to the results
    char *notice;      // it is cut off, say; NULL: nothing
};

// Reads the file; errors and leaks go to the results. NULL, or what is wrong, to be freed.
char *check_file_read(const char *path, const struct check_wish *, struct results *,
                      struct check_file *);
void check_file_free(struct check_file *);

#endif

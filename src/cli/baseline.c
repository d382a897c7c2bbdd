// quern baseline: collects known findings in a file.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/results/results.h"

static int update(const char *path, const char *const *files) {
    struct baseline *baseline = baseline_new();
    for (size_t i = 0; files[i]; i++) {
        char *error = baseline_add_findings(baseline, files[i]);
        if (error) {
            words_fail("%s", error);
            free(error);
            baseline_free(baseline);
            return WORDS_FAILED;
        }
    }
    FILE *out = fopen(path, "we");
    uint64_t count = out ? baseline_write(out, baseline) : 0;
    bool failed = !out || ferror(out);
    baseline_free(baseline);
    if ((out && fclose(out) != 0) || failed)
        return words_fail("cannot write '%s': %s", path, strerror(errno));
    printf("%s: %" PRIu64 " findings are known\n", path, count);
    return 0;
}

static int run_baseline(const struct arguments *arguments) {
    if (strcmp(arguments->operands[0], "update") != 0)
        return help_usage_error(&verb_baseline);
    return update(arguments->operands[1], arguments->operands + 2);
}

const struct verb verb_baseline = {
    .name = "baseline",
    .usage = "update BASELINE FINDINGS.json...",
    .help = "write the findings of --json-file to a baseline of known ones",
    .description = "Writes to BASELINE all findings of runs with --json-file=FINDINGS.json. Runs "
                   "with --baseline=BASELINE ignore these findings for --error-exitcode.",
    .operands_least = 3,
    .run = run_baseline,
};

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "cli/words.h"
#include "report/results/results.h"

static const char usage[] = "usage: quern baseline update BASELINE FINDINGS.json...\n"
                            "Makes BASELINE of what runs with --json-file=FINDINGS.json have "
                            "found. With --baseline=BASELINE\n"
                            "only findings that are not in it count for --error-exitcode.\n";

static int update(const char *path, char **files) {
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

int verb_baseline(char **words) {
    if (words_ask_help(words)) {
        fputs(usage, stdout);
        return 0;
    }
    for (char **word = words; *word; word++)
        if ((*word)[0] == '-')
            return words_fail("unknown option '%s'; quern baseline --help says what there is",
                              *word);
    if (!words[0] || strcmp(words[0], "update") != 0 || !words[1] || !words[2]) {
        fputs(usage, stderr);
        return WORDS_FAILED;
    }
    return update(words[1], words + 2);
}

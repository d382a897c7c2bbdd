// quern ctl PID WISH: asks a run that goes on for something.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "cli/words.h"
#include "base/control.h"

static int usage(FILE *out, int status) {
    fputs("usage: quern ctl PID WISH\n\n"
          "PID is the number that stands in front of the log's lines, of the first process.\n\n"
          "  status      the tool, and how far it is\n"
          "  stop        end the program politely, as --duration does, and report\n"
          "  dump [WHY]  write what callgrind or cachegrind has counted since the last dump\n"
          "  zero        start counting from nought\n"
          "  off, on     callgrind: stop counting, flame: stop sampling; and go on\n"
          "  snapshot    massif: take a detailed snapshot and write all there are; heap: write\n"
          "              everything recorded so far\n"
          "  leaks       heap, massif: look for blocks that nobody points to any more\n",
          out);
    return status;
}

int verb_ctl(char **words) {
    char *end;
    static char answer[65536];
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    if (!words[0] || !words[1])
        return usage(stderr, WORDS_FAILED);
    long pid = strtol(words[0], &end, 10);
    if (*end || pid <= 0 || pid > 1 << 30)
        return words_fail("'%s' is not the number of a process", words[0]);
    struct text wish = {0};
    for (char **word = words + 1; *word; word++)
        text_format(&wish, "%s%s", word == words + 1 ? "" : " ", *word);
    if (wish.size >= CONTROL_MOST) {
        text_free(&wish);
        return words_fail("that is too long");
    }
    int failure = control_ask((int)pid, wish.bytes, answer, sizeof answer);
    text_free(&wish);
    if (failure == ENOENT || failure == ECONNREFUSED)
        return words_fail("process %ld does not run under Quern, or not as the first one", pid);
    if (failure)
        return words_fail("no answer from the run of process %ld: %s", pid, strerror(failure));
    if (strncmp(answer, "ok", 2) != 0)
        return words_fail("%s", answer);
    if (answer[2])
        puts(answer + 3);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

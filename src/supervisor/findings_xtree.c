// --xtree-leak: the losses of the search at the end of a process, as a file.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/template.h"
#include "report/xtree.h"
#include "supervisor/findings_parts.h"
#include "supervisor/followed.h"
#include "supervisor/log.h"

// What there is now, then how much more and how much less it is than in the search before.
enum { NOW = 9, EVENTS = 3 * NOW };

static const struct xtree_event events[EVENTS] = {
    {"RB", "Reachable Bytes"},
    {"PB", "Possibly lost Bytes"},
    {"IB", "Indirectly lost Bytes"},
    {"DB", "Definitely lost Bytes (direct plus indirect)"},
    {"DIB", "Definitely Indirectly lost Bytes (subset of DB)"},
    {"RBk", "reachable Blocks"},
    {"PBk", "Possibly lost Blocks"},
    {"IBk", "Indirectly lost Blocks"},
    {"DBk", "Definitely lost Blocks"},
    {"iRB", "increase Reachable Bytes"},
    {"iPB", "increase Possibly lost Bytes"},
    {"iIB", "increase Indirectly lost Bytes"},
    {"iDB", "increase Definitely lost Bytes"},
    {"iDIB", "increase Definitely Indirectly lost Bytes"},
    {"iRBk", "increase reachable Blocks"},
    {"iPBk", "increase Possibly lost Blocks"},
    {"iIBk", "increase Indirectly lost Blocks"},
    {"iDBk", "increase Definitely lost Blocks"},
    {"dRB", "decrease Reachable Bytes"},
    {"dPB", "decrease Possibly lost Bytes"},
    {"dIB", "decrease Indirectly lost Bytes"},
    {"dDB", "decrease Definitely lost Bytes"},
    {"dDIB", "decrease Definitely Indirectly lost Bytes"},
    {"dRBk", "decrease reachable Blocks"},
    {"dPBk", "decrease Possibly lost Blocks"},
    {"dIBk", "decrease Indirectly lost Blocks"},
    {"dDBk", "decrease Definitely lost Blocks"},
};

static void set(uint64_t values[EVENTS], unsigned event, uint64_t now, uint64_t before) {
    values[event] = now;
    values[NOW + event] = now > before ? now - before : 0;
    values[2 * NOW + event] = now < before ? before - now : 0;
}

static void add(struct xtree *tree, const struct loss *loss) {
    static const unsigned places[LOSS_KINDS] = {
        [LOSS_REACHABLE] = 0, [LOSS_POSSIBLE] = 1, [LOSS_INDIRECT] = 2, [LOSS_DEFINITE] = 3};
    const struct wire_loss *facts = &loss->facts;
    uint64_t values[EVENTS] = {0};
    unsigned place = places[facts->kind];
    set(values, place, facts->bytes + facts->indirect_bytes,
        facts->old_bytes + facts->old_indirect_bytes);
    set(values, 5 + place, facts->blocks, facts->old_blocks);
    if (facts->kind == LOSS_DEFINITE)
        set(values, 4, facts->indirect_bytes, facts->old_indirect_bytes);
    xtree_add(tree, &loss->stack, values);
}

static char *command_of(int pid) {
    const struct followed *process = followed_find(pid);
    struct text command = {0};
    if (process && process->command)
        return base_copy(process->command);
    for (char *const *word = findings.request->argv; *word; word++)
        text_format(&command, "%s%s", word == findings.request->argv ? "" : " ", *word);
    return text_take(&command);
}

static bool write_file(const char *path, const struct text *content) {
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool fine = fwrite(content->bytes, 1, content->size, file) == content->size;
    return fclose(file) == 0 && fine;
}

static void write_and_tell(struct errors *errors, const struct text *content) {
    char *reason = NULL;
    char *path = template_expand(FINDINGS_SETTINGS->xtree_leak, errors->pid, 0, &reason);
    struct text line = {0};
    char folder[4096];
    if (!path)
        text_format(&line, "xtree leak report: %s: %s", FINDINGS_SETTINGS->xtree_leak, reason);
    else if (!write_file(path, content))
        text_format(&line, "xtree leak report: cannot write %s: %s", path, strerror(errno));
    else if (path[0] != '/' && getcwd(folder, sizeof folder))
        text_format(&line, "xtree leak report: %s/%s", folder, path);
    else
        text_format(&line, "xtree leak report: %s", path);
    findings_say(errors, line.bytes);
    text_free(&line);
    free(path);
    free(reason);
}

void leaks_write_xtree(struct errors *errors) {
    char *command = command_of(errors->pid);
    struct xtree tree = {.events = events,
                         .event_count = EVENTS,
                         .compress_strings = FINDINGS_SETTINGS->xtree_compress,
                         .command = command,
                         .pid = errors->pid};
    struct text content = {0};
    for (size_t i = 0; i < errors->search.count; i++)
        if (!errors->search.losses[i].facts.is_quiet) // else it is suppressed
            add(&tree, &errors->search.losses[i]);
    xtree_write(&tree, &content);
    write_and_tell(errors, &content);
    xtree_free(&tree);
    text_free(&content);
    free(command);
}

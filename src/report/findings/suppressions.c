#include "report/findings/suppressions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/text.h"
#include "report/findings/named_finding.h"
#include "report/findings/suppressions_parts.h"

struct suppressions *suppressions_new(void) {
    return suppressions_new_for("Memcheck");
}

struct suppressions *suppressions_new_for(const char *tool) {
    struct suppressions *suppressions = base_allocate(sizeof *suppressions);
    suppressions->tool = tool;
    return suppressions;
}

void suppressions_entry_free(struct entry *entry) {
    for (size_t i = 0; i < entry->location_count; i++)
        free(entry->locations[i].pattern);
    free(entry->locations);
    free(entry->shown.name);
    free(entry->shown.file);
    free(entry->kind);
    free(entry->parameter);
    free(entry);
}

void suppressions_free(struct suppressions *suppressions) {
    while (suppressions && suppressions->first) {
        struct entry *entry = suppressions->first;
        suppressions->first = entry->next;
        suppressions_entry_free(entry);
    }
    free(suppressions);
}

size_t suppressions_count(const struct suppressions *suppressions) {
    size_t count = 0;
    for (const struct entry *entry = suppressions->first; entry; entry = entry->next)
        count++;
    return count;
}

// ---- matching ----------------------------------------------------------------------------------

// Whether the pattern matches the name up to `end`.
static bool match_cut(const char *pattern, const char *name, const char *end) {
    if (!end || end == name)
        return false;
    char *cut = base_copy(name);
    cut[end - name] = 0;
    bool matches = glob_match(pattern, cut);
    free(cut);
    return matches;
}

// A name as it is, without the version of a symbol (write@@GLIBC_2.2.5), and without the parameters
// of a function of C++.
static bool match_name(const char *pattern, const char *name) {
    if (!name)
        return false;
    return glob_match(pattern, name) || match_cut(pattern, name, strchr(name, '@')) ||
           (!strstr(name, "operator()") && match_cut(pattern, name, strchr(name, '(')));
}

// Valgrind refuses the system call of clone3, so that threads begin in clone there.
static bool match_thread_start(const char *pattern, const char *linkage) {
    return linkage && (strcmp(linkage, "clone3") == 0 || strcmp(linkage, "__clone3") == 0) &&
           glob_match(pattern, "clone");
}

static bool match_function(const char *pattern, const struct symbol_frame *frame) {
    if (!frame->name && !frame->linkage)
        return glob_match(pattern, "???");
    if (match_thread_start(pattern, frame->linkage))
        return true;
    return match_name(pattern, frame->linkage) || match_name(pattern, frame->name) ||
           (stack_text_is_below_main(frame) && glob_match(pattern, "(below main)"));
}

static bool match_location(const struct location *location, const struct symbol_frame *frame) {
    switch (location->kind) {
    case LOCATION_FUNCTION:
        return match_function(location->pattern, frame);
    case LOCATION_OBJECT:
        return glob_match(location->pattern, frame->object ? frame->object : "???");
    case LOCATION_SOURCE:
        return frame->file && glob_match(location->pattern, frame->file) &&
               (!location->line || location->line == frame->line);
    case LOCATION_ANY:
        break;
    }
    return true;
}

// As with glob_match: after a mismatch, the last `...` swallows one frame more.
static bool match_stack(const struct entry *entry, const struct named_stack *stack) {
    size_t at = 0, frame = 0, resume = 0;
    size_t star = entry->location_count; // none
    while (at < entry->location_count) {
        const struct location *location = &entry->locations[at];
        if (location->kind == LOCATION_ANY) {
            star = at++;
            resume = frame;
        } else if (frame < stack->count && match_location(location, &stack->frames[frame].symbol)) {
            at++;
            frame++;
        } else if (star < entry->location_count && frame < stack->count) {
            at = star + 1;
            frame = ++resume;
        } else {
            return false;
        }
    }
    return true;
}

static bool match_entry(const struct entry *entry, const struct suppression_subject *subject) {
    if (strcmp(entry->kind, subject->kind) != 0)
        return false;
    if (entry->parameter && (!subject->parameter || strcmp(entry->parameter, subject->parameter)))
        return false;
    if (strcmp(entry->kind, "Leak") == 0 && !(entry->leak_kinds & subject->leak_kind))
        return false;
    return match_stack(entry, subject->stack);
}

struct suppression *suppressions_match(struct suppressions *suppressions,
                                       const struct suppression_subject *subject) {
    struct entry **link = &suppressions->first;
    for (; *link; link = &(*link)->next) {
        struct entry *entry = *link;
        if (!match_entry(entry, subject))
            continue;
        *link = entry->next;
        entry->next = suppressions->first;
        suppressions->first = entry;
        return &entry->shown;
    }
    return NULL;
}

void suppressions_used_text(const struct suppression *used, struct text *text) {
    text_format(text, "used_suppression: %6" PRIu64 " %s %s:%u", used->used, used->name, used->file,
                used->line);
    if (!used->leaked_blocks)
        return;
    text_string(text, " suppressed: ");
    text_commas(text, used->leaked_bytes);
    text_string(text, " bytes in ");
    text_commas(text, used->leaked_blocks);
    text_string(text, " blocks");
}

struct suppression *suppressions_next_used(struct suppressions *suppressions,
                                           struct suppression *after) {
    struct entry *entry =
        after ? ((struct entry *)((char *)after - offsetof(struct entry, shown)))->next
              : suppressions->first;
    while (entry && !entry->shown.used)
        entry = entry->next;
    return entry ? &entry->shown : NULL;
}

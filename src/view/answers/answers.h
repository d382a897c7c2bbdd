// What can be asked of a document, and the answers as JSON: the one source of the numbers that the
// page, `quern print --json` and `quern export --as html` show.
//
// A question is a name and parameters. Every answer is bounded: of a tree only what is wide enough
// to be seen (`width`), of a table a page of rows. docs/viewer.md lists questions and parameters.
// Supervisor context.
#ifndef QUERN_VIEW_ANSWERS_H
#define QUERN_VIEW_ANSWERS_H

#include "view/documents/document.h"

// Where the values of parameters come from; NULL: not given.
struct ask {
    const char *(*value)(void *context, const char *name);
    void *context;
};

const char *ask_value(const struct ask *ask, const char *name);
// A number within bounds, or else the default.
uint64_t ask_number(const struct ask *ask, const char *name, uint64_t initial, uint64_t most);
bool ask_flag(const struct ask *ask, const char *name);

// NULL, or why there is no answer, to be freed; then the text of the writer is worth nothing.
char *answer(struct document *document, const char *question, const struct ask *ask,
             struct json *json);
// What has changed from one to the other.
char *answer_diff(struct document *before, struct document *after, const struct ask *ask,
                  struct json *json);

// ---- the answers, by file ----

// answers.c
char *answer_overview(struct document *document, const struct ask *ask, struct json *json);
// The metric that was asked for, and its tree in the shape asked for; a message to be freed if
// there is none.
char *answer_choose_metric(struct document *document, const struct ask *ask, unsigned *metric);
unsigned answer_shape(const struct ask *ask); // calltree_shapes.h
char *answer_choose(struct document *document, const struct ask *ask, unsigned *metric,
                    const struct calltree **tree);
// answers/tree.c
char *answer_tree(struct document *document, const struct ask *ask, struct json *json);
char *answer_children(struct document *document, const struct ask *ask, struct json *json);
char *answer_match(struct document *document, const struct ask *ask, struct json *json);
// answers/table.c
struct answer_row {
    const char *name, *group;
    uint64_t self, total;
};
// Sums by function, sorted by name; of costs they are exact, which those of a tree are not. To be
// freed.
struct answer_row *answer_rows(const struct document *document, unsigned metric,
                               const struct calltree *tree, size_t *count);
// The same by library; a library counts once for each stack it is in.
struct answer_row *answer_library_rows(const struct calltree *tree, size_t *count);
char *answer_functions(struct document *document, const struct ask *ask, struct json *json);
char *answer_libraries(struct document *document, const struct ask *ask, struct json *json);
char *answer_threads(struct document *document, const struct ask *ask, struct json *json);
// answers/time.c
char *answer_timeline(struct document *document, const struct ask *ask, struct json *json);
char *answer_sites(struct document *document, const struct ask *ask, struct json *json);
char *answer_histograms(struct document *document, const struct ask *ask, struct json *json);
// answers/findings.c
char *answer_findings(struct document *document, const struct ask *ask, struct json *json);
// answers/costs.c
char *answer_costs(struct document *document, const struct ask *ask, struct json *json);
char *answer_calls(struct document *document, const struct ask *ask, struct json *json);
// The functions that cost most, by themselves or with what they call, at most so many.
size_t answer_heaviest(struct document *document, const char *metric, bool by_own,
                       uint32_t *functions, size_t most);
// answers/groups.c
char *answer_groups(struct document *document, const struct ask *ask, struct json *json);
// answers/reach.c
char *answer_reach(struct document *document, const struct ask *ask, struct json *json);
// answers/source.c
char *answer_source(struct document *document, const struct ask *ask, struct json *json);
char *answer_assembly(struct document *document, const struct ask *ask, struct json *json);
// answers/diagnosis.c
char *answer_diagnosis(struct document *document, const struct ask *ask, struct json *json);
// answers/places.c
char *answer_places(struct document *document, const struct ask *ask, struct json *json);
// answers/place.c
char *answer_place(struct document *document, const struct ask *ask, struct json *json);
// answers/points.c
char *answer_points(struct document *document, const struct ask *ask, struct json *json);
// answers/query.c
char *answer_query(struct document *document, const struct ask *ask, struct json *json);

#endif

#include "report/heap/query_weight.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/vector.h"

// ---- words ----

enum sort { NAME, QUOTED_NAME, STRING, OTHER };

// A word of the statement: a name, a string, or one character.
struct word {
    const char *at;
    size_t size;
    enum sort sort;
};

struct words {
    struct word *list;
    size_t count;
};

static bool is_name_char(unsigned char c) {
    return isalnum(c) || c == '_' || c == '$' || c >= 128;
}

// Behind the closing quote; a doubled one is a part of the text.
static const char *skip_quoted(const char *at, char end) {
    for (; *at; at++) {
        if (*at != end)
            continue;
        if (at[1] != end || end == ']')
            return at + 1;
        at++;
    }
    return at;
}

static const char *skip_space(const char *at) {
    for (;;) {
        at += strspn(at, " \t\r\n\f");
        if (strncmp(at, "--", 2) == 0) {
            at += strcspn(at, "\n");
        } else if (strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

static struct words split(const char *sql) {
    struct words words = {0};
    for (const char *at = skip_space(sql); *at; at = skip_space(at)) {
        struct word word = {.at = at, .sort = OTHER};
        const char *end = at + 1;
        if (is_name_char((unsigned char)*at)) {
            word.sort = NAME;
            while (is_name_char((unsigned char)*end))
                end++;
        } else if (*at == '\'') {
            word.sort = STRING;
            end = skip_quoted(end, '\'');
        } else if (*at == '"' || *at == '`' || *at == '[') {
            word.sort = QUOTED_NAME;
            end = skip_quoted(end, *at == '[' ? ']' : *at);
        }
        word.size = (size_t)(end - at);
        *vector_push(words.list, words.count) = word;
        at = end;
    }
    return words;
}

static bool is_word(const struct words *words, size_t at, const char *text) {
    return at < words->count && words->list[at].sort != STRING &&
           words->list[at].size == strlen(text) &&
           strncasecmp(words->list[at].at, text, words->list[at].size) == 0;
}

static bool is_any(const struct words *words, size_t at, const char *const *texts) {
    for (; *texts; texts++)
        if (is_word(words, at, *texts))
            return true;
    return false;
}

size_t query_mentions(const char *sql, const char *name) {
    struct words words = split(sql);
    size_t count = 0, size = strlen(name);
    for (size_t i = 0; i < words.count; i++) {
        const struct word *word = &words.list[i];
        bool is_quoted = word->sort == QUOTED_NAME && word->size == size + 2;
        bool is_it =
            is_word(&words, i, name) || (is_quoted && strncasecmp(word->at + 1, name, size) == 0);
        count += is_it && !is_word(&words, i + 1, ".");
    }
    free(words.list);
    return count;
}

// ---- which statements ----

// Words that give rows another meaning, and functions that take each row by itself.
static const char *const refused[] = {
    "WITH",
    "VALUES",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "OVER",
    "FILTER",
    "WINDOW",
    "LEFT",
    "RIGHT",
    "FULL",
    "OUTER",
    "NATURAL",
    "group_concat",
    "string_agg",
    "json_group_array",
    "json_group_object",
    "median",
    "rowid",
    "oid",
    "_rowid_",
    "percentile",
    "jsonb_group_array",
    NULL,
};
static const char *const weighed[] = {"count", "sum", "total", "avg", NULL};
static const char *const unweighed[] = {"min", "max", NULL};

// Behind the parenthesis that opens at `at`; `commas` are those directly within.
static size_t skip_call(const struct words *words, size_t at, size_t *commas) {
    size_t depth = 0;
    *commas = 0;
    for (; at < words->count; at++) {
        depth += is_word(words, at, "(");
        *commas += depth == 1 && is_word(words, at, ",");
        if (is_word(words, at, ")") && --depth == 0)
            return at + 1;
    }
    return 0;
}

static bool qualifies(const struct words *words) {
    size_t selects = 0, commas;
    bool sums_up = false;
    for (size_t i = 0; i < words->count; i++) {
        bool is_call = is_word(words, i + 1, "(");
        if (is_any(words, i, refused) || (is_call && words->list[i].sort == QUOTED_NAME))
            return false;
        selects += is_word(words, i, "SELECT");
        sums_up |= is_word(words, i, "GROUP") || is_word(words, i, "HAVING") ||
                   (is_word(words, i, "SELECT") && is_word(words, i + 1, "DISTINCT"));
        if (!is_call || (!is_any(words, i, weighed) && !is_any(words, i, unweighed)))
            continue;
        if (!skip_call(words, i + 1, &commas))
            return false;
        sums_up |= !commas;
        // sum(x ORDER BY y)
        for (size_t end = skip_call(words, i + 1, &commas), j = i; j < end; j++)
            if (is_word(words, j, "ORDER"))
                return false;
    }
    return selects == 1 && sums_up;
}

// ---- the weighed statement ----

// The words between the parentheses of a call at `at`, which ends before `end`.
static void add_argument(struct text *text, const struct words *words, size_t at, size_t end) {
    const struct word *first = &words->list[at + 2], *last = &words->list[end - 1];
    text_format(text, "(%.*s)", (int)(last->at - first->at), first->at);
}

static void add_call(struct text *text, const struct words *words, size_t at, size_t end,
                     const char *weight) {
    bool is_all = is_word(words, at + 2, "*") || is_word(words, at + 2, ")");
    if (is_word(words, at, "count") && is_all) {
        text_format(text, "ifnull(sum(%s),0)", weight);
    } else if (is_word(words, at, "count")) {
        text_string(text, "ifnull(sum((");
        add_argument(text, words, at, end);
        text_format(text, " IS NOT NULL)*%s),0)", weight);
    } else if (is_word(words, at, "avg")) {
        text_string(text, "(total(");
        add_argument(text, words, at, end);
        text_format(text, "*%s)/nullif(sum((", weight);
        add_argument(text, words, at, end);
        text_format(text, " IS NOT NULL)*%s),0))", weight);
    } else {
        text_format(text, "%.*s(", (int)words->list[at].size, words->list[at].at);
        add_argument(text, words, at, end);
        text_format(text, "*%s)", weight);
    }
}

char *query_weighted(const char *sql, const char *weight) {
    struct words words = split(sql);
    struct text text = {0};
    const char *copied = sql;
    bool does = qualifies(&words);
    for (size_t i = 0; does && i < words.count; i++) {
        size_t commas;
        bool is_call = is_any(&words, i, weighed) && is_word(&words, i + 1, "(");
        // A sum of different values has nothing to do with how many rows there are.
        if (!is_call || is_word(&words, i + 2, "DISTINCT"))
            continue;
        size_t end = skip_call(&words, i + 1, &commas);
        text_format(&text, "%.*s", (int)(words.list[i].at - copied), copied);
        add_call(&text, &words, i, end, weight);
        copied = words.list[end - 1].at + 1;
        i = end - 1;
    }
    if (does)
        text_string(&text, copied);
    free(words.list);
    return does ? text_take(&text) : NULL;
}

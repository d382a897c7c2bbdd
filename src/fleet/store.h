// A store: a database that intervals are pushed to, and that can be asked in its SQL.
//
// One thread uses a store at a time; every function may wait. Tables, keys and partitions are made
// when the first interval is pushed, in a schema or database `quern` unless the URL names another.
#ifndef QUERN_FLEET_STORE_H
#define QUERN_FLEET_STORE_H

#include <stdbool.h>
#include <stdio.h>

#include "fleet/batch.h"

struct store_settings {
    const char *url;
    char *user, *password; // NULL: as the store's library finds them
    unsigned keep_days;    // of rows; 0: for ever
};

enum push_result {
    PUSH_DONE,
    PUSH_FAILED,  // try again
    PUSH_REFUSED, // it will not take these rows
};

struct store;

// Rows in texts; NULL for NULL. The first names them.
struct store_rows {
    size_t columns, count;
    char **names, **cells;
    bool *are_numbers; // by column
};
void store_rows_free(struct store_rows *rows);

struct store_kind {
    const char *scheme;
    bool is_missing; // Quern was built without its library
    // Connects when it has to. NULL after *problem was set.
    struct store *(*open)(const struct store_settings *settings, char **problem);
    // All of the interval or nothing, however often it is called: but a store that cannot tell by
    // itself looks first only if the interval may be there.
    enum push_result (*push)(struct store *store, const struct batch *batch, bool may_be_there,
                             char **problem);
    // NULL, or the problem.
    char *(*query)(struct store *store, const char *sql, struct store_rows *rows);
    void (*close)(struct store *store);
    // The dialect. `latest` is the value of a column in the row of a group with the highest number,
    // `moment` a time from seconds since 1970, `join` one that adds at most a row.
    const char *latest, *moment, *join, *schema;
    bool escapes_backslash; // in texts
};

// A text of SQL, in its quotes.
void store_quote(const struct store_kind *kind, const char *text, struct text *sql);

// The kind of store that the URL names. NULL after *problem was set, to be freed: it is not known,
// Quern was built without it, or there is a password in the URL.
const struct store_kind *store_kind_of(const char *url, char **problem);
// The URL without what may be secret, for messages; to be freed.
char *store_label(const char *url);
// Sets user and password from a file "USER:PASSWORD" or (NULL) from $QUERN_PUSH_USER and
// $QUERN_PUSH_PASSWORD. NULL, or the problem.
char *store_credentials(struct store_settings *settings, const char *path);

extern const struct store_kind store_clickhouse, store_clickhouse_tls, store_postgres;

#endif

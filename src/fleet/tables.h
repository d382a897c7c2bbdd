// The tables of a store: the same in all of them. Each store makes its own types of the columns,
// and names its own keys and partitions.
//
//   processes   one row for each recorded process
//   intervals   one row for each interval: the sums of the process
//   counts      one row for each stack whose numbers changed in an interval; once an hour, and
//   after
//               an interval was dropped, for each stack that holds memory
//   names       one row for each stack: its functions
//   frames      one row for each function of a stack
//
// Stacks are known by a hash of what their rows say, so that the same stack has the same number in
// all processes and on all machines.
#ifndef QUERN_FLEET_TABLES_H
#define QUERN_FLEET_TABLES_H

#include <stddef.h>

// In the order in which they are written: an interval is there when all that it refers to is.
enum table {
    TABLE_PROCESSES,
    TABLE_NAMES,
    TABLE_FRAMES,
    TABLE_COUNTS,
    TABLE_INTERVALS,
    TABLES,
};

enum column_type { COLUMN_ID, COLUMN_NUMBER, COLUMN_SMALL, COLUMN_REAL, COLUMN_TIME, COLUMN_TEXT };

#define TABLE_COLUMNS 20

struct table_info {
    const char *name;
    struct table_column {
        const char *name; // NULL behind the last
        enum column_type type;
    } columns[TABLE_COLUMNS];
};

extern const struct table_info table_infos[TABLES];

#endif

// The rows of one interval, and their file in the spool.
//
// Rows are lines of values with tabs between them, escaped as both COPY of PostgreSQL and
// TabSeparated of ClickHouse read them. The file is a line for the interval, then for each table a
// line with its name and the number of bytes that follow. It gets its name when it is whole.
#ifndef QUERN_FLEET_BATCH_H
#define QUERN_FLEET_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/text.h"
#include "fleet/tables.h"

struct batch {
    uint64_t process;
    uint32_t number; // of the interval, from 1
    time_t time;     // its end
    char *service;   // as in the rows
    struct text rows[TABLES];
};

// One row: begin, the values in the order of the columns, end.
void batch_number(struct text *rows, uint64_t value);
void batch_real(struct text *rows, double value);
void batch_time(struct text *rows, time_t time);
// Any bytes: those that cannot stand in a text become \xNN.
void batch_text(struct text *rows, const char *text);
void batch_end_row(struct text *rows);

void batch_free(struct batch *batch);

// 0 or an error number. The folder is open.
int batch_write(const struct batch *batch, int folder, const char *name);
// False: the file is not there (errno ENOENT), cannot be read, or is not one.
bool batch_read(struct batch *batch, int folder, const char *name);

#endif

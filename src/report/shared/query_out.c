#include "report/shared/query_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "report/heap/rows.h"

// Columns are as wide as the first rows need; later rows that are wider stick out.
#define MEASURED_ROWS 1000

// ---- one value ----

static char *escaped(const char *text) {
    char *bytes = NULL;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    if (!out)
        return base_copy("?");
    stack_text_escaped(out, text);
    fclose(out);
    return bytes;
}

static char *hexadecimal(sqlite3_stmt *statement, int column) {
    const unsigned char *bytes = sqlite3_column_blob(statement, column);
    int size = sqlite3_column_bytes(statement, column);
    struct text text = {0};
    text_string(&text, "x'");
    for (int i = 0; i < size; i++)
        text_format(&text, "%02X", bytes[i]);
    text_char(&text, '\'');
    return text_take(&text);
}

// To be freed.
static char *value_of(sqlite3_stmt *statement, int column) {
    int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_BLOB)
        return hexadecimal(statement, column);
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return escaped(text ? text : "");
}

static bool is_number(sqlite3_stmt *statement, int column) {
    int type = sqlite3_column_type(statement, column);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

// Characters of UTF-8, which is all there is after escaping.
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

// The next row; SQLITE_DONE also when there have been enough.
static int next_row(sqlite3_stmt *statement, const struct query_out_options *options,
                    size_t *left) {
    if (options->most && !(*left)--)
        return SQLITE_DONE;
    int code = sqlite3_step(statement);
    // Rows for people follow, perhaps on the terminal that shows the progress.
    if (options->style != HEAP_QUERY_JSON)
        progress_end();
    return code;
}

// ---- tabs, JSON ----

static int write_tabs(FILE *out, sqlite3_stmt *statement, const struct query_out_options *options) {
    int count = sqlite3_column_count(statement);
    for (int i = 0; i < count; i++) {
        stack_text_escaped(out, sqlite3_column_name(options->named, i));
        fputc(i + 1 < count ? '\t' : '\n', out);
    }
    size_t left = options->most;
    int code;
    while ((code = next_row(statement, options, &left)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++) {
            char *value = value_of(statement, i);
            fprintf(out, "%s%c", value, i + 1 < count ? '\t' : '\n');
            free(value);
        }
    }
    return code;
}

static void write_json_value(FILE *out, sqlite3_stmt *statement, int column) {
    int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_NULL ||
        (type == SQLITE_FLOAT && !isfinite(sqlite3_column_double(statement, column)))) {
        fputs("null", out);
    } else if (is_number(statement, column)) {
        fputs((const char *)sqlite3_column_text(statement, column), out);
    } else if (type == SQLITE_BLOB) {
        char *value = hexadecimal(statement, column);
        rows_json(out, value);
        free(value);
    } else {
        rows_json(out, (const char *)sqlite3_column_text(statement, column));
    }
}

static int write_json(FILE *out, sqlite3_stmt *statement, const struct query_out_options *options) {
    int count = sqlite3_column_count(statement);
    const char *separator = "[\n";
    size_t left = options->most;
    int code;
    while ((code = next_row(statement, options, &left)) == SQLITE_ROW) {
        fputs(separator, out);
        separator = ",\n";
        for (int i = 0; i < count; i++) {
            fputc(i ? ',' : '{', out);
            rows_json(out, sqlite3_column_name(options->named, i));
            fputc(':', out);
            write_json_value(out, statement, i);
        }
        fputc('}', out);
    }
    fputs(*separator == '[' ? "[]\n" : "\n]\n", out);
    return code;
}

// ---- columns ----

struct cell {
    char *text;
    bool right; // a number
};

static void write_cell(FILE *out, const struct cell *cell, size_t width, bool last) {
    size_t own = width_of(cell->text);
    int space = own < width ? (int)(width - own) : 0;
    if (cell->right)
        fprintf(out, "%*s%s", space, "", cell->text);
    else
        fprintf(out, "%s%*s", cell->text, last ? 0 : space, "");
    fputs(last ? "\n" : "  ", out);
}

static void write_row(FILE *out, struct cell *cells, const size_t *widths, int count) {
    for (int i = 0; i < count; i++) {
        write_cell(out, &cells[i], widths[i], i + 1 == count);
        free(cells[i].text);
    }
}

static void take_row(sqlite3_stmt *statement, struct cell *cells, int count) {
    for (int i = 0; i < count; i++)
        cells[i] = (struct cell){value_of(statement, i), is_number(statement, i)};
}

static int write_columns(FILE *out, sqlite3_stmt *statement,
                         const struct query_out_options *options) {
    int count = sqlite3_column_count(statement);
    size_t columns = (size_t)count;
    struct cell *cells = base_allocate((MEASURED_ROWS + 1) * columns * sizeof *cells);
    size_t *widths = base_allocate(columns * sizeof *widths);
    size_t rows = 1;
    size_t left = options->most;
    int code = SQLITE_ROW;
    for (int i = 0; i < count; i++)
        cells[i] = (struct cell){escaped(sqlite3_column_name(options->named, i)), false};
    while (rows <= MEASURED_ROWS && (code = next_row(statement, options, &left)) == SQLITE_ROW)
        take_row(statement, &cells[rows++ * columns], count);
    for (size_t i = 0; i < columns; i++) {
        widths[i] = 0;
        for (size_t row = 0; row < rows; row++) {
            size_t width = width_of(cells[row * columns + i].text);
            widths[i] = width > widths[i] ? width : widths[i];
        }
        // Names stand over what they name.
        cells[i].right = rows > 1 && cells[columns + i].right;
    }
    for (size_t row = 0; row < rows; row++)
        write_row(out, &cells[row * columns], widths, count);
    while (code == SQLITE_ROW && (code = next_row(statement, options, &left)) == SQLITE_ROW) {
        take_row(statement, cells, count);
        write_row(out, cells, widths, count);
    }
    free(cells);
    free(widths);
    return code;
}

int query_out(FILE *out, sqlite3_stmt *statement, const struct query_out_options *options) {
    switch (options->style) {
    case HEAP_QUERY_COLUMNS:
        return write_columns(out, statement, options);
    case HEAP_QUERY_TABS:
        return write_tabs(out, statement, options);
    case HEAP_QUERY_JSON:
        return write_json(out, statement, options);
    }
    return SQLITE_MISUSE;
}

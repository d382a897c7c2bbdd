// Compares the compiled table of real libraries, at every single pc of every function, with what
// readelf makes of the same unwind data. readelf does not print the contents of expressions, so for
// those only their presence is compared; unwind_shapes.c walks through them.

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "unwind/table.h"

// What one line of readelf says about one register: u, s, c-16, v-16, exp, vexp, or a register.
struct expected_column {
    enum { UNSAVED, AT_CFA, CFA_VALUE, EXPRESSION, REGISTER } kind;
    int reg;
    long offset;
};

struct expected_row {
    struct expected_column cfa; // REGISTER with its offset, or EXPRESSION
    struct expected_column columns[UNWIND_REGISTERS];
};

#define CIES_MAX 4096

struct comparison {
    struct unwind_image image;
    struct unwind_table *table;
    int order[UNWIND_REGISTERS], order_count; // registers of the current header line
    struct {
        unsigned long offset;
        struct expected_row row;
    } cies[CIES_MAX];
    size_t cie_count;
    struct expected_row row;
    unsigned long pc, end; // what row covers so far; pc is 0 when there is none
    long functions, rows, pcs, expressions, differences;
    char first_difference[256];
};

static int register_number(const char *name) {
    static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                        "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                        "r12", "r13", "r14", "r15", "ra"};
    for (int i = 0; i < UNWIND_REGISTERS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return strcmp(name, "rip") == 0 ? UNWIND_PC : -1;
}

static struct expected_column parse_column(const char *text) {
    char name[16];
    long offset;
    if (strcmp(text, "u") == 0 || strcmp(text, "s") == 0)
        return (struct expected_column){.kind = UNSAVED};
    if (strcmp(text, "exp") == 0 || strcmp(text, "vexp") == 0)
        return (struct expected_column){.kind = EXPRESSION};
    if (sscanf(text, "c%ld", &offset) == 1)
        return (struct expected_column){.kind = AT_CFA, .offset = offset};
    if (sscanf(text, "v%ld", &offset) == 1)
        return (struct expected_column){.kind = CFA_VALUE, .offset = offset};
    if (sscanf(text, "%15[a-z0-9]%ld", name, &offset) == 2)
        return (struct expected_column){REGISTER, register_number(name), offset};
    return (struct expected_column){REGISTER, register_number(text), 0};
}

static bool column_matches(const struct unwind_column *column,
                           const struct expected_column *expected) {
    switch (expected->kind) {
    case UNSAVED:
        return column->kind == COLUMN_SAME || column->kind == COLUMN_UNDEFINED;
    case AT_CFA:
        return column->kind == COLUMN_AT_CFA && column->value == expected->offset;
    case CFA_VALUE:
        return column->kind == COLUMN_CFA && column->value == expected->offset;
    case REGISTER:
        return column->kind == COLUMN_REGISTER && column->reg == expected->reg &&
               column->value == expected->offset;
    case EXPRESSION:
        return column->kind >= COLUMN_AT_REGISTER;
    }
    return false;
}

static void widen(const struct unwind_table *table, const struct unwind_rule *rule,
                  struct unwind_wide_rule *wide) {
    static const uint8_t slots[6] = {UNWIND_RBX, UNWIND_RBP, UNWIND_R12,
                                     UNWIND_R13, UNWIND_R14, UNWIND_R15};
    if (rule->kind == RULE_WIDE) {
        *wide = *table_wide(table, rule);
        return;
    }
    *wide = (struct unwind_wide_rule){
        .cfa = {.kind = COLUMN_REGISTER, .reg = rule->base, .value = rule->offset}};
    wide->columns[UNWIND_PC] = (struct unwind_column){.kind = COLUMN_AT_CFA, .value = -8};
    for (int i = 0; i < 6; i++)
        if (rule->slots[i])
            wide->columns[slots[i]] =
                (struct unwind_column){.kind = COLUMN_AT_CFA, .value = -8 * rule->slots[i]};
}

static bool rule_matches(const struct unwind_table *table, const struct unwind_rule *rule,
                         const struct expected_row *expected) {
    bool last = expected->columns[UNWIND_PC].kind == UNSAVED;
    if (rule->kind == RULE_NONE || last)
        return last && rule->kind == RULE_END;
    if (rule->kind == RULE_END)
        return false;
    struct unwind_wide_rule wide;
    widen(table, rule, &wide);
    if (!column_matches(&wide.cfa, &expected->cfa))
        return false;
    for (int i = 0; i < UNWIND_REGISTERS; i++)
        if (!column_matches(&wide.columns[i], &expected->columns[i]))
            return false;
    return true;
}

// Checks the row that was read last, from its pc up to where the next one starts.
static void check_row(struct comparison *comparison, unsigned long end) {
    if (comparison->pc == 0 || comparison->pc >= end)
        return;
    const struct unwind_rule *good = NULL;
    comparison->rows++;
    comparison->expressions += comparison->row.cfa.kind == EXPRESSION;
    for (unsigned long pc = comparison->pc; pc < end; pc++) {
        const struct unwind_rule *rule =
            unwind_table_find(comparison->table, pc - comparison->image.start);
        comparison->pcs++;
        if (rule == good)
            continue;
        if (rule_matches(comparison->table, rule, &comparison->row)) {
            good = rule;
        } else if (comparison->differences++ == 0) {
            snprintf(comparison->first_difference, sizeof comparison->first_difference,
                     "pc %#lx: rule kind %d base %d offset %d, readelf kind %d base %d offset %ld",
                     pc, rule->kind, rule->base, rule->offset, comparison->row.cfa.kind,
                     comparison->row.cfa.reg, comparison->row.cfa.offset);
        }
    }
}

static void read_columns(struct comparison *comparison, char *line) {
    comparison->order_count = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
        if (strcmp(word, "LOC") != 0 && strcmp(word, "CFA") != 0)
            comparison->order[comparison->order_count++ % UNWIND_REGISTERS] = register_number(word);
}

// Registers stand as `r8 (r8)` or `r2 (rcx)`: leaves the name in the brackets alone.
static void drop_numbers(char *line) {
    for (char *open = strchr(line, '('); open; open = strchr(open, '(')) {
        *open = ' ';
        for (char *at = open - 2; *at != ' '; at--)
            *at = ' ';
        *strchr(open, ')') = ' ';
    }
}

static void read_row(struct expected_row *row, const struct comparison *comparison, char *line) {
    *row = (struct expected_row){0};
    drop_numbers(line);
    strtok(line, " \n");
    row->cfa = parse_column(strtok(NULL, " \n"));
    for (int i = 0; i < comparison->order_count; i++) {
        char *word = strtok(NULL, " \n");
        if (word && comparison->order[i] >= 0)
            row->columns[comparison->order[i]] = parse_column(word);
    }
}

static void read_line(struct comparison *comparison, char *line, bool *in_cie) {
    unsigned long offset, cie, start, end;
    if (sscanf(line, "%lx %*x %*x FDE cie=%lx pc=%lx..%lx", &offset, &cie, &start, &end) == 4) {
        check_row(comparison, comparison->end);
        comparison->functions++;
        *in_cie = false;
        comparison->pc = start;
        comparison->end = end;
        for (size_t i = 0; i < comparison->cie_count; i++)
            if (comparison->cies[i].offset == cie)
                comparison->row = comparison->cies[i].row;
    } else if (strstr(line, " CIE \"")) {
        check_row(comparison, comparison->end);
        comparison->pc = 0;
        *in_cie = true;
        CHECK(comparison->cie_count < CIES_MAX);
        comparison->cies[comparison->cie_count++].offset = strtoul(line, NULL, 16);
    } else if (strstr(line, "LOC ")) {
        read_columns(comparison, line);
    } else if (sscanf(line, "%16lx %*s", &start) == 1 && line[16] == ' ' && line[0] != ' ') {
        if (*in_cie) {
            read_row(&comparison->cies[comparison->cie_count - 1].row, comparison, line);
            return;
        }
        check_row(comparison, start);
        comparison->pc = start;
        read_row(&comparison->row, comparison, line);
    }
}

static void compare_with_readelf(struct comparison *comparison, const char *path) {
    char command[512], line[4096];
    bool in_cie = false, in_section = false;
    snprintf(command, sizeof command, "readelf --wide --debug-dump=frames-interp %s 2>/dev/null",
             path);
    FILE *stream = popen(command, "r");
    CHECK(stream);
    while (fgets(line, sizeof line, stream)) {
        if (strstr(line, "Contents of the"))
            in_section = strstr(line, ".eh_frame section") != NULL;
        else if (in_section)
            read_line(comparison, line, &in_cie);
    }
    check_row(comparison, comparison->end);
    pclose(stream);
}

// Processor time, so that a busy machine does not count.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void compare(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0)
        SKIP("%s is not here", path);
    struct stat status;
    CHECK_EQ(fstat(file, &status), 0);
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(bytes != MAP_FAILED);
    close(file);

    static struct comparison comparison;
    comparison = (struct comparison){0};
    CHECK(unwind_image_from_file(&comparison.image, bytes, (size_t)status.st_size, 0));
    unwind_table_free(unwind_table_compile(&comparison.image)); // brings the file into memory
    double start = now();
    comparison.table = unwind_table_compile(&comparison.image);
    double end = now();
    CHECK(comparison.table);
    CHECK(unwind_table_check(comparison.table));
    compare_with_readelf(&comparison, path);
    const struct unwind_table *table = comparison.table;
    NOTE("%s: %ld functions, %ld rows of readelf, %ld pcs, %ld rows with expressions, "
         "%ld differences",
         path, comparison.functions, comparison.rows, comparison.pcs, comparison.expressions,
         comparison.differences);
    NOTE("%s: table of %lu bytes, %u rows, %u rules, %u wide rules, %u bytes of expressions, "
         "%u bad functions, compiled in %.2f ms",
         path, (unsigned long)table->bytes, table->row_count, table->rule_count, table->wide_count,
         table->expression_size, table->bad, end - start);
    if (comparison.differences)
        NOTE("%s", comparison.first_difference);
    CHECK(comparison.functions > 0);
    CHECK(comparison.rows >= comparison.functions);
    CHECK_EQ(comparison.differences, 0);
    CHECK_EQ(table->bad, 0);
    unwind_table_free(comparison.table);
    munmap(bytes, (size_t)status.st_size);
}

TEST(readelf_agrees_on_libc) {
    compare("/lib/x86_64-linux-gnu/libc.so.6");
}

TEST(readelf_agrees_on_loader) {
    compare("/lib64/ld-linux-x86-64.so.2");
}

TEST(readelf_agrees_on_libstdcxx) {
    compare("/lib/x86_64-linux-gnu/libstdc++.so.6");
}

TEST(readelf_agrees_on_libgcc) {
    compare("/lib/x86_64-linux-gnu/libgcc_s.so.1");
}

TEST(readelf_agrees_on_libcrypto) {
    compare("/lib/x86_64-linux-gnu/libcrypto.so.3");
}

TEST(readelf_agrees_on_libperl) {
    compare("/lib/x86_64-linux-gnu/libperl.so.5.36");
}

TEST(readelf_agrees_on_libpython) {
    compare("/lib/x86_64-linux-gnu/libpython3.11.so.1.0");
}

TEST(readelf_agrees_on_node) {
    compare("/usr/bin/node");
}

UNIT_MAIN()

// The neutral model of findings: names of kinds, and the heuristics of leak searches.
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "profile/findings/finding.h"
#include "profile/findings/leak_heuristics.h"
#include "view/documents/findings_file.h"

TEST(kinds_are_found_by_their_xml_names) {
    for (unsigned i = 0; i < FINDING_KINDS; i++)
        CHECK_EQ(finding_kind_of_xml(finding_kind_xml(i)), i);
    for (unsigned i = 0; i < LEAK_KINDS; i++)
        CHECK_EQ(leak_kind_of_xml(leak_kind_xml(i)), i);
    CHECK_EQ(finding_kind_of_xml("Leak_DefinitelyLost"), FINDING_KINDS);
    CHECK_EQ(leak_kind_of_xml("InvalidRead"), LEAK_KINDS);
}

TEST(lists_of_names_are_sets) {
    CHECK_EQ(leak_kinds_in("definite,reachable"), 1u << LEAK_DEFINITE | 1u << LEAK_REACHABLE);
    CHECK_EQ(leak_kinds_in("all"), ALL_LEAK_KINDS);
    CHECK_EQ(leak_kinds_in("none"), 0);
    CHECK_EQ(leak_kinds_in(""), 0);
    CHECK_EQ(leak_kinds_in("defin"), 0);
    CHECK_EQ(leak_heuristics_in("newarray,length64"), 1u << LEAK_NEWARRAY | 1u << LEAK_LENGTH64);
}

// Suppressions that are made from XML have kinds that suppression files know.
TEST(suppressions_from_xml_name_the_kind) {
    static const struct {
        const char *xml, *what, *line;
    } cases[] = {
        {"InvalidWrite", "Invalid write of size 4", "Memcheck:Addr4\n"},
        {"UninitValue", "Use of uninitialised value of size 8", "Memcheck:Value8\n"},
        {"UninitCondition", "Conditional jump", "Memcheck:Cond\n"},
        {"CoreMemError", "signal frame", "Memcheck:CoreMem\n"},
        {"ReallocSizeZero", "realloc() with size 0", "Memcheck:ReallocZero\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct findings_finding finding = {.kind = (char *)cases[i].xml,
                                           .what = (char *)cases[i].what};
        char *suppression = findings_suppression(&finding);
        CHECK(strstr(suppression, cases[i].line));
        free(suppression);
    }
}

// ---- heuristics --------------------------------------------------------------------------------

// Words of a block at BLOCK, two pieces of memory with tables, and code.
enum { BLOCK = 0x10000, TABLES = 0x20000, CODE = 0x30000, WORDS = 64, PIECE = 32 };

static uint64_t block[WORDS], tables[WORDS];

static bool read_block(const void *context, uint64_t address, uint64_t *word) {
    if (address - BLOCK >= sizeof block)
        return false;
    *word = block[(address - BLOCK) / 8];
    return true;
}

static bool read_table(const void *context, uint64_t table, uint64_t address, uint64_t *word) {
    size_t first = (table - TABLES) / 8, at = (address - TABLES) / 8;
    if (table < TABLES || first >= WORDS || at >= WORDS || first / PIECE != at / PIECE)
        return false;
    *word = tables[at];
    return true;
}

static bool is_code(const void *context, uint64_t address) {
    return address >= CODE && address < CODE + 4096;
}

static const struct leak_reader reader = {NULL, read_block, read_table, is_code};

static int heuristic(uint64_t size, uint64_t pointer) {
    return leak_heuristic_of(&reader, (1u << LEAK_HEURISTICS) - 1, BLOCK, size, BLOCK + pointer);
}

static void clear(void) {
    memset(block, 0, sizeof block);
    memset(tables, 0, sizeof tables);
}

TEST(heuristics_know_sizes) {
    clear();
    block[0] = 7;
    block[1] = 10;
    CHECK_EQ(heuristic(24 + 10 + 1, 24), LEAK_STDSTRING);
    CHECK_EQ(heuristic(24 + 10, 24), -1);
    block[0] = 11; // longer than there is room for
    CHECK_EQ(heuristic(24 + 10 + 1, 24), -1);
    block[0] = 40;
    CHECK_EQ(heuristic(48, 8), LEAK_LENGTH64);
    block[0] = 6;
    CHECK_EQ(heuristic(8 + 60, 8), LEAK_NEWARRAY);
    CHECK_EQ(heuristic(8 + 61, 8), -1);
    block[0] = 0;
    CHECK_EQ(heuristic(8 + 60, 8), -1);
}

TEST(heuristics_know_tables_of_functions) {
    clear();
    block[0] = TABLES;
    block[4] = TABLES + 64;
    tables[1] = tables[2] = tables[8] = tables[9] = CODE;
    CHECK_EQ(heuristic(64, 32), LEAK_INHERITANCE);
    CHECK_EQ(heuristic(64, 33), -1); // not aligned
    tables[9] = 1;                   // no function
    CHECK_EQ(heuristic(64, 32), -1);
    tables[9] = 0;
    tables[8 + 20] = CODE; // the last word that counts
    CHECK_EQ(heuristic(64, 32), LEAK_INHERITANCE);
    tables[8 + 20] = 0;
    tables[8 + 21] = CODE;
    CHECK_EQ(heuristic(64, 32), -1);
    // A table does not go on in another piece of memory.
    block[4] = TABLES + (PIECE - 1) * 8;
    tables[PIECE - 1] = tables[PIECE] = CODE;
    CHECK_EQ(heuristic(64, 32), -1);
}

UNIT_MAIN()

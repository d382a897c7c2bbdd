/* The kernel's table of functions. */
#include "unit.h"

#include "symbols/kernel.h"

#include <stdlib.h>
#include <string.h>

static void read_text(struct kernel *kernel, const char *text, size_t size) {
    char *copy = malloc(size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    kernel_read(kernel, copy, size);
}

static const char table[] = "ffffffff81000000 t local\n"
                            "ffffffff81000000 T global\n"
                            "ffffffff81000100 D data\n"
                            "ffffffff81000200 W weak\n"
                            "ffffffffc0000000 t in_module\t[nf_tables]\n"
                            "ffffffff81000180 T before\n"
                            "ffffffff81000300 T cut";

TEST(functions_of_the_table) {
    static const struct {
        uint64_t address;
        const char *name, *module;
    } expected[] = {{0xffffffff80ffffff, NULL, NULL},
                    {0xffffffff81000000, "global", NULL},
                    {0xffffffff81000110, "global", NULL},
                    {0xffffffff81000180, "before", NULL},
                    {0xffffffff81000300, "weak", NULL},
                    {0xffffffff81200200, NULL, NULL},
                    {0xffffffffc0000010, "in_module", "[nf_tables]"}};
    struct kernel kernel = {0};
    read_text(&kernel, table, sizeof table - 1);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *name = NULL, *module = NULL;
        bool found = kernel_find(&kernel, expected[i].address, &name, &module) != NULL;
        CHECK_EQ(found, expected[i].name != NULL);
        if (found)
            CHECK_STR(name, expected[i].name);
        CHECK_STR(module ? module : "", expected[i].module ? expected[i].module : "");
    }
    kernel_free(&kernel);
}

/* As shown to those who must not see addresses. */
TEST(hidden_addresses_are_no_functions) {
    static const char hidden[] = "0000000000000000 T one\n0000000000000000 t two\t[module]\n";
    struct kernel kernel = {0};
    const char *name, *module;
    read_text(&kernel, hidden, sizeof hidden - 1);
    CHECK_EQ(kernel.count, 0);
    CHECK(!kernel_find(&kernel, 0xffffffff81000000, &name, &module));
    kernel_free(&kernel);
}

TEST(damaged_tables_do_no_harm) {
    unsigned seed = 3;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof table];
        memcpy(text, table, sizeof table);
        for (int i = rand_r(&seed) % 8; i >= 0; i--)
            text[(size_t)rand_r(&seed) % (sizeof table - 1)] = (char)rand_r(&seed);
        struct kernel kernel = {0};
        const char *name = NULL, *module = NULL;
        read_text(&kernel, text, (size_t)rand_r(&seed) % sizeof table);
        for (size_t i = 1; i < kernel.count; i++)
            CHECK(kernel.functions[i - 1].start < kernel.functions[i].start);
        if (kernel_find(&kernel, 0xffffffff81000110, &name, &module))
            CHECK(strlen(name) < sizeof table);
        kernel_free(&kernel);
    }
}

UNIT_MAIN()

// dhat.out files: written, read back, printed; whole and damaged.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/dhat/print.h"
#include "any.h"
#include "unit.h"

static uint32_t *numbers(size_t count, const uint32_t *from) {
    uint32_t *list = base_allocate((count + 1) * sizeof *list);
    memcpy(list, from, count * sizeof *list);
    return list;
}

// Three points; the first two share a frame.
static void make(struct dhat_file *file) {
    dhat_file_init(file, "heap", "Allocated", "run \"it\" \\ \n", 42);
    uint32_t main = dhat_file_frame(file, "0x10: main (a.c:1)");
    uint32_t one = dhat_file_frame(file, "0x20: one (a.c:2)");
    uint32_t two = dhat_file_frame(file, "0x30: two (a.c:3)");
    file->bklt = file->bkacc = true;
    file->te = 1000;
    file->tg = 500;
    static const uint32_t accesses[] = {3, 3, 3, 0, 0, 7};
    struct dhat_point point = {.tb = 60,
                               .tbk = 10,
                               .tl = 5000,
                               .mb = 30,
                               .mbk = 5,
                               .gb = 24,
                               .gbk = 4,
                               .eb = 6,
                               .ebk = 1,
                               .rb = 90,
                               .wb = 70};
    point.acc = numbers(6, accesses);
    point.acc_count = 6;
    point.fs = numbers(2, (uint32_t[]){one, main});
    point.fs_count = 2;
    dhat_file_add(file, &point);
    point = (struct dhat_point){.tb = 4000, .tbk = 1, .tl = 999, .gb = 4000, .gbk = 1};
    point.fs = numbers(3, (uint32_t[]){one, two, main});
    point.fs_count = 3;
    dhat_file_add(file, &point);
    point = (struct dhat_point){.tb = 500, .tbk = 100, .tl = 100, .rb = 1, .wb = 500};
    point.fs = numbers(1, (uint32_t[]){two});
    point.fs_count = 1;
    dhat_file_add(file, &point);
}

static char *written(const struct dhat_file *file) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    dhat_out(out, file);
    fclose(out);
    return text;
}

static char *read_text(const char *text, size_t size, struct dhat_file *file) {
    FILE *in = fmemopen((char *)text, size, "r");
    char *problem = dhat_file_read(in, file);
    fclose(in);
    return problem;
}

__attribute__((noinline)) static char *printed(const struct dhat_file *file, const char *by,
                                               bool as_tree) {
    struct dhat_print_options options = {
        .by = &dhat_metrics[0], .as_tree = as_tree, .threshold = 1, .top = 10, .callers = 12};
    for (size_t i = 0; i < dhat_metric_count; i++)
        if (strcmp(dhat_metrics[i].name, by) == 0)
            options.by = &dhat_metrics[i];
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    dhat_print(out, file, &options);
    fclose(out);
    return text;
}

TEST(what_is_written_reads_back) {
    struct dhat_file file, again;
    make(&file);
    char *text = written(&file);
    CHECK(strstr(text, "\"acc\":[-3,3,-2,0,7]\n") != NULL);
    CHECK(strstr(text, "\"cmd\":\"run \\\"it\\\" \\\\ \\u000a\"") != NULL);
    CHECK(read_text(text, strlen(text), &again) == NULL);
    char *second = written(&again);
    CHECK_STR(second, text);
    CHECK_EQ(again.point_count, 3);
    CHECK_EQ(again.points[0].acc_count, 6);
    CHECK_EQ(again.points[0].acc[5], 7);
    free(text);
    free(second);
    dhat_file_free(&file);
    dhat_file_free(&again);
}

static void check_first(const struct dhat_file *file, const char *by, const char *first) {
    char *text = printed(file, by, false);
    const char *at = strstr(text, "\n  1. ");
    bool is_first = at && strncmp(at + 6, first, strlen(first)) == 0;
    free(text);
    CHECK(is_first);
}

TEST(points_are_sorted_by_any_metric) {
    struct dhat_file file;
    make(&file);
    check_first(&file, "bytes", "4,000 bytes (87.72%): ");
    check_first(&file, "blocks", "100 blocks (90.09%): ");
    check_first(&file, "peak", "4,000 bytes (99.40%): ");
    check_first(&file, "end", "6 bytes (100.00%): ");
    check_first(&file, "reads", "90 bytes (98.90%): ");
    check_first(&file, "writes", "500 bytes (87.72%): ");
    check_first(&file, "lifetime", "999 instrs: ");
    check_first(&file, "untouched", "4,000 bytes (99.50%): ");
    check_first(&file, "short-lived", "100 blocks (90.91%): ");
    char *text = printed(&file, "reads", false);
    CHECK(strstr(text, "|+++__@| byte 0 to 5, at most 7 times\n") != NULL);
    free(text);
    dhat_file_free(&file);
}

TEST(tree_joins_what_is_shared) {
    struct dhat_file file;
    make(&file);
    char *text = printed(&file, "bytes", true);
    CHECK(strstr(text, " 89.04%  4,060  0x20: one (a.c:2)\n") != NULL);
    CHECK(strstr(text, "   87.72%  4,000  0x30: two (a.c:3)\n") != NULL);
    CHECK(strstr(text, " 10.96%  500  0x30: two (a.c:3)\n") != NULL);
    free(text);
    dhat_file_free(&file);
}

static void refused(const char *text, const char *reason) {
    struct dhat_file file;
    char *problem = read_text(text, strlen(text), &file);
    CHECK(problem && strstr(problem, reason));
    free(problem);
    dhat_file_free(&file);
}

TEST(what_is_no_profile_is_refused) {
    CHECK(dhat_file_is_one(" {\"", 3));
    CHECK(!dhat_file_is_one("desc:", 5));
    CHECK(!dhat_file_is_one("", 0));
    refused("{", "cut off");
    refused("{}", "no dhat.out");
    refused("[1]", "no dhat.out");
    refused("{\"dhatFileVersion\":3}", "version is not 2");
    refused("{\"dhatFileVersion\":2}", "missing");
    refused("nonsense", "no JSON");
    const char *head =
        "{\"dhatFileVersion\":2,\"mode\":\"m\",\"verb\":\"v\",\"tu\":\"t\",\"Mtu\":\"M\","
        "\"cmd\":\"c\",\"ftbl\":[\"[root]\"],\"pps\":";
    static const char *const points[] = {"[3]}",
                                         "[{\"tb\":1}]}",
                                         "[{\"tb\":1,\"fs\":[1]}]}",
                                         "[{\"tb\":1,\"fs\":[-1]}]}",
                                         "[{\"fs\":[],\"acc\":[-5]}]}",
                                         "[{\"fs\":[],\"acc\":[-9223372036854775807,1]}]}",
                                         "[{\"fs\":[],\"acc\":[-1000000000,1]}]}"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct text text = {0};
        text_format(&text, "%s%s", head, points[i]);
        refused(text.bytes, "a program point is damaged");
        text_free(&text);
    }
}

// Numbers as large as they can be, names that steer terminals.
static const char wild[] =
    "{\"dhatFileVersion\":2,\"mode\":\"\\u001b[2J\",\"verb\":\"v\\u0007\",\"tu\":\"\\u001b\","
    "\"Mtu\":\"M\",\"bsu\":\"\\u0001\",\"bklt\":true,\"bkacc\":true,\"tuth\":1,\"cmd\":\"\\u001b]0;"
    "x\","
    "\"te\":18446744073709551615,\"ftbl\":[\"[root]\",\"\\u001b[31m\",\"\\u001b[31m\"],\"pps\":["
    "{\"tb\":18446744073709551615,\"tbk\":18446744073709551615,\"tl\":1,\"rb\":"
    "18446744073709551615,"
    "\"fs\":[2,1,2],\"acc\":[4294967295,-4,0]},{\"tb\":0,\"tbk\":0,\"fs\":[]}]}";

TEST(wild_content_stays_tame) {
    struct dhat_file file;
    CHECK(read_text(wild, strlen(wild), &file) == NULL);
    for (size_t i = 0; i < dhat_metric_count; i++) {
        for (int tree = 0; tree < 2; tree++) {
            char *text = printed(&file, dhat_metrics[i].name, tree);
            for (const char *at = text; *at; at++)
                CHECK((unsigned char)*at >= 0x20 || *at == '\n');
            free(text);
        }
    }
    dhat_file_free(&file);
}

// Bytes changed, cut out and doubled, JSON's own among them.
TEST(damaged_files_do_no_harm) {
    static const char characters[] = "{}[]\",:0-9e.\\tn\x1b\xff";
    struct dhat_file file;
    make(&file);
    char *whole = written(&file);
    size_t size = strlen(whole), read = 0;
    for (unsigned round = 0; round < 6000; round++) {
        const char *from = round % 4 ? whole : wild;
        size_t length = round % 4 ? size : strlen(wild);
        char *damaged = base_allocate(2 * length + 16);
        memcpy(damaged, from, length);
        for (unsigned change = 0; change <= any(4); change++) {
            size_t at = any(length);
            switch (any(4)) {
            case 0:
                damaged[at] = characters[any(sizeof characters - 1)];
                break;
            case 1:
                damaged[at] ^= 1 << any(8);
                break;
            case 2: {
                size_t cut = any(length - at) % 20;
                memmove(damaged + at, damaged + at + cut, length - at - cut);
                length -= cut;
                break;
            }
            default:
                if (any(8) == 0)
                    length = at + 1;
            }
        }
        struct dhat_file again;
        char *problem = read_text(damaged, length, &again);
        if (!problem) {
            read++;
            free(printed(&again, dhat_metrics[any(dhat_metric_count)].name, any(2)));
        }
        free(problem);
        dhat_file_free(&again);
        free(damaged);
    }
    CHECK(read > 100); // some damage hits what nobody reads
    free(whole);
    dhat_file_free(&file);
}

UNIT_MAIN()

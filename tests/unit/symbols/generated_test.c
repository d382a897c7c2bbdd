/* Names of generated code: pieces that replace each other, and maps that cannot be trusted. */
#include "unit.h"

#include "symbols/generated.h"
#include "symbols/symbols.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name_at(struct generated *generated, uint64_t address) {
    const struct generated_piece *piece = generated_find(generated, address);
    return piece ? piece->name : "";
}

TEST(lines_of_a_map) {
    struct names *names = names_new();
    struct generated *generated = generated_new(names);
    static const char text[] = "1000 10 one\n"
                               "0x2000 0x20 two words /a/b.js:3:4\n"
                               "3000 0 empty\n"
                               "4000 ten no number\n"
                               "5000 10\n"
                               "6000 10 \n"
                               "fffffffffffffffff 10 too large\n"
                               "ffffffffffff0000 10 not a user address\n"
                               "7000 ffffffffffff too long\n"
                               "\n"
                               " 8000 10 indented\n"
                               "9000 10 cut of";
    CHECK_EQ(generated_parse(generated, text, sizeof text - 1),
             sizeof text - 1 - strlen("9000 10 cut of"));
    CHECK_STR(name_at(generated, 0xfff), "");
    CHECK_STR(name_at(generated, 0x1000), "one");
    CHECK_STR(name_at(generated, 0x100f), "one");
    CHECK_STR(name_at(generated, 0x1010), "");
    CHECK_STR(name_at(generated, 0x201f), "two words /a/b.js:3:4");
    for (uint64_t at = 0x3000; at <= 0x9000; at += 0x1000)
        CHECK_STR(name_at(generated, at), "");
    CHECK_STR(name_at(generated, 0xffffffffffff0000), "");
    generated_check(generated);
    generated_release(generated);
    names_free(names);
}

/* Against the definition: the last piece that contains the address. */
TEST(the_last_piece_counts) {
    unsigned seed = 1;
    for (int round = 0; round < 500; round++) {
        struct names *names = names_new();
        struct generated *generated = generated_new(names);
        struct {
            uint64_t start, end;
        } kept[40];
        for (unsigned i = 0; i < 40; i++) {
            kept[i].start = 1 + (uint64_t)rand_r(&seed) % 200;
            kept[i].end = kept[i].start + 1 + (uint64_t)rand_r(&seed) % 60;
            char name[16];
            snprintf(name, sizeof name, "%u", i);
            generated_add(generated, kept[i].start, kept[i].end, name, NULL, 0);
        }
        for (uint64_t at = 0; at < 300; at++) {
            char expected[16] = "";
            for (unsigned i = 0; i < 40; i++)
                if (at >= kept[i].start && at < kept[i].end)
                    snprintf(expected, sizeof expected, "%u", i);
            CHECK_STR(name_at(generated, at), expected);
        }
        generated_check(generated);
        generated_release(generated);
        names_free(names);
    }
}

/* Damage in every form: whatever is read, nothing breaks and invariants hold. */
TEST(damaged_maps_do_no_harm) {
    static const char good[] = "7f0000001000 40 JS:*fib /tmp/fib.js:1:13\n"
                               "7f0000001000 80 JS:^fib /tmp/fib.js:1:13\n"
                               "7f0000002000 10 Builtin:Call\n";
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (int i = rand_r(&seed) % 8; i >= 0; i--)
            text[(size_t)rand_r(&seed) % (sizeof good - 1)] = (char)rand_r(&seed);
        size_t size = (size_t)rand_r(&seed) % sizeof good;
        struct names *names = names_new();
        struct generated *generated = generated_new(names);
        CHECK(generated_parse(generated, text, size) <= size);
        generated_find(generated, 0x7f0000001010);
        generated_find(generated, 0);
        generated_find(generated, UINT64_MAX);
        generated_check(generated);
        generated_release(generated);
        names_free(names);
    }
}

/* ------------------------------------------------------------------ jit dumps */

/* A record of code; its size. */
static size_t put_loaded(uint8_t *to, uint64_t time, uint64_t start, uint64_t size,
                         const char *name) {
    uint32_t whole = (uint32_t)(56 + strlen(name) + 1 + 4);
    memset(to, 0, whole);
    memcpy(to + 4, &whole, sizeof whole);
    memcpy(to + 8, &time, sizeof time);
    memcpy(to + 32, &start, sizeof start);
    memcpy(to + 40, &size, sizeof size);
    memcpy(to + 56, name, strlen(name));
    return whole;
}

static size_t put_moved(uint8_t *to, uint64_t time, uint64_t from, uint64_t start, uint64_t size) {
    uint32_t kind = 1, whole = 64;
    memset(to, 0, whole);
    memcpy(to, &kind, sizeof kind);
    memcpy(to + 4, &whole, sizeof whole);
    memcpy(to + 8, &time, sizeof time);
    memcpy(to + 32, &from, sizeof from);
    memcpy(to + 40, &start, sizeof start);
    memcpy(to + 48, &size, sizeof size);
    return whole;
}

/* Three pieces at one address, one after the other, and one that moves. */
static size_t put_dump(uint8_t *to) {
    static const uint32_t magic = 0x4a695444, head = 40;
    size_t size = head;
    memset(to, 0, head);
    memcpy(to, &magic, sizeof magic);
    memcpy(to + 8, &head, sizeof head);
    size += put_loaded(to + size, 100, 0x1000, 0x40, "first");
    size += put_loaded(to + size, 200, 0x1000, 0x20, "second");
    size += put_loaded(to + size, 300, 0x5000, 0x20, "third");
    size += put_moved(to + size, 400, 0x5000, 0x1000, 0x20);
    return size;
}

static const char *name_then(struct generated *generated, uint64_t address, uint64_t time) {
    const struct generated_piece *piece = generated_find_at(generated, address, time);
    return piece ? piece->name : "";
}

TEST(jit_dumps_name_by_time) {
    uint8_t dump[1024];
    char path[64];
    snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
    size_t size = put_dump(dump);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(write(fd, dump, size), (ssize_t)size);
    /* A record that is not whole yet. */
    CHECK_EQ(write(fd, dump + 40, 30), 30);
    close(fd);
    CHECK(generated_is_dump(path));
    CHECK(!generated_is_dump("/tmp/jit-.map"));
    CHECK(!generated_is_dump("/tmp/xjit-1.dump"));
    struct names *names = names_new();
    struct generated *generated = generated_new(names);
    generated_follow(generated, getpid(), 1000000000);
    generated_follow_dump(generated, path);
    CHECK_STR(name_then(generated, 0x1000, 99), "");
    CHECK_STR(name_then(generated, 0x1000, 100), "first");
    CHECK_STR(name_then(generated, 0x101f, 250), "second");
    CHECK_STR(name_then(generated, 0x1020, 250), "first");
    CHECK_STR(name_then(generated, 0x1000, 400), "third");
    CHECK_STR(name_then(generated, 0x1000, UINT64_MAX), "third");
    CHECK_STR(name_then(generated, 0x5000, 299), "");
    generated_check(generated);
    generated_release(generated);
    names_free(names);
    unlink(path);
}

TEST(damaged_dumps_do_no_harm) {
    unsigned seed = 11;
    for (int round = 0; round < 20000; round++) {
        uint8_t dump[1024];
        size_t size = put_dump(dump), at = 40;
        for (int i = rand_r(&seed) % 8; i >= 0; i--)
            dump[(size_t)rand_r(&seed) % size] = (uint8_t)rand_r(&seed);
        size_t part = (size_t)rand_r(&seed) % (size + 1);
        uint8_t *copy = malloc(part ? part : 1); /* of its exact size, for the sanitizers */
        memcpy(copy, dump, part);
        struct names *names = names_new();
        struct generated *generated = generated_new(names);
        for (uint64_t step = 1; step && at < part; at += step)
            step = generated_parse_record(generated, copy + at, part - at);
        generated_find(generated, 0x1010);
        generated_check(generated);
        generated_release(generated);
        names_free(names);
        free(copy);
    }
}

/* ------------------------------------------------------------------ files */

enum { SINCE = 1000000000 };

static void map_path(pid_t pid, char path[64]) {
    snprintf(path, 64, "/tmp/perf-%d.map", (int)pid);
    unlink(path);
}

static void write_text(const char *path, const char *text, bool append) {
    int fd = open(path, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* The name that a fresh look at the map of this process finds at 0x1000. */
static bool finds(const char *expected) {
    struct names *names = names_new();
    struct generated *generated = generated_new(names);
    generated_follow(generated, getpid(), SINCE);
    bool is_equal = strcmp(name_at(generated, 0x1000), expected) == 0;
    generated_release(generated);
    names_free(names);
    return is_equal;
}

TEST(maps_that_can_be_trusted) {
    char path[64], other[72];
    map_path(getpid(), path);
    CHECK(finds(""));
    write_text(path, "1000 10 mine\n", false);
    CHECK(finds("mine"));
    /* Older than this process: of an earlier one with the same number. */
    struct timespec old[2] = {{.tv_sec = SINCE}, {.tv_sec = SINCE}};
    CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
    CHECK(finds(""));
    /* A link to a file that would be good. */
    snprintf(other, sizeof other, "%s.other", path);
    write_text(other, "1000 10 linked\n", false);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(symlink(other, path), 0);
    CHECK(finds(""));
    unlink(path);
    unlink(other);
    /* No file at all: opening it must not wait. */
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK(finds(""));
    unlink(path);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK(finds(""));
    rmdir(path);
}

TEST(maps_of_other_users_are_ignored) {
    char path[64];
    if (geteuid() != 0)
        return; /* Only root can make a file of another user. */
    map_path(getpid(), path);
    write_text(path, "1000 10 false\n", false);
    CHECK_EQ(chown(path, 65534, 65534), 0);
    CHECK(finds(""));
    unlink(path);
}

TEST(a_child_has_what_its_parent_generated) {
    char path[64];
    map_path(getpid(), path);
    write_text(path, "1000 10 parent\n2000 10 parent\n", false);
    struct symbols *symbols = symbols_new(NULL);
    struct symbol_frame frame;
    symbols_generated_by(symbols, 1, getpid());
    symbols_fork(symbols, 1, 2);
    symbols_add_code(symbols, 2, 0x5000, 0x5010, "early", NULL, 0);
    symbols_generated_by(symbols, 2, 0x3fffff); /* its own map does not exist */
    symbols_add_code(symbols, 2, 0x2000, 0x2010, "child", "a.py", 7);
    CHECK_EQ(symbols_resolve(symbols, 1, 0x5001, false, &frame, 1), 0);
    CHECK_EQ(symbols_resolve(symbols, 2, 0x5001, false, &frame, 1), 1);
    CHECK_EQ(symbols_resolve(symbols, 2, 0x1001, true, &frame, 1), 1);
    CHECK_STR(frame.name, "parent");
    CHECK_STR(frame.object, SYMBOLS_GENERATED_CODE);
    CHECK_EQ(symbols_resolve(symbols, 2, 0x2004, false, &frame, 1), 1);
    CHECK_STR(frame.name, "child");
    CHECK_STR(frame.file, "a.py");
    CHECK_EQ(frame.line, 7);
    CHECK_EQ(frame.offset, 4);
    CHECK_EQ(symbols_resolve(symbols, 1, 0x2004, false, &frame, 1), 1);
    CHECK_STR(frame.name, "parent");
    symbols_end(symbols, 1);
    CHECK_EQ(symbols_resolve(symbols, 2, 0x1001, false, &frame, 1), 1);
    symbols_check(symbols);
    symbols_free(symbols);
    unlink(path);
}

UNIT_MAIN()

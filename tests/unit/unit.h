// The frame of a unit test: one executable for each module, one line of output for each test.
//
//     TEST(splits_a_range) {
//         CHECK(thing);
//         CHECK_EQ(count, 3);
//     }
//     UNIT_MAIN()
//
// prints `ok splits_a_range` or `not ok splits_a_range - FILE:LINE: reason`; a failed check ends
// its test. SKIP ends one that cannot be tried here (`ok NAME # skipped: reason`). NOTE prints a
// remark (`# …`). Arguments of the program are glob patterns of test names.
#ifndef QUERN_TESTS_UNIT_H
#define QUERN_TESTS_UNIT_H

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct unit_test {
    const char *name;
    void (*run)(void);
    struct unit_test *next;
};

static struct unit_test *unit_first, **unit_end = &unit_first;
static jmp_buf unit_exit;
static char unit_reason[1024];

#define TEST(test)                                                                                 \
    static void test(void);                                                                        \
    static struct unit_test unit_##test = {#test, test, NULL};                                     \
    __attribute__((constructor)) static void unit_register_##test(void) {                          \
        *unit_end = &unit_##test;                                                                  \
        unit_end = &unit_##test.next;                                                              \
    }                                                                                              \
    static void test(void)

enum { UNIT_FAILED = 1, UNIT_SKIPPED };

__attribute__((format(printf, 3, 4), noreturn, unused)) static void
unit_fail(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int used = snprintf(unit_reason, sizeof unit_reason, "%s:%d: ", file, line);
    vsnprintf(unit_reason + used, sizeof unit_reason - used, format, args);
    va_end(args);
    longjmp(unit_exit, UNIT_FAILED);
}

#define SKIP(...) unit_skip(__VA_ARGS__)
__attribute__((format(printf, 1, 2), noreturn, unused)) static void unit_skip(const char *format,
                                                                              ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(unit_reason, sizeof unit_reason, format, args);
    va_end(args);
    longjmp(unit_exit, UNIT_SKIPPED);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            unit_fail(__FILE__, __LINE__, "%s", #condition);                                       \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                 \
    do {                                                                                           \
        long long unit_actual = (long long)(actual), unit_expected = (long long)(expected);        \
        if (unit_actual != unit_expected)                                                          \
            unit_fail(__FILE__, __LINE__, "%s is %lld (%#llx), not %s, %lld (%#llx)", #actual,     \
                      unit_actual, unit_actual, #expected, unit_expected, unit_expected);          \
    } while (0)

#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        const char *unit_actual = (actual), *unit_expected = (expected);                           \
        if (!unit_actual || __builtin_strcmp(unit_actual, unit_expected) != 0)                     \
            unit_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #actual,                     \
                      unit_actual ? unit_actual : "(null)", unit_expected);                        \
    } while (0)

#define NOTE(...) (printf("# " __VA_ARGS__), printf("\n"))

static bool unit_is_wanted(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (fnmatch(argv[i], name, 0) == 0)
            return true;
    return argc == 1;
}

static bool unit_run(const struct unit_test *test) {
    int outcome = setjmp(unit_exit);
    switch (outcome) {
    case 0:
        test->run();
        printf("ok %s\n", test->name);
        break;
    case UNIT_SKIPPED:
        printf("ok %s # skipped: %s\n", test->name, unit_reason);
        break;
    default:
        printf("not ok %s - %s\n", test->name, unit_reason);
    }
    fflush(stdout);
    return outcome != UNIT_FAILED;
}

static bool unit_run_apart(const struct unit_test *test) {
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unit_run(test) ? 0 : 1);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || WIFSIGNALED(status)) {
        printf("not ok %s - its process was ended\n", test->name);
        fflush(stdout);
        return false;
    }
    return status == 0;
}

static int unit_main(int argc, char **argv, bool apart) {
    int failed = 0;
    for (const struct unit_test *test = unit_first; test; test = test->next)
        if (unit_is_wanted(test->name, argc, argv))
            failed += !(apart ? unit_run_apart(test) : unit_run(test));
    return failed ? 1 : 0;
}

#define UNIT_MAIN()                                                                                \
    int main(int argc, char **argv) {                                                              \
        return unit_main(argc, argv, false);                                                       \
    }

// The same, each test in a process of its own: for modules whose state cannot be put back.
#define UNIT_MAIN_APART()                                                                          \
    int main(int argc, char **argv) {                                                              \
        return unit_main(argc, argv, true);                                                        \
    }

#endif

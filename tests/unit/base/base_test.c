#include "unit.h"

#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/glob.h"
#include "base/redirection.h"
#include "base/signal_name.h"
#include "base/template.h"
#include "base/text.h"

TEST(text_grows_and_is_taken) {
    struct text text = {0};
    for (int i = 0; i < 1000; i++)
        text_format(&text, "%d,", i);
    CHECK_EQ(text.size, 3890);
    char *taken = text_take(&text);
    CHECK_EQ(strlen(taken), 3890);
    CHECK(text.bytes == NULL);
    free(taken);
    taken = text_take(&text);
    CHECK_STR(taken, "");
    free(taken);
}

TEST(numbers_have_commas) {
    static const struct {
        uint64_t number;
        const char *shown;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {1234567, "1,234,567"},
                 {UINT64_MAX, "18,446,744,073,709,551,615"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[TEXT_NUMBER_SIZE];
        CHECK_STR(text_number(bytes, cases[i].number), cases[i].shown);
        struct text text = {0};
        text_string(&text, "=");
        text_commas(&text, cases[i].number);
        CHECK_STR(text.bytes + 1, cases[i].shown);
        text_free(&text);
    }
}

TEST(redirections_are_parsed) {
    struct redirection r;
    CHECK(redirection_parse("_vgr00000ZU_NONE_zend_string_equal_val", &r));
    CHECK(!r.wraps);
    CHECK_STR(r.soname, "NONE");
    CHECK_STR(r.function, "zend_string_equal_val");
    CHECK(redirection_parse("_vgw00017ZZ_libZaZdsoZh6_ZuZuaZAZAVZZ", &r));
    CHECK(r.wraps);
    CHECK_STR(r.soname, "lib*.so-6");
    CHECK_STR(r.function, "__a@@VZ");
    CHECK(redirection_parse("_vgw00000ZU_NONE__ZN1AC2Ev", &r));
    CHECK_STR(r.function, "_ZN1AC2Ev");
    CHECK(!redirection_parse("_vgr0000ZU_NONE_f", &r));
    CHECK(!redirection_parse("_vgr00000ZX_NONE_f", &r));
    CHECK(!redirection_parse("_vgr00000ZZ_NONE_fZ", &r));
    CHECK(!redirection_parse("_vgr00000ZZ_NONE_fZx", &r));
    CHECK(!redirection_parse("_vgr00000ZU_NONE", &r));
    CHECK(!redirection_parse("_vgr00000ZU__f", &r));
    CHECK(!redirection_parse("_vgrind", &r));
}

TEST(glob_matches) {
    CHECK(glob_match("*", ""));
    CHECK(glob_match("/usr/*/gcc", "/usr/local/bin/gcc"));
    CHECK(glob_match("a*b*c", "aXbXbc"));
    CHECK(glob_match("?at", "cat"));
    CHECK(!glob_match("?at", "at"));
    CHECK(!glob_match("a*b", "ac"));
    CHECK(!glob_match("", "a"));
    CHECK(!glob_match("[a]", "a"));
}

TEST(glob_lists) {
    CHECK(glob_match_any("a,b*,c", "bcd"));
    CHECK(!glob_match_any("a,b,c", "bcd"));
    CHECK(!glob_match_any("", ""));
    CHECK(!glob_match_any(",,", ""));
    CHECK(glob_match_any(",*", "x"));
}

static char *expand(const char *pattern) {
    char *error = NULL;
    char *name = template_expand(pattern, 42, 7, &error);
    free(error);
    return name;
}

TEST(template_expands) {
    setenv("QUERN_UNIT", "value", 1);
    unsetenv("QUERN_UNSET");
    static const char *const cases[][2] = {
        {"log", "log"},
        {"log.%p", "log.42"},
        {"%p%p.%n", "4242.7"},
        {"a%%p", "a%p"},
        {"%q{QUERN_UNIT}x", "valuex"},
        {"~/x", NULL},
        {"", NULL},
        {"a%", NULL},
        {"a%z", NULL},
        {"%q{QUERN_UNSET}", NULL},
        {"%qX", NULL},
        {"%q{", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *name = expand(cases[i][0]);
        if (cases[i][1])
            CHECK_STR(name, cases[i][1]);
        else if (name)
            unit_fail(__FILE__, __LINE__, "%s was accepted", cases[i][0]);
        free(name);
    }
}

TEST(template_has_pid_sees_only_p) {
    CHECK(template_has_pid("a.%p"));
    CHECK(!template_has_pid("a.%%p"));
    CHECK(!template_has_pid("a.%q{p}"));
    CHECK(!template_has_pid("%"));
}

TEST(signal_names) {
    for (int i = 1; i < 32; i++)
        CHECK(signal_name(i) && strncmp(signal_name(i), "SIG", 3) == 0);
    CHECK_STR(signal_name(SIGSEGV), "SIGSEGV");
    CHECK_STR(signal_name(99), "signal 99");
    CHECK_STR(signal_cause(SIGSEGV, SEGV_MAPERR), "Access not within mapped region");
    CHECK(signal_cause(SIGTERM, SI_USER) == NULL);
}

TEST(fd_moves_out_of_the_way) {
    int fd = fd_move_high(open("/dev/null", O_RDWR));
    CHECK(fd > 100);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(fd_write_all(fd, "abc", 3), 0);
    close(fd);
    CHECK_EQ(fd_write_all(fd, "abc", 3), EBADF);
    CHECK_EQ(fd_move_high(-1), -1);
}

TEST(fd_full_device_is_an_error) {
    int fd = open("/dev/full", O_WRONLY);
    CHECK_EQ(fd_write_all(fd, "abc", 3), ENOSPC);
    close(fd);
}

UNIT_MAIN()

// Which rule forbids attaching, for every rule, whether this kernel has it or not.
#include "attach/refusal.h"

#include <string.h>

#include "unit.h"

static const struct refusal_facts plain = {.pid = 77,
                                           .exists = true,
                                           .process = 77,
                                           .state = 'S',
                                           .uids = {1000, 1000, 1000},
                                           .own_uid = 1000,
                                           .gids = {100, 100, 100},
                                           .own_gid = 100,
                                           .scope = -1};

static void check(char *text, const char *part) {
    if (!text || !strstr(text, part))
        unit_fail(__FILE__, __LINE__, "'%s' is not in '%s'", part, text ? text : "nothing");
    free(text);
}

TEST(nothing_is_known_against_a_plain_process) {
    CHECK(!refusal_before(&plain));
}

TEST(before_anything_is_tried) {
    struct refusal_facts facts = plain;
    facts.exists = false;
    check(refusal_before(&facts), "there is no such process");
    facts = plain;
    facts.is_self = true;
    check(refusal_before(&facts), "quern itself");
    facts = plain;
    facts.process = 70;
    check(refusal_before(&facts), "a thread of process 70");
    facts = plain;
    facts.state = 'Z';
    facts.parent = 12;
    check(refusal_before(&facts), "its parent, process 12");
    facts = plain;
    facts.is_kernel_thread = true;
    check(refusal_before(&facts), "thread of the kernel");
    facts = plain;
    facts.tracer = 55;
    strcpy(facts.tracer_name, "gdb");
    check(refusal_before(&facts), "process 55 (gdb) traces it already");
    facts = plain;
    facts.is_32_bit = true;
    check(refusal_before(&facts), "32-bit");
}

TEST(users_and_groups) {
    struct refusal_facts facts = plain;
    facts.uids[0] = facts.uids[1] = facts.uids[2] = 54321;
    check(refusal_after(&facts), "it belongs to user 54321, and quern runs as user 1000");
    facts = plain;
    facts.uids[2] = 0; // saved: a program that has changed its user
    check(refusal_after(&facts), "it belongs to user");
    facts = plain;
    facts.gids[1] = 5;
    check(refusal_after(&facts), "it runs with group 5, and quern with group 100");
}

TEST(rules_for_ones_own_processes) {
    struct refusal_facts facts = plain;
    facts.is_not_dumpable = true;
    check(refusal_after(&facts), "it is not dumpable");
    facts = plain;
    facts.capabilities = 0x400;
    check(refusal_after(&facts), "capabilities that quern lacks (0x400)");
    facts = plain;
    facts.is_other_users = true;
    check(refusal_after(&facts), "another user namespace");
    facts = plain;
    facts.is_filtered = true;
    check(refusal_after(&facts), "--cap-add=SYS_PTRACE");
    check(refusal_after(&plain), "security module");
}

TEST(yama) {
    struct refusal_facts facts = plain;
    facts.scope = 0;
    check(refusal_after(&facts), "security module");
    facts.scope = 1;
    check(refusal_after(&facts), "kernel.yama.ptrace_scope is 1: a process may attach to its");
    facts.is_child = true; // then it is something else
    check(refusal_after(&facts), "security module");
    facts.scope = 2;
    check(refusal_after(&facts), "kernel.yama.ptrace_scope is 2: only root");
    facts.scope = 3;
    facts.has_capability = true;
    check(refusal_after(&facts), "kernel.yama.ptrace_scope is 3: nobody");
    facts.scope = 1;
    check(refusal_after(&facts), "although quern has CAP_SYS_PTRACE");
}

UNIT_MAIN()

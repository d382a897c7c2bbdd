#include "tools/memcheck/target/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/ranges.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/track/track.h"
#include "tools/shared/stacks.h"

const char monitor_help[] =
    "  xb <addr> [<len>]\n"
    "        prints validity bits for <len> (or 1) bytes at <addr>\n"
    "            bit values 0 = valid, 1 = invalid, __ = unaddressable byte\n"
    "        Then prints the bytes values below the corresponding validity bits\n"
    "  get_vbits <addr> [<len>]\n"
    "        Similar to xb, but only prints the validity bytes by group of 4.\n"
    "  make_memory [noaccess|undefined\n"
    "                     |defined|Definedifaddressable] <addr> [<len>]\n"
    "        mark <len> (or 1) bytes at <addr> with the given accessibility\n"
    "  check_memory [addressable|defined] <addr> [<len>]\n"
    "        check that <len> (or 1) bytes at <addr> have the given accessibility\n"
    "            and outputs a description of <addr>\n"
    "  leak_check [full*|summary]\n"
    "                [kinds kind1,kind2,...|reachable|possibleleak*|definiteleak]\n"
    "                [heuristics heur1,heur2,...]\n"
    "                [new|increased*|changed|any]\n"
    "                [unlimited*|limited <max_loss_records_output>]\n"
    "            * = defaults\n"
    "  block_list <loss_record_nr>|<loss_record_nr_from>..<loss_record_nr_to>\n"
    "                [unlimited*|limited <max_blocks>]\n"
    "        after a leak search, shows the list of blocks of <loss_record_nr>\n"
    "  who_points_at <addr> [<len>]\n"
    "        shows places pointing inside <len> (default 1) bytes at <addr>\n"
    "        (with len 1, only shows \"start pointers\" pointing exactly to <addr>,\n"
    "         with len > 1, will also show \"interior pointers\")\n";

enum { ROW = 8, GROUP = 4, GROUPS = 8 };

// ---- words -------------------------------------------------------------------------------------

char *monitor_word(char **rest) {
    return strtok_r(NULL, " ", rest);
}

static bool read_number(const char *word, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(word, &end, 0);
    return *word && !*end && !errno;
}

bool monitor_range(char *rest, uint64_t *address, uint64_t *length) {
    const char *word = monitor_word(&rest);
    const char *size = word ? monitor_word(&rest) : NULL;
    *length = 1;
    if (!word || !read_number(word, address)) {
        tool_answer("missing or malformed address\n");
        return false;
    }
    if (size && (!read_number(size, length) || !*length)) {
        tool_answer("malformed length\n");
        return false;
    }
    return true;
}

// ---- validity ----------------------------------------------------------------------------------

// What the target may do with a byte. False: it is not addressable.
static bool look_at(uint64_t address, uint8_t *bits) {
    return range_mapped(address, 1) && shadow_state(address, bits);
}

static void add_validity(char *line, uint64_t address, uint64_t *missing) {
    uint8_t bits = 0;
    if (look_at(address, &bits)) {
        sprintf(line + strlen(line), "%02x", bits);
        return;
    }
    strcat(line, "__");
    ++*missing;
}

static void say_missing(uint64_t address, uint64_t length, uint64_t missing) {
    if (missing)
        tool_answer("Address 0x%lX len %lu has %lu bytes unaddressable\n", address, length,
                    missing);
}

static void get_vbits(char *rest) {
    uint64_t address, length, missing = 0;
    if (!monitor_range(rest, &address, &length))
        return;
    for (uint64_t at = 0; at < length; at += GROUP * GROUPS) {
        char line[GROUP * GROUPS * 3 + 2] = "";
        for (uint64_t i = at; i < length && i < at + GROUP * GROUPS; i++) {
            if (i > at && i % GROUP == 0)
                strcat(line, " ");
            add_validity(line, address + i, &missing);
        }
        tool_answer("%s\n", line);
    }
    say_missing(address, length, missing);
}

static void add_value(char *line, uint64_t address) {
    uint8_t byte;
    if (tool_read(&byte, address, 1) == 0)
        sprintf(line + strlen(line), "\t0x%02x", byte);
    else
        strcat(line, "\t0x??");
}

static void show_bytes(char *rest) {
    uint64_t address, length, missing = 0;
    if (!monitor_range(rest, &address, &length))
        return;
    for (uint64_t at = 0; at < length; at += ROW) {
        char bits[128] = "\t", values[128];
        sprintf(values, "0x%lX:", address + at);
        for (uint64_t i = at; i < length && i < at + ROW; i++) {
            strcat(bits, "\t  ");
            add_validity(bits, address + i, &missing);
            add_value(values, address + i);
        }
        tool_answer("%s\n%s\n", bits, values);
    }
    say_missing(address, length, missing);
}

// ---- making and checking -----------------------------------------------------------------------

static bool is_word(const char *word, const char *wanted) {
    return word && strcmp(word, wanted) == 0;
}

static void make_memory(char *rest) {
    const char *state = monitor_word(&rest);
    uint64_t address, length;
    bool is_known = is_word(state, "noaccess") || is_word(state, "undefined") ||
                    is_word(state, "defined") || is_word(state, "Definedifaddressable");
    if (!is_known) {
        tool_answer("%s does not match any of 'noaccess undefined defined "
                    "Definedifaddressable'\n",
                    state ? state : "<empty string>");
        return;
    }
    if (!monitor_range(rest, &address, &length))
        return;
    shadow_has_holes = true;
    if (*state == 'n') {
        shadow_make_noaccess(address, length);
    } else if (*state == 'u') {
        shadow_make_undefined(address, length);
        if (track_origins)
            shadow_set_origin(address, length, stack_here() | ORIGIN_REQUEST);
    } else if (*state == 'd') {
        shadow_make_defined(address, length);
    } else {
        shadow_make_defined_if_addressable(address, length);
    }
}

static void check_memory(char *rest) {
    const char *what = monitor_word(&rest);
    uint64_t address, length, bad;
    bool values = is_word(what, "defined");
    if (!values && !is_word(what, "addressable")) {
        tool_answer("%s does not match any of 'addressable defined'\n",
                    what ? what : "<empty string>");
        return;
    }
    if (!monitor_range(rest, &address, &length))
        return;
    switch (range_check(address, length, values, &bad)) {
    case SHADOW_FINE:
        tool_answer("Address 0x%lX len %lu %s\n", address, length, what);
        break;
    case SHADOW_BAD_ADDRESS:
        tool_answer("Address 0x%lX len %lu not addressable:\nbad address 0x%lX\n", address, length,
                    bad);
        break;
    case SHADOW_BAD_VALUE:
        tool_answer("Address 0x%lX len %lu not defined:\nUninitialised value at 0x%lX\n", address,
                    length, bad);
        break;
    }
    findings_describe(address);
}

static void show_location(char *rest) {
    uint64_t address, length;
    const char *what = monitor_word(&rest);
    (void)what; // "location"
    if (monitor_range(rest, &address, &length))
        findings_describe(address);
}

// ---- the commands ------------------------------------------------------------------------------

static const struct {
    const char *name;
    void (*perform)(char *rest);
} commands[] = {
    {"get_vbits", get_vbits},
    {"xb", show_bytes},
    {"make_memory", make_memory},
    {"check_memory", check_memory},
    {"leak_check", monitor_leak_check},
    {"block_list", monitor_block_list},
    {"who_points_at", monitor_who_points_at},
};

bool monitor_perform(char *command) {
    char *rest;
    if (strncmp(command, "v.info location", 15) == 0) {
        strtok_r(command, " ", &rest);
        show_location(rest);
        return true;
    }
    for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++) {
        size_t size = strlen(commands[i].name);
        if (strncmp(command, commands[i].name, size) != 0 ||
            (command[size] && command[size] != ' '))
            continue;
        strtok_r(command, " ", &rest);
        commands[i].perform(rest);
        return true;
    }
    return false;
}

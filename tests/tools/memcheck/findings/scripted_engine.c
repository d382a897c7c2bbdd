// An engine that runs no target: it plays a script on memcheck's own error code, so that everything
// between a finding and the reader is tested without translating anything.
//
// The words after the target's name are the script:
//
//     map START END OFFSET PATH        unmap START END
//     stack PC...                      the call stack from now on
//     keep NUMBER PC...                a stack that others name by its number
//     block START SIZE live|freed MADE FREED           what the heap knows
//     named START SIZE TEXT MADE                       what the target said of a block
//     onstack START END THREAD FRAME PC BELOW
//     mapping START END PROT anonymous|file|shared|brk|module
//     rsp ADDRESS                      (accesses to 0xdead0... are ignored at the target's wish)
//     thread NUMBER                    times COUNT (of the next word)
//     read ADDRESS SIZE                write ADDRESS SIZE
//     condition ORIGIN                 value SIZE ORIGIN
//     jump ADDRESS                     parameter NAME FAULT ADDRESS ORIGIN
//     client ADDRESS UNADDRESSABLE     free ADDRESS       mismatched ADDRESS
//     overlap NAME TO FROM SIZE HAS_SIZE
//     fishy FUNCTION ARGUMENT VALUE    pool ADDRESS       core WHAT
//     heap ALLOCATIONS FREES BYTES LIVE_BLOCKS LIVE_BYTES
//     count ALLOCATIONS FREES BYTES FREED              the ledger's counters
//     loss KIND STACK BLOCKS BYTES INDIRECT OLD_BLOCKS OLD_BYTES CYCLE
//          HOLDER THREAD ADDRESS PC STEPS
//     leaks FULL AT_END DELTA          sends the losses given so far
//     counted                          tells findings_count()
//     totals                           tells findings_leak_totals()
//     disable BY                       many COUNT (different reads)
//     together THREADS COUNT           (the same, at once)
//     fork                             the child goes on, its parent after the next `joined`
//     exec PATH       away             finish             exit STATUS
//     kill SIGNAL     fatal SIGNAL     sleep MS
//     deaf                             ignores polite signals
//     ending                           says that it is about to end
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/probe.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/findings/ledger.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/requests.h"
#include "tools/shared/stacks.h"
#include "wire/findings.h"
#include "wire/wire_start.h"
#include "wire/wire_target.h"

enum { MOST = 64 };

struct pcs {
    uint64_t pcs[MOST];
    size_t count;
};

static char **next_word;
static struct pcs current, kept[MOST];
static struct heap_block blocks[MOST];
static size_t block_count;
static struct request_block named;
static uint64_t stack_pointer;
static struct {
    uint64_t start, end;
    struct tool_frame frame;
} stack_area;
static struct tool_mapping mapping;
static int thread_number = 1;
static struct heap_totals totals;
static struct loss losses[MOST];
static size_t loss_count;

static const char *word(void) {
    if (!*next_word) {
        fprintf(stderr, "scripted-engine: a word is missing\n");
        exit(99);
    }
    return *next_word++;
}

static uint64_t number(void) {
    return strtoull(word(), NULL, 0);
}

static void read_pcs(struct pcs *to) {
    to->count = 0;
    while (*next_word && strncmp(*next_word, "0x", 2) == 0 && to->count < MOST)
        to->pcs[to->count++] = number();
}

// ---- the engine, as tools see it ---------------------------------------------------------------

size_t tool_stack(uint64_t *pcs, size_t max) {
    size_t count = current.count < max ? current.count : max;
    memcpy(pcs, current.pcs, count * sizeof *pcs);
    return count;
}

int tool_thread_number(void) {
    return thread_number;
}

bool tool_frame_of(uint64_t address, struct tool_frame *frame) {
    *frame = stack_area.frame;
    return address >= stack_area.start && address < stack_area.end;
}

bool tool_mapping_at(uint64_t address, struct tool_mapping *found) {
    *found = mapping;
    return address < mapping.end;
}

const char *tool_option(const char *name) {
    return wire_option(name);
}

void tool_give_ledger(int fd) {
    wire_send_file(WIRE_LEDGER, fd);
}

void tool_with_vectors(tool_function *function, void *argument) {
    function(argument);
}

void tool_send(unsigned type, const void *first, size_t first_size, const void *second,
               size_t second_size) {
    wire_send_parts(type, first, first_size, second, second_size);
}

bool tool_waits_at_errors(void) {
    return false;
}

void tool_error_shown(uint64_t shown) {}

void tool_say(const char *format, ...) {
    char line[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    wire_send_notice(0, line);
}

bool heap_find(uint64_t address, struct heap_block *block) {
    for (size_t i = 0; i < block_count; i++) {
        *block = blocks[i];
        if (address + 16 >= block->start && address < block->start + block->size + 16)
            return true;
    }
    return false;
}

struct heap_totals heap_totals(void) {
    return totals;
}

uint32_t stack_intern(const uint64_t *pcs, size_t count) {
    return 0; // for descriptors only
}

size_t stack_pcs(uint32_t stack, const uint64_t **pcs) {
    *pcs = kept[stack].pcs;
    return kept[stack].count;
}

uint64_t tool_register(unsigned unused) {
    return stack_pointer;
}

bool requests_ignore(uint64_t address) {
    return address >= 0xdead0000 && address < 0xdead1000;
}

bool probe_is_at(uint64_t address) {
    (void)address;
    return false;
}

bool requests_describe(uint64_t address, struct request_block *block) {
    *block = named;
    return address >= named.start && address < named.start + named.size;
}

bool requests_describe_metapool(uint64_t address, struct request_block *block) {
    return false;
}

// ---- the script --------------------------------------------------------------------------------

static bool is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

static bool play_facts(const char *verb) {
    if (is(verb, "map")) {
        uint64_t start = number(), end = number(), offset = number();
        wire_send_module_map(start, end, offset, 5, word());
    } else if (is(verb, "unmap")) {
        uint64_t start = number();
        wire_send_module_unmap(start, number());
    } else if (is(verb, "stack")) {
        read_pcs(&current);
    } else if (is(verb, "keep")) {
        size_t which = number();
        read_pcs(&kept[which % MOST]);
    } else if (is(verb, "block")) {
        struct heap_block *block = &blocks[block_count++ % MOST];
        block->start = number();
        block->size = number();
        block->state = is(word(), "freed") ? HEAP_FREED : HEAP_LIVE;
        block->made_at = (uint32_t)number();
        block->freed_at = (uint32_t)number();
    } else if (is(verb, "named")) {
        named.start = number();
        named.size = number();
        snprintf(named.name, sizeof named.name, "%s", word());
        named.made_at = (uint32_t)number();
    } else if (is(verb, "rsp")) {
        stack_pointer = number();
    } else if (is(verb, "onstack")) {
        stack_area.start = number();
        stack_area.end = number();
        stack_area.frame.thread = (int)number();
        stack_area.frame.frame = (int)number();
        stack_area.frame.pc = number();
        stack_area.frame.below = (int64_t)number();
    } else if (is(verb, "mapping")) {
        mapping = (struct tool_mapping){.start = number()};
        mapping.end = number();
        mapping.prot = (int)number();
        const char *kind = word();
        mapping.is_file = is(kind, "file");
        mapping.is_module = is(kind, "module");
        mapping.is_shared = is(kind, "shared");
        mapping.is_brk = is(kind, "brk");
    } else if (is(verb, "thread")) {
        thread_number = (int)number();
    } else if (is(verb, "heap")) {
        totals.allocations = number();
        totals.frees = number();
        totals.bytes = number();
        totals.live_blocks = number();
        totals.live_bytes = number();
    } else if (is(verb, "count")) {
        struct ledger_heap *counters = ledger_heap_counters();
        counters->allocations += number();
        counters->frees += number();
        counters->bytes += number();
        counters->freed_bytes += number();
    } else {
        return false;
    }
    return true;
}

static bool play_error(const char *verb) {
    if (is(verb, "read") || is(verb, "write")) {
        uint64_t address = number();
        findings_add_access(address, number(), is(verb, "write"));
    } else if (is(verb, "condition")) {
        findings_add_condition((uint32_t)number());
    } else if (is(verb, "value")) {
        unsigned size = (unsigned)number();
        findings_add_value(size, (uint32_t)number());
    } else if (is(verb, "jump")) {
        findings_add_jump(number());
    } else if (is(verb, "parameter")) {
        const char *name = word();
        enum finding_fault fault = (enum finding_fault)number();
        uint64_t address = number();
        findings_add_parameter(name, fault, address, (uint32_t)number());
    } else if (is(verb, "client")) {
        uint64_t address = number();
        findings_add_client_check(address, number() ? FAULT_UNADDRESSABLE : FAULT_UNDEFINED, 0);
    } else if (is(verb, "free")) {
        findings_add_free(number(), "free");
    } else if (is(verb, "mismatched")) {
        findings_add_mismatched_free(number());
    } else if (is(verb, "overlap")) {
        const char *name = word();
        uint64_t to = number(), from = number(), size = number();
        findings_add_overlap(name, to, from, size, number());
    } else if (is(verb, "fishy")) {
        const char *function = word(), *argument = word();
        findings_add_fishy(function, argument, strtoll(word(), NULL, 0));
    } else if (is(verb, "pool")) {
        findings_add_pool(number());
    } else if (is(verb, "core")) {
        findings_add_core_memory(word(), 0);
    } else {
        return false;
    }
    return true;
}

static void play_loss(void) {
    struct loss *loss = &losses[loss_count++ % MOST];
    *loss = (struct loss){.kind = (enum leak_kind)number()};
    loss->stack = (uint32_t)number();
    loss->blocks = number();
    loss->bytes = number();
    loss->indirect_bytes = number();
    loss->old_blocks = number();
    loss->old_bytes = number();
    loss->cycle = number();
    loss->holder = (enum loss_holder)number();
    loss->holder_thread = (int)number();
    loss->holder_address = number();
    loss->holder_pc = number();
    loss->holder_steps = (unsigned)number();
}

static void play_leaks(void) {
    struct leak_search search = {.records = losses, .record_count = loss_count};
    search.full = number();
    search.at_end = number();
    search.is_delta = number();
    findings_send_losses(&search);
    loss_count = 0;
}

static void *raise_many(void *count) {
    for (size_t i = 0; i < *(size_t *)count; i++)
        findings_add_condition(0);
    return NULL;
}

static void play_together(void) {
    pthread_t threads[MOST];
    size_t thread_count = number() % MOST, count = number();
    for (size_t i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, raise_many, &count);
    for (size_t i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void play_many(void) {
    uint64_t first = current.pcs[0];
    for (uint64_t i = number(); i; i--) {
        current.pcs[0] = first + i;
        findings_add_access(0x1000 + i, 1, false);
    }
    current.pcs[0] = first;
}

static void play_fork(void) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        wire_send_forked(parent, getpid());
        findings_forked();
        return;
    }
    while (!is(word(), "joined"))
        continue;
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status))
        tool_say("child exited with %d", WEXITSTATUS(status));
}

static void play_fatal(void) {
    int which = (int)number();
    wire_send_fatal_signal(which, 1, 0x10, getpid(), current.pcs, current.count);
    signal(which, SIG_DFL);
    raise(which);
}

static void play_totals(void) {
    uint64_t bytes[5], block_sums[5];
    findings_leak_totals(bytes, block_sums);
    for (int i = 0; i < 5; i++)
        tool_say("left %lu %lu", bytes[i], block_sums[i]);
}

static int finish(int status) {
    findings_end();
    status = findings_exit_status(status);
    wire_send_exiting(status);
    return status;
}

static int play(void) {
    while (*next_word) {
        const char *verb = word();
        if (is(verb, "times")) {
            uint64_t count = number();
            char **again = next_word;
            for (uint64_t i = 0; i < count; i++) {
                next_word = again;
                play_error(word());
            }
        } else if (play_facts(verb) || play_error(verb)) {
            continue;
        } else if (is(verb, "loss")) {
            play_loss();
        } else if (is(verb, "leaks")) {
            play_leaks();
        } else if (is(verb, "counted")) {
            tool_say("counted %lu", findings_count());
        } else if (is(verb, "totals")) {
            play_totals();
        } else if (is(verb, "disable")) {
            findings_disable(atoi(word()));
        } else if (is(verb, "many")) {
            play_many();
        } else if (is(verb, "together")) {
            play_together();
        } else if (is(verb, "fork")) {
            play_fork();
        } else if (is(verb, "exec")) {
            char *words[] = {*next_word, NULL};
            wire_send_hello(getpid(), getppid(), word(), words);
            findings_start();
        } else if (is(verb, "away")) {
            wire_send_exec_away(WIRE_AWAY_NOT_ASKED, "/bin/true");
            _exit(0);
        } else if (is(verb, "kill")) {
            raise((int)number());
        } else if (is(verb, "fatal")) {
            play_fatal();
        } else if (is(verb, "sleep")) {
            usleep((useconds_t)number() * 1000);
        } else if (is(verb, "deaf")) {
            signal(SIGINT, SIG_IGN);
            signal(SIGTERM, SIG_IGN);
        } else if (is(verb, "ending")) {
            wire_send_ending();
        } else if (is(verb, "finish")) {
            findings_end();
        } else if (is(verb, "exit")) {
            return finish((int)number());
        } else {
            fprintf(stderr, "scripted-engine: no such word: %s\n", verb);
            return 99;
        }
    }
    return finish(0);
}

int main(int argc, char **argv) {
    struct wire_start start;
    if (!wire_start_read(argc, argv, &start) || wire_config_load(start.config) < 0)
        return 97;
    wire_init(start.wire);
    close(start.config);
    wire_send_hello(getpid(), getppid(), start.path, start.argv);
    next_word = start.argv + 1;
    findings_start();
    findings_thread_started();
    return play();
}

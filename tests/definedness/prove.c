// Proves the rules of track against the processor.
//
//   prove [--forms=N] [--states=N] [--only=MNEMONIC] [--verbose]
//
// For every form of every instruction that the differential test knows, some encodings are run in
// random states in which random bits count as undefined. Undefined bits are flipped, one by one and
// together, and the instruction is run natively each time: a bit of the outcome that ever changes
// must be marked undefined (soundness). Where few bits are undefined, all combinations are run, and
// what is marked without ever changing is counted (precision), by the way of following.
#include "places.h"

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../differential/compose.h"
#include "../differential/draft.h"
#include "../differential/enumerate.h"
#include "../differential/execute.h"
#include "../differential/layout.h"
#include "../differential/memory.h"
#include "../differential/shapes.h"
#include "tools/memcheck/track_parts.h"

#define IN  ((struct cpu_state *)(uintptr_t)CONTEXT_IN)
#define OUT ((struct cpu_state *)(uintptr_t)CONTEXT_OUT)

#define CODE (AREA_LOW + AREA_CODE)

enum { SPARSE_MAX = 7, DENSE_RUNS = 48, DRAFTS_MAX = 4096, FAILURES_SHOWN = 60 };

static unsigned forms_wanted = 2, states_wanted = 2;
static const char *only;
static bool verbose;

// ---- figures ----

struct figures {
    unsigned long trials, marked, idle; // bits marked where all combinations ran; never changed
    unsigned long exact_trials;
    unsigned long failures;
};
static struct figures figures[ZYDIS_MNEMONIC_MAX_VALUE + 1];
static track_function *followed_by[ZYDIS_MNEMONIC_MAX_VALUE + 1];
static unsigned long failures, forms_run, forms_not_run, runs;

// ---- drafts of one form, as the differential test's generator hands them over ----

static struct draft *drafts;
static unsigned draft_count, drafts_seen;
static struct random choice = {7};

void draft_bytes(struct draft *d, const void *bytes, size_t count) {
    memcpy(d->code + d->code_length, bytes, count);
    d->code_length += count;
}

void draft_exit(struct draft *d, unsigned exit) {
    uint8_t jump[] = {0xff, 0x24, 0x25, 0, 0, 0, 0};
    uint32_t address = CONTEXT_EXITS + 8 * exit;
    memcpy(jump + 3, &address, 4);
    draft_bytes(d, jump, sizeof jump);
}

void draft_patch(struct draft *d, unsigned at, unsigned end, uint32_t target) {
    d->patches[d->patch_count++] = (struct draft_patch){at, end, target};
}

// A random selection of those that come.
void draft_add(const struct draft *d) {
    unsigned at = draft_count;
    drafts_seen++;
    if (draft_count < forms_wanted)
        draft_count++;
    else if ((at = random_below(&choice, drafts_seen)) >= forms_wanted)
        return;
    drafts[at] = *d;
}

void draft_skip(const char *reason) {}
void draft_ignore(const char *reason) {}
void compose_relative(const struct draft *branch, const ZydisDecodedInstruction *instruction) {}
bool compose_is_rare(const ZydisDecodedInstruction *instruction) {
    return false;
}
void compose_remember(const struct draft *single, const ZydisDecodedInstruction *instruction) {}

// ---- one trial ----

struct trial {
    struct scene scene;
    const struct draft *draft;
    const struct track *track;
    struct cpu_state in;
    uint32_t undefined_flags;
    struct {
        unsigned place;
        uint8_t bit;
    } inputs[PLACES_MAX * 8 + 8]; // undefined bits; place PLACES_MAX: a flag
    unsigned input_count;
    uint8_t base[OUTCOME_MAX], changed[OUTCOME_MAX], marked[OUTCOME_MAX];
    unsigned outcome_size;
};
static struct trial trial;

static void make_undefined(struct trial *t, unsigned place, unsigned bit) {
    struct place *p = &t->scene.places[place];
    if (*p->shadow >> bit & 1 || t->input_count >= sizeof t->inputs / sizeof *t->inputs)
        return;
    *p->shadow |= 1 << bit;
    t->inputs[t->input_count].place = place;
    t->inputs[t->input_count++].bit = bit;
}

static void make_flag_undefined(struct trial *t, unsigned bit) {
    if (t->undefined_flags >> bit & 1)
        return;
    t->undefined_flags |= 1u << bit;
    t->inputs[t->input_count].place = PLACES_MAX;
    t->inputs[t->input_count++].bit = bit;
}

static void clear_shadow(struct trial *t) {
    memset(&engine_shadow, 0, sizeof engine_shadow);
    for (unsigned i = 0; i < t->scene.window_count; i++)
        for (unsigned j = 0; j < t->scene.windows[i].size; j++)
            *engine_shadow_byte(t->scene.windows[i].start + j) = 0;
    for (unsigned i = 0; i < t->scene.place_count; i++)
        *t->scene.places[i].shadow = 0;
    t->input_count = t->undefined_flags = 0;
}

static void choose_sparse(struct trial *t, struct random *r) {
    unsigned wanted = 1 + random_below(r, SPARSE_MAX);
    static const uint8_t flags[] = {0, 2, 4, 6, 7, 11};
    for (unsigned i = 0; i < wanted; i++) {
        unsigned group = random_below(r, t->scene.group_count + t->scene.has_flags);
        if (group >= t->scene.group_count) {
            make_flag_undefined(t, flags[random_below(r, sizeof flags)]);
            continue;
        }
        unsigned first = 0, count = 0;
        for (unsigned j = 0; j < t->scene.place_count; j++)
            if (t->scene.places[j].group == group) {
                first = count++ ? first : j;
            }
        // Neighbouring bits meet more often in one lane.
        unsigned near = random_below(r, 2) ? count : count < 4 ? count : 4;
        make_undefined(t, first + random_below(r, near), random_below(r, 8));
    }
}

static void choose_dense(struct trial *t, struct random *r) {
    unsigned kind = random_below(r, 4);
    uint64_t groups = random_below(r, 4) ? random_next(r) : ~0ul;
    for (unsigned i = 0; i < t->scene.place_count; i++) {
        uint8_t bits = kind == 0   ? 0xff
                       : kind == 1 ? random_next(r)
                       : kind == 2 ? (random_below(r, 2) ? 0xff : 0)
                                   : (random_below(r, 8) ? 0 : random_next(r));
        if (!(groups >> t->scene.places[i].group % 64 & 1))
            continue;
        for (unsigned bit = 0; bit < 8; bit++)
            if (bits >> bit & 1)
                make_undefined(t, i, bit);
    }
    if (t->scene.has_flags && random_below(r, 2))
        for (unsigned bit = 0; bit < 12; bit++)
            if (FLAGS_ALL >> bit & 1 && random_below(r, 2))
                make_flag_undefined(t, bit);
}

static void note_units(void) {
    struct shadow_registers *s = &engine_shadow;
    for (unsigned i = 0; i < 16; i++)
        s->undefined[i] = s->general[i] != 0;
    for (unsigned i = 0; i < 8; i++) {
        s->undefined[TOOL_UNIT_MASK + i] = s->mask[i] != 0;
        if (s->x87[i][0] | s->x87[i][1])
            s->undefined[TOOL_UNIT_X87] = 1;
    }
    for (unsigned i = 0; i < 32; i++)
        for (unsigned j = 0; j < 8; j++)
            if (s->vector[i][j])
                s->undefined[TOOL_UNIT_VECTOR + i] = 1;
}

static void flip(struct trial *t, unsigned input) {
    if (t->inputs[input].place == PLACES_MAX)
        IN->flags ^= 1ul << t->inputs[input].bit;
    else
        *t->scene.places[t->inputs[input].place].value ^= 1 << t->inputs[input].bit;
}

// A fault outside a form is this program's own.
static volatile bool in_form;
static struct sigaction of_forms;

static void handle_fault(int signal, siginfo_t *info, void *context) {
    if (in_form) {
        of_forms.sa_sigaction(signal, info, context);
        return;
    }
    const ucontext_t *where = context;
    fprintf(stderr, "signal %d at %#llx, address %p, outside the instruction under test\n", signal,
            where->uc_mcontext.gregs[REG_RIP], info->si_addr);
    _exit(3);
}

static void guard_faults(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    struct sigaction action = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, &of_forms);
}

// Runs the instruction natively; false if it faults.
static bool run_natively(struct trial *t) {
    in_form = true;
    execute(&t->draft->form, CODE + t->draft->entry);
    in_form = false;
    runs++;
    return OUT->signal == 0;
}

static void put_back(struct trial *t) {
    memcpy(IN, &t->in, sizeof t->in);
    scene_restore_memory(&t->scene);
}

static void run_variation(struct trial *t) {
    static uint8_t outcome[OUTCOME_MAX];
    if (run_natively(t)) {
        unsigned size = scene_outcome(&t->scene, outcome);
        for (unsigned i = 0; i < size; i++)
            t->changed[i] |= outcome[i] ^ t->base[i];
    }
    put_back(t);
}

static void run_all_combinations(struct trial *t) {
    for (unsigned combination = 1; combination < 1u << t->input_count; combination++) {
        for (unsigned i = 0; i < t->input_count; i++)
            if (combination >> i & 1)
                flip(t, i);
        run_variation(t);
    }
}

static void run_some_combinations(struct trial *t, struct random *r) {
    for (unsigned run = 0; run < DENSE_RUNS; run++) {
        if (run % 2)
            flip(t, random_below(r, t->input_count));
        else
            for (unsigned i = 0; i < t->input_count; i++)
                if (run == 0 || random_below(r, 2))
                    flip(t, i);
        run_variation(t);
    }
}

static void describe_failure(struct trial *t, const char *what, unsigned byte) {
    char text[128], place[64];
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterFormatInstruction(&formatter, t->scene.instruction, t->scene.operands,
                                    t->scene.instruction->operand_count_visible, text, sizeof text,
                                    CODE, NULL);
    figures[t->scene.instruction->mnemonic].failures++;
    failures++;
    if (failures > FAILURES_SHOWN && !only)
        return;
    printf("# %s: %s: %s: marked %02x, changes %02x\n", what, text,
           scene_name_outcome(&t->scene, byte, place), t->marked[byte], t->changed[byte]);
    for (unsigned i = 0; i < t->input_count && i < 8; i++) {
        struct place *p = &t->scene.places[t->inputs[i].place];
        if (t->inputs[i].place == PLACES_MAX)
            printf("#   undefined flag %u\n", t->inputs[i].bit);
        else
            printf("#   undefined bit %u of byte %u of operand group %u\n", t->inputs[i].bit,
                   t->inputs[i].place, p->group);
    }
}

// Conditions that rest on flags which the architecture leaves open are nobody's business.
static void drop_open_flags(struct trial *t) {
    uint16_t mask = 0;
    uint32_t open = t->scene.instruction->cpu_flags->undefined;
    for (unsigned bit = 0; bit < 12; bit++)
        if (open >> bit & FLAGS_ALL >> bit & 1)
            for (uint32_t flags = 0; flags < 0x1000; flags++)
                if (!(flags & ~FLAGS_ALL))
                    mask |= conditions_of(flags) ^ conditions_of(flags ^ 1u << bit);
    for (unsigned i = 0; i < 2; i++) {
        t->changed[OUTCOME_CONDITIONS + i] &= ~(mask >> 8 * i);
        t->marked[OUTCOME_CONDITIONS + i] &= ~(mask >> 8 * i);
    }
}

static void compare(struct trial *t, bool complete) {
    struct figures *f = &figures[t->scene.instruction->mnemonic];
    bool failed = false;
    unsigned long marked = 0, idle = 0;
    if (t->scene.instruction->cpu_flags->undefined & FLAGS_ALL)
        drop_open_flags(t);
    for (unsigned i = 0; i < t->outcome_size; i++) {
        if (t->changed[i] & ~t->marked[i] && !failed) {
            describe_failure(t, "unsound", i);
            failed = true;
        }
        marked += __builtin_popcount(t->marked[i]);
        idle += __builtin_popcount(t->marked[i] & ~t->changed[i]);
    }
    f->trials++;
    if (complete) {
        f->exact_trials++;
        f->marked += marked;
        f->idle += idle;
        if (verbose && idle)
            for (unsigned i = 0; i < t->outcome_size; i++)
                if (t->marked[i] & ~t->changed[i]) {
                    describe_failure(t, "imprecise", i);
                    failures--;
                    f->failures--;
                    break;
                }
    }
}

// What track leaves behind must be what it found. It may read mmx registers of instructions that
// use them, which makes them the bottom of the x87 stack, as the instruction itself will.
static bool registers_changed(const struct trial *t) {
    const struct xsave_layout *l = &state_xsave_layout;
    bool changed = memcmp(OUT->xsave + XSAVE_XMM, IN->xsave + XSAVE_XMM, 16 * 16);
    bool has_mmx = false;
    for (unsigned i = 0; i < t->scene.instruction->operand_count; i++)
        has_mmx |= t->scene.operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                   ZydisRegisterGetClass(t->scene.operands[i].reg.value) == ZYDIS_REGCLASS_MMX;
    if (!has_mmx)
        changed |= memcmp(OUT->xsave + XSAVE_ST, IN->xsave + XSAVE_ST, 8 * 16) != 0;
    for (unsigned i = PART_AVX; i < PARTS; i++)
        changed |= memcmp(OUT->xsave + l->offset[i], IN->xsave + l->offset[i], l->size[i]) != 0;
    return changed;
}

// Units that the instruction does not read, by track_units, must not matter to it; what it kills
// must be defined if nothing that it reads is undefined.
static void run_trial(struct trial *t, struct random *r, bool sparse) {
    clear_shadow(t);
    if (!t->scene.group_count && !t->scene.has_flags)
        return;
    if (sparse)
        choose_sparse(t, r);
    else
        choose_dense(t, r);
    if (!t->input_count)
        return;
    note_units();
    scene_set_flags(t->undefined_flags);
    memset(&engine_complaints, 0, sizeof engine_complaints);
    engine_run(t->track);
    if (registers_changed(t))
        describe_failure(t, "vector registers changed", 0);
    t->outcome_size = scene_marked(&t->scene, t->marked);
    memset(t->changed, 0, t->outcome_size);
    put_back(t);
    if (sparse)
        run_all_combinations(t);
    else
        run_some_combinations(t, r);
    // What has been reported counts as defined: the way of a loop, the index of a table.
    if (!engine_complaints.conditions && !engine_complaints.values)
        compare(t, sparse);
}

// ---- all forms ----

static bool is_wanted(const struct draft *d) {
    switch (d->group) {
    case GROUP_GENERAL:
    case GROUP_STACK:
    case GROUP_STRING:
    case GROUP_X87:
    case GROUP_MMX:
    case GROUP_SSE:
    case GROUP_VEX:
    case GROUP_EVEX:
    case GROUP_MASK:
    case GROUP_XOP:
        return !d->form.ignored_gprs && !(d->form.limits & LIMIT_SEGMENT_LOAD);
    default:
        return false;
    }
}

static void place_code(const struct draft *d) {
    uint8_t *code = (uint8_t *)CODE;
    memcpy(code, d->code, d->code_length);
    for (unsigned i = 0; i < d->patch_count; i++) {
        int32_t distance = AREA_LOW + d->patches[i].target - (CODE + d->patches[i].end);
        memcpy(code + d->patches[i].at, &distance, 4);
    }
}

static void ignore_change(uint64_t address, uint64_t value, void *argument) {}

static void prove(const struct draft *d, uint32_t id) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct random r = {id};
    place_code(d);
    const uint8_t *bytes = (const uint8_t *)CODE + d->entry;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&enumerate_decoder, bytes,
                                             ZYDIS_MAX_INSTRUCTION_LENGTH, &instruction, operands)))
        return;
    if (only && strcmp(ZydisMnemonicGetString(instruction.mnemonic), only))
        return;
    trial.draft = d;
    trial.track = track_prepare((uint64_t)bytes, bytes, &instruction, operands);
    if (!trial.track)
        return;
    followed_by[instruction.mnemonic] = trial.track->run;
    bool any = false;
    for (unsigned number = 0; number < states_wanted * 2; number++) {
        if (number % 4 == 3)
            continue;
        state_make(&d->form, id, number, AREA_LOW, IN);
        memcpy(&trial.in, IN, sizeof trial.in);
        *(uint64_t *)CONTEXT_ENTRY = (uint64_t)bytes;
        trial.scene.instruction = &instruction;
        trial.scene.operands = operands;
        trial.scene.form = &d->form;
        scene_make(&trial.scene);
        bool ran = run_natively(&trial);
        scene_outcome(&trial.scene, trial.base);
        put_back(&trial);
        if (!ran)
            continue;
        any = true;
        run_trial(&trial, &r, true);
        run_trial(&trial, &r, false);
        memory_restore(ignore_change, NULL);
    }
    forms_run += any;
    forms_not_run += !any;
    track_forget_all();
}

static void parse(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--forms=", 8))
            forms_wanted = atoi(argv[i] + 8);
        else if (!strncmp(argv[i], "--states=", 9))
            states_wanted = atoi(argv[i] + 9);
        else if (!strncmp(argv[i], "--only=", 7))
            only = argv[i] + 7;
        else if (!strcmp(argv[i], "--verbose"))
            verbose = true;
        else
            errx(2, "usage: %s [--forms=N] [--states=N] [--only=MNEMONIC] [--verbose]", argv[0]);
    }
    if (forms_wanted < 1 || forms_wanted > DRAFTS_MAX)
        errx(2, "--forms: 1 to %d", DRAFTS_MAX);
}

static void report(void) {
    unsigned long trials = 0, marked = 0, idle = 0;
    for (unsigned m = 0; m <= ZYDIS_MNEMONIC_MAX_VALUE; m++) {
        const struct figures *f = &figures[m];
        if (!f->trials)
            continue;
        trials += f->trials;
        marked += f->marked;
        idle += f->idle;
        printf("figure %s %s trials %lu marked %lu idle %lu failures %lu\n",
               ZydisMnemonicGetString(m), followed_by[m] == track_fallback ? "fallback" : "rule",
               f->trials, f->marked, f->idle, f->failures);
    }
    printf("total forms %lu not-run %lu trials %lu runs %lu marked %lu idle %lu failures %lu\n",
           forms_run, forms_not_run, trials, runs, marked, idle, failures);
}

int main(int argc, char **argv) {
    parse(argc, argv);
    drafts = calloc(DRAFTS_MAX, sizeof *drafts);
    memory_map(AREA_HIGH);
    state_init(AREA_HIGH);
    execute_init();
    guard_faults();
    void *code = mmap((void *)CODE, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (code != (void *)CODE)
        err(2, "cannot map code");
    track_start();
    struct base_forms all = enumerate();
    struct random random = {3};
    uint32_t id = 0;
    for (size_t i = 0; i < all.count; i++) {
        draft_count = drafts_seen = 0;
        shapes_expand(&all.form[i], &random);
        for (unsigned j = 0; j < draft_count; j++)
            if (is_wanted(&drafts[j]))
                prove(&drafts[j], ++id);
    }
    report();
    return failures ? 1 : 0;
}

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

#include "../../../engine/differential/compose.h"
#include "../../../engine/differential/draft.h"
#include "../../../engine/differential/enumerate.h"
#include "../../../engine/differential/execute.h"
#include "../../../engine/differential/layout.h"
#include "../../../engine/differential/memory.h"
#include "../../../engine/differential/shapes.h"
#include "tools/memcheck/target/track/parts.h"

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
    unsigned long plain_trials, plain_marked, plain_idle; // of these, where exactness is expected
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
        s->undefined[SHADOW_UNIT_MASK + i] = s->mask[i] != 0;
        if (s->x87[i][0] | s->x87[i][1])
            s->undefined[SHADOW_UNIT_X87] = 1;
    }
    for (unsigned i = 0; i < 32; i++)
        for (unsigned j = 0; j < 8; j++)
            if (s->vector[i][j])
                s->undefined[SHADOW_UNIT_VECTOR + i] = 1;
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

static void show(struct trial *t, const char *what, unsigned byte) {
    char text[128], place[64];
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterFormatInstruction(&formatter, t->scene.instruction, t->scene.operands,
                                    t->scene.instruction->operand_count_visible, text, sizeof text,
                                    CODE, NULL);
    printf("# %s: %s: %s: marked %02x, changes %02x\n", what, text,
           scene_name_outcome(&t->scene, byte, place), t->marked[byte], t->changed[byte]);
    for (unsigned i = 0; i < t->input_count && i < 8; i++) {
        struct place *p = &t->scene.places[t->inputs[i].place];
        if (t->inputs[i].place == PLACES_MAX)
            printf("#   undefined flag %u\n", t->inputs[i].bit);
        else
            printf("#   undefined bit %u of byte %u of operand %u\n", t->inputs[i].bit,
                   t->inputs[i].place, t->scene.group_operands[p->group]);
    }
}

static void fail(struct trial *t, const char *what, unsigned byte) {
    figures[t->scene.instruction->mnemonic].failures++;
    if (++failures <= FAILURES_SHOWN)
        show(t, what, byte);
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

// Whether the rules may be less than exact here: a register that is used twice, or an undefined
// operand that steers others.
static bool is_excused(const struct trial *t) {
    const ZydisDecodedOperand *operands = t->scene.operands;
    unsigned count = t->scene.instruction->operand_count, steering = 0;
    for (unsigned i = 0; i < count; i++) {
        if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
            continue;
        if (operands[i].encoding == ZYDIS_OPERAND_ENCODING_MASK)
            steering |= 1u << i;
        for (unsigned j = i + 1; j < count; j++)
            if (operands[j].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                                 operands[i].reg.value) ==
                    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                                     operands[j].reg.value))
                return true;
    }
    // Writemasks are no operands to track.
    for (unsigned i = 0, own = 0; i < count; i++)
        if (!(steering >> i & 1) && own++ == t->track->control)
            steering |= 1u << i;
    for (unsigned i = 0; i < t->input_count; i++) {
        unsigned place = t->inputs[i].place;
        if (place != PLACES_MAX &&
            steering >> t->scene.group_operands[t->scene.places[place].group] & 1)
            return true;
    }
    return false;
}

static void count_precision(struct trial *t) {
    struct figures *f = &figures[t->scene.instruction->mnemonic];
    unsigned long marked = 0, idle = 0;
    int first = -1;
    // Parity is a matter of single bits: nobody decides by it but for floating point.
    t->marked[OUTCOME_CONDITIONS] &= ~(1 << COND_P);
    for (unsigned i = 0; i < t->outcome_size; i++) {
        uint8_t still = t->marked[i] & ~t->changed[i];
        marked += __builtin_popcount(t->marked[i]);
        idle += __builtin_popcount(still);
        if (still && first < 0)
            first = i;
    }
    f->marked += marked;
    f->idle += idle;
    if (is_excused(t))
        return;
    f->plain_trials++;
    f->plain_marked += marked;
    f->plain_idle += idle;
    if (verbose && first >= 0)
        show(t, "imprecise", first);
}

static void compare(struct trial *t, bool complete) {
    figures[t->scene.instruction->mnemonic].trials++;
    if (t->scene.instruction->cpu_flags->undefined & FLAGS_ALL)
        drop_open_flags(t);
    for (unsigned i = 0; i < t->outcome_size; i++)
        if (t->changed[i] & ~t->marked[i]) {
            fail(t, "unsound", i);
            break;
        }
    if (complete)
        count_precision(t);
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

// What track_units says: units that are not read must not matter to anything that is written, and
// nothing changes but what is written.
static void run_unread_trial(struct trial *t, struct random *r) {
    struct track_units units = track_units(t->scene.instruction, t->scene.operands);
    clear_shadow(t);
    for (unsigned i = 0; i < t->scene.place_count; i++) {
        int unit = t->scene.places[i].unit;
        for (unsigned bit = 0; unit >= 0 && !(units.reads >> unit & 1) && bit < 8; bit++)
            make_undefined(t, i, bit);
    }
    if (t->scene.has_flags && !(units.reads >> SHADOW_UNIT_FLAGS & 1))
        for (unsigned bit = 0; bit < 12; bit++)
            if (FLAGS_ALL >> bit & 1)
                make_flag_undefined(t, bit);
    t->outcome_size = scene_outcome(&t->scene, t->marked);
    memset(t->changed, 0, t->outcome_size);
    memset(t->marked, 0, t->outcome_size);
    if (t->input_count)
        run_some_combinations(t, r);
    uint64_t touched = units.writes;
    for (unsigned i = 0; i < t->input_count; i++)
        touched |=
            1ul << (t->inputs[i].place == PLACES_MAX ? SHADOW_UNIT_FLAGS
                                                     : t->scene.places[t->inputs[i].place].unit);
    if (t->scene.instruction->cpu_flags->undefined & FLAGS_ALL)
        drop_open_flags(t);
    for (unsigned i = 0; i < t->outcome_size; i++) {
        int unit = scene_unit_of(i);
        bool is_written = unit < 0 || units.writes >> unit & 1;
        if (t->changed[i] && (is_written || !(touched >> unit & 1))) {
            fail(t, "depends on a unit that is not read", i);
            break;
        }
    }
    if (units.kills & ~units.writes)
        fail(t, "kills what it does not write", 0);
}

// Units that change though they are not written.
static void check_written_units(struct trial *t) {
    struct track_units units = track_units(t->scene.instruction, t->scene.operands);
    uint64_t inputs = 0;
    for (unsigned i = 0; i < t->input_count; i++) {
        unsigned place = t->inputs[i].place;
        int unit = place == PLACES_MAX ? SHADOW_UNIT_FLAGS : t->scene.places[place].unit;
        inputs |= unit >= 0 ? 1ul << unit : 0;
    }
    for (unsigned i = 0; i < t->outcome_size; i++) {
        int unit = scene_unit_of(i);
        if (unit >= 0 && (t->changed[i] || t->marked[i]) &&
            !((units.writes | inputs) >> unit & 1)) {
            fail(t, "changes a unit that is not written", i);
            return;
        }
    }
}

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
    memset(&engine_findings, 0, sizeof engine_findings);
    engine_run(t->track);
    if (registers_changed(t))
        fail(t, "vector registers changed", 0);
    t->outcome_size = scene_marked(&t->scene, t->marked);
    memset(t->changed, 0, t->outcome_size);
    put_back(t);
    if (sparse)
        run_all_combinations(t);
    else
        run_some_combinations(t, r);
    // What has been reported counts as defined: the way of a loop, the index of a table.
    if (!engine_findings.conditions && !engine_findings.values) {
        compare(t, sparse);
        check_written_units(t);
    }
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
    engine_clear_shadow();
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
        run_unread_trial(&trial, &r);
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
        printf("figure %s %s trials %lu marked %lu idle %lu plain-trials %lu plain-marked %lu "
               "plain-idle %lu failures %lu\n",
               ZydisMnemonicGetString(m), followed_by[m] == track_fallback ? "fallback" : "rule",
               f->trials, f->marked, f->idle, f->plain_trials, f->plain_marked, f->plain_idle,
               f->failures);
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

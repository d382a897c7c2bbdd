// The words of findings and losses: Valgrind's, since people and programs know them.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "report/findings/named_finding.h"

void text_delta(struct text *text, uint64_t now, uint64_t before, bool is_delta) {
    if (!is_delta)
        return;
    text_string(text, now >= before ? " (+" : " (-");
    text_commas(text, now >= before ? now - before : before - now);
    text_char(text, ')');
}

// ---- headlines ---------------------------------------------------------------------------------

static const char *fault_words(const struct finding_facts *facts) {
    switch (facts->fault) {
    case FAULT_REGISTER:
        return "contains uninitialised byte(s)";
    case FAULT_UNADDRESSABLE:
        return "points to unaddressable byte(s)";
    default:
        return "points to uninitialised byte(s)";
    }
}

static void add_alignment(struct text *text, uint64_t alignment) {
    if (alignment)
        text_format(text, "%" PRIu64, alignment);
    else
        text_string(text, "default-aligned");
}

// What follows the number in the description of a descriptor.
static const char *path_of(const char *description) {
    const char *colon = strchr(description, ':');
    return colon && colon[1] ? colon + 2 : "";
}

static void add_headline(const struct named_finding *finding, struct text *text) {
    const struct finding_facts *facts = &finding->facts;
    const char *name = finding->names[0];
    switch ((enum finding_kind)facts->kind) {
    case FINDING_READ:
    case FINDING_WRITE:
        text_format(text, "Invalid %s of size %" PRIu64,
                    facts->kind == FINDING_WRITE ? "write" : "read", facts->size);
        break;
    case FINDING_CONDITION:
        text_string(text, "Conditional jump or move depends on uninitialised value(s)");
        break;
    case FINDING_VALUE:
        text_format(text, "Use of uninitialised value of size %" PRIu64, facts->size);
        break;
    case FINDING_JUMP:
        text_string(text, "Jump to the invalid address stated on the next line");
        break;
    case FINDING_PARAMETER:
        text_format(text, "Syscall param %s %s", name, fault_words(facts));
        break;
    case FINDING_CLIENT:
        text_format(text, "%s byte(s) found during client check request",
                    facts->fault == FAULT_UNADDRESSABLE ? "Unaddressable" : "Uninitialised");
        break;
    case FINDING_FREE:
        text_string(text, "Invalid free() / delete / delete[] / realloc()");
        break;
    case FINDING_MISMATCHED_FREE:
        text_string(text, "Mismatched free() / delete / delete []");
        break;
    case FINDING_OVERLAP:
        text_format(text, "Source and destination overlap in %s(0x%" PRIx64 ", 0x%" PRIx64, name,
                    facts->address, (uint64_t)facts->value);
        if (facts->fault)
            text_format(text, ", %" PRIu64, facts->size);
        text_char(text, ')');
        break;
    case FINDING_FISHY:
        text_format(text,
                    "Argument '%s' of function %s has a fishy (possibly negative) value: %" PRId64,
                    finding->names[1], name, facts->value);
        break;
    case FINDING_POOL:
        text_string(text, "Illegal memory pool address");
        break;
    case FINDING_CORE:
        text_format(text, "%s contains unaddressable byte(s)", name);
        break;
    case FINDING_RESIZE_TO_ZERO:
        text_format(text, "%s() with size 0", name);
        break;
    case FINDING_ALIGNMENT:
        text_format(text, "Invalid alignment value: %" PRIu64 "%s", (uint64_t)facts->value, name);
        break;
    case FINDING_SIZE_ALIGNMENT:
        text_format(text, "Invalid size value: %" PRIu64 " alignment value: %" PRIu64 "%s",
                    facts->size, (uint64_t)facts->value, name);
        break;
    case FINDING_ZERO_SIZE:
        text_string(text, "Unsafe allocation with size of zero is implementation-defined");
        break;
    case FINDING_SIZE_MISMATCH:
        text_format(text, "Mismatched %s size value: %" PRIu64, name, facts->size);
        break;
    case FINDING_ALIGNMENT_MISMATCH:
        text_format(text, "Mismatched %s alignment alloc value: ", name);
        add_alignment(text, (uint64_t)facts->value);
        text_string(text, " dealloc value: ");
        add_alignment(text, facts->size);
        break;
    case FINDING_RACE:
        text_format(
            text, "Possible data race during %s of size %" PRIu64 " at 0x%" PRIx64 " by thread #%d",
            facts->fault & RACE_WRITES ? "write" : "read", facts->size, facts->address,
            facts->thread);
        break;
    case FINDING_THREAD:
        text_format(text, "Thread #%" PRId64 " was created", facts->value);
        break;
    case FINDING_UNLOCK_UNLOCKED:
    case FINDING_UNLOCK_FOREIGN:
    case FINDING_PTHREAD:
    case FINDING_LOCK_ORDER:
    case FINDING_MISUSE:
        text_string(text, name);
        break;
    case FINDING_CLOSED_AGAIN:
        text_format(text, "File descriptor %" PRId64 ": %s%sis already closed", facts->value,
                    path_of(name), *path_of(name) ? " " : "");
        break;
    case FINDING_NOT_OPEN:
        text_format(text, "File descriptor %" PRId64 " %s", facts->value,
                    facts->fault ? "was closed already" : "Invalid file descriptor");
        break;
    case FINDING_LEFT_OPEN:
        if (*name)
            text_format(text, "Open %s", name);
        else
            text_format(text, "Open file descriptor %" PRId64 ":", facts->value);
        break;
    case FINDING_KINDS:
        break;
    }
}

// ---- addresses ---------------------------------------------------------------------------------

static void remark(const struct finding_writer *writer, struct text *text) {
    writer->remark(writer->context, text->bytes);
    text_free(text);
}

static void write_stack(const struct finding_writer *writer, const struct named_stack *stack) {
    if (stack->shown)
        writer->stack(writer->context, stack);
}

// One that was not kept (--keep-stacktraces) is shown as a frame that is nowhere.
static void write_kept_stack(const struct finding_writer *writer, const struct named_stack *stack) {
    static struct named_frame nowhere;
    static const struct named_stack not_kept = {.frames = &nowhere, .count = 1, .shown = 1};
    writer->stack(writer->context, stack->shown ? stack : &not_kept);
}

static void write_block(const struct named_finding *finding, struct text *line,
                        const struct finding_writer *writer) {
    const struct finding_facts *facts = &finding->facts;
    bool before = facts->address < facts->start, after = facts->address >= facts->end;
    text_string(line, "is ");
    text_commas(line, before  ? facts->start - facts->address
                      : after ? facts->address - facts->end
                              : facts->address - facts->start);
    text_format(line, " bytes %s a ", before ? "before" : after ? "after" : "inside");
    text_string(line, facts->place == PLACE_CLIENT ? finding->names[1] : "block");
    text_string(line, " of size ");
    text_commas(line, facts->end - facts->start);
    text_string(line, facts->place == PLACE_FREED   ? " free'd"
                      : facts->place == PLACE_BLOCK ? " alloc'd"
                                                    : " client-defined");
    remark(writer, line);
    const struct named_stack *making = &finding->stacks[STACK_OF_MAKING];
    if (facts->place == PLACE_BLOCK) {
        write_kept_stack(writer, making);
        return;
    }
    if (facts->place == PLACE_FREED) {
        write_kept_stack(writer, &finding->stacks[STACK_OF_FREEING]);
        if (making->shown)
            writer->remark(writer->context, "Block was alloc'd at");
    }
    write_stack(writer, making);
}

// "FUNC (FILE:LINE)" of a frame.
static void add_frame(struct text *line, const struct symbol_frame *frame,
                      const struct stack_text_options *options) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    if (!out)
        return;
    stack_text_frame(out, frame, options);
    if (fclose(out) == 0)
        text_string(line, bytes);
    free(bytes);
}

static void write_on_stack(const struct named_finding *finding, struct text *line,
                           const struct stack_text_options *options,
                           const struct finding_writer *writer) {
    const struct finding_facts *facts = &finding->facts;
    text_format(line, "is on thread %d's stack", facts->place_thread);
    remark(writer, line);
    if (facts->frame >= 0 && finding->frame.name) {
        text_format(line, "in frame #%d, created by ", facts->frame);
        add_frame(line, &finding->frame, options);
        remark(writer, line);
    }
    if (facts->below > 0) {
        text_format(line, "%" PRId64 " bytes below stack pointer", facts->below);
        remark(writer, line);
    }
}

static void write_variable(const struct named_finding *finding,
                           const struct finding_writer *writer) {
    const struct finding_facts *facts = &finding->facts;
    const struct symbol_variable *variable = &finding->variable;
    bool is_local = facts->place == PLACE_STACK;
    struct text line = {0};
    text_format(&line, "Location 0x%" PRIx64 " is %" PRIu64 " byte%s inside ", facts->address,
                variable->offset, variable->offset == 1 ? "" : "s");
    if (variable->is_whole)
        text_format(&line, "%s var \"%s\"", is_local ? "local" : "global", variable->path);
    else
        text_format(&line, "%s,", variable->path);
    remark(writer, &line);
    if (!is_local && !variable->is_whole)
        text_string(&line, "a global variable ");
    text_format(&line, "declared at %s:%" PRIu32, variable->file ? variable->file : "???",
                variable->line);
    if (is_local)
        text_format(&line, ", in frame #%d of thread %d", facts->frame > 0 ? facts->frame : 0,
                    facts->place_thread);
    remark(writer, &line);
}

static void add_mapping(const struct named_finding *finding, struct text *line) {
    const struct finding_facts *facts = &finding->facts;
    text_format(line, "is in a %c%c%c ", facts->prot & PROT_READ ? 'r' : '-',
                facts->prot & PROT_WRITE ? 'w' : '-', facts->prot & PROT_EXEC ? 'x' : '-');
    if (facts->place == PLACE_FILE)
        text_format(line, "mapped file %s%ssegment", finding->names[1],
                    finding->names[1][0] ? " " : "");
    else
        text_string(line,
                    facts->place == PLACE_SHARED ? "shared memory segment" : "anonymous segment");
}

void finding_write_place(const struct named_finding *finding,
                         const struct stack_text_options *options,
                         const struct finding_writer *writer) {
    const struct finding_facts *facts = &finding->facts;
    struct text line = {0};
    if (finding->has_variable) {
        write_variable(finding, writer);
        return;
    }
    text_format(&line, "Address 0x%" PRIx64 " ", facts->address);
    if (facts->place == PLACE_BLOCK || facts->place == PLACE_FREED ||
        facts->place == PLACE_CLIENT) {
        write_block(finding, &line, writer);
        return;
    }
    if (facts->place == PLACE_STACK) {
        write_on_stack(finding, &line, options, writer);
        return;
    }
    if (finding->has_data)
        text_format(&line, "is %" PRIu64 " bytes inside data symbol \"%s\"", finding->data.offset,
                    finding->data.name);
    else if (finding->section)
        text_format(&line, "is in the %s segment of %s", finding->section, finding->object);
    else if (facts->place == PLACE_BRK)
        text_format(&line, "is in the brk data segment 0x%" PRIx64 "-0x%" PRIx64, facts->start,
                    facts->end - 1);
    else if (facts->place == PLACE_UNKNOWN)
        text_string(&line, "is not stack'd, malloc'd or (recently) free'd");
    else
        add_mapping(finding, &line);
    remark(writer, &line);
    if (finding->code.shown)
        writer->stack(writer->context, &finding->code);
}

// Where a descriptor was closed and opened.
static void write_history(const struct named_finding *finding,
                          const struct finding_writer *writer) {
    if (finding->stacks[STACK_OF_FREEING].shown) {
        writer->remark(writer->context, "Previously closed");
        writer->stack(writer->context, &finding->stacks[STACK_OF_FREEING]);
    }
    if (finding->stacks[STACK_OF_MAKING].shown) {
        writer->remark(writer->context, "Originally opened");
        writer->stack(writer->context, &finding->stacks[STACK_OF_MAKING]);
    }
}

static void paragraph(const struct finding_writer *writer, struct text *text) {
    (writer->paragraph ? writer->paragraph : writer->remark)(writer->context, text->bytes);
    text_free(text);
}

static void write_locks(const char *locks, const struct finding_writer *writer) {
    struct text line = {0};
    unsigned count = 0;
    for (const char *at = locks; *at; at++)
        count += *at == ' ';
    if (count)
        text_format(&line, "Locks held: %u, at address%s%s", count, count > 1 ? "es" : "", locks);
    else
        text_string(&line, "Locks held: none");
    paragraph(writer, &line);
}

static void write_race(const struct named_finding *finding,
                       const struct stack_text_options *options,
                       const struct finding_writer *writer) {
    const struct finding_facts *facts = &finding->facts;
    struct text line = {0};
    write_locks(finding->names[0], writer);
    writer->stack(writer->context, &finding->stacks[STACK_OF_FINDING]);
    if (writer->paragraph)
        writer->paragraph(writer->context, "");
    text_format(&line, "This conflicts with a previous %s of size %u by thread #%" PRId64,
                facts->fault & RACE_WROTE ? "write" : "read", facts->reserved, facts->value);
    paragraph(writer, &line);
    write_kept_stack(writer, &finding->stacks[STACK_OF_ORIGIN]);
    finding_write_place(finding, options, writer);
}

// A further stack, with the words before it; an address of 0 is not shown.
static void write_further(const struct named_finding *finding, unsigned stack, const char *words,
                          uint64_t address, const struct finding_writer *writer) {
    struct text line = {0};
    if (!finding->stacks[stack].shown)
        return;
    text_string(&line, words);
    if (address)
        text_format(&line, " at 0x%" PRIx64, address);
    if (writer->paragraph)
        writer->paragraph(writer->context, "");
    paragraph(writer, &line);
    writer->stack(writer->context, &finding->stacks[stack]);
}

// The thread holds the lock at the address and takes the one that is the value.
static void write_lock_order(const struct named_finding *finding,
                             const struct finding_writer *writer) {
    static const char later[] = " followed by a later acquisition of lock";
    uint64_t held = finding->facts.address, taken = (uint64_t)finding->facts.value;
    write_further(finding, STACK_OF_FINDING, "Observed (incorrect) order is: acquisition of lock",
                  held, writer);
    write_further(finding, STACK_OF_MAKING, later, taken, writer);
    write_further(finding, STACK_OF_FREEING,
                  "Required order was established by acquisition of lock", taken, writer);
    write_further(finding, STACK_OF_ORIGIN, later, held, writer);
}

void finding_write(const struct named_finding *finding, const struct stack_text_options *options,
                   const struct finding_writer *writer) {
    static const char *const origins[MADE_KINDS] = {
        [MADE_BY_HEAP] = "Uninitialised value was created by a heap allocation",
        [MADE_BY_STACK] = "Uninitialised value was created by a stack allocation",
        [MADE_BY_CLIENT] = "Uninitialised value was created by a client request",
        [MADE_BY_SIGNAL] = "Uninitialised value was created",
    };
    struct text text = {0};
    add_headline(finding, &text);
    writer->headline(writer->context, text.bytes);
    text_free(&text);
    if (finding->facts.kind == FINDING_RACE) {
        write_race(finding, options, writer);
        return;
    }
    if (finding->facts.kind == FINDING_LOCK_ORDER) {
        write_lock_order(finding, writer);
        return;
    }
    if (finding->facts.kind == FINDING_LEFT_OPEN && !finding->stacks[STACK_OF_FINDING].shown)
        writer->remark(writer->context, "<inherited from parent>");
    else
        writer->stack(writer->context, &finding->stacks[STACK_OF_FINDING]);
    if (finding_kind_is_core(finding->facts.kind))
        write_history(finding, writer);
    if (finding->facts.place != PLACE_NONE)
        finding_write_place(finding, options, writer);
    if (finding_kind_is_about_threads(finding->facts.kind))
        write_further(finding, STACK_OF_ORIGIN, " Lock was first observed", 0, writer);
    const char *origin = origins[finding->facts.origin];
    if (origin && finding->stacks[STACK_OF_ORIGIN].shown) {
        writer->remark(writer->context, origin);
        writer->stack(writer->context, &finding->stacks[STACK_OF_ORIGIN]);
    }
}

// ---- losses ------------------------------------------------------------------------------------

static void add_amount(struct text *text, uint64_t now, uint64_t before, bool is_delta) {
    text_commas(text, now);
    text_delta(text, now, before, is_delta);
}

static void add_loss_headline(const struct named_loss *loss, size_t index, size_t count,
                              bool is_delta, struct text *text) {
    const struct loss *facts = &loss->facts;
    uint64_t old_total = facts->old_bytes + facts->old_indirect_bytes;
    add_amount(text, facts->bytes + facts->indirect_bytes, old_total, is_delta);
    if (facts->indirect_bytes) {
        text_string(text, " (");
        add_amount(text, facts->bytes, facts->old_bytes, is_delta);
        text_string(text, " direct, ");
        add_amount(text, facts->indirect_bytes, facts->old_indirect_bytes, is_delta);
        text_string(text, " indirect)");
    }
    text_string(text, " bytes in ");
    add_amount(text, facts->blocks, facts->old_blocks, is_delta);
    text_format(text, " blocks are %s in loss record ", leak_kind_words(facts->kind));
    text_commas(text, index);
    text_string(text, " of ");
    text_commas(text, count);
}

void loss_holder_text(const struct named_loss *loss, const struct stack_text_options *options,
                      struct text *line) {
    static const char *const registers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                            "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    const struct loss *facts = &loss->facts;
    switch ((enum loss_holder)facts->holder) {
    case HELD_BY_REGISTER:
        text_format(line, "Held by register %s of thread %d",
                    facts->holder_address < 16 ? registers[facts->holder_address] : "?",
                    facts->holder_thread);
        break;
    case HELD_BY_STACK:
        text_format(line, "Held by thread %d's stack", facts->holder_thread);
        if (loss->holder_frame.name) {
            text_string(line, ", in the frame of ");
            add_frame(line, &loss->holder_frame, options);
        }
        break;
    case HELD_BY_DATA:
        if (loss->holder_data.name && loss->holder_data.offset)
            text_format(line, "Held by data symbol \"%s\"+%" PRIu64 " (in %s)",
                        loss->holder_data.name, loss->holder_data.offset, loss->holder_data.object);
        else if (loss->holder_data.name)
            text_format(line, "Held by data symbol \"%s\" (in %s)", loss->holder_data.name,
                        loss->holder_data.object);
        else
            text_format(line, "Held by data at 0x%" PRIx64, facts->holder_address);
        break;
    case HELD_BY_MAPPING:
        text_format(line, "Held by mapped memory at 0x%" PRIx64, facts->holder_address);
        break;
    case HELD_BY_NONE:
    case LOSS_HOLDERS:
        return;
    }
    if (facts->holder_steps > 1)
        text_format(line, ", through %u other block%s", facts->holder_steps - 1,
                    facts->holder_steps > 2 ? "s" : "");
}

void loss_write(const struct named_loss *loss, size_t index, size_t count, bool is_delta,
                const struct stack_text_options *options, const struct finding_writer *writer) {
    struct text text = {0};
    add_loss_headline(loss, index, count, is_delta, &text);
    writer->headline(writer->context, text.bytes);
    text_clear(&text);
    write_kept_stack(writer, &loss->stack);
    loss_holder_text(loss, options, &text);
    if (text.size)
        writer->remark(writer->context, text.bytes);
    text_clear(&text);
    if (loss->facts.cycle) {
        text_string(&text, "A cycle of ");
        text_commas(&text, loss->facts.cycle);
        text_string(&text, " blocks");
        writer->remark(writer->context, text.bytes);
    }
    text_free(&text);
}

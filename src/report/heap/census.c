#include "report/heap/census.h"

#include <stdlib.h>
#include <string.h>

#include "report/shared/stack_text.h"

enum { COLUMN = 16 };

static void column(FILE *out, uint64_t number) {
    char text[TEXT_NUMBER_SIZE];
    fprintf(out, "%*s", COLUMN, text_number(text, number));
}

static void line(FILE *out, uint64_t number, const char *words) {
    column(out, number);
    fprintf(out, "  %s\n", words);
}

// ---- arenas ------------------------------------------------------------------------------------

// Free memory between blocks, as a share of the arena without its top.
static double fragmentation(const struct census_arena *arena) {
    uint64_t below_top = arena->size - arena->top;
    uint64_t free = arena->binned.bytes + arena->fast.bytes;
    return below_top ? 100.0 * (double)free / (double)below_top : 0;
}

static void print_arena(FILE *out, const char *name, const struct census_arena *arena) {
    fprintf(out, "  %-14s", name);
    column(out, arena->in_use.bytes);
    column(out, arena->in_use.blocks);
    column(out, arena->binned.bytes + arena->fast.bytes);
    column(out, arena->cached.bytes);
    column(out, arena->top);
    column(out, arena->size);
    fprintf(out, "%11.1f %%\n", fragmentation(arena));
}

static void add_arena(struct census_arena *sum, const struct census_arena *arena) {
    sum->in_use.bytes += arena->in_use.bytes;
    sum->in_use.blocks += arena->in_use.blocks;
    sum->binned.bytes += arena->binned.bytes + arena->fast.bytes;
    sum->cached.bytes += arena->cached.bytes;
    sum->top += arena->top;
    sum->size += arena->size;
}

static int by_size(const void *a, const void *b) {
    const struct census_arena *one = *(const struct census_arena *const *)a;
    const struct census_arena *other = *(const struct census_arena *const *)b;
    if (one->is_main != other->is_main)
        return one->is_main ? -1 : 1;
    return (one->size < other->size) - (one->size > other->size);
}

// The main arena, then the largest.
static void print_arenas(FILE *out, const struct census *census, size_t top) {
    const struct census_arena **sorted =
        base_allocate((census->arena_count + 1) * sizeof(const struct census_arena *));
    struct census_arena rest = {0};
    for (size_t i = 0; i < census->arena_count; i++)
        sorted[i] = &census->arenas[i];
    qsort(sorted, census->arena_count, sizeof *sorted, by_size);
    fprintf(out, "  %-14s%*s%*s%*s%*s%*s%*s%13s\n", "", COLUMN, "bytes in use", COLUMN, "blocks",
            COLUMN, "free", COLUMN, "thread caches", COLUMN, "top", COLUMN, "from the kernel",
            "fragmented");
    for (size_t i = 0; i < census->arena_count; i++) {
        char name[32];
        if (i > top) {
            add_arena(&rest, sorted[i]);
            continue;
        }
        snprintf(name, sizeof name, "arena %zu", i);
        print_arena(out, sorted[i]->is_main ? "main arena" : name, sorted[i]);
    }
    if (rest.size)
        print_arena(out, "other arenas", &rest);
    fprintf(out, "  %-14s", "mapped blocks");
    column(out, census->mapped.bytes);
    column(out, census->mapped.blocks);
    fprintf(out, "%*s", 3 * COLUMN, "");
    column(out, census->mapped_size);
    fputs("\n\n", out);
    free(sorted);
}

// ---- sizes -------------------------------------------------------------------------------------

static int by_bytes(const void *a, const void *b) {
    const struct census_class *one = a, *other = b;
    uint64_t bytes = one->size * one->blocks, more = other->size * other->blocks;
    if (bytes != more)
        return bytes > more ? -1 : 1;
    return (one->size > other->size) - (one->size < other->size);
}

static void print_classes(FILE *out, const struct census *census, size_t top) {
    struct census_class *sorted = base_allocate((census->class_count + 1) * sizeof *sorted);
    struct census_sum rest = {0};
    if (census->class_count) {
        memcpy(sorted, census->classes, census->class_count * sizeof *sorted);
        qsort(sorted, census->class_count, sizeof *sorted, by_bytes);
    }
    fprintf(out, "Blocks in use by size\n%*s%*s%*s\n", COLUMN, "bytes each", COLUMN, "blocks",
            COLUMN, "bytes");
    for (size_t i = 0; i < census->class_count; i++) {
        if (i >= top) {
            rest.blocks += sorted[i].blocks;
            rest.bytes += sorted[i].blocks * sorted[i].size;
            continue;
        }
        column(out, sorted[i].size);
        column(out, sorted[i].blocks);
        column(out, sorted[i].size * sorted[i].blocks);
        fputc('\n', out);
    }
    if (rest.blocks) {
        fprintf(out, "%*s", COLUMN, "others");
        column(out, rest.blocks);
        column(out, rest.bytes);
        fputc('\n', out);
    }
    fputc('\n', out);
    free(sorted);
}

// ---- memory ------------------------------------------------------------------------------------

static void print_resident(FILE *out, const struct census_resident *resident) {
    uint64_t sum = resident->in_use + resident->free + resident->own + resident->stacks +
                   resident->other_anonymous + resident->files + resident->shared;
    fputs("Memory in RAM, in bytes\n", out);
    line(out, resident->in_use, "blocks in use");
    line(out, resident->free, "free, kept by the allocator");
    line(out, resident->own, "the allocator's own records");
    line(out, resident->stacks, "stacks");
    line(out, resident->other_anonymous, "other anonymous memory");
    line(out, resident->files, "mapped files (programs and libraries)");
    line(out, resident->shared, "shared memory");
    line(out, sum, "together");
    if (resident->huge)
        line(out, resident->huge, "of all these: in huge pages");
    fputc('\n', out);
}

// ---- leaks -------------------------------------------------------------------------------------

static void print_losses(FILE *out, const struct census_report *report,
                         const struct census_options *options) {
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < report->loss_count; i++) {
        const struct census_loss *loss = &report->losses[i];
        char number[TEXT_NUMBER_SIZE];
        if (!(options->kinds & 1u << loss->kind))
            continue;
        if (shown == options->top) {
            left++;
            continue;
        }
        if (!shown++)
            fputs("Lost blocks by size\n", out);
        column(out, loss->bytes);
        fprintf(out, " bytes %s: %s", leak_kind_words(loss->kind),
                text_number(number, loss->blocks));
        fprintf(out, " block%s of %s", loss->blocks == 1 ? "" : "s",
                text_number(number, loss->size));
        if (loss->indirect)
            fprintf(out, " (and %s bytes that only these lead to)",
                    text_number(number, loss->indirect));
        if (loss->type) {
            fputs(", ", out);
            stack_text_escaped(out, loss->type);
        }
        fprintf(out, ", one at 0x%llx\n", (unsigned long long)loss->example);
    }
    if (left)
        fprintf(out, "%*s  more: --top=%zu shows them\n", COLUMN, "", shown + left);
    if (shown)
        fputc('\n', out);
}

static void print_holders(FILE *out, const struct census_report *report, size_t top) {
    if (report->holder_count)
        fputs("Reachable blocks by what leads to them\n", out);
    for (size_t i = 0; i < report->holder_count && i < top; i++) {
        const struct census_holder *holder = &report->holders[i];
        char number[TEXT_NUMBER_SIZE];
        column(out, holder->bytes);
        fprintf(out, " bytes in %s block%s: ", text_number(number, holder->blocks),
                holder->blocks == 1 ? "" : "s");
        stack_text_escaped(out, holder->name);
        fputc('\n', out);
    }
    if (report->holder_count)
        fputc('\n', out);
}

// ---- the whole ---------------------------------------------------------------------------------

static void print_head(FILE *out, const struct census *census) {
    struct census_sum sum = census_in_use(census);
    char number[TEXT_NUMBER_SIZE];
    fprintf(out, "Process %d (", census->pid);
    stack_text_escaped(out, census->program);
    fprintf(out, "), %zu thread%s: stopped for %.1f ms", census->threads,
            census->threads == 1 ? "" : "s", (double)census->pause / 1e6);
    if (census->stops > 1)
        fprintf(out, " at most, %u times", census->stops);
    fprintf(out, "\n\nHeap of %s: %s bytes", census->allocator, text_number(number, sum.bytes));
    fprintf(out, " in %s blocks are in use\n", text_number(number, sum.blocks));
    fputs("The allocator rounds sizes up: these are the bytes that a program may use.\n\n", out);
}

void census_text(FILE *out, const struct census_report *report,
                 const struct census_options *options) {
    const struct census *census = report->census;
    struct text sums = {0};
    print_head(out, census);
    print_arenas(out, census, options->top);
    print_classes(out, census, options->top);
    print_resident(out, &census->resident);
    print_losses(out, report, options);
    print_holders(out, report, options->top);
    leak_sums_text(&report->sums, NULL, &sums);
    fprintf(out, "%s\n", sums.bytes);
    text_free(&sums);
    if (census->is_partial)
        fputs("\nA mapping was too large to be searched: what only that leads to counts as lost.\n",
              out);
}

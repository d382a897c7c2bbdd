#include "attach/leak_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/maps.h"
#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"
#include "base/x86.h"

#define PAGE         4096ull
#define BUFFER       (1u << 20)
#define WORTH_ASKING (1u << 18) // bytes from which on the kernel is asked which pages were touched
#define PAGES        256        // kept for heuristics
#define JOINED       4096       // blocks that are no further apart are read in one go
// libc's heap: arenas are aligned to this; low bits of the size in front of a block.
#define ARENA      (64ull << 20)
#define IS_MAPPED  2ull
#define NOT_MAIN   4ull
#define SIZE_FLAGS 7ull
// Of a thread: what lies below its thread pointer (its variables) and above (its descriptor), and
// how much of a stack there may be.
#define VARIABLES  (16ull << 10)
#define DESCRIPTOR (2 * PAGE)
#define STACK_MOST (8ull << 20)

// ---- ranges ------------------------------------------------------------------------------------

static void add_range(struct leak_ranges *ranges, uint64_t start, uint64_t end) {
    if (start >= end)
        return;
    *vector_push(ranges->at, ranges->count) = (struct leak_range){start, end};
}

static int by_start(const void *a, const void *b) {
    const struct leak_range *one = a, *other = b;
    return (one->start > other->start) - (one->start < other->start);
}

static void sort_ranges(struct leak_ranges *ranges) {
    if (ranges->count)
        qsort(ranges->at, ranges->count, sizeof *ranges->at, by_start);
}

// What of [start, end) is in none of the sorted ranges.
static void add_without(struct leak_ranges *to, uint64_t start, uint64_t end,
                        const struct leak_ranges *without) {
    for (size_t i = 0; i < without->count && start < end; i++) {
        const struct leak_range *hole = &without->at[i];
        if (hole->end <= start)
            continue;
        if (hole->start >= end)
            break;
        add_range(to, start, hole->start);
        start = hole->end;
    }
    add_range(to, start, end);
}

// ---- mappings ----------------------------------------------------------------------------------

static void add_mapping(struct leak_memory *memory, const struct maps_mapping *line) {
    const char *name = line->path;
    struct leak_mapping mapping = {.start = line->start,
                                   .end = line->end,
                                   .is_writable = line->readable && line->writable,
                                   .is_code = line->executable,
                                   .is_private = !line->shared};
    mapping.is_break = strcmp(name, "[heap]") == 0;
    mapping.is_anonymous = !line->inode && strncmp(name, "[stack", 6) != 0;
    const char *base = strrchr(name, '/');
    mapping.is_libc = base && strncmp(base, "/libc", 5) == 0 && (base[5] == '.' || base[5] == '-');
    mapping.is_ours = strncmp(name, "/memfd:quern-", 13) == 0 || strncmp(name, "[v", 2) == 0;
    mapping.is_device = strncmp(name, "/dev/", 5) == 0 && strncmp(name, "/dev/shm/", 9) != 0 &&
                        strncmp(name, "/dev/zero", 9) != 0;
    *vector_push(memory->mappings, memory->mapping_count) = mapping;
}

static bool read_mappings(struct leak_memory *memory) {
    struct maps_reader reader;
    struct maps_mapping line;
    char path[64];
    for (size_t i = 0; memory->copy && i < memory->copy->mapping_count; i++)
        add_mapping(memory, &memory->copy->mappings[i]);
    if (memory->copy)
        return memory->mapping_count > 0;
    snprintf(path, sizeof path, "/proc/%d/maps", memory->pid);
    maps_reader_open(&reader, path);
    while (maps_reader_next(&reader, &line))
        add_mapping(memory, &line);
    maps_reader_close(&reader);
    return memory->mapping_count > 0;
}

static const struct leak_mapping *mapping_of(const struct leak_memory *memory, uint64_t address) {
    const struct leak_mapping *mappings = memory->mappings;
    size_t count = memory->mapping_count;
    size_t i = search_first(at, 0, count, mappings[at].end > address);
    return i < count && mappings[i].start <= address ? &mappings[i] : NULL;
}

// ---- reading -----------------------------------------------------------------------------------

static size_t read_bytes(const struct leak_memory *memory, uint64_t address, void *to,
                         size_t size) {
    // What is not in a copy is not writable: the process has it as it was.
    if (memory->copy && snapshot_read(memory->copy, address, to, size))
        return size;
    struct iovec local = {to, size};
    struct iovec remote = {(void *)address, size};
    ssize_t got = process_vm_readv(memory->pid, &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

bool leak_memory_word(void *context, uint64_t address, uint64_t *word) {
    struct leak_memory *memory = context;
    struct leak_page *page = &memory->pages[address / PAGE % PAGES];
    if (page->address != (address & -PAGE)) {
        page->address = address & -PAGE;
        page->is_there = read_bytes(memory, page->address, page->words, PAGE) == PAGE;
    }
    if (page->is_there)
        *word = page->words[address % PAGE / 8];
    return page->is_there;
}

bool leak_memory_is_code(void *context, uint64_t address) {
    const struct leak_mapping *mapping = mapping_of(context, address);
    return mapping && mapping->is_code;
}

typedef void leak_take(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                       size_t count);

static void scan_touched(struct leak_memory *memory, uint64_t start, uint64_t end,
                         struct leak_graph *graph, leak_take *take) {
    while (start < end) {
        size_t wanted = end - start < BUFFER ? (size_t)(end - start) : BUFFER;
        size_t got = read_bytes(memory, start, memory->buffer, wanted) & ~7ul;
        take(graph, start, (const uint64_t *)memory->buffer, got / 8);
        // A page that cannot be read (the end of a file, say) is passed over.
        start = got == wanted ? start + got : ((start + got) & -PAGE) + PAGE;
    }
}

static void scan_copy(const struct snapshot *copy, uint64_t start, uint64_t end,
                      struct leak_graph *graph, leak_take *take) {
    for (size_t i = snapshot_run_after(copy, start); i < copy->run_count; i++) {
        const struct snapshot_run *run = &copy->runs[i];
        uint64_t from = run->start > start ? run->start : start;
        uint64_t until = run->end < end ? run->end : end;
        if (from >= until)
            break;
        take(graph, from, (const uint64_t *)(run->bytes + (from - run->start)), (until - from) / 8);
    }
}

// Pages that were never touched hold nothing, and to read them would cost the process memory.
static void scan(struct leak_memory *memory, uint64_t start, uint64_t end, struct leak_graph *graph,
                 leak_take *take) {
    const uint64_t present = 1ull << 63 | 1ull << 62;
    uint64_t flags[512];
    start = (start + 7) & ~7ull;
    end &= ~7ull;
    if (memory->copy) {
        scan_copy(memory->copy, start, end, graph, take);
        return;
    }
    if (end <= start || end - start < WORTH_ASKING || memory->pagemap < 0) {
        if (start < end)
            scan_touched(memory, start, end, graph, take);
        return;
    }
    uint64_t from = start; // what has not been scanned yet, if it was touched
    while (start < end) {
        uint64_t first = start / PAGE, count = (end + PAGE - 1) / PAGE - first;
        count = count < 512 ? count : 512;
        ssize_t got = pread(memory->pagemap, flags, count * 8, (off_t)(first * 8));
        if (got != (ssize_t)(count * 8)) {
            scan_touched(memory, from, end, graph, take);
            return;
        }
        for (uint64_t i = 0; i < count; i++) {
            uint64_t page = (first + i) * PAGE;
            if (!(flags[i] & present)) {
                if (from < page)
                    scan_touched(memory, from, page, graph, take);
                from = page + PAGE;
            }
        }
        start = (first + count) * PAGE;
    }
    if (from < end)
        scan_touched(memory, from, end, graph, take);
}

// ---- what is not a root ------------------------------------------------------------------------

// Where libc keeps a block that is not in the break.
static void add_libc_heap(struct leak_memory *memory, const struct leak_mapping *mapping,
                          uint64_t address, struct leak_ranges *heap) {
    uint64_t size, before;
    if (!leak_memory_word(memory, address - 8, &size) ||
        !leak_memory_word(memory, address - 16, &before))
        return;
    uint64_t start = mapping->start, end = mapping->end;
    if (size & IS_MAPPED) {
        start = address - 16 - (before & ~SIZE_FLAGS);
        end = start + (size & ~SIZE_FLAGS) + (before & ~SIZE_FLAGS);
    } else if (size & NOT_MAIN) {
        start = address & -ARENA;
        end = start + ARENA;
    }
    add_range(heap, start > mapping->start ? start : mapping->start,
              end < mapping->end ? end : mapping->end);
}

static bool is_last(const struct leak_ranges *ranges, uint64_t address) {
    const struct leak_range *last = ranges->count ? &ranges->at[ranges->count - 1] : NULL;
    return last && address >= last->start && address < last->end;
}

static void find_heap(struct leak_memory *memory, bool is_libc,
                      const struct leak_graph_block *blocks, size_t count,
                      struct leak_ranges *heap) {
    const struct leak_mapping *mapping = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_last(heap, blocks[i].start))
            continue;
        if (!mapping || blocks[i].start >= mapping->end)
            mapping = mapping_of(memory, blocks[i].start);
        if (!mapping || !mapping->is_anonymous || mapping->is_break)
            continue;
        if (is_libc)
            add_libc_heap(memory, mapping, blocks[i].start, heap);
        else
            add_range(heap, mapping->start, mapping->end);
    }
}

static bool has_thread(const struct freeze *freeze, const struct leak_mapping *mapping) {
    for (size_t i = 0; i < freeze->count; i++) {
        const struct freeze_thread *thread = &freeze->threads[i];
        if (thread->stack_pointer - mapping->start < mapping->end - mapping->start ||
            thread->thread_pointer - mapping->start < mapping->end - mapping->start)
            return true;
    }
    return false;
}

// Where the descriptor of the thread that had a stack is, in the last pages of it: it points to
// itself, twice. 0: there is none from `at` on.
static uint64_t find_descriptor(struct leak_memory *memory, const struct leak_mapping *stack,
                                uint64_t at) {
    uint64_t word;
    uint64_t first =
        stack->end - stack->start > DESCRIPTOR ? stack->end - DESCRIPTOR : stack->start;
    for (at = ((at > first ? at : first) + 63) & ~63ull; at < stack->end - 24; at += 64)
        if (leak_memory_word(memory, at, &word) && word == at &&
            leak_memory_word(memory, at + 16, &word) && word == at)
            return at;
    return 0;
}

// Of a mapping that holds no blocks: an arena that is empty, or a stack that waits for the next
// thread. Both are anonymous memory next to a part that nobody may touch. With a copy nobody knows
// what the program has mapped itself, but all arenas are known: only a stack with a descriptor is
// taken for one.
static bool is_left_over(struct leak_memory *memory, size_t index, const struct freeze *freeze,
                         bool is_libc) {
    const struct leak_mapping *mapping = &memory->mappings[index];
    const struct leak_mapping *before = index ? mapping - 1 : NULL;
    if (!mapping->is_anonymous || !mapping->is_private || has_thread(freeze, mapping))
        return false;
    if (memory->copy && !find_descriptor(memory, mapping, 0))
        return false;
    if (is_libc && !memory->copy && mapping->start % ARENA == 0)
        return true;
    return before && before->end == mapping->start && before->is_anonymous &&
           !before->is_writable && !before->is_code;
}

// Between the two words of a descriptor is the one by which libc finds the table of the thread's
// variables.
static void add_descriptor(struct leak_memory *memory, const struct leak_mapping *stack) {
    for (uint64_t at = 0; (at = find_descriptor(memory, stack, at)); at += 64)
        add_range(&memory->roots, at, at + 24);
}

struct pieces {
    struct leak_ranges *own, *mapped;
};

static void take_piece(void *context, uint64_t start, uint64_t end, bool is_own) {
    struct pieces *pieces = context;
    add_range(is_own ? pieces->own : pieces->mapped, start, end);
}

static bool overlaps(const struct leak_ranges *ranges, uint64_t start, uint64_t end) {
    for (size_t i = 0; i < ranges->count; i++)
        if (ranges->at[i].start < end && ranges->at[i].end > start)
            return true;
    return false;
}

// The live part of a thread's stack and its variables, wherever they are.
static void add_thread(struct leak_memory *memory, const struct freeze_thread *thread) {
    const struct leak_mapping *stack = mapping_of(memory, thread->stack_pointer);
    const struct leak_mapping *tls = mapping_of(memory, thread->thread_pointer);
    uint64_t low = thread->stack_pointer - RED_ZONE;
    if (stack && stack->is_writable)
        add_range(&memory->roots, low > stack->start ? low : stack->start,
                  stack->end - low < STACK_MOST ? stack->end : low + STACK_MOST);
    uint64_t pointer = thread->thread_pointer;
    if (tls && tls->is_writable)
        add_range(&memory->roots,
                  pointer - tls->start > VARIABLES ? pointer - VARIABLES : tls->start,
                  tls->end - pointer < DESCRIPTOR ? tls->end : pointer + DESCRIPTOR);
}

static void find_roots(struct leak_memory *memory, const struct freeze *freeze,
                       const struct leak_heap *heap, const struct leak_graph_block *blocks,
                       size_t count) {
    struct leak_ranges without = {0}, mapped = {0};
    bool is_libc = heap->is_libc;
    find_heap(memory, is_libc, blocks, count, &without);
    heap->each_piece(heap->context, take_piece, &(struct pieces){&without, &mapped});
    for (size_t i = 0; i < freeze->count; i++) {
        uint64_t pointer = freeze->threads[i].stack_pointer;
        const struct leak_mapping *stack = mapping_of(memory, pointer);
        if (stack && pointer - stack->start > RED_ZONE)
            add_range(&without,
                      pointer - stack->start > STACK_MOST ? pointer - STACK_MOST : stack->start,
                      pointer - RED_ZONE);
    }
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct leak_mapping *mapping = &memory->mappings[i];
        if (!mapping->is_break && (!is_left_over(memory, i, freeze, is_libc) ||
                                   overlaps(&mapped, mapping->start, mapping->end)))
            continue;
        add_range(&without, mapping->start, mapping->end);
        if (!mapping->is_break)
            add_descriptor(memory, mapping);
    }
    sort_ranges(&without);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct leak_mapping *mapping = &memory->mappings[i];
        if (mapping->is_writable && !mapping->is_ours && !mapping->is_device)
            add_without(&memory->roots, mapping->start, mapping->end, &without);
    }
    for (size_t i = 0; i < freeze->count; i++)
        add_thread(memory, &freeze->threads[i]);
    // Of what the program mapped itself, only parts that were taken for the heap are new here.
    for (size_t i = 0; i < mapped.count; i++) {
        const struct leak_mapping *mapping = mapping_of(memory, mapped.at[i].start);
        if (mapping && mapping->is_writable && !mapping->is_device)
            add_range(&memory->roots, mapped.at[i].start,
                      mapped.at[i].end < mapping->end ? mapped.at[i].end : mapping->end);
    }
    free(without.at);
    free(mapped.at);
}

// ---- the whole ---------------------------------------------------------------------------------

bool leak_memory_open(struct leak_memory *memory, int pid, const struct freeze *freeze,
                      const struct leak_heap *heap, const struct leak_graph_block *blocks,
                      size_t count) {
    char path[64];
    *memory = (struct leak_memory){.pid = pid, .copy = heap->copy};
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    memory->pagemap = open(path, O_RDONLY | O_CLOEXEC);
    memory->buffer = base_allocate(BUFFER);
    memory->pages = base_allocate(PAGES * sizeof *memory->pages);
    for (size_t i = 0; i < PAGES; i++)
        memory->pages[i].address = 1;
    uint64_t word;
    if (!read_mappings(memory) ||
        !read_bytes(memory, freeze->threads[0].stack_pointer & ~7ull, &word, sizeof word))
        return false;
    find_roots(memory, freeze, heap, blocks, count);
    return true;
}

void leak_memory_scan(struct leak_memory *memory, const struct freeze *freeze,
                      struct leak_graph *graph) {
    size_t count;
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &count);
    for (size_t i = 0; i < freeze->count; i++)
        if (freeze->threads[i].stopped)
            leak_graph_root(graph, 0, freeze->threads[i].registers, FREEZE_REGISTERS);
    for (size_t i = 0; i < memory->roots.count; i++) {
        const struct leak_range *root = &memory->roots.at[i];
        const struct leak_mapping *mapping = mapping_of(memory, root->start);
        scan(memory, root->start, root->end, graph,
             mapping && mapping->is_libc ? leak_graph_libc : leak_graph_root);
    }
    for (size_t i = 0, end; i < count; i = end) {
        uint64_t high = blocks[i].start + blocks[i].size;
        for (end = i + 1; end < count && blocks[end].start <= high + JOINED; end++)
            high = blocks[end].start + blocks[end].size;
        scan(memory, blocks[i].start, high, graph, leak_graph_heap);
    }
}

void leak_memory_close(struct leak_memory *memory) {
    if (memory->pagemap >= 0)
        close(memory->pagemap);
    free(memory->mappings);
    free(memory->roots.at);
    free(memory->buffer);
    free(memory->pages);
    *memory = (struct leak_memory){.pagemap = -1};
}

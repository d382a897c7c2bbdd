#include "recorder/recorder.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/maps.h"
#include "wire/wire_target.h"

#define MODULES_MAX 8192

struct module {
    uint64_t start, end;
    const void *headers; // together with the span it tells one module from its successor
    uint32_t round;      // of the refresh that has last seen it
};

struct unwind_space modules_space;
struct modules_code modules_linker;

static struct module *modules;
static size_t module_count;
static uint32_t round_number;
static unsigned long long seen_adds, seen_subs;
static uint64_t own_start, own_end;
static uint64_t allocator_start, allocator_end;
static atomic_flag lock = ATOMIC_FLAG_INIT;

bool modules_is_own(uint64_t pc) {
    return pc >= own_start && pc < own_end;
}

bool modules_is_allocator(uint64_t pc) {
    return pc >= allocator_start && pc < allocator_end;
}

// sbrk is libc's whoever allocates.
bool modules_allocator_is_libc(void) {
    return modules_is_allocator((uint64_t)recorder_next.sbrk);
}

// ---- /proc/self/maps ----

// Calls `each` for the mappings until it returns true.
static void read_maps(bool (*each)(const struct maps_mapping *, void *), void *context) {
    struct maps_reader reader;
    struct maps_mapping mapping;
    maps_reader_open(&reader, "/proc/self/maps");
    while (maps_reader_next(&reader, &mapping) && !each(&mapping, context))
        ;
    maps_reader_close(&reader);
}

struct wanted {
    uint64_t address, low, high;
    bool found, is_stack;
};

static bool find_mapping(const struct maps_mapping *line, void *context) {
    struct wanted *wanted = context;
    if (wanted->address < line->start || wanted->address >= line->end)
        return false;
    wanted->found = true;
    wanted->low = line->start;
    wanted->high = line->end;
    wanted->is_stack = strcmp(line->path, "[stack]") == 0;
    return true;
}

bool modules_mapping(uint64_t address, uint64_t *low, uint64_t *high, bool *is_stack) {
    struct wanted wanted = {.address = address};
    int saved = errno;
    read_maps(find_mapping, &wanted);
    errno = saved;
    *low = wanted.low;
    *high = wanted.high;
    *is_stack = wanted.is_stack;
    return wanted.found;
}

static bool tell_mapping(const struct maps_mapping *line, void *context) {
    if (line->executable && line->path[0] == '/')
        wire_send_module_map(line->start, line->end, line->offset, PROT_READ | PROT_EXEC,
                             line->path);
    return false;
}

// ---- what is loaded ----

static struct module *find_module(const struct unwind_image *image, const void *headers) {
    for (size_t i = 0; i < module_count; i++)
        if (modules[i].start == image->start && modules[i].end == image->end &&
            modules[i].headers == headers)
            return &modules[i];
    return NULL;
}

static void add_module(const struct unwind_image *image, const void *headers) {
    enum unwind_status status = unwind_space_add(&modules_space, image);
    uint64_t here = (uint64_t)&modules_is_own;
    if (here >= image->text_start && here < image->text_end) {
        own_start = image->text_start;
        own_end = image->text_end;
    }
    uint64_t allocator = (uint64_t)recorder_next.malloc;
    if (allocator >= image->text_start && allocator < image->text_end) {
        allocator_start = image->text_start;
        allocator_end = image->text_end;
    }
    if (image->start == getauxval(AT_BASE)) {
        modules_linker.start = image->text_start;
        modules_linker.end = image->text_end;
    }
    if (status == UNWIND_OK && module_count < MODULES_MAX)
        modules[module_count++] = (struct module){image->start, image->end, headers, round_number};
}

// First pass: which of the known ones are still there. Ends at once when nothing has changed.
static int mark_module(struct dl_phdr_info *info, size_t size, void *context) {
    bool *changed = context;
    if (!*changed && module_count && info->dlpi_adds == seen_adds && info->dlpi_subs == seen_subs)
        return 1;
    *changed = true;
    seen_adds = info->dlpi_adds;
    seen_subs = info->dlpi_subs;
    struct unwind_image image;
    if (!unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr))
        return 0;
    struct module *known = find_module(&image, info->dlpi_phdr);
    if (known)
        known->round = round_number;
    return 0;
}

// Second pass, after those gone have made room: the new ones.
static int take_module(struct dl_phdr_info *info, size_t size, void *context) {
    struct unwind_image image;
    if (unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr) &&
        !find_module(&image, info->dlpi_phdr)) {
        add_module(&image, info->dlpi_phdr);
        families_meet(info, *(const bool *)context);
    }
    return 0;
}

static void drop_the_gone(void) {
    for (size_t i = 0; i < module_count;) {
        if (modules[i].round == round_number) {
            i++;
            continue;
        }
        unwind_space_remove(&modules_space, modules[i].start, modules[i].end);
        wire_send_module_unmap(modules[i].start, modules[i].end);
        modules[i] = modules[--module_count];
    }
}

static bool refresh(bool is_loading) {
    // Whoever holds the dynamic linker's locks may be the one we would wait for.
    if (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        return false;
    int saved = errno;
    bool changed = false;
    round_number++;
    dl_iterate_phdr(mark_module, &changed);
    if (changed) {
        drop_the_gone();
        dl_iterate_phdr(take_module, &is_loading);
        read_maps(tell_mapping, NULL);
    }
    errno = saved;
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return changed;
}

bool modules_refresh(void) {
    return refresh(false);
}

void modules_loading(void) {
    refresh(true);
}

void modules_after_fork(void) {
    atomic_flag_clear(&lock);
    unwind_space_after_fork(&modules_space);
    read_maps(tell_mapping, NULL);
}

void modules_tell(void) {
    if (!modules_refresh())
        read_maps(tell_mapping, NULL);
}

bool modules_start(void) {
    modules = recorder_map_private(MODULES_MAX * sizeof *modules);
    if (!modules || unwind_space_open(&modules_space) != UNWIND_OK)
        return false;
    modules_refresh();
    return own_end != 0;
}

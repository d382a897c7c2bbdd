// Allocators that the program calls past the preloaded functions: those linked into the program,
// and those with names of their own (base/allocator_family.h). Their functions are diverted to
// hooks, which call the functions and record what they did.
//
// A function of a family may call another one. A block is recorded once: an allocation is not if
// the function has recorded the same block inside (record_latest), and nothing inside a resize or a
// release is.
#include "recorder/recorder.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/allocator_family.h"
#include "base/elf_view.h"
#include "base/glob.h"
#include "recorder/code.h"
#include "wire/wire_attach.h"
#include "wire/wire_target.h"

enum { HOOKS = 192, FAMILIES = 4 };

struct hook {
    const struct allocator_function *function;
    struct code_divert divert;
};

static struct hook hooks[HOOKS];
static unsigned hook_count;
static unsigned first_hooks[HOOKS], module_count; // of each module that has hooks
static bool is_started, has_diverted, is_next;
static bool is_attached; // libc's functions too; others write the jumps
static struct wire_attach_patch patches[HOOKS];
static unsigned patch_count;

PER_THREAD uint64_t inside;   // frame of the outermost hook that runs; 0: none
PER_THREAD uint64_t changing; // the same, if it resizes or releases a block

bool families_found(void) {
    return has_diverted;
}

bool families_is_next(void) {
    return is_next;
}

// A frame further up is one that an exception has left.
static inline bool is_within(uint64_t frame, uint64_t here) {
    return frame && here < frame;
}

bool families_is_inside(void) {
    return is_within(inside, (uint64_t)__builtin_frame_address(0));
}

// ---- hooks -------------------------------------------------------------------------------------

typedef uint64_t original_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static inline uint64_t call_original(const struct hook *hook, const uint64_t words[6]) {
    return ((original_function *)hook->divert.original)(words[0], words[1], words[2], words[3],
                                                        words[4]);
}

static uint64_t make(const struct hook *hook, const uint64_t words[6],
                     const struct allocator_call *call, const uint64_t *frame) {
    *record_latest() = 0;
    uint64_t result = call_original(hook, words), block = result;
    if (call->place)
        block = result ? 0 : *(const uint64_t *)call->place;
    if (!block || *record_latest() == ~block)
        return result;
    size_t size = call->is_text ? strlen((const char *)block) + 1 : call->size;
    record_allocated((const void *)block, size, frame);
    return result;
}

static void resized(const void *block, const void *moved, size_t size, const uint64_t *frame) {
    bool began = record_resize_began(block);
    record_resize_ended(began, block, size, moved, size, frame);
}

static uint64_t resize(const struct hook *hook, const uint64_t words[6],
                       const struct allocator_call *call, const uint64_t *frame) {
    const void *block = (const void *)call->block;
    bool began = record_resize_began(block);
    uint64_t moved = call_original(hook, words);
    if (!moved && call->size == 0)
        record_resize_released(began);
    else
        record_resize_ended(began, block, 0, (const void *)moved, call->size, frame);
    return moved;
}

static uint64_t change(const struct hook *hook, const uint64_t words[6],
                       const struct allocator_call *call, const uint64_t *frame) {
    const void *block = (const void *)call->block;
    uint64_t result;
    switch (call->act) {
    case ALLOCATOR_RELEASE:
        // A preloaded operator that records has done so.
        if (block && (is_next || !record_is_deleting(block)))
            record_freed(block);
        return call_original(hook, words);
    case ALLOCATOR_GROW:
        result = call_original(hook, words);
        if (result >= call->size)
            resized(block, block, call->size, frame);
        return result;
    case ALLOCATOR_EXPAND:
        result = call_original(hook, words);
        if (result)
            resized(block, block, call->size, frame);
        return result;
    default:
        return resize(hook, words, call, frame);
    }
}

static uint64_t on_call(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                        const struct hook *hook) {
    const uint64_t words[6] = {a, b, c, d, e, 0}, *frame = RECORDER_FRAME;
    uint64_t here = (uint64_t)frame;
    if (!recorder_on() || is_within(changing, here))
        return call_original(hook, words);
    struct allocator_call call;
    allocator_read_call(hook->function, words, &call);
    uint64_t outer = inside, outer_change = changing, result;
    if (!is_within(outer, here))
        inside = here;
    if (call.act == ALLOCATOR_RELEASE || call.block) {
        changing = here;
        result = change(hook, words, &call, frame);
        changing = is_within(outer_change, here) ? outer_change : 0;
    } else {
        result = make(hook, words, &call, frame);
    }
    inside = is_within(outer, here) ? outer : 0;
    return result;
}

// Not of a family, but hooked likewise: what is unloaded must not be walked through any more.
static const struct allocator_function unloading = {"dlclose", ALLOCATOR_OWN, "."};

static uint64_t on_unloading(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                             const struct hook *hook) {
    uint64_t result = call_original(hook, (uint64_t[6]){a, b, c, d, e});
    if (recorder_on())
        modules_refresh();
    return result;
}

// ---- symbols -----------------------------------------------------------------------------------

// A module, its file and what was found in it.
struct searched {
    uint64_t bias;
    uint64_t text_start, text_end;
    const char *name; // of the file
    bool is_program, is_stripped;
    bool is_running; // its code may be, while this one looks at it
    bool is_libc;    // and its functions are hooked as well
    bool exports[4]; // malloc, calloc, realloc, free
    struct elf_view view;
    struct allocator_found found[FAMILIES];
    unsigned found_count, first_hook;
    bool is_refused; // a function cannot be diverted
};

typedef void visit_symbol(struct searched *, const char *name, const Elf64_Sym *);

// An indirect function is no place to divert: what it returns is called.
static void visit_table(struct searched *module, const Elf64_Shdr *table, visit_symbol *visit) {
    struct elf_symbols symbols = elf_view_symbols(&module->view, table);
    Elf64_Sym symbol;
    const char *name;
    while ((name = elf_view_next_function(&symbols, &symbol)))
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
            visit(module, name, &symbol);
}

static void visit_symbols(struct searched *module, visit_symbol *visit) {
    Elf64_Shdr section;
    module->is_stripped = true;
    for (size_t i = 0; elf_view_section(&module->view, i, &section); i++) {
        if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM)
            visit_table(module, &section, visit);
        module->is_stripped &= section.sh_type != SHT_SYMTAB;
    }
}

static void look_for_family(struct searched *module, const char *name, const Elf64_Sym *symbol) {
    static const char standard[][8] = {"malloc", "calloc", "realloc", "free"};
    struct allocator_found found;
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(name, standard[i]) == 0 && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL)
            module->exports[i] = true;
    if (!allocator_recognise(name, strlen(name), &found) || module->found_count == FAMILIES)
        return;
    for (unsigned i = 0; i < module->found_count; i++)
        if (strcmp(module->found[i].prefix, found.prefix) == 0)
            return;
    module->found[module->found_count++] = found;
}

static void collect_function(struct searched *module, const char *name, const Elf64_Sym *symbol) {
    uint64_t pc = module->bias + symbol->st_value;
    const struct allocator_function *function = NULL;
    for (unsigned i = 0; i < module->found_count && !function; i++)
        function = allocator_function_of(&module->found[i], name);
    if (module->is_libc && strcmp(name, unloading.name) == 0)
        function = &unloading;
    if (!function || function->act == ALLOCATOR_SIZE ||
        (function->act == ALLOCATOR_OWN && function != &unloading) ||
        function->act == ALLOCATOR_INSIDE || pc < module->text_start || pc >= module->text_end)
        return;
    for (unsigned i = module->first_hook; i < hook_count; i++)
        if (hooks[i].divert.function == (uint8_t *)pc)
            return; // by another name
    if (hook_count == HOOKS)
        module->is_refused = true;
    else
        hooks[hook_count++] = (struct hook){
            .function = function, .divert = {.function = (uint8_t *)pc, .size = symbol->st_size}};
}

// ---- modules -----------------------------------------------------------------------------------

static void add_patch(const struct code_divert *divert) {
    struct wire_attach_patch *patch = &patches[patch_count++];
    *patch = (struct wire_attach_patch){.at = (uint64_t)divert->at, .size = divert->replaced};
    memcpy(patch->original, divert->at, WIRE_ATTACH_JUMP);
    memcpy(patch->jump, divert->jump, WIRE_ATTACH_JUMP);
}

// All functions or none.
static bool divert_all(struct searched *module) {
    unsigned count = hook_count - module->first_hook;
    size_t size = (count * CODE_ROOM + 4095) & ~4095ul;
    uint8_t *room = count && !module->is_refused
                        ? code_map_near(module->text_start, module->text_end, size)
                        : NULL;
    if (!room)
        return false;
    for (unsigned i = 0; i < count; i++) {
        struct hook *hook = &hooks[module->first_hook + i];
        void *on = hook->function == &unloading ? (void *)on_unloading : (void *)on_call;
        if (!code_prepare(&hook->divert, room + i * CODE_ROOM, on, hook)) {
            recorder_unmap_private(room, size);
            return false;
        }
    }
    if (!code_seal(room, size))
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct code_divert *divert = &hooks[module->first_hook + i].divert;
        if (is_attached)
            add_patch(divert);
        else if (!code_divert(divert))
            return i > 0;
        is_next |= divert->function == (uint8_t *)recorder_next.malloc;
    }
    return true;
}

static void announce(const struct searched *module, const struct allocator_found *found,
                     const char *what) {
    char text[512] = "Allocator: ";
    const char *const parts[] = {found->family->title, " in ",          module->name, " (",
                                 found->prefix,        "malloc, ...) ", what};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        strncat(text, parts[i], sizeof text - 1 - strlen(text));
    wire_send_notice(0, text);
}

// What --soname-synonyms=somalloc=PATTERN says of a module.
enum choice { CHOICE_NONE, CHOICE_TAKE, CHOICE_LEAVE };

static enum choice choice_for(const struct searched *module) {
    const char *option = wire_option("soname-synonyms");
    const char *at = option ? strstr(option, "somalloc=") : NULL;
    char pattern[256] = "";
    if (!at)
        return CHOICE_NONE;
    at += strlen("somalloc=");
    size_t size = strcspn(at, ",");
    if (size == 0 || size >= sizeof pattern)
        return CHOICE_NONE;
    memcpy(pattern, at, size);
    bool is_meant =
        strcmp(pattern, "NONE") == 0 ? module->is_program : glob_match(pattern, module->name);
    return is_meant ? CHOICE_TAKE : CHOICE_LEAVE;
}

static void take_families(struct searched *module) {
    enum choice choice = choice_for(module);
    bool is_standard = module->exports[0] && module->exports[1] && module->exports[2] &&
                       module->exports[3] && (module->is_program || module->is_libc);
    bool is_unknown = is_standard && !module->found_count;
    const char *what = "is recorded";
    if (is_unknown)
        module->found[module->found_count++] = (struct allocator_found){&allocator_unknown, {0}, 0};
    if (!module->found_count)
        return;
    module->first_hook = hook_count;
    if (choice == CHOICE_LEAVE) {
        what = "is not recorded: --soname-synonyms names another";
    } else if (module->is_running) {
        what = "is not recorded: it was loaded unnoticed. With --tool=memcheck or dhat, it is "
               "replaced";
    } else if (is_unknown && module->is_stripped && choice == CHOICE_NONE && !module->is_libc) {
        what = "is not recorded: the program is stripped, and may hide functions of it. "
               "--soname-synonyms=somalloc=NONE records it";
    } else {
        visit_symbols(module, collect_function);
        if (divert_all(module)) {
            has_diverted |= !module->is_libc;
            first_hooks[module_count++] = module->first_hook;
        } else {
            hook_count = module->first_hook;
            what =
                "is not recorded: its code cannot be diverted. With --tool=memcheck or dhat, it is "
                "replaced";
        }
    }
    for (unsigned i = 0; i < module->found_count && !module->is_libc; i++)
        announce(module, &module->found[i], what);
}

static void search_file(struct searched *module, const char *path) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    long bytes = -1;
    if (fstat(fd, &status) == 0 && status.st_size > 0)
        bytes = syscall(SYS_mmap, NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == -1)
        return;
    if (elf_view_open(&module->view, (const void *)bytes, (uint64_t)status.st_size)) {
        visit_symbols(module, look_for_family);
        take_families(module);
    }
    syscall(SYS_munmap, bytes, status.st_size);
}

static void search_module(struct dl_phdr_info *info, bool is_program, bool is_running) {
    static char program[4096];
    const char *path = info->dlpi_name;
    struct unwind_image image;
    if (!unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr) ||
        modules_is_own(image.text_start))
        return;
    if (is_program) {
        ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
        path = length > 0 ? program : path;
    }
    if (!path || path[0] != '/')
        return;
    static struct searched module; // too large for a small stack
    const char *slash = strrchr(path, '/');
    uint64_t libc = (uint64_t)recorder_next.sbrk;
    module = (struct searched){.bias = info->dlpi_addr,
                               .text_start = image.text_start,
                               .text_end = image.text_end,
                               .name = slash + 1,
                               .is_program = is_program,
                               .is_running = is_running,
                               .is_libc = is_attached && libc >= image.text_start &&
                                          libc < image.text_end};
    search_file(&module, path);
}

static int search_at_start(struct dl_phdr_info *info, size_t size, void *context) {
    bool *is_first = context;
    search_module(info, *is_first, false);
    *is_first = false;
    return 0;
}

void families_start(void) {
    bool is_first = true;
    dl_iterate_phdr(search_at_start, &is_first);
    is_started = true;
}

void families_meet(struct dl_phdr_info *info, bool is_loading) {
    bool had_diverted = has_diverted;
    // Where Quern writes the jumps, threads may be running anywhere.
    if (!is_started || is_attached)
        return;
    search_module(info, false, !is_loading);
    if (has_diverted && !had_diverted)
        recorder_area->libc_heap = false;
}

const struct wire_attach_patch *families_attach(unsigned *count) {
    is_attached = true;
    if (!patch_count) // the process may have been attached to before
        families_start();
    *count = patch_count;
    return patches;
}

static const struct hook *find_hook(unsigned from, unsigned to, const char *arguments) {
    for (unsigned i = from; i < to; i++)
        if (strcmp(hooks[i].function->arguments, arguments) == 0)
            return &hooks[i];
    return NULL;
}

// Its first memory must not seem to be the program's, as it would in a constructor of its own.
void families_wake_up(void) {
    inside = changing = UINT64_MAX; // nothing is recorded
    for (unsigned i = 0; i < module_count; i++) {
        unsigned end = i + 1 < module_count ? first_hooks[i + 1] : hook_count;
        const struct hook *make = find_hook(first_hooks[i], end, "s");
        const struct hook *release = find_hook(first_hooks[i], end, "b");
        if (make && release)
            call_original(release, (uint64_t[6]){call_original(make, (uint64_t[6]){1})});
    }
    inside = changing = 0;
}

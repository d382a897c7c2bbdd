#include "symbols/symbols.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"
#include "symbols/demangle.h"
#include "symbols/files.h"
#include "symbols/kernel.h"
#include "symbols/names.h"
#include "symbols/processes.h"
#include "symbols/units.h"
#include "symbols/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Deeper inlining than this is cut. */
enum { MOST_INLINED = 256 };

/* A function whose name has no path: C's static functions may share a name. */
struct declaration {
    const char *object, *name, *file; /* kept by names: equal texts have equal addresses */
    uint32_t line;
};

struct symbols {
    struct symbols_options options;
    char *extra_debug_path;
    struct names *names;
    struct files *files;
    struct processes *processes;
    struct declaration *declarations; /* the first of each name without a path */
    struct map declarations_map;
    uint32_t declaration_count;
    struct units_frame found[MOST_INLINED]; /* of the current question */
    struct kernel kernel;
    int64_t since; /* seconds since 1970: when it was made */
    char demangled[NAMES_LONGEST];
};

struct symbols *symbols_new(const struct symbols_options *options) {
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return NULL;
    if (options)
        symbols->options = *options;
    if (symbols->options.extra_debug_path) {
        symbols->extra_debug_path = strdup(symbols->options.extra_debug_path);
        symbols->options.extra_debug_path = symbols->extra_debug_path;
    }
    symbols->since = (int64_t)time(NULL);
    symbols->names = names_new();
    symbols->files = symbols->names ? files_new(&symbols->options, symbols->names) : NULL;
    if (symbols->files)
        symbols->processes = processes_new(symbols->files, symbols->options.keep_unmapped);
    if (!symbols->processes) {
        symbols_free(symbols);
        return NULL;
    }
    return symbols;
}

void symbols_free(struct symbols *symbols) {
    if (!symbols)
        return;
    processes_free(symbols->processes);
    files_free(symbols->files);
    names_free(symbols->names);
    kernel_free(&symbols->kernel);
    map_free(&symbols->declarations_map);
    free(symbols->declarations);
    free(symbols->extra_debug_path);
    free(symbols);
}

void symbols_map(struct symbols *symbols, pid_t pid, uint64_t start, uint64_t end, uint64_t offset,
                 const char *path, const struct symbols_identity *identity) {
    bool follows = symbols->options.live && !processes_find(symbols->processes, pid);
    processes_map(symbols->processes, pid, start, end, offset, path, identity);
    if (follows)
        symbols_generated_by(symbols, pid, pid);
    const struct process *process =
        generated_is_dump(path) ? processes_find(symbols->processes, pid) : NULL;
    if (process && process->generated_count)
        generated_follow_dump(process->generated[0], path);
}

bool symbols_is_jit_dump(const char *path) {
    return generated_is_dump(path);
}

void symbols_unmap(struct symbols *symbols, pid_t pid, uint64_t start, uint64_t end) {
    processes_unmap(symbols->processes, pid, start, end);
}

void symbols_fork(struct symbols *symbols, pid_t parent, pid_t child) {
    processes_fork(symbols->processes, parent, child);
    if (symbols->options.live && processes_find(symbols->processes, child))
        symbols_generated_by(symbols, child, child);
}

void symbols_end(struct symbols *symbols, pid_t pid) {
    processes_end(symbols->processes, pid);
}

/* ------------------------------------------------------------------ generated code */

void symbols_generated_by(struct symbols *symbols, pid_t pid, pid_t writer) {
    struct generated *generated = generated_new(symbols->names);
    generated_follow(generated, writer, symbols->since);
    processes_generate(symbols->processes, pid, generated);
}

void symbols_add_code(struct symbols *symbols, pid_t pid, uint64_t start, uint64_t end,
                      const char *name, const char *file, uint32_t line) {
    struct process *process = processes_find(symbols->processes, pid);
    if (!process || !process->generated_count || generated_is_shared(process->generated[0])) {
        processes_generate(symbols->processes, pid, generated_new(symbols->names));
        process = processes_find(symbols->processes, pid);
    }
    if (process)
        generated_add(process->generated[0], start, end, name, file, line);
}

bool symbols_code(struct symbols *symbols, pid_t pid, uint64_t address, uint64_t time,
                  struct symbol_code *code) {
    struct process *process = processes_find(symbols->processes, pid);
    const struct generated_piece *piece =
        process ? process_generated(process, address, time) : NULL;
    if (piece)
        *code =
            (struct symbol_code){piece->start, piece->end, piece->name, piece->file, piece->line};
    return piece != NULL;
}

/* The frame of a piece of generated code; false if there is none at the address. */
static bool resolve_generated(struct process *process, uint64_t address,
                              struct symbol_frame *frame) {
    const struct generated_piece *piece =
        process ? process_generated(process, address, UINT64_MAX) : NULL;
    if (!piece)
        return false;
    *frame = (struct symbol_frame){.name = piece->name,
                                   .linkage = piece->name,
                                   .file = piece->base,
                                   .directory = piece->folder,
                                   .object = SYMBOLS_GENERATED_CODE,
                                   .address = address,
                                   .offset = address - piece->start,
                                   .line = piece->line};
    return true;
}

static void resolve_kernel(struct symbols *symbols, uint64_t address, struct symbol_frame *frame) {
    const char *name, *module;
    const struct kernel_function *function = kernel_find(&symbols->kernel, address, &name, &module);
    *frame = (struct symbol_frame){.object = SYMBOLS_KERNEL, .address = address};
    if (!function)
        return;
    frame->name = frame->linkage = names_keep(symbols->names, name);
    frame->offset = address - function->start;
    if (module)
        frame->object = names_keep(symbols->names, module);
}

bool symbols_kernel_is_named(struct symbols *symbols) {
    const char *name, *module;
    kernel_find(&symbols->kernel, SYMBOLS_KERNEL_START, &name, &module);
    return symbols->kernel.count > 0;
}

/* ------------------------------------------------------------------ functions */

char *symbol_frame_label(const struct symbol_frame *frame) {
    if (frame->name)
        return base_copy(frame->name);
    const char *slash = frame->object ? strrchr(frame->object, '/') : NULL;
    const char *module = slash && slash[1] ? slash + 1 : frame->object;
    struct text text = {0};
    if (!module)
        text_string(&text, "[unknown]");
    else if (frame->start)
        text_format(&text, "%s+0x%llx", module, (unsigned long long)frame->start);
    else
        text_format(&text, *module == '[' ? "%s" : "[%s]", module);
    return text_take(&text);
}

static const char *shown_name(struct symbols *symbols, const char *linkage) {
    if (!symbols->options.no_demangle &&
        demangle(linkage, symbols->demangled, sizeof symbols->demangled))
        return names_keep(symbols->names, symbols->demangled);
    return names_keep(symbols->names, linkage);
}

/*
 * Rust's linkage names call everything without a name {{closure}} or {closure#0}; the debug
 * information knows what it is: {async_fn#0}, {closure#1}. Shown are a::serve::{async fn} and
 * a::serve::{closure#1}.
 */
static const char *with_kind(struct symbols *symbols, const char *shown, const char *plain) {
    static const struct {
        const char *start, *shown;
    } kinds[] = {{"{async_fn", "{async fn}"},
                 {"{async_block", "{async block}"},
                 {"{async_closure", "{async closure}"}};
    const char *tail = strrchr(shown, ':');
    tail = tail ? tail + 1 : shown;
    if (!plain || plain[0] != '{' || tail[0] != '{' || !strstr(tail, "closure"))
        return shown;
    const char *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(plain, kinds[i].start, strlen(kinds[i].start)))
            kind = kinds[i].shown;
    struct text text = {0};
    int size = kind ? (int)strlen(kind) : (int)strcspn(plain, "}") + 1;
    text_format(&text, "%.*s%.*s", (int)(tail - shown), shown, size, kind ? kind : plain);
    const char *name = names_keep(symbols->names, text.bytes);
    text_free(&text);
    return name;
}

/* Whether another function of that name in the object was seen before this one. */
static bool has_twin(struct symbols *symbols, const char *object, const char *name,
                     const struct units_frame *from) {
    const char *file = names_keep(symbols->names, from->declared_in);
    uint64_t hash = hash_add(hash_add(1, (uint64_t)object), (uint64_t)name);
    struct map_walk walk = map_walk(hash);
    for (uint32_t i; (i = map_next(&symbols->declarations_map, &walk)) != MAP_NONE;) {
        const struct declaration *known = &symbols->declarations[i];
        if (known->object == object && known->name == name)
            return known->line != from->declared || known->file != file;
    }
    *vector_push(symbols->declarations, symbols->declaration_count) =
        (struct declaration){object, name, file, from->declared};
    map_add(&symbols->declarations_map, hash);
    return false;
}

static void place(struct symbols *symbols, struct symbol_frame *frame,
                  const struct units_frame *from) {
    if (!from->path || !from->path[0])
        return;
    frame->file = names_keep(symbols->names, from->file);
    frame->line = from->line;
    int length = from->file > from->path ? (int)(from->file - from->path) - 1 : 0;
    char *directory = NULL;
    if (from->path[0] == '/' || !from->folder) {
        frame->directory = names_keep_part(symbols->names, from->path, (size_t)length);
    } else if (asprintf(&directory, "%s%s%.*s", from->folder, length ? "/" : "", length,
                        from->path) >= 0) {
        frame->directory = names_keep(symbols->names, directory);
        free(directory);
    }
}

/*
 * An inlined function has its plain name (symbols.h, full_names); the function around it that of
 * its symbol, which tells clones and parts apart (f.part.0).
 */
static void name_frame(struct symbols *symbols, struct symbol_frame *frame,
                       const struct units_frame *from, const struct image_symbol *symbol,
                       uint64_t vaddr) {
    frame->address = vaddr;
    if (from)
        place(symbols, frame, from);
    if (symbol && !(from && from->inlined)) {
        frame->linkage = names_keep(symbols->names, symbol->name);
        frame->name = shown_name(symbols, symbol->name);
        frame->offset = vaddr - symbol->low;
        return;
    }
    if (!from)
        return;
    frame->inlined = from->inlined;
    frame->linkage = names_keep(symbols->names, from->linkage);
    if (from->linkage && !from->inlined)
        frame->name = shown_name(symbols, from->linkage);
    else
        frame->name = names_keep(symbols->names, from->name ? from->name : from->linkage);
    if (!from->inlined && from->low && from->low <= vaddr)
        frame->offset = vaddr - from->low;
}

/* The name with its path. Of two static functions of one name, the one that is met later is shown
 * with its file. */
static const char *full_name(struct symbols *symbols, struct units *units,
                             const struct symbol_frame *frame, const struct units_frame *from,
                             size_t level) {
    const char *name =
        from->inlined && from->linkage ? shown_name(symbols, from->linkage) : frame->name;
    if (!name || from->linkage)
        return name ? with_kind(symbols, name, from->name) : NULL;
    const char *object = names_keep(symbols->names, frame->object);
    if (!from->declared || !has_twin(symbols, object, name, from))
        return name;
    const char *file = units_declaring_file(units, frame->address, level);
    const char *slash = file ? strrchr(file, '/') : NULL;
    struct text text = {0};
    text_format(&text, "%s (%s:%u)", name,
                slash  ? slash + 1
                : file ? file
                       : "line",
                from->declared);
    name = names_keep(symbols->names, text.bytes);
    text_free(&text);
    return name;
}

struct question {
    struct symbols *symbols;
    struct process *process;
    struct mapping *mapping;
    uint64_t address;
    struct symbol_frame *frames;
    size_t max, count;
    struct symbol_data *data;
    const char *section;
    bool found;
};

/* Whether a file is the C library or the dynamic linker, by its name: glibc's or musl's. */
static bool is_libc(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0 ||
           strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2.", 5) == 0 ||
           strncmp(name, "ld-musl-", 8) == 0;
}

/* Whether lines and inlined functions of a file are to be read. */
static bool wants_units(const struct symbols *symbols, const struct question *question,
                        struct image *image) {
    const struct symbols_options *options = &symbols->options;
    bool own_only =
        options->own_debug_only || (options->plain_libc && is_libc(question->mapping->file->path));
    return !own_only || image_has_debug(image);
}

static void resolve(struct image *image, void *context) {
    struct question *question = context;
    struct symbols *symbols = question->symbols;
    if (!process_bias(question->process, question->mapping, image))
        return;
    uint64_t vaddr = question->address - question->mapping->bias;
    struct units *units = wants_units(symbols, question, image) ? image_units(image) : NULL;
    struct units_request request = {.no_inlined = symbols->options.no_inlined,
                                    .no_lines = symbols->options.no_lines};
    size_t count = 0;
    if (units)
        count = units_find(units, vaddr, request, symbols->found, MOST_INLINED);
    const struct image_symbol *symbol = image_function(image, vaddr);
    const char *object = question->frames[0].object;
    /* Functions that a tool stands in for are found at their first instruction. Of an indirect one,
     * that is the code that chooses, whose insides have nothing to do with the call. */
    if (symbol && symbol->is_indirect && vaddr == symbol->low)
        count = 0;
    if (!count) {
        name_frame(symbols, &question->frames[0], NULL, symbol, vaddr);
        if (!symbol)
            question->frames[0].start = image_function_start(image, vaddr);
        return;
    }
    for (size_t i = 0; i < count && i < question->max; i++) {
        question->frames[i] = (struct symbol_frame){.object = object};
        struct symbol_frame *frame = &question->frames[i];
        name_frame(symbols, frame, &symbols->found[i], symbol, vaddr);
        if (symbols->options.full_names)
            frame->name = full_name(symbols, units, frame, &symbols->found[i], i);
        question->count = i + 1;
    }
}

/* bss may lie behind the last mapping of its file. */
static struct mapping *data_mapping(struct process *process, uint64_t address) {
    struct mapping *mapping = process_mapping(process, address);
    return mapping ? mapping : process_mapping_below(process, address);
}

enum { PAGE = 4096 };

/* Data is not told of as a mapping of its own; it comes from the file as far as whole pages do. */
static void find_in_file(struct image *image, void *context) {
    struct question *question = context;
    if (!process_bias(question->process, question->mapping, image))
        return;
    uint64_t vaddr = question->address - question->mapping->bias;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *segment = &image->segments[i];
        uint64_t end = segment->vaddr + segment->file_size;
        if (segment->file_size && vaddr >= (segment->vaddr & ~(PAGE - 1ul)) &&
            vaddr < ((end + PAGE - 1) & ~(PAGE - 1ul)))
            question->found = true;
    }
}

/* The file of a module whose data, but not whose code, is at the address. */
static size_t resolve_object(struct symbols *symbols, struct process *process, uint64_t address,
                             struct symbol_frame *frame) {
    struct mapping *mapping = process ? data_mapping(process, address) : NULL;
    struct question question = {
        .symbols = symbols, .process = process, .mapping = mapping, .address = address};
    if (!mapping || !files_use(symbols->files, mapping->file, find_in_file, &question) ||
        !question.found)
        return 0;
    *frame = (struct symbol_frame){.object = mapping->file->path};
    return 1;
}

size_t symbols_resolve(struct symbols *symbols, pid_t pid, uint64_t address, bool return_address,
                       struct symbol_frame *frames, size_t max) {
    struct process *process = processes_find(symbols->processes, pid);
    address -= return_address;
    struct mapping *mapping = process ? process_mapping(process, address) : NULL;
    if (max && address >= SYMBOLS_KERNEL_START) {
        resolve_kernel(symbols, address, frames);
        return 1;
    }
    if (!mapping && max && resolve_generated(process, address, frames))
        return 1;
    if (!mapping && max)
        return resolve_object(symbols, process, address, frames);
    if (!max)
        return 0;
    const char *object = mapping->file->path;
    frames[0] = (struct symbol_frame){.object = object};
    struct question question = {.symbols = symbols,
                                .process = process,
                                .mapping = mapping,
                                .address = address,
                                .frames = frames,
                                .max = max,
                                .count = 1};
    if (!files_use(symbols->files, mapping->file, resolve, &question)) {
        if (!resolve_generated(process, address, frames))
            frames[0] = (struct symbol_frame){.object = object};
        return 1;
    }
    if (question.count == 1 && !frames[0].name)
        resolve_generated(process, address, frames);
    return question.count;
}

/* ------------------------------------------------------------------ variables */

static bool in_segment(const struct image *image, uint64_t vaddr) {
    for (size_t i = 0; i < image->segment_count; i++)
        if (vaddr >= image->segments[i].vaddr &&
            vaddr - image->segments[i].vaddr < image->segments[i].memory_size)
            return true;
    return false;
}

static void resolve_data(struct image *image, void *context) {
    struct question *question = context;
    struct symbols *symbols = question->symbols;
    if (!process_bias(question->process, question->mapping, image))
        return;
    uint64_t vaddr = question->address - question->mapping->bias;
    const struct image_symbol *symbol =
        in_segment(image, vaddr) ? image_variable(image, vaddr) : NULL;
    if (!symbol)
        return;
    *question->data = (struct symbol_data){.name = shown_name(symbols, symbol->name),
                                           .object = question->mapping->file->path,
                                           .offset = vaddr - symbol->low,
                                           .size = symbol->size};
    question->found = true;
}

bool symbols_resolve_data(struct symbols *symbols, pid_t pid, uint64_t address,
                          struct symbol_data *data) {
    struct process *process = processes_find(symbols->processes, pid);
    struct mapping *mapping = process ? data_mapping(process, address) : NULL;
    if (!mapping)
        return false;
    struct question question = {.symbols = symbols,
                                .process = process,
                                .mapping = mapping,
                                .address = address,
                                .data = data};
    return files_use(symbols->files, mapping->file, resolve_data, &question) && question.found;
}

struct variable_question {
    struct question place; /* of a local variable: the code */
    bool is_local;
    uint64_t frame_end, address;
    struct symbol_variable *variable;
    bool found;
};

static void find_variable(struct image *image, void *context) {
    struct variable_question *question = context;
    struct names *names = question->place.symbols->names;
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(image->module, &bias);
    if (!dwarf || !process_bias(question->place.process, question->place.mapping, image))
        return;
    uint64_t vaddr = question->place.address - question->place.mapping->bias;
    struct variable found;
    if (question->is_local ? !variables_find_local(dwarf, bias, vaddr, question->frame_end,
                                                   question->address, &found)
                           : !variables_find_global(dwarf, bias, vaddr, &found))
        return;
    *question->variable =
        (struct symbol_variable){.path = names_keep(names, found.path),
                                 .file = found.file ? names_keep(names, found.file) : NULL,
                                 .line = (uint32_t)found.line,
                                 .offset = found.offset,
                                 .is_whole = found.is_whole};
    question->found = true;
}

static bool ask_variable(struct symbols *symbols, pid_t pid, uint64_t place,
                         struct variable_question *question) {
    struct process *process = processes_find(symbols->processes, pid);
    struct mapping *mapping = process ? data_mapping(process, place) : NULL;
    question->place = (struct question){
        .symbols = symbols, .process = process, .mapping = mapping, .address = place};
    return mapping && files_use(symbols->files, mapping->file, find_variable, question) &&
           question->found;
}

bool symbols_global(struct symbols *symbols, pid_t pid, uint64_t address,
                    struct symbol_variable *variable) {
    struct variable_question question = {.variable = variable};
    return ask_variable(symbols, pid, address, &question);
}

bool symbols_local(struct symbols *symbols, pid_t pid, uint64_t pc, uint64_t frame_end,
                   uint64_t address, struct symbol_variable *variable) {
    struct variable_question question = {
        .is_local = true, .frame_end = frame_end, .address = address, .variable = variable};
    return ask_variable(symbols, pid, pc, &question);
}

static void find_section(struct image *image, void *context) {
    struct question *question = context;
    if (process_bias(question->process, question->mapping, image))
        question->section = image_section(image, question->address - question->mapping->bias);
}

const char *symbols_section(struct symbols *symbols, pid_t pid, uint64_t address,
                            const char **object) {
    struct process *process = processes_find(symbols->processes, pid);
    struct mapping *mapping = process ? data_mapping(process, address) : NULL;
    if (!mapping)
        return NULL;
    struct question question = {
        .symbols = symbols, .process = process, .mapping = mapping, .address = address};
    *object = mapping->file->path;
    return files_use(symbols->files, mapping->file, find_section, &question) ? question.section
                                                                             : NULL;
}

const char *symbols_keep(struct symbols *symbols, const char *text) {
    return names_keep(symbols->names, text);
}

struct symbols_statistics symbols_statistics(const struct symbols *symbols) {
    return files_statistics(symbols->files);
}

void symbols_check(const struct symbols *symbols) {
    files_check(symbols->files);
    processes_check(symbols->processes);
}

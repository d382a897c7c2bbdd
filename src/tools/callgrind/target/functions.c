#include "tools/callgrind/target/functions.h"

#include <fcntl.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_view.h"
#include "base/glob.h"
#include "base/search.h"
#include "engine/tool.h"

enum { PLT_SECTIONS = 4 };

struct range {
    uint64_t start, end;
    struct function_marks marks;
};

struct mark {
    const char *pattern;
    struct function_marks marks;
    struct mark *next;
};

struct module {
    uint64_t start, end;
    uint32_t number;
    bool is_loader;
    struct range plt[PLT_SECTIONS];
    unsigned plt_count;
    struct range *functions; // sorted by start
    size_t count;
    struct module *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;
static struct mark *marks;

static int by_start(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? 1 : x->end > y->end ? -1 : 0;
}

void functions_mark(const char *pattern, struct function_marks wanted) {
    struct mark *mark = malloc(sizeof *mark);
    if (!mark)
        return;
    *mark = (struct mark){pattern, wanted, marks};
    marks = mark;
}

// ---- patterns ----------------------------------------------------------------------------------

struct source_name {
    char text[2048];
    size_t used;
    jmp_buf full;
};

// A name may expand beyond all measure: that is where it ends.
static void append(const char *text, size_t size, void *argument) {
    struct source_name *name = argument;
    if (size >= sizeof name->text - name->used)
        longjmp(name->full, 1);
    memcpy(name->text + name->used, text, size);
    name->used += size;
}

// As the source has it, with the types of arguments; false: it is no mangled name.
static bool demangle(const char *symbol, struct source_name *name) {
    int options = DMGL_ANSI | DMGL_PARAMS;
    name->used = 0;
    if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R') || setjmp(name->full))
        return false;
    if (!rust_demangle_callback(symbol, options, append, name)) {
        name->used = 0;
        if (!cplus_demangle_v3_callback(symbol, options, append, name))
            return false;
    }
    name->text[name->used] = 0;
    return true;
}

static void add_marks(struct function_marks *to, const struct function_marks *more) {
    to->events |= more->events;
    if (!to->callers)
        to->callers = more->callers;
    if (!to->levels)
        to->levels = more->levels;
}

static struct function_marks marks_of(const struct elf_view *elf, const Elf64_Shdr *table,
                                      const Elf64_Sym *symbol) {
    struct function_marks found = {0};
    Elf64_Shdr strings;
    const char *name = NULL;
    if (marks && elf_view_section(elf, table->sh_link, &strings))
        name = elf_view_text(elf, &strings, symbol->st_name);
    if (!name)
        return found;
    struct source_name source;
    bool mangled = demangle(name, &source);
    for (const struct mark *mark = marks; mark; mark = mark->next)
        if (glob_match(mark->pattern, name) || (mangled && glob_match(mark->pattern, source.text)))
            add_marks(&found, &mark->marks);
    return found;
}

static void add_symbols(struct module *module, const struct elf_view *elf, const Elf64_Shdr *table,
                        uint64_t bias) {
    const Elf64_Sym *symbols = elf_view_contents(elf, table);
    size_t count = table->sh_size / sizeof *symbols;
    struct range *grown =
        symbols ? realloc(module->functions, (module->count + count) * sizeof *grown) : NULL;
    if (!grown)
        return;
    module->functions = grown;
    for (size_t i = 0; i < count; i++) {
        unsigned type = ELF64_ST_TYPE(symbols[i].st_info);
        uint64_t start = symbols[i].st_value + bias;
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbols[i].st_shndx != SHN_UNDEF &&
            symbols[i].st_size && start >= module->start && start < module->end)
            module->functions[module->count++] = (struct range){start, start + symbols[i].st_size,
                                                                marks_of(elf, table, &symbols[i])};
    }
}

// One range for each start, the widest; each ends where the next one begins.
static void tidy(struct module *module) {
    if (!module->count)
        return;
    qsort(module->functions, module->count, sizeof *module->functions, by_start);
    size_t kept = 0;
    for (size_t i = 0; i < module->count; i++) {
        struct range *last = kept ? &module->functions[kept - 1] : NULL;
        if (last && last->start == module->functions[i].start) {
            add_marks(&last->marks, &module->functions[i].marks);
            continue;
        }
        if (last && last->end > module->functions[i].start)
            last->end = module->functions[i].start;
        module->functions[kept++] = module->functions[i];
    }
    module->count = kept;
}

static bool skips_plt(void) {
    const char *option = tool_option("skip-plt");
    return !option || strcmp(option, "no") != 0;
}

static void add_section(struct module *module, const struct elf_view *elf,
                        const Elf64_Shdr *section, uint64_t bias) {
    if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM)
        add_symbols(module, elf, section, bias);
    const char *name =
        section->sh_type == SHT_PROGBITS ? elf_view_text(elf, &elf->names, section->sh_name) : NULL;
    if (name && module->plt_count < PLT_SECTIONS && strncmp(name, ".plt", 4) == 0 && skips_plt())
        module->plt[module->plt_count++] = (struct range){
            section->sh_addr + bias, section->sh_addr + bias + section->sh_size, {0}};
}

static bool map_file(struct elf_view *elf, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *bytes = MAP_FAILED;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    bool is_elf = elf_view_open(elf, bytes, st.st_size);
    if (!is_elf)
        munmap(bytes, st.st_size);
    return is_elf;
}

static void add_sections(struct module *module, const struct elf_view *elf, uint64_t bias) {
    Elf64_Shdr section;
    for (size_t i = 0; elf_view_section(elf, i, &section); i++)
        add_section(module, elf, &section, bias);
}

static bool has_section(const struct elf_view *elf, uint32_t type) {
    Elf64_Shdr section;
    for (size_t i = 0; elf_view_section(elf, i, &section); i++)
        if (section.sh_type == type)
            return true;
    return false;
}

static bool find_build_id(const struct elf_view *elf, struct elf_note *id) {
    Elf64_Shdr section;
    for (size_t i = 0; elf_view_section(elf, i, &section); i++) {
        const uint8_t *notes =
            section.sh_type == SHT_NOTE ? elf_view_contents(elf, &section) : NULL;
        if (notes && elf_view_build_id(notes, section.sh_size, id))
            return id->size >= 2 && id->size <= 32;
    }
    return false;
}

// The path of the separate debug file by build id; false if the file has none.
static bool debug_path(const struct elf_view *elf, char *path, size_t room) {
    struct elf_note id;
    if (!find_build_id(elf, &id))
        return false;
    int used = snprintf(path, room, "/usr/lib/debug/.build-id/%02x/", id.content[0]);
    for (unsigned i = 1; i < id.size; i++)
        used += snprintf(path + used, room - used, "%02x", id.content[i]);
    snprintf(path + used, room - used, ".debug");
    return true;
}

static void read_module(struct module *module, uint64_t offset, const char *path) {
    struct elf_view elf, debug;
    char other[128];
    uint64_t bias;
    if (!map_file(&elf, path))
        return;
    if (elf_view_bias(&elf, module->start, offset, &bias)) {
        add_sections(module, &elf, bias);
        if (!has_section(&elf, SHT_SYMTAB) && debug_path(&elf, other, sizeof other) &&
            map_file(&debug, other)) {
            add_sections(module, &debug, bias);
            munmap((void *)debug.bytes, debug.size);
        }
        tidy(module);
    }
    munmap((void *)elf.bytes, elf.size);
}

void functions_add(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return;
    const char *slash = strrchr(path, '/');
    module->start = start;
    module->end = end;
    module->is_loader = strncmp(slash ? slash + 1 : path, "ld-", 3) == 0;
    read_module(module, offset, path);
    functions_drop(start, end);
    pthread_mutex_lock(&lock);
    static uint32_t last_number;
    module->number = ++last_number;
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&lock);
}

void functions_drop(uint64_t start, uint64_t end) {
    pthread_mutex_lock(&lock);
    for (struct module **at = &modules; *at;) {
        struct module *module = *at;
        if (module->start < end && start < module->end) {
            *at = module->next;
            free(module->functions);
            free(module);
        } else {
            at = &module->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

static const struct range *function_in(const struct module *module, uint64_t pc) {
    const struct range *functions = module->functions;
    size_t behind = search_first(at, 0, module->count, functions[at].start > pc);
    return behind && pc < functions[behind - 1].end ? &functions[behind - 1] : NULL;
}

struct code_place functions_at(uint64_t pc) {
    struct code_place place = {0};
    pthread_mutex_lock(&lock);
    const struct module *module = modules;
    while (module && !(pc >= module->start && pc < module->end))
        module = module->next;
    if (module) {
        for (unsigned i = 0; i < module->plt_count; i++)
            if (pc >= module->plt[i].start && pc < module->plt[i].end)
                place.plt = true;
        const struct range *function = place.plt ? NULL : function_in(module, pc);
        if (function) {
            place.function = function->start;
            place.end = function->end;
            place.marks = function->marks;
        }
        place.resolves = module->is_loader;
        place.object = module->number;
    }
    pthread_mutex_unlock(&lock);
    return place;
}

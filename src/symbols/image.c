#include "symbols/image.h"

#include "symbols/debug_file.h"
#include "symbols/symtab.h"
#include "symbols/units.h"
#include "symbols/unpack.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* libdwfl asks for the file itself only if it was reported without one. */
static int find_no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                       char **file_name, Elf **elf) {
    return -1;
}

static int find_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                           const char *file_name, const char *link, GElf_Word crc,
                           char **found_name) {
    const struct image *image = *user;
    int fd = debug_file_find(&(struct debug_file_question){.module = module,
                                                           .user = user,
                                                           .module_name = name,
                                                           .base = base,
                                                           .file_name = file_name,
                                                           .link = link,
                                                           .crc = crc,
                                                           .any_checksum = image->any_checksum,
                                                           .extra_path = image->extra_debug_path,
                                                           .servers = image->servers},
                             found_name);
    return unpack_sections(fd);
}

struct image *image_new(const struct image_options *options) {
    struct image *image = calloc(1, sizeof *image);
    if (!image)
        return NULL;
    if (options->extra_debug_path)
        image->extra_debug_path = strdup(options->extra_debug_path);
    image->servers = options->servers;
    image->any_checksum = options->any_checksum;
    if (asprintf(&image->debug_path, "+:.debug:/usr/lib/debug%s%s",
                 image->extra_debug_path ? ":" : "",
                 image->extra_debug_path ? image->extra_debug_path : "") < 0)
        image->debug_path = NULL;
    return image;
}

static bool read_segments(struct image *image) {
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(image->module, &bias);
    GElf_Ehdr header;
    size_t count;
    if (!elf || !gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count) < 0)
        return false;
    image->fixed = header.e_type == ET_EXEC;
    image->segments = calloc(count ? count : 1, sizeof *image->segments);
    if (!image->segments)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr program;
        if (!gelf_getphdr(elf, (int)i, &program) || program.p_type != PT_LOAD)
            continue;
        if (program.p_vaddr + program.p_memsz < program.p_vaddr ||
            program.p_offset + program.p_filesz < program.p_offset)
            continue;
        image->segments[image->segment_count++] =
            (struct image_segment){.vaddr = program.p_vaddr,
                                   .offset = program.p_offset,
                                   .file_size = program.p_filesz,
                                   .memory_size = program.p_memsz,
                                   .executable = program.p_flags & PF_X};
    }
    /* libdwfl was told base 0; were it to shift the file, every table would disagree with us. */
    return bias == 0;
}

bool image_open(struct image *image, const char *path, int fd) {
    image->callbacks = (Dwfl_Callbacks){
        .find_elf = find_no_elf,
        .find_debuginfo = find_debug_file,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &image->debug_path,
    };
    image->dwfl = dwfl_begin(&image->callbacks);
    if (!image->dwfl) {
        close(fd);
        return false;
    }
    fd = unpack_sections(fd);
    dwfl_report_begin(image->dwfl);
    image->module = dwfl_report_elf(image->dwfl, path, path, fd, 0, true);
    if (!image->module) {
        close(fd);
        dwfl_report_end(image->dwfl, NULL, NULL);
        return false;
    }
    void **user;
    dwfl_module_info(image->module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
    *user = image;
    dwfl_report_end(image->dwfl, NULL, NULL);
    image->bytes += 65536;
    return read_segments(image);
}

static void free_own(struct image *image) {
    units_free(image->units);
    symtab_free(&image->functions);
    symtab_free(&image->variables);
    free(image->segments);
}

void image_close(struct image *image) {
    free_own(image);
    if (image->dwfl)
        dwfl_end(image->dwfl);
    free(image->debug_path);
    free(image->extra_debug_path);
    free(image);
}

/* libdw may still hold pointers to the rest. */
void image_discard(struct image *image) {
    free_own(image);
    image->segments = NULL;
    image->segment_count = 0;
}

size_t image_build_id(const struct image *image, const uint8_t **bytes) {
    GElf_Addr vaddr;
    int size = dwfl_module_build_id(image->module, bytes, &vaddr);
    return size > 0 ? (size_t)size : 0;
}

static void read_symbols(struct image *image) {
    if (image->symbols_read)
        return;
    image->symbols_read = true;
    symtab_read(image);
}

static const struct image_symbol *find(const struct image_symbols *symbols, uint64_t vaddr) {
    uint32_t index = ranges_find(&symbols->ranges, vaddr);
    return index == RANGES_NONE ? NULL : &symbols->items[index];
}

const struct image_symbol *image_function(struct image *image, uint64_t vaddr) {
    read_symbols(image);
    return find(&image->functions, vaddr);
}

const struct image_symbol *image_variable(struct image *image, uint64_t vaddr) {
    read_symbols(image);
    return find(&image->variables, vaddr);
}

struct units *image_units(struct image *image) {
    if (!image->units_read) {
        image->units_read = true;
        Dwarf_Addr bias;
        Dwarf *dwarf = dwfl_module_getdwarf(image->module, &bias);
        if (dwarf)
            image->units = units_new(dwarf, bias, &image->bytes);
    }
    return image->units;
}

bool image_has_debug(struct image *image) {
    GElf_Addr bias;
    size_t names;
    Elf *elf = dwfl_module_getelf(image->module, &bias);
    if (!elf || elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && strcmp(name, ".debug_info") == 0)
            return true;
    }
    return false;
}

/* .eh_frame_hdr as linkers write it: a table of functions by address, in numbers of four bytes that
 * count from the section. */
struct starts {
    uint8_t version, pointer_sort, count_sort, table_sort;
    int32_t frames;
    uint32_t count;
    struct {
        int32_t start, entry;
    } table[];
};

static uint64_t find_start(const Elf_Data *data, uint64_t section, uint64_t vaddr) {
    enum { COUNT_SORT = 0x03, TABLE_SORT = 0x3b, FIRST = 0x1b };
    const struct starts *starts = data ? data->d_buf : NULL;
    if (!starts || data->d_size < sizeof *starts || starts->version != 1 ||
        starts->pointer_sort != FIRST || starts->count_sort != COUNT_SORT ||
        starts->table_sort != TABLE_SORT ||
        starts->count > (data->d_size - sizeof *starts) / sizeof *starts->table)
        return 0;
    size_t low = 0, high = starts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (section + (uint64_t)(int64_t)starts->table[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? section + (uint64_t)(int64_t)starts->table[low - 1].start : 0;
}

uint64_t image_function_start(struct image *image, uint64_t vaddr) {
    GElf_Addr bias;
    size_t names;
    Elf *elf = dwfl_module_getelf(image->module, &bias);
    if (!elf || elf_getshdrstrndx(elf, &names) != 0)
        return 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && strcmp(name, ".eh_frame_hdr") == 0 && header.sh_type != SHT_NOBITS)
            return find_start(elf_rawdata(section, NULL), header.sh_addr, vaddr);
    }
    return 0;
}

const char *image_section(struct image *image, uint64_t vaddr) {
    static const struct {
        const char *name, *word;
    } kinds[] = {{".text", "Text"}, {".data", "Data"}, {".sdata", "Data"}, {".bss", "BSS"},
                 {".sbss", "BSS"},  {".got", "GOT"},   {".plt", "PLT"},    {".got.plt", "GOTPLT"}};
    GElf_Addr bias;
    size_t names;
    Elf *elf = dwfl_module_getelf(image->module, &bias);
    if (!elf || elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) ||
            vaddr < header.sh_addr || vaddr - header.sh_addr >= header.sh_size)
            continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(name, kinds[i].name) == 0)
                return kinds[i].word;
    }
    return NULL;
}

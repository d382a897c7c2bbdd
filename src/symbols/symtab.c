#include "symbols/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

bool symtab_prefer(const char *a, const char *b) {
    size_t bare_a = strcspn(a, "@"), bare_b = strcspn(b, "@");
    if (bare_a != bare_b)
        return bare_a < bare_b;
    if (!a[bare_a] != !b[bare_b])
        return a[bare_a] != 0;
    return strcmp(a, b) < 0;
}

static const struct image_segment *segment_at(const struct image *image, uint64_t vaddr) {
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *segment = &image->segments[i];
        if (vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->memory_size)
            return segment;
    }
    return NULL;
}

/* By address; at one address the sized before the unsized, the longer first, then by name. */
static int compare(const void *left, const void *right) {
    const struct image_symbol *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    if (!strcmp(a->name, b->name))
        return 0;
    return symtab_prefer(a->name, b->name) ? -1 : 1;
}

/*
 * Symbols written in assembly often have no size: they reach to the next symbol or to the end of
 * their segment, but a label inside a sized function is no function.
 */
static void give_sizes(struct image_symbols *symbols, const struct image *image) {
    uint64_t covered = 0;
    size_t kept = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct image_symbol symbol = symbols->items[i];
        if (!symbol.size) {
            const struct image_segment *segment = segment_at(image, symbol.low);
            if (symbol.low < covered || !segment)
                continue;
            uint64_t end = segment->vaddr + segment->memory_size;
            for (size_t next = i + 1; next < symbols->count; next++)
                if (symbols->items[next].low > symbol.low) {
                    if (symbols->items[next].low < end)
                        end = symbols->items[next].low;
                    break;
                }
            symbol.size = end - symbol.low;
        }
        if (symbol.low + symbol.size > covered)
            covered = symbol.low + symbol.size;
        symbols->items[kept++] = symbol;
    }
    symbols->count = kept;
}

static void build(struct image_symbols *symbols, const struct image *image, bool with_unsized) {
    if (symbols->count)
        qsort(symbols->items, symbols->count, sizeof *symbols->items, compare);
    if (with_unsized)
        give_sizes(symbols, image);
    struct range_list list = {0};
    for (size_t i = 0; i < symbols->count; i++) {
        const struct image_symbol *symbol = &symbols->items[i];
        /* The names of one range stand together, the best of them first. */
        if (i && symbol[-1].low == symbol->low && symbol[-1].size == symbol->size) {
            struct range *last = &list.items[list.count - 1];
            last->owner = symtab_prefer(symbols->items[last->owner].name, symbol->name)
                              ? last->owner
                              : (uint32_t)i;
            continue;
        }
        range_list_add(&list, symbol->low, symbol->low + symbol->size, (uint32_t)i, 0);
    }
    ranges_build(&symbols->ranges, &list);
    range_list_free(&list);
}

static bool is_function_name(const char *name) {
    return name[0] && name[0] != '.' && name[0] != '$';
}

void symtab_read(struct image *image) {
    int count = dwfl_module_getsymtab(image->module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name =
            dwfl_module_getsym_info(image->module, i, &symbol, &address, NULL, NULL, NULL);
        if (!name || !name[0] || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS)
            continue;
        const struct image_segment *segment = segment_at(image, address);
        if (!segment)
            continue;
        int type = GELF_ST_TYPE(symbol.st_info);
        uint64_t room = segment->vaddr + segment->memory_size - address;
        struct image_symbol item = {.low = address,
                                    .size = symbol.st_size < room ? symbol.st_size : room,
                                    .name = name,
                                    .is_indirect = type == STT_GNU_IFUNC};
        if (type == STT_OBJECT || type == STT_COMMON) {
            if (item.size)
                *vector_push(image->variables.items, image->variables.count) = item;
        } else if (type == STT_FUNC || type == STT_GNU_IFUNC ||
                   (type == STT_NOTYPE && segment->executable)) {
            if (is_function_name(name))
                *vector_push(image->functions.items, image->functions.count) = item;
        }
    }
    build(&image->functions, image, true);
    build(&image->variables, image, false);
    image->bytes += (vector_room(image->functions.count) + vector_room(image->variables.count)) *
                        sizeof(struct image_symbol) +
                    ranges_bytes(&image->functions.ranges) + ranges_bytes(&image->variables.ranges);
}

void symtab_free(struct image_symbols *symbols) {
    free(symbols->items);
    ranges_free(&symbols->ranges);
    *symbols = (struct image_symbols){0};
}

#include "tools/dhat/supervisor/native_file.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "supervisor/tool.h"

#define MICROSECOND 1000

static void add_frames(struct dhat_file *file, struct dhat_point *point,
                       const struct stacks_entry *stack, struct heap_names *names) {
    size_t first, room = 0;
    size_t count = heap_names_trim(names, stack, &first);
    for (size_t i = 0; i < count; i++)
        room += heap_names_place(names, stack->pcs[first + i])->count;
    point->fs = base_allocate((room + 1) * sizeof *point->fs);
    for (size_t i = 0; i < count; i++) {
        const struct heap_place *place = heap_names_place(names, stack->pcs[first + i]);
        for (size_t j = 0; j < place->count; j++) {
            struct text text = {0};
            text_format(&text, "0x%" PRIX64 ": %s", place->address, place->texts[j]);
            point->fs[point->fs_count++] = dhat_file_frame(file, text.bytes);
            text_free(&text);
        }
    }
}

void dhat_native(FILE *out, const struct lifetimes *lifetimes, const struct stacks *stacks,
                 struct heap_names *names, const char *command, int pid) {
    struct dhat_file file;
    dhat_file_init(&file, "heap", "Allocated", command, pid);
    file.bklt = true;
    free(file.tu);
    free(file.Mtu);
    file.tu = base_copy("µs");
    file.Mtu = base_copy("s");
    file.tuth = DHAT_NATIVE_BRIEF;
    file.te = lifetimes->time / MICROSECOND;
    file.tg = lifetimes->peak_time / MICROSECOND;
    for (uint32_t i = 0; i < lifetimes->site_count; i++) {
        const struct lifetimes_site *site = &lifetimes->sites[i];
        if (!site->blocks)
            continue;
        struct dhat_point point = {
            .tb = site->bytes,
            .tbk = site->blocks,
            .tl = site->life / MICROSECOND,
            .mb = site->most_bytes,
            .mbk = site->most,
            .gb = site->peak_bytes,
            .gbk = site->peak,
            .eb = site->live_bytes,
            .ebk = site->live,
        };
        add_frames(&file, &point, stacks_get(stacks, i), names);
        dhat_file_add(&file, &point);
    }
    dhat_out(out, &file);
    dhat_file_free(&file);
}

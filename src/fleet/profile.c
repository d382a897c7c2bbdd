// The heap of a followed process as a profile for pprof.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fleet/exporter.h"
#include "report/heap/rows.h"
#include "report/shared/pprof.h"

// As Go's runtime has them, in its order.
static const struct {
    const char *name, *unit;
    size_t offset;
} types[] = {
    {"alloc_objects", "count", offsetof(struct summary_site, allocated)},
    {"alloc_space", "bytes", offsetof(struct summary_site, allocated_bytes)},
    {"inuse_objects", "count", offsetof(struct summary_site, live)},
    {"inuse_space", "bytes", offsetof(struct summary_site, live_bytes)},
};

#define TYPES (sizeof types / sizeof *types)

void profile_note(const struct follower *follower, struct profile_base *base) {
    const struct summary *summary = &follower->file.summary;
    *base = (struct profile_base){.edition = follower->edition};
    if (!follower->is_open)
        return;
    base->time = summary->time;
    base->count = summary->site_count;
    base->sites = base_allocate((base->count + 1) * sizeof *base->sites);
    if (base->count)
        memcpy(base->sites, summary->sites, base->count * sizeof *base->sites);
}

// The value of a type; since the base, what is alive may have become less.
static uint64_t value_of(const struct summary *summary, const struct profile_base *base,
                         size_t stack, size_t type) {
    uint64_t now = *(const uint64_t *)((const char *)&summary->sites[stack] + types[type].offset);
    if (!base || stack >= base->count)
        return now;
    return now - *(const uint64_t *)((const char *)&base->sites[stack] + types[type].offset);
}

static void add_sample(struct pprof *profile, struct follower *follower, size_t stack,
                       const uint64_t *values) {
    rows_frames(&follower->file, (uint32_t)stack, rows_pprof_frame, profile);
    for (size_t i = 0; i < TYPES; i++)
        pprof_value(profile, values[i]);
    pprof_sample(profile);
}

// Appends the bytes as gzip writes them.
static void pack(const void *bytes, size_t size, struct text *out) {
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    size_t room = deflateBound(&stream, size);
    uint8_t *packed = base_allocate(room);
    stream.next_in = (Bytef *)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    deflate(&stream, Z_FINISH);
    text_add(out, (const char *)packed, room - stream.avail_out);
    deflateEnd(&stream);
    free(packed);
}

static void write_profile(struct pprof *profile, struct text *out) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    if (!file)
        abort();
    pprof_write(profile, file);
    fclose(file);
    pack(bytes, size, out);
    free(bytes);
}

bool profile_heap(struct follower *follower, const struct profile_base *base, struct text *out) {
    if (base && base->edition != follower->edition)
        return false;
    const struct summary *summary = &follower->file.summary;
    struct pprof *profile = pprof_new();
    for (size_t i = 0; i < TYPES; i++)
        pprof_type(profile, types[i].name, types[i].unit, i + 1 == TYPES);
    pprof_period(profile, "space", "bytes", 1);
    for (size_t i = 0; follower->is_open && i < summary->site_count; i++) {
        uint64_t values[TYPES], any = 0;
        for (size_t j = 0; j < TYPES; j++)
            any |= values[j] = value_of(summary, base, i, j);
        if (any)
            add_sample(profile, follower, i, values);
    }
    uint64_t from = base ? base->time : 0;
    if (follower->is_open)
        pprof_times(profile, follower->file.info.process.started * 1000000000 + from,
                    summary->time - from);
    write_profile(profile, out);
    return true;
}

#include "profile/recording/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fd.h"
#include "base/text.h"

#define INDEX_MAGIC   0x58444e49u // "INDX" in memory
#define TRAILER_MAGIC "QUERNIDX"
#define INDEX_MOST    (64u << 20) // bytes before they are packed
#define LEVEL         9
#define SITE_NUMBERS  7
#define NUMBER_MOST   (1ull << 60)

// The last bytes of a file.
struct trailer {
    uint64_t position; // of the index
    char magic[8];
};

// The numbers of a site, one at a time.
static uint64_t *number_of(struct summary_site *site, int which) {
    uint64_t *const numbers[SITE_NUMBERS] = {
        &site->allocated, &site->allocated_bytes, &site->temporary, &site->live, &site->live_bytes,
        &site->peak,      &site->peak_bytes};
    return numbers[which];
}

// ---- writing ----

static void add(struct text *text, uint64_t number) {
    for (; number >= 128; number >>= 7)
        text_char(text, (char)(number | 128));
    text_char(text, (char)number);
}

static void add_sites(struct text *text, const struct recording_index_parts *parts) {
    const struct summary *sums = parts->sums;
    add(text, parts->stacks);
    for (int which = 0; which < SITE_NUMBERS; which++) {
        for (size_t i = 0; i <= parts->stacks; i++) {
            struct summary_site none = {0};
            struct summary_site *site = i < sums->site_count ? &sums->sites[i] : &none;
            add(text, *number_of(site, which));
        }
    }
}

static void add_steps(struct text *text, const struct timeline *timeline) {
    add(text, timeline->length);
    add(text, timeline->count);
    for (size_t i = 0; i < timeline->count; i++)
        add(text, timeline->steps[i].most);
    for (size_t i = 0; i < timeline->count; i++)
        add(text, timeline->steps[i].last);
}

static void add_marks(struct text *text, const struct marks *marks) {
    add(text, marks->count);
    for (size_t i = 0; i < marks->count; i++) {
        add(text, marks->points[i].live_bytes);
        add(text, marks->points[i].live_blocks);
        add(text, marks->points[i].allocated);
    }
    add(text, marks->scope_count);
    for (size_t i = 0; i < marks->scope_count; i++) {
        add(text, marks->scopes[i].most);
        add(text, marks->scopes[i].count.allocated);
        add(text, marks->scopes[i].count.allocated_bytes);
        add(text, marks->scopes[i].count.freed_bytes);
    }
}

static int write_packed(int fd, uint64_t position, const struct text *plain) {
    size_t room = ZSTD_compressBound(plain->size);
    struct recording_chunk chunk = {.magic = INDEX_MAGIC, .plain = (uint32_t)plain->size};
    struct trailer trailer = {.position = position, .magic = TRAILER_MAGIC};
    char *bytes = base_allocate(sizeof chunk + room + sizeof trailer);
    ZSTD_CCtx *packer = ZSTD_createCCtx();
    int error = packer ? 0 : ENOMEM;
    if (packer) {
        ZSTD_CCtx_setParameter(packer, ZSTD_c_checksumFlag, 1);
        ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, LEVEL);
        size_t packed =
            ZSTD_compress2(packer, bytes + sizeof chunk, room, plain->bytes, plain->size);
        chunk.packed = (uint32_t)packed;
        memcpy(bytes, &chunk, sizeof chunk);
        memcpy(bytes + sizeof chunk + packed, &trailer, sizeof trailer);
        error = ZSTD_isError(packed)
                    ? ENOMEM
                    : fd_write_all(fd, bytes, sizeof chunk + packed + sizeof trailer);
    }
    ZSTD_freeCCtx(packer);
    free(bytes);
    return error;
}

int recording_index_write(int fd, uint64_t position, const struct recording_index_parts *parts) {
    struct text plain = {0};
    add_sites(&plain, parts);
    add(&plain, parts->sums->freed);
    add(&plain, parts->sums->resized);
    add(&plain, parts->sums->truncated);
    add(&plain, parts->peak_time);
    add(&plain, parts->sums->resident.heap_peak_bytes);
    add_steps(&plain, parts->timeline);
    add_marks(&plain, &parts->sums->marks);
    int error = plain.size <= INDEX_MOST ? write_packed(fd, position, &plain) : 0;
    text_free(&plain);
    return error;
}

// ---- reading ----

// What is left of an index. Once something is wrong with it, there is nothing left.
struct cursor {
    const uint8_t *at, *end;
    bool is_wrong;
};

static uint64_t get(struct cursor *cursor, uint64_t most) {
    uint64_t number = 0;
    for (unsigned shift = 0; cursor->at < cursor->end && shift < 64; shift += 7) {
        uint8_t byte = *cursor->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128 && number <= most)
            return number;
        if (byte < 128)
            break;
    }
    cursor->is_wrong = true;
    cursor->at = cursor->end;
    return 0;
}

// How many things of so many numbers each follow.
static size_t get_count(struct cursor *cursor, uint64_t most, size_t numbers) {
    size_t count = get(cursor, most);
    if (count <= (size_t)(cursor->end - cursor->at) / numbers)
        return count;
    cursor->is_wrong = true;
    cursor->at = cursor->end;
    return 0;
}

static void get_sites(struct cursor *cursor, struct recording_index *index) {
    uint32_t stacks = (uint32_t)get(cursor, UINT32_MAX - 1);
    if (stacks + 1ull > (uint64_t)(cursor->end - cursor->at) / SITE_NUMBERS) {
        cursor->is_wrong = true;
        return;
    }
    index->site_count = stacks + 1;
    index->sites = base_allocate(index->site_count * sizeof *index->sites);
    memset(index->sites, 0, index->site_count * sizeof *index->sites);
    for (int which = 0; which < SITE_NUMBERS; which++) {
        for (size_t i = 0; i < index->site_count; i++) {
            uint64_t number = get(cursor, NUMBER_MOST);
            *number_of(&index->sites[i], which) = number;
            *number_of(&index->total, which) += number;
        }
    }
}

static void get_steps(struct cursor *cursor, struct recording_index *index) {
    index->step_length = get(cursor, NUMBER_MOST);
    index->step_count = get_count(cursor, TIMELINE_STEPS, 2);
    for (size_t i = 0; i < index->step_count; i++)
        index->steps[i].most = get(cursor, UINT64_MAX);
    for (size_t i = 0; i < index->step_count; i++)
        index->steps[i].last = get(cursor, UINT64_MAX);
}

static void get_marks(struct cursor *cursor, struct recording_index *index) {
    index->point_count = get_count(cursor, MARKS_POINTS, 3);
    index->points = base_allocate((index->point_count + 1) * sizeof *index->points);
    for (size_t i = 0; i < index->point_count; i++) {
        index->points[i].live_bytes = get(cursor, UINT64_MAX);
        index->points[i].live_blocks = get(cursor, UINT64_MAX);
        index->points[i].allocated = get(cursor, UINT64_MAX);
    }
    index->scope_count = get_count(cursor, MARKS_SCOPES, 4);
    index->scopes = base_allocate((index->scope_count + 1) * sizeof *index->scopes);
    for (size_t i = 0; i < index->scope_count; i++) {
        index->scopes[i].most = get(cursor, UINT64_MAX);
        index->scopes[i].count.allocated = get(cursor, UINT64_MAX);
        index->scopes[i].count.allocated_bytes = get(cursor, UINT64_MAX);
        index->scopes[i].count.freed_bytes = get(cursor, UINT64_MAX);
    }
}

static struct recording_index *parse(const uint8_t *plain, size_t size) {
    struct cursor cursor = {plain, plain + size, false};
    struct recording_index *index = base_allocate(sizeof *index);
    *index = (struct recording_index){0};
    get_sites(&cursor, index);
    index->freed = get(&cursor, NUMBER_MOST);
    index->resized = get(&cursor, NUMBER_MOST);
    index->truncated = get(&cursor, NUMBER_MOST);
    index->peak_time = get(&cursor, NUMBER_MOST);
    index->peak_resident = get(&cursor, UINT64_MAX);
    get_steps(&cursor, index);
    get_marks(&cursor, index);
    if (!cursor.is_wrong && cursor.at == cursor.end)
        return index;
    recording_index_free(index);
    return NULL;
}

static struct recording_index *unpack(int fd, uint64_t position,
                                      const struct recording_chunk *chunk) {
    struct recording_index *index = NULL;
    uint8_t *packed = base_allocate(chunk->packed + 1ul);
    uint8_t *plain = base_allocate(chunk->plain + 1ul);
    if (pread(fd, packed, chunk->packed, (off_t)(position + sizeof *chunk)) ==
        (ssize_t)chunk->packed) {
        size_t size = ZSTD_decompress(plain, chunk->plain, packed, chunk->packed);
        if (size == chunk->plain)
            index = parse(plain, size);
    }
    free(packed);
    free(plain);
    return index;
}

struct recording_index *recording_index_read(int fd) {
    struct trailer trailer;
    struct recording_chunk chunk;
    off_t place = lseek(fd, 0, SEEK_CUR);
    off_t end = place >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (end < 0 || lseek(fd, place, SEEK_SET) != place ||
        end < (off_t)(sizeof(struct recording_header) + sizeof chunk + sizeof trailer))
        return NULL;
    uint64_t behind = (uint64_t)end - sizeof trailer;
    if (pread(fd, &trailer, sizeof trailer, (off_t)behind) != sizeof trailer ||
        memcmp(trailer.magic, TRAILER_MAGIC, sizeof trailer.magic) != 0 ||
        trailer.position > behind - sizeof chunk)
        return NULL;
    if (pread(fd, &chunk, sizeof chunk, (off_t)trailer.position) != sizeof chunk ||
        chunk.magic != INDEX_MAGIC || chunk.plain > INDEX_MOST ||
        chunk.packed != behind - sizeof chunk - trailer.position)
        return NULL;
    return unpack(fd, trailer.position, &chunk);
}

bool recording_index_is_one(uint32_t magic) {
    return magic == INDEX_MAGIC;
}

// ---- using it ----

static void apply_sites(const struct recording_index *index, struct summary *summary) {
    if (index->site_count)
        summary->sites = base_reach(summary->sites, &summary->site_count, index->site_count - 1,
                                    sizeof *summary->sites);
    for (int which = 0; which < SITE_NUMBERS; which++) {
        for (size_t i = 0; i < index->site_count; i++)
            *number_of(&summary->sites[i], which) = *number_of(&index->sites[i], which);
        *number_of(&summary->total, which) =
            *number_of((struct summary_site *)&index->total, which);
    }
}

static void apply_marks(const struct recording_index *index, struct marks *marks) {
    for (size_t i = 0; i < index->point_count; i++) {
        marks->points[i].live_bytes = index->points[i].live_bytes;
        marks->points[i].live_blocks = index->points[i].live_blocks;
        marks->points[i].allocated = index->points[i].allocated;
    }
    for (size_t i = 0; i < index->scope_count; i++) {
        marks->scopes[i].most = index->scopes[i].most;
        marks->scopes[i].count = index->scopes[i].count;
    }
}

bool recording_index_apply(const struct recording_index *index, struct summary *summary,
                           struct timeline *timeline) {
    if (summary->marks.count != index->point_count ||
        summary->marks.scope_count != index->scope_count ||
        (timeline &&
         (timeline->length != index->step_length || timeline->count != index->step_count)))
        return false;
    apply_sites(index, summary);
    apply_marks(index, &summary->marks);
    summary->freed = index->freed;
    summary->resized = index->resized;
    summary->truncated = index->truncated;
    summary->peak_time = index->peak_time;
    summary->resident.heap_peak_bytes = index->peak_resident;
    for (size_t i = 0; timeline && i < index->step_count; i++) {
        timeline->steps[i].most = index->steps[i].most;
        timeline->steps[i].last = index->steps[i].last;
    }
    return true;
}

void recording_index_free(struct recording_index *index) {
    if (!index)
        return;
    free(index->sites);
    free(index->points);
    free(index->scopes);
    free(index);
}

// A recording as a pprof profile: the protocol buffers of profile.proto, not compressed, which its
// readers accept. Each function at a source line is a location; inlined functions are locations of
// their own. The numbers of a stack are one sample with a value for each type.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/heap_rows.h"
#include "report/numbered.h"

// Numbers of fields, as in profile.proto.
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10, PROFILE_DEFAULT = 14 };

static const struct {
    const char *name, *unit;
    const char *weight; // of --by; NULL: none
    size_t offset;
} types[] = {
    {"alloc_objects", "count", "count", offsetof(struct summary_site, allocated)},
    {"alloc_space", "bytes", "total", offsetof(struct summary_site, allocated_bytes)},
    {"temporary_objects", "count", "temporary", offsetof(struct summary_site, temporary)},
    {"peak_objects", "count", NULL, offsetof(struct summary_site, peak)},
    {"peak_space", "bytes", "peak", offsetof(struct summary_site, peak_bytes)},
    {"inuse_objects", "count", NULL, offsetof(struct summary_site, live)},
    {"inuse_space", "bytes", "leaked", offsetof(struct summary_site, live_bytes)},
};

#define TYPES (sizeof types / sizeof *types)

// ---- bytes ----

struct bytes {
    uint8_t *at;
    size_t size, room;
};

static void put(struct bytes *bytes, const void *from, size_t size) {
    if (bytes->size + size > bytes->room) {
        bytes->room = (bytes->size + size) * 2 + 64;
        bytes->at = base_reallocate(bytes->at, bytes->room);
    }
    if (size)
        memcpy(bytes->at + bytes->size, from, size);
    bytes->size += size;
}

static void put_varint(struct bytes *bytes, uint64_t number) {
    uint8_t coded[10];
    size_t size = 0;
    for (; number >= 128; number >>= 7)
        coded[size++] = (uint8_t)(number | 128);
    coded[size++] = (uint8_t)number;
    put(bytes, coded, size);
}

static void put_number(struct bytes *bytes, unsigned field, uint64_t number) {
    put_varint(bytes, field << 3);
    put_varint(bytes, number);
}

static void put_bytes(struct bytes *bytes, unsigned field, const void *from, size_t size) {
    put_varint(bytes, field << 3 | 2);
    put_varint(bytes, size);
    put(bytes, from, size);
}

// Appends the message and empties it.
static void put_message(struct bytes *bytes, unsigned field, struct bytes *message) {
    put_bytes(bytes, field, message->at, message->size);
    message->size = 0;
}

// ---- strings, functions, locations ----

struct profile {
    struct bytes all, message, inner, locations;
    struct numbered strings, functions, places;
};

static uint64_t string_of(struct profile *profile, const char *text) {
    bool is_new;
    return numbered_text(&profile->strings, text, &is_new);
}

// Functions and locations are told apart by texts that hold all there is to them.
static uint64_t function_of(struct profile *profile, const char *name, const char *file) {
    struct text key = {0};
    bool is_new;
    text_format(&key, "%s\n%s", name, file);
    uint64_t number = numbered_text(&profile->functions, key.bytes, &is_new) + 1ull;
    text_free(&key);
    if (is_new) {
        put_number(&profile->message, 1, number);
        put_number(&profile->message, 2, string_of(profile, name));
        put_number(&profile->message, 3, string_of(profile, name));
        put_number(&profile->message, 4, string_of(profile, file));
        put_message(&profile->all, PROFILE_FUNCTION, &profile->message);
    }
    return number;
}

static void add_location(void *context, const struct heap_place *place,
                         const struct symbol_frame *frame) {
    struct profile *profile = context;
    struct text key = {0};
    char *label = heap_file_label(frame);
    const char *file = frame->file ? frame->file : frame->object ? frame->object : "";
    bool is_new;
    text_format(&key, "%s\n%s\n%u", label, file, frame->file ? frame->line : 0);
    uint64_t number = numbered_text(&profile->places, key.bytes, &is_new) + 1ull;
    if (is_new) {
        uint64_t function = function_of(profile, label, file);
        put_number(&profile->inner, 1, function);
        put_number(&profile->inner, 2, frame->file ? frame->line : 0);
        put_number(&profile->message, 1, number);
        put_message(&profile->message, 4, &profile->inner);
        put_message(&profile->all, PROFILE_LOCATION, &profile->message);
    }
    put_varint(&profile->locations, number);
    text_free(&key);
    free(label);
}

// ---- the profile ----

static void put_types(struct profile *profile, const struct heap_export *export) {
    for (size_t i = 0; i < TYPES; i++) {
        put_number(&profile->message, 1, string_of(profile, types[i].name));
        put_number(&profile->message, 2, string_of(profile, types[i].unit));
        put_message(&profile->all, PROFILE_TYPE, &profile->message);
        if (types[i].weight && strcmp(types[i].weight, export->weight->name) == 0)
            put_number(&profile->all, PROFILE_DEFAULT, string_of(profile, types[i].name));
    }
}

static void put_sample(struct profile *profile, const struct heap_export *export, uint32_t stack) {
    const char *site = (const char *)&export->file->summary.sites[stack];
    rows_frames(export->file, stack, add_location, profile);
    for (size_t i = 0; i < TYPES; i++)
        put_varint(&profile->inner, *(const uint64_t *)(site + types[i].offset));
    put_message(&profile->message, 1, &profile->locations);
    put_message(&profile->message, 2, &profile->inner);
    put_message(&profile->all, PROFILE_SAMPLE, &profile->message);
}

void rows_pprof(FILE *out, const struct heap_export *export) {
    const struct summary *summary = &export->file->summary;
    struct profile profile = {0};
    // The first string must be empty.
    string_of(&profile, "");
    put_types(&profile, export);
    for (size_t i = 0; i < summary->site_count; i++)
        if (rows_has(&summary->sites[i]))
            put_sample(&profile, export, (uint32_t)i);
    put_number(&profile.all, PROFILE_TIME, export->file->info.process.started * 1000000000);
    put_number(&profile.all, PROFILE_DURATION, summary->time);
    for (size_t i = 0; i < profile.strings.count; i++)
        put_bytes(&profile.all, PROFILE_STRING, profile.strings.list[i],
                  strlen(profile.strings.list[i]));
    fwrite(profile.all.at, 1, profile.all.size, out);
    free(profile.all.at);
    free(profile.message.at);
    free(profile.inner.at);
    free(profile.locations.at);
    numbered_free(&profile.strings);
    numbered_free(&profile.functions);
    numbered_free(&profile.places);
}

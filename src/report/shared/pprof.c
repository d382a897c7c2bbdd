#include "report/shared/pprof.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"

// Numbers of fields, as in profile.proto.
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10, PROFILE_PERIOD_TYPE = 11 };
enum { PROFILE_PERIOD = 12, PROFILE_DEFAULT = 14 };

// ---- bytes ----

struct bytes {
    uint8_t *at;
    size_t size;
};

static void put(struct bytes *bytes, const void *from, size_t size) {
    if (size)
        memcpy(vector_extend(bytes->at, bytes->size, size), from, size);
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

struct pprof {
    struct bytes all, message, inner;
    struct bytes locations, values; // of the sample that is being made
    struct map_texts strings, functions, places;
};

static uint64_t string_of(struct pprof *profile, const char *text) {
    bool is_new;
    return map_texts_add(&profile->strings, text, strlen(text), &is_new);
}

struct pprof *pprof_new(void) {
    struct pprof *profile = base_allocate(sizeof *profile);
    memset(profile, 0, sizeof *profile);
    // The first string must be empty.
    string_of(profile, "");
    return profile;
}

static void put_type(struct pprof *profile, unsigned field, const char *name, const char *unit) {
    put_number(&profile->message, 1, string_of(profile, name));
    put_number(&profile->message, 2, string_of(profile, unit));
    put_message(&profile->all, field, &profile->message);
}

void pprof_type(struct pprof *profile, const char *name, const char *unit, bool is_default) {
    put_type(profile, PROFILE_TYPE, name, unit);
    if (is_default)
        put_number(&profile->all, PROFILE_DEFAULT, string_of(profile, name));
}

void pprof_period(struct pprof *profile, const char *name, const char *unit, uint64_t period) {
    put_type(profile, PROFILE_PERIOD_TYPE, name, unit);
    put_number(&profile->all, PROFILE_PERIOD, period);
}

// Functions and locations are told apart by texts that hold all there is to them.
static uint64_t function_of(struct pprof *profile, const char *name, const char *file) {
    struct text key = {0};
    bool is_new;
    text_format(&key, "%s\n%s", name, file);
    uint64_t number = map_texts_add(&profile->functions, key.bytes, key.size, &is_new) + 1ull;
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

void pprof_frame(struct pprof *profile, const char *name, const char *file, uint32_t line) {
    struct text key = {0};
    bool is_new;
    text_format(&key, "%s\n%s\n%u", name, file, line);
    uint64_t number = map_texts_add(&profile->places, key.bytes, key.size, &is_new) + 1ull;
    if (is_new) {
        uint64_t function = function_of(profile, name, file);
        put_number(&profile->inner, 1, function);
        put_number(&profile->inner, 2, line);
        put_number(&profile->message, 1, number);
        put_message(&profile->message, 4, &profile->inner);
        put_message(&profile->all, PROFILE_LOCATION, &profile->message);
    }
    put_varint(&profile->locations, number);
    text_free(&key);
}

// ---- samples ----

void pprof_value(struct pprof *profile, uint64_t value) {
    put_varint(&profile->values, value);
}

void pprof_sample(struct pprof *profile) {
    put_message(&profile->message, 1, &profile->locations);
    put_message(&profile->message, 2, &profile->values);
    put_message(&profile->all, PROFILE_SAMPLE, &profile->message);
}

void pprof_times(struct pprof *profile, uint64_t began, uint64_t took) {
    put_number(&profile->all, PROFILE_TIME, began);
    put_number(&profile->all, PROFILE_DURATION, took);
}

void pprof_write(struct pprof *profile, FILE *out) {
    for (size_t i = 0; i < profile->strings.count; i++)
        put_bytes(&profile->all, PROFILE_STRING, profile->strings.keys[i].bytes,
                  profile->strings.keys[i].size);
    fwrite(profile->all.at, 1, profile->all.size, out);
    free(profile->all.at);
    free(profile->message.at);
    free(profile->inner.at);
    free(profile->locations.at);
    free(profile->values.at);
    map_texts_free(&profile->strings);
    map_texts_free(&profile->functions);
    map_texts_free(&profile->places);
    free(profile);
}

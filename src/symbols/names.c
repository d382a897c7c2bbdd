#include "symbols/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name {
    struct name *next; /* in the same bucket */
    uint32_t hash;
    uint32_t length;
    char text[];
};

struct names {
    struct name **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
};

static uint32_t hash_of(const char *text, size_t length) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 32);
}

struct names *names_new(void) {
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->bucket_count = 256;
    names->buckets = calloc(names->bucket_count, sizeof *names->buckets);
    if (!names->buckets) {
        free(names);
        return NULL;
    }
    return names;
}

void names_free(struct names *names) {
    if (!names)
        return;
    for (size_t i = 0; i < names->bucket_count; i++) {
        struct name *next;
        for (struct name *name = names->buckets[i]; name; name = next) {
            next = name->next;
            free(name);
        }
    }
    free(names->buckets);
    free(names);
}

static void grow(struct names *names) {
    size_t wider = names->bucket_count * 2;
    struct name **buckets = calloc(wider, sizeof *buckets);
    if (!buckets)
        return; /* longer chains serve as well */
    for (size_t i = 0; i < names->bucket_count; i++) {
        struct name *next;
        for (struct name *name = names->buckets[i]; name; name = next) {
            next = name->next;
            struct name **bucket = &buckets[name->hash & (wider - 1)];
            name->next = *bucket;
            *bucket = name;
        }
    }
    free(names->buckets);
    names->buckets = buckets;
    names->bucket_count = wider;
}

const char *names_keep_part(struct names *names, const char *text, size_t length) {
    uint32_t hash = hash_of(text, length);
    struct name **bucket = &names->buckets[hash & (names->bucket_count - 1)];
    for (struct name *name = *bucket; name; name = name->next)
        if (name->hash == hash && name->length == length && !memcmp(name->text, text, length))
            return name->text;
    struct name *name = malloc(sizeof *name + length + 1);
    if (!name)
        return NULL;
    name->hash = hash;
    name->length = (uint32_t)length;
    memcpy(name->text, text, length);
    name->text[length] = 0;
    name->next = *bucket;
    *bucket = name;
    if (++names->count > names->bucket_count)
        grow(names);
    return name->text;
}

const char *names_keep(struct names *names, const char *text) {
    return text ? names_keep_part(names, text, strnlen(text, NAMES_LONGEST)) : NULL;
}

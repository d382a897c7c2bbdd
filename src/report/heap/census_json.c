#include "report/heap/census.h"
#include "report/shared/json.h"

static void put_sum(struct json *json, const char *name, const struct census_sum *sum) {
    json_open_at(json, name, '{');
    json_number_at(json, "blocks", sum->blocks);
    json_number_at(json, "bytes", sum->bytes);
    json_close(json, '}');
}

static void put_arena(struct json *json, const struct census_arena *arena) {
    json_open(json, '{');
    json_bool_at(json, "main", arena->is_main);
    json_number_at(json, "size", arena->size);
    put_sum(json, "in_use", &arena->in_use);
    put_sum(json, "bins", &arena->binned);
    put_sum(json, "fast", &arena->fast);
    put_sum(json, "thread_caches", &arena->cached);
    json_number_at(json, "top", arena->top);
    json_number_at(json, "own", arena->own);
    json_number_at(json, "largest_free", arena->largest_free);
    json_number_at(json, "resident", arena->resident);
    json_close(json, '}');
}

static void put_heap(struct json *json, const struct census *census) {
    struct census_sum sum = census_in_use(census);
    put_sum(json, "in_use", &sum);
    json_open_at(json, "arenas", '[');
    for (size_t i = 0; i < census->arena_count; i++)
        put_arena(json, &census->arenas[i]);
    json_close(json, ']');
    put_sum(json, "mapped", &census->mapped);
    json_number_at(json, "mapped_size", census->mapped_size);
    json_number_at(json, "thread_caches", census->caches);
    json_open_at(json, "sizes", '[');
    for (size_t i = 0; i < census->class_count; i++) {
        json_open(json, '{');
        json_number_at(json, "size", census->classes[i].size);
        json_number_at(json, "blocks", census->classes[i].blocks);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void put_resident(struct json *json, const struct census_resident *resident) {
    json_open_at(json, "resident", '{');
    json_number_at(json, "in_use", resident->in_use);
    json_number_at(json, "free", resident->free);
    json_number_at(json, "allocator", resident->own);
    json_number_at(json, "stacks", resident->stacks);
    json_number_at(json, "anonymous", resident->other_anonymous);
    json_number_at(json, "files", resident->files);
    json_number_at(json, "shared", resident->shared);
    json_number_at(json, "huge", resident->huge);
    json_close(json, '}');
}

static void put_leaks(struct json *json, const struct census_report *report,
                      const struct census_options *options) {
    json_open_at(json, "leaks", '{');
    for (unsigned kind = 0; kind < LEAK_KINDS; kind++)
        put_sum(json, leak_kind_name(kind),
                &(struct census_sum){report->sums.blocks[kind], report->sums.bytes[kind]});
    json_close(json, '}');
    json_open_at(json, "losses", '[');
    for (size_t i = 0; i < report->loss_count; i++) {
        const struct census_loss *loss = &report->losses[i];
        if (!(options->kinds & 1u << loss->kind))
            continue;
        json_open(json, '{');
        json_string_at(json, "kind", leak_kind_name(loss->kind));
        json_number_at(json, "size", loss->size);
        json_number_at(json, "blocks", loss->blocks);
        json_number_at(json, "bytes", loss->bytes);
        json_number_at(json, "indirect_bytes", loss->indirect);
        json_string_at(json, "type", loss->type);
        json_number_at(json, "example", loss->example);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open_at(json, "holders", '[');
    for (size_t i = 0; i < report->holder_count; i++) {
        json_open(json, '{');
        json_string_at(json, "name", report->holders[i].name);
        json_number_at(json, "blocks", report->holders[i].blocks);
        json_number_at(json, "bytes", report->holders[i].bytes);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void census_json(FILE *out, const struct census_report *report,
                 const struct census_options *options) {
    const struct census *census = report->census;
    struct json json = {0};
    json_open(&json, '{');
    json_number_at(&json, "pid", (uint64_t)census->pid);
    json_string_at(&json, "program", census->program);
    json_number_at(&json, "threads", census->threads);
    json_string_at(&json, "allocator", census->allocator);
    json_number_at(&json, "pause_nanoseconds", census->pause);
    json_number_at(&json, "stops", census->stops);
    json_bool_at(&json, "partial", census->is_partial);
    put_heap(&json, census);
    put_resident(&json, &census->resident);
    put_leaks(&json, report, options);
    json_close(&json, '}');
    fprintf(out, "%s\n", json.text.bytes);
    text_free(&json.text);
}

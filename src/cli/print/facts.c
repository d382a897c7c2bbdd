#include "cli/print/facts.h"

#include <json-c/json.h>

#include "base/text.h"
#include "report/heap/text.h"
#include "report/shared/stack_text.h"

static void put_fact(FILE *out, struct json_object *fact) {
    struct json_object *label, *value, *unit;
    char digits[32];
    if (!json_object_object_get_ex(fact, "label", &label) ||
        !json_object_object_get_ex(fact, "value", &value) ||
        !json_object_object_get_ex(fact, "unit", &unit))
        return;
    struct text name = {0};
    text_format(&name, "%s:", json_object_get_string(label));
    fprintf(out, "%-24s ", name.bytes);
    text_free(&name);
    if (json_object_is_type(value, json_type_string))
        stack_text_escaped(out, json_object_get_string(value));
    else
        fputs(heap_text_number(digits, json_object_get_uint64(value)), out);
    const char *of = json_object_get_string(unit);
    fprintf(out, "%s%s\n", *of ? " " : "", of);
}

void print_facts(FILE *out, const char *json) {
    struct json_object *facts = json_tokener_parse(json);
    size_t count = facts ? json_object_array_length(facts) : 0;
    for (size_t i = 0; i < count; i++)
        put_fact(out, json_object_array_get_idx(facts, i));
    if (facts)
        json_object_put(facts);
}

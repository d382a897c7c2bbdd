// JSON, written into a text: commas and quotes are the writer's business, names of the target are
// escaped as everywhere else (what no line can hold becomes \xNN). `<` never appears as such, so
// that the result can stand in an HTML page. Supervisor context.
#ifndef QUERN_REPORT_JSON_H
#define QUERN_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct json {
    struct text text;
    bool comma; // one is due before the next value
};

// `bracket` is '{' or '[', and '}' or ']'.
void json_open(struct json *json, char bracket);
void json_close(struct json *json, char bracket);
// In an object: the name of the value that comes next.
void json_name(struct json *json, const char *name);
void json_string(struct json *json, const char *string); // NULL: null
void json_number(struct json *json, uint64_t number);
void json_signed(struct json *json, int64_t number);
void json_bool(struct json *json, bool value);
// Text that is JSON already.
void json_raw(struct json *json, const char *text);

// A name and its value; json_open_at begins the value.
void json_open_at(struct json *json, const char *name, char bracket);
void json_string_at(struct json *json, const char *name, const char *string);
void json_number_at(struct json *json, const char *name, uint64_t number);
void json_bool_at(struct json *json, const char *name, bool value);

#endif

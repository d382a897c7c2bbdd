#include "report/shared/json.h"

#include <inttypes.h>

#include "report/shared/stack_text.h"

static void before_value(struct json *json) {
    if (json->comma)
        text_char(&json->text, ',');
    json->comma = true;
}

void json_open(struct json *json, char bracket) {
    before_value(json);
    text_char(&json->text, bracket);
    json->comma = false;
}

void json_close(struct json *json, char bracket) {
    text_char(&json->text, bracket);
    json->comma = true;
}

static void add_quoted(struct text *text, const char *string) {
    const unsigned char *at = (const unsigned char *)string;
    text_char(text, '"');
    while (*at) {
        size_t length = stack_text_printable(at);
        if (*at == '\n')
            text_string(text, "\\n");
        else if (!length)
            text_format(text, "\\\\x%02X", *at);
        else if (*at == '"' || *at == '\\')
            text_format(text, "\\%c", *at);
        else if (*at == '<')
            text_string(text, "\\u003c");
        else
            text_add(text, (const char *)at, length);
        at += length ? length : 1;
    }
    text_char(text, '"');
}

void json_name(struct json *json, const char *name) {
    before_value(json);
    add_quoted(&json->text, name);
    text_char(&json->text, ':');
    json->comma = false;
}

void json_string(struct json *json, const char *string) {
    before_value(json);
    if (string)
        add_quoted(&json->text, string);
    else
        text_string(&json->text, "null");
}

void json_number(struct json *json, uint64_t number) {
    before_value(json);
    text_format(&json->text, "%" PRIu64, number);
}

void json_signed(struct json *json, int64_t number) {
    before_value(json);
    text_format(&json->text, "%" PRId64, number);
}

void json_bool(struct json *json, bool value) {
    before_value(json);
    text_string(&json->text, value ? "true" : "false");
}

void json_raw(struct json *json, const char *text) {
    before_value(json);
    text_string(&json->text, text);
}

void json_open_at(struct json *json, const char *name, char bracket) {
    json_name(json, name);
    json_open(json, bracket);
}

void json_string_at(struct json *json, const char *name, const char *string) {
    json_name(json, name);
    json_string(json, string);
}

void json_number_at(struct json *json, const char *name, uint64_t number) {
    json_name(json, name);
    json_number(json, number);
}

void json_bool_at(struct json *json, const char *name, bool value) {
    json_name(json, name);
    json_bool(json, value);
}

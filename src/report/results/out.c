// Results as JUnit's XML, as JSON of our own, and as commands of a workflow.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/findings/xml.h"
#include "report/shared/json.h"
#include "report/results/results.h"

static const char *const levels[] = {"error", "warning", "note"};

static void add_frame(struct text *text, const struct result_frame *frame, bool first) {
    text_format(text, "   %s 0x%" PRIX64 ": %s", first ? "at" : "by", frame->address,
                frame->function ? frame->function : "???");
    if (frame->path && frame->line)
        text_format(text, " (%s:%u)", result_relative(frame->path), frame->line);
    else if (frame->object)
        text_format(text, " (in %s)", frame->object);
    text_char(text, '\n');
}

// As in the log: headline, stack, remarks with theirs.
static void add_details(struct text *text, const struct result *result) {
    size_t stack = 0;
    text_format(text, "%s\n", result->message);
    for (size_t i = 0; i <= result->remark_count; i++) {
        const char *remark = i ? result->remarks[i - 1] : NULL;
        if (remark)
            text_format(text, " %s\n", remark);
        while (stack < result->stack_count) {
            const struct result_stack *it = &result->stacks[stack];
            if (it->title ? !remark || strcmp(it->title, remark) != 0 : remark != NULL)
                break;
            for (size_t j = 0; j < it->count; j++)
                add_frame(text, &it->frames[j], j == 0);
            stack++;
        }
    }
}

static void add_place(struct text *text, const struct result *result) {
    const struct result_frame *place = result_place(result);
    if (!place)
        return;
    text_format(text, " in %s (%s:%u)", place->function ? place->function : "???",
                result_relative(place->path), place->line);
}

// A file can be replaced; a terminal, a pipe, a device or what a link leads to is written to.
static bool is_replaced(const char *path) {
    struct stat status;
    return lstat(path, &status) < 0 || S_ISREG(status.st_mode);
}

// Whether it is /dev/stdout, say, which may be a file that has lines already.
static bool is_output(const char *path) {
    struct stat status, output;
    for (int fd = 1; fd <= 2; fd++)
        if (stat(path, &status) == 0 && fstat(fd, &output) == 0 && status.st_dev == output.st_dev &&
            status.st_ino == output.st_ino)
            return true;
    return false;
}

int results_write_file(const char *path, results_writer *write, const struct results *results,
                       const struct results_head *head) {
    struct text beside = {0};
    bool replaces = is_replaced(path);
    text_format(&beside, replaces ? "%s.new" : "%s", path);
    FILE *out = fopen(beside.bytes, !replaces && is_output(path) ? "ae" : "we");
    bool fine = out != NULL;
    int error = errno;
    if (out) {
        write(out, results, head);
        fine = !ferror(out);
        fine &= fclose(out) == 0;
        fine = fine && (!replaces || rename(beside.bytes, path) == 0);
        error = errno;
        if (!fine && replaces)
            unlink(beside.bytes);
    }
    text_free(&beside);
    return fine ? 0 : error ? error : EIO;
}

// ---- JUnit -------------------------------------------------------------------------------------

static void attribute(struct text *xml, const char *name, const char *value) {
    text_format(xml, " %s=\"", name);
    struct text escaped = {0};
    xml_escaped(&escaped, value);
    for (size_t i = 0; i < escaped.size; i++) {
        if (escaped.bytes[i] == '"')
            text_string(xml, "&quot;");
        else
            text_char(xml, escaped.bytes[i] == '\n' ? ' ' : escaped.bytes[i]);
    }
    text_free(&escaped);
    text_char(xml, '"');
}

static void add_lines(struct text *xml, const char *lines) {
    char *copy = base_copy(lines);
    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
        xml_escaped(xml, line);
        text_char(xml, '\n');
    }
    free(copy);
}

static void add_case(struct text *xml, const struct result *result, const char *tool) {
    struct text name = {0};
    struct text details = {0};
    struct text class = {0};
    text_format(&name, "%s", result->message);
    add_place(&name, result);
    text_format(&class, "quern.%s.%s", tool, result->rule);
    add_details(&details, result);
    text_string(xml, "    <testcase");
    attribute(xml, "classname", class.bytes);
    attribute(xml, "name", name.bytes);
    text_string(xml, " time=\"0\">\n");
    if (result->known) {
        text_string(xml, "      <skipped>in the baseline</skipped>\n");
    } else if (result->fails) {
        text_string(xml, "      <failure");
        attribute(xml, "message", result->message);
        attribute(xml, "type", result->rule);
        text_char(xml, '>');
        add_lines(xml, details.bytes);
        text_string(xml, "</failure>\n");
    } else {
        text_string(xml, "      <system-out>");
        add_lines(xml, details.bytes);
        text_string(xml, "</system-out>\n");
    }
    text_string(xml, "    </testcase>\n");
    text_free(&name);
    text_free(&details);
    text_free(&class);
}

void results_junit(FILE *out, const struct results *results, const struct results_head *head) {
    struct text xml = {0};
    struct text suite = {0};
    size_t failures = 0, skipped = 0, tests = results->count ? results->count : 1;
    for (size_t i = 0; i < results->count; i++) {
        skipped += results->items[i]->known;
        failures += results->items[i]->fails && !results->items[i]->known;
    }
    text_format(&suite, "quern %s:", head->tool);
    for (size_t i = 0; head->words[i]; i++)
        text_format(&suite, " %s", head->words[i]);
    text_format(&xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite");
    attribute(&xml, "name", suite.bytes);
    text_format(&xml, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"0\">\n",
                tests, failures, skipped);
    for (size_t i = 0; i < results->count; i++)
        add_case(&xml, results->items[i], head->tool);
    if (!results->count)
        text_format(&xml,
                    "    <testcase classname=\"quern.%s\" name=\"nothing found\" time=\"0\"/>\n",
                    head->tool);
    text_string(&xml, "  </testsuite>\n</testsuites>\n");
    fwrite(xml.bytes, 1, xml.size, out);
    text_free(&xml);
    text_free(&suite);
}

// ---- JSON --------------------------------------------------------------------------------------

static void write_frame(struct json *json, const struct result_frame *frame) {
    json_open(json, '{');
    json_string_at(json, "function", frame->function);
    json_string_at(json, "file", frame->path);
    json_number_at(json, "line", frame->line);
    json_string_at(json, "object", frame->object);
    json_number_at(json, "address", frame->address);
    json_close(json, '}');
}

static void write_result(struct json *json, const struct result *result) {
    char number[17];
    snprintf(number, sizeof number, "%016" PRIx64, result->fingerprint);
    const struct result_frame *place = result_place(result);
    json_open(json, '{');
    json_string_at(json, "fingerprint", number);
    json_string_at(json, "rule", result->rule);
    json_string_at(json, "level", levels[result->level]);
    json_bool_at(json, "fails", result->fails);
    json_bool_at(json, "known", result->known);
    json_number_at(json, "count", result->count);
    json_number_at(json, "pid", (uint64_t)result->pid);
    json_string_at(json, "message", result->message);
    json_string_at(json, "function", place ? place->function : NULL);
    json_open_at(json, "remarks", '[');
    for (size_t i = 0; i < result->remark_count; i++)
        json_string(json, result->remarks[i]);
    json_close(json, ']');
    json_open_at(json, "stacks", '[');
    for (size_t s = 0; s < result->stack_count; s++) {
        json_open(json, '{');
        json_string_at(json, "title", result->stacks[s].title);
        json_open_at(json, "frames", '[');
        for (size_t i = 0; i < result->stacks[s].count; i++)
            write_frame(json, &result->stacks[s].frames[i]);
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
    json_string_at(json, "suppression", result->suppression);
    json_string_at(json, "help", result_rule_help(result->rule));
    json_close(json, '}');
}

void results_json(FILE *out, const struct results *results, const struct results_head *head) {
    struct json json = {0};
    json_open(&json, '{');
    json_string_at(&json, "format", "quern-findings");
    json_number_at(&json, "version", 1);
    json_string_at(&json, "tool", head->tool);
    json_open_at(&json, "command", '[');
    for (size_t i = 0; head->words[i]; i++)
        json_string(&json, head->words[i]);
    json_close(&json, ']');
    json_number_at(&json, "status", (uint64_t)head->status);
    json_open_at(&json, "findings", '[');
    for (size_t i = 0; i < results->count; i++)
        write_result(&json, results->items[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    fwrite(json.text.bytes, 1, json.text.size, out);
    fputc('\n', out);
    text_free(&json.text);
}

// ---- workflow commands -------------------------------------------------------------------------

// In values of properties a comma and a colon have a meaning, too.
static void add_command_text(struct text *line, const char *text, bool is_property) {
    for (const char *at = text; *at; at++) {
        if (*at == '%' || *at == '\r' || *at == '\n' || (is_property && (*at == ':' || *at == ',')))
            text_format(line, "%%%02X", (unsigned char)*at);
        else
            text_char(line, *at);
    }
}

void results_github(FILE *out, const struct results *results, const struct results_head *head) {
    static const char *const commands[] = {"error", "warning", "notice"};
    for (size_t i = 0; i < results->count; i++) {
        const struct result *result = results->items[i];
        const struct result_frame *place = result_place(result);
        struct text line = {0};
        struct text details = {0};
        if (result->known)
            continue;
        add_details(&details, result);
        text_format(&line, "::%s ", commands[result->level]);
        if (place) {
            text_string(&line, "file=");
            add_command_text(&line, result_relative(place->path), true);
            text_format(&line, ",line=%u,", place->line);
        }
        text_string(&line, "title=");
        add_command_text(&line, result->message, true);
        text_string(&line, "::");
        add_command_text(&line, details.bytes, false);
        stack_text_escaped(out, line.bytes);
        fputc('\n', out);
        text_free(&line);
        text_free(&details);
    }
}

// The file is taken apart by json-c; what is in it is then checked, as it may come from anyone.
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "report/dhat/file.h"

enum { READ_SIZE = 1 << 16, ACCESSES_MOST = 1 << 20 };

bool dhat_file_is_one(const char *start, size_t size) {
    size_t at = 0;
    while (at < size && strchr(" \t\r\n", start[at]) && start[at])
        at++;
    return at < size && start[at] == '{';
}

// NULL, or an object; *problem is to be freed.
static json_object *parse(FILE *in, char **problem) {
    json_tokener *tokener = json_tokener_new();
    json_object *root = NULL;
    char bytes[READ_SIZE];
    size_t size;
    enum json_tokener_error error = json_tokener_continue;
    while (tokener && error == json_tokener_continue &&
           (size = fread(bytes, 1, READ_SIZE, in)) > 0) {
        root = json_tokener_parse_ex(tokener, bytes, (int)size);
        error = json_tokener_get_error(tokener);
    }
    if (error != json_tokener_success) {
        struct text text = {0};
        text_format(&text, "it is no JSON: %s",
                    error == json_tokener_continue ? "it is cut off"
                                                   : json_tokener_error_desc(error));
        *problem = text_take(&text);
    }
    json_tokener_free(tokener);
    return root;
}

// ---- values ------------------------------------------------------------------------------------

static json_object *member(const json_object *object, const char *name, json_type type) {
    json_object *value;
    return json_object_object_get_ex(object, name, &value) && json_object_is_type(value, type)
               ? value
               : NULL;
}

static uint64_t number(const json_object *object, const char *name) {
    json_object *value = member(object, name, json_type_int);
    return value && json_object_get_int64(value) >= 0 ? json_object_get_uint64(value) : 0;
}

static char *string(const json_object *object, const char *name) {
    json_object *value = member(object, name, json_type_string);
    return value ? base_copy(json_object_get_string(value)) : NULL;
}

static bool flag(const json_object *object, const char *name) {
    json_object *value = member(object, name, json_type_boolean);
    return value && json_object_get_boolean(value);
}

struct frames {
    uint32_t *numbers;
    size_t count;
};

// ---- points ------------------------------------------------------------------------------------

// A negative number says how often the next one stands there.
static bool read_accesses(const json_object *list, struct dhat_point *point) {
    size_t count = json_object_array_length(list);
    for (size_t i = 0; i < count; i++) {
        int64_t value = json_object_get_int64(json_object_array_get_idx(list, i)), times = 1;
        if (value < 0) {
            times = value < -ACCESSES_MOST ? ACCESSES_MOST + 1 : -value;
            if (++i == count)
                return false;
            value = json_object_get_int64(json_object_array_get_idx(list, i));
        }
        if (value < 0 || value > UINT32_MAX || point->acc_count + (size_t)times > ACCESSES_MOST)
            return false;
        while (times--)
            *vector_push(point->acc, point->acc_count) = (uint32_t)value;
    }
    return true;
}

static bool read_frames(const json_object *list, const struct frames *frames,
                        struct dhat_point *point) {
    size_t count = json_object_array_length(list);
    point->fs = base_allocate((count + 1) * sizeof *point->fs);
    for (size_t i = 0; i < count; i++) {
        json_object *value = json_object_array_get_idx(list, i);
        int64_t at = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : -1;
        if (at < 0 || (uint64_t)at >= frames->count)
            return false;
        point->fs[point->fs_count++] = frames->numbers[at];
    }
    return true;
}

static bool read_point(const json_object *from, const struct frames *table,
                       struct dhat_file *file) {
    if (!json_object_is_type(from, json_type_object))
        return false;
    struct dhat_point point = {.tb = number(from, "tb"),
                               .tbk = number(from, "tbk"),
                               .tl = number(from, "tl"),
                               .mb = number(from, "mb"),
                               .mbk = number(from, "mbk"),
                               .gb = number(from, "gb"),
                               .gbk = number(from, "gbk"),
                               .eb = number(from, "eb"),
                               .ebk = number(from, "ebk"),
                               .rb = number(from, "rb"),
                               .wb = number(from, "wb")};
    json_object *accesses = member(from, "acc", json_type_array);
    json_object *frames = member(from, "fs", json_type_array);
    bool sound = frames && read_frames(frames, table, &point) &&
                 (!accesses || read_accesses(accesses, &point));
    dhat_file_add(file, &point);
    return sound;
}

// Frames of the same text become one: `frames` tells which, by their numbers in the file.
static bool read_frame_table(const json_object *root, struct dhat_file *file,
                             struct frames *frames) {
    json_object *list = member(root, "ftbl", json_type_array);
    frames->count = list ? json_object_array_length(list) : 0;
    frames->numbers = base_allocate((frames->count + 1) * sizeof *frames->numbers);
    for (size_t i = 0; i < frames->count; i++) {
        json_object *value = json_object_array_get_idx(list, i);
        if (!json_object_is_type(value, json_type_string))
            return false;
        frames->numbers[i] = dhat_file_frame(file, json_object_get_string(value));
    }
    return frames->count > 0;
}

static const char *read_root(const json_object *root, struct frames *frames,
                             struct dhat_file *file) {
    if (!json_object_is_type(root, json_type_object) ||
        !member(root, "dhatFileVersion", json_type_int))
        return "it is no dhat.out file";
    if (number(root, "dhatFileVersion") != 2)
        return "its version is not 2, the only one known";
    file->mode = string(root, "mode");
    file->verb = string(root, "verb");
    file->bu = string(root, "bu");
    file->bsu = string(root, "bsu");
    file->bksu = string(root, "bksu");
    file->tu = string(root, "tu");
    file->Mtu = string(root, "Mtu");
    file->cmd = string(root, "cmd");
    if (!file->mode || !file->verb || !file->tu || !file->Mtu || !file->cmd)
        return "mode, verb, tu, Mtu or cmd is missing";
    file->bklt = flag(root, "bklt");
    file->bkacc = flag(root, "bkacc");
    file->tuth = number(root, "tuth");
    file->pid = (int64_t)number(root, "pid");
    file->te = number(root, "te");
    file->tg = number(root, "tg");
    json_object *points = member(root, "pps", json_type_array);
    if (!read_frame_table(root, file, frames) || !points)
        return "its program points or frames are missing";
    for (size_t i = 0; i < json_object_array_length(points); i++)
        if (!read_point(json_object_array_get_idx(points, i), frames, file))
            return "a program point is damaged";
    return NULL;
}

char *dhat_file_read(FILE *in, struct dhat_file *file) {
    char *problem = NULL;
    *file = (struct dhat_file){0};
    struct frames frames = {0};
    json_object *root = parse(in, &problem);
    const char *reason = problem ? NULL : read_root(root, &frames, file);
    free(frames.numbers);
    json_object_put(root);
    return reason ? base_copy(reason) : problem;
}

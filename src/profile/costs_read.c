// Reading callgrind.out and cachegrind.out: the second is the first without calls, objects and
// short names.
#include "profile/costs.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum name_space { NAMES_OBJECT, NAMES_FILE, NAMES_FUNCTION, NAME_SPACES };
enum { POSITIONS = 3, NUMBERS_MOST = 1 << 24 };

struct reader {
    struct cost_profile *profile;
    unsigned number; // of the line
    const char *fault;
    const char **names[NAME_SPACES]; // by number
    size_t name_room[NAME_SPACES];
    // Where the reader is.
    const char *object, *own_file, *file, *name;
    const char *callee_object, *callee_file, *callee_name;
    uint32_t function;                 // where it is; UINT32_MAX: to be looked up
    unsigned positions, line_position; // how many, and which of them is the line
    int address_position;              // -1: the file tells no addresses
    uint64_t before[POSITIONS];
    unsigned columns[COST_EVENTS], column_count; // the profile's, in the file's order
    bool calls;                                  // the next costs are of a call
    bool jumps;                                  // the next line is of a jump
    struct cost_jump jump;
    uint64_t count;
};

// ---- names -------------------------------------------------------------------------------------

// "(12) name", "(12)" or "name"
static const char *read_name(struct reader *reader, enum name_space space, const char *text) {
    char *end;
    if (*text != '(' || !isdigit((unsigned char)text[1]))
        return costs_string(reader->profile, text, strlen(text));
    unsigned long number = strtoul(text + 1, &end, 10);
    if (*end != ')' || number >= NUMBERS_MOST) {
        reader->fault = "a name's number is wrong";
        return "";
    }
    size_t *room = &reader->name_room[space];
    reader->names[space] = base_reach(reader->names[space], room, number, sizeof(char *));
    for (end++; *end == ' '; end++)
        ;
    // Some writers say a name each time.
    const char *known = reader->names[space][number];
    if (*end && (!known || strcmp(known, end) != 0))
        reader->names[space][number] = costs_string(reader->profile, end, strlen(end));
    if (!reader->names[space][number]) {
        reader->fault = "a name's number was not explained before";
        return "";
    }
    return reader->names[space][number];
}

static bool read_spec(struct reader *reader, const char *line) {
    static const struct {
        const char *key;
        enum name_space space;
    } specs[] = {{"ob=", NAMES_OBJECT}, {"fl=", NAMES_FILE},     {"fi=", NAMES_FILE},
                 {"fe=", NAMES_FILE},   {"fn=", NAMES_FUNCTION}, {"cob=", NAMES_OBJECT},
                 {"cfi=", NAMES_FILE},  {"cfl=", NAMES_FILE},    {"cfn=", NAMES_FUNCTION},
                 {"jfi=", NAMES_FILE},  {"jfn=", NAMES_FUNCTION}};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        size_t size = strlen(specs[i].key);
        if (strncmp(line, specs[i].key, size) != 0)
            continue;
        const char *name = read_name(reader, specs[i].space, line + size);
        switch (i) {
        case 0:
            reader->object = name;
            reader->function = UINT32_MAX;
            break;
        case 1:
            reader->own_file = reader->file = name;
            reader->function = UINT32_MAX;
            break;
        case 2:
        case 3:
            reader->file = name;
            break;
        case 4:
            reader->name = name;
            reader->function = UINT32_MAX;
            break;
        case 5:
            reader->callee_object = name;
            break;
        case 6:
        case 7:
            reader->callee_file = name;
            break;
        case 8:
            reader->callee_name = name;
            break;
        default:
            break;
        }
        return true;
    }
    return false;
}

// ---- costs -------------------------------------------------------------------------------------

static const char *skip_spaces(const char *at) {
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static uint64_t read_number(struct reader *reader, const char **at) {
    char *end;
    const char *start = skip_spaces(*at);
    errno = 0;
    uint64_t number = strtoull(start, &end, strncmp(start, "0x", 2) == 0 ? 16 : 10);
    if (end == start || errno || !isdigit((unsigned char)*start))
        reader->fault = "a number was expected";
    *at = end;
    return number;
}

static void read_positions(struct reader *reader, const char **at, uint64_t positions[POSITIONS]) {
    for (unsigned i = 0; i < reader->positions && !reader->fault; i++) {
        const char *start = skip_spaces(*at);
        char sign = *start;
        *at = start + (sign == '*' || sign == '+' || sign == '-');
        uint64_t number = sign == '*' ? 0 : read_number(reader, at);
        positions[i] = sign == '*'   ? reader->before[i]
                       : sign == '+' ? reader->before[i] + number
                       : sign == '-' ? reader->before[i] - number
                                     : number;
    }
}

static uint32_t current_function(struct reader *reader) {
    if (reader->function == UINT32_MAX)
        reader->function =
            costs_function(reader->profile, reader->object, reader->own_file, reader->name);
    return reader->function;
}

static void read_costs(struct reader *reader, const char *at) {
    uint64_t values[COST_EVENTS] = {0};
    read_positions(reader, &at, reader->before);
    unsigned column = 0;
    for (at = skip_spaces(at); *at && !reader->fault; at = skip_spaces(at)) {
        uint64_t number = read_number(reader, &at);
        if (column == reader->column_count)
            reader->fault = "there are more numbers than events";
        else
            values[reader->columns[column++]] += number;
    }
    if (!reader->column_count)
        reader->fault = "costs stand before the line 'events:'";
    if (reader->fault)
        return;
    uint32_t line = reader->positions ? (uint32_t)reader->before[reader->line_position] : 0;
    uint32_t function = current_function(reader);
    struct cost_instruction instruction = {.function = function,
                                           .file = reader->file,
                                           .line = line,
                                           .callee = UINT32_MAX,
                                           .count = reader->count};
    if (reader->address_position >= 0)
        instruction.address = reader->before[reader->address_position];
    if (!reader->calls) {
        costs_add_line(reader->profile, function, reader->file, line, values);
        if (reader->address_position >= 0)
            costs_add_instruction(reader->profile, &instruction, values);
        return;
    }
    struct cost_call call = {
        .caller = function, .file = reader->file, .line = line, .count = reader->count};
    call.callee = costs_function(
        reader->profile, reader->callee_object ? reader->callee_object : reader->object,
        reader->callee_file ? reader->callee_file : reader->file, reader->callee_name);
    costs_add_call(reader->profile, &call, values);
    instruction.callee = call.callee;
    if (reader->address_position >= 0)
        costs_add_instruction(reader->profile, &instruction, values);
    reader->calls = false;
    reader->callee_object = reader->callee_file = reader->callee_name = NULL;
}

static void read_calls(struct reader *reader, const char *at) {
    uint64_t target[POSITIONS];
    reader->count = read_number(reader, &at);
    read_positions(reader, &at, target);
    reader->calls = true;
    if (!reader->callee_name)
        reader->fault = "a call of nobody";
}

// "jump=COUNT TARGET" or "jcnd=TAKEN/EXECUTED TARGET"; the place of the jump is in the next line.
static void read_jump(struct reader *reader, const char *line) {
    const char *at = line + 5;
    uint64_t target[POSITIONS] = {0};
    reader->jump = (struct cost_jump){.taken = read_number(reader, &at)};
    if (!reader->fault && line[1] == 'c' && *at == '/') {
        at++;
        reader->jump.executed = read_number(reader, &at);
    }
    if (!reader->fault)
        read_positions(reader, &at, target);
    reader->jumps = true;
    if (reader->address_position >= 0)
        reader->jump.to = target[reader->address_position];
}

static void end_jump(struct reader *reader, const char *at) {
    reader->jumps = false;
    read_positions(reader, &at, reader->before);
    if (reader->fault || reader->address_position < 0)
        return;
    if (!reader->column_count) {
        reader->fault = "a jump stands before the line 'events:'";
        return;
    }
    reader->jump.function = current_function(reader);
    reader->jump.from = reader->before[reader->address_position];
    costs_add_jump(reader->profile, &reader->jump);
}

// ---- the head ----------------------------------------------------------------------------------

static void read_events(struct reader *reader, const char *at) {
    struct cost_profile *profile = reader->profile;
    reader->column_count = 0;
    for (at = skip_spaces(at); *at; at = skip_spaces(at)) {
        size_t size = strcspn(at, " \t");
        const char *name = costs_string(profile, at, size);
        int column = costs_event(profile, name);
        if (column < 0 && (profile->function_count || profile->event_count == COST_EVENTS)) {
            reader->fault = "its events are not those of the other file";
            return;
        }
        if (column < 0) {
            column = (int)profile->event_count;
            profile->events[profile->event_count++] = name;
        }
        if (reader->column_count < COST_EVENTS)
            reader->columns[reader->column_count++] = (unsigned)column;
        at += size;
    }
}

static void read_position_names(struct reader *reader, const char *at) {
    reader->positions = 0;
    reader->address_position = -1;
    for (at = skip_spaces(at); *at && reader->positions < POSITIONS; at = skip_spaces(at)) {
        size_t size = strcspn(at, " \t");
        if (size == 4 && memcmp(at, "line", 4) == 0)
            reader->line_position = reader->positions;
        if (size == 5 && memcmp(at, "instr", 5) == 0)
            reader->address_position = (int)reader->positions;
        reader->positions++;
        at += size;
    }
}

static void read_description(struct reader *reader, const char *at) {
    static const char *const caches[] = {"I1 cache:", "D1 cache:", "LL cache:"};
    at = skip_spaces(at);
    for (unsigned i = 0; i < 3; i++) {
        if (strncmp(at, caches[i], strlen(caches[i])) == 0) {
            const char *text = skip_spaces(at + strlen(caches[i]));
            reader->profile->caches[i] =
                *text ? costs_string(reader->profile, text, strlen(text)) : NULL;
        }
    }
}

// False: it is no such line.
static bool read_head(struct reader *reader, const char *line) {
    static const char *const keys[] = {
        "version:", "creator:",   "pid:",   "cmd:",    "part:",    "thread:",
        "desc:",    "positions:", "event:", "events:", "summary:", "totals:"};
    size_t i = 0;
    while (i < sizeof keys / sizeof *keys && strncmp(line, keys[i], strlen(keys[i])) != 0)
        i++;
    if (i == sizeof keys / sizeof *keys)
        return false;
    const char *rest = skip_spaces(line + strlen(keys[i]));
    if (i == 1)
        reader->profile->creator = costs_string(reader->profile, rest, strlen(rest));
    else if (i == 3)
        reader->profile->command = costs_string(reader->profile, rest, strlen(rest));
    else if (i == 6)
        read_description(reader, rest);
    else if (i == 7)
        read_position_names(reader, rest);
    else if (i == 9)
        read_events(reader, rest);
    return true;
}

static void read_line(struct reader *reader, const char *line) {
    if (!*line || *line == '#')
        return;
    if (reader->jumps) {
        end_jump(reader, line);
    } else if (isdigit((unsigned char)*line) || strchr("+-*", *line)) {
        read_costs(reader, line);
    } else if (strncmp(line, "calls=", 6) == 0) {
        read_calls(reader, line + 6);
    } else if (strncmp(line, "jump=", 5) == 0 || strncmp(line, "jcnd=", 5) == 0) {
        read_jump(reader, line);
    } else if (!read_spec(reader, line) && !read_head(reader, line)) {
        reader->fault = "it is neither a cost nor a name";
    }
}

// massif.out files may begin in the same way, but have no events.
bool costs_is_one(const char *start, size_t size) {
    return (size >= 11 && memcmp(start, "# callgrind", 11) == 0) ||
           (size >= 7 && memcmp(start, "events:", 7) == 0) ||
           memmem(start, size, "\nevents:", 8) != NULL;
}

char *costs_read(struct cost_profile *profile, FILE *in) {
    const char *unknown = costs_string(profile, "???", 3);
    struct reader reader = {.profile = profile,
                            .object = costs_string(profile, "", 0),
                            .own_file = unknown,
                            .file = unknown,
                            .name = unknown,
                            .function = UINT32_MAX,
                            .positions = 1,
                            .address_position = -1};
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    while (!reader.fault && (size = getline(&line, &room, in)) >= 0) {
        reader.number++;
        if (size && line[size - 1] == '\n')
            line[size - 1] = 0;
        read_line(&reader, line);
    }
    struct text problem = {0};
    if (ferror(in))
        text_string(&problem, strerror(errno));
    else if (!reader.number)
        text_string(&problem, "it is empty");
    else if (!reader.column_count)
        text_string(&problem, "it is neither a callgrind.out nor a cachegrind.out: ");
    if (reader.fault)
        text_format(&problem, "line %u: %s", reader.number, reader.fault);
    else if (reader.number && !reader.column_count)
        text_string(&problem, "there is no line 'events:'");
    free(line);
    for (unsigned i = 0; i < NAME_SPACES; i++)
        free(reader.names[i]);
    return problem.size ? text_take(&problem) : NULL;
}

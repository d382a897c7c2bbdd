// Reading callgrind.out and cachegrind.out: the second is the first without calls, objects and
// short names.
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/costs/visit.h"

enum name_space { NAMES_OBJECT, NAMES_FILE, NAMES_FUNCTION, NAME_SPACES };
enum { POSITIONS = 3, NUMBERS_MOST = 1 << 24 };

struct reader {
    struct cost_profile *profile;
    const struct cost_visitor *visitor;
    void *context;
    unsigned number; // of the line
    bool has_events; // a line that tells them was met
    const char *fault;
    const char **names[NAME_SPACES]; // by number
    size_t name_room[NAME_SPACES];
    // Where the reader is.
    const char *object, *own_file, *file, *name;
    const char *callee_object, *callee_file, *callee_name;
    const char *jump_file, *jump_name;
    uint32_t function;                   // where it is; UINT32_MAX: to be looked up
    unsigned positions;                  // how many
    int line_position, address_position; // which of them; -1: the file tells none
    uint64_t before[POSITIONS];
    unsigned columns[COST_EVENTS], column_count; // the profile's, in the file's order
    bool calls;                                  // the next costs are of a call
    bool jumps;                                  // the next line is of a jump
    struct cost_visited_call call;
    struct cost_visited_jump jump;
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
        case 9:
            reader->jump_file = name;
            break;
        case 10:
            reader->jump_name = name;
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

static struct cost_place place_at(const struct reader *reader,
                                  const uint64_t positions[POSITIONS]) {
    struct cost_place place = {.function = reader->function,
                               .file = reader->file,
                               .has_line = reader->line_position >= 0,
                               .has_address = reader->address_position >= 0};
    if (place.has_line)
        place.line = (uint32_t)positions[reader->line_position];
    if (place.has_address)
        place.address = positions[reader->address_position];
    return place;
}

static void read_values(struct reader *reader, const char *at, uint64_t values[COST_EVENTS]) {
    unsigned column = 0;
    memset(values, 0, COST_EVENTS * sizeof *values);
    for (at = skip_spaces(at); *at && !reader->fault; at = skip_spaces(at)) {
        bool is_negative = reader->profile->is_signed && *at == '-';
        at += is_negative;
        uint64_t number = read_number(reader, &at);
        number = is_negative ? -number : number;
        if (column == reader->column_count)
            reader->fault = "there are more numbers than events";
        else
            values[reader->columns[column++]] += number;
    }
}

static void end_call(struct reader *reader, const struct cost_place *at, const uint64_t *values) {
    struct cost_visited_call *call = &reader->call;
    call->at = *at;
    call->target.file = reader->callee_file ? reader->callee_file : reader->file;
    call->target.function = costs_function(
        reader->profile, reader->callee_object ? reader->callee_object : reader->object,
        call->target.file, reader->callee_name);
    reader->visitor->call(reader->context, call, values);
    reader->calls = false;
    reader->callee_object = reader->callee_file = reader->callee_name = NULL;
}

static void read_costs(struct reader *reader, const char *at) {
    uint64_t values[COST_EVENTS];
    read_positions(reader, &at, reader->before);
    if (!reader->fault)
        read_values(reader, at, values);
    if (!reader->column_count)
        reader->fault = "costs stand before the line 'events:'";
    if (reader->fault)
        return;
    current_function(reader);
    struct cost_place place = place_at(reader, reader->before);
    if (reader->calls)
        end_call(reader, &place, values);
    else
        reader->visitor->cost(reader->context, &place, values);
}

static void read_calls(struct reader *reader, const char *at) {
    uint64_t target[POSITIONS] = {0};
    reader->call.count = read_number(reader, &at);
    read_positions(reader, &at, target);
    reader->call.target = place_at(reader, target);
    reader->calls = true;
    if (!reader->callee_name)
        reader->fault = "a call of nobody";
}

// "jump=COUNT TARGET" or "jcnd=TAKEN/EXECUTED TARGET"; the place of the jump is in the next line.
static void read_jump(struct reader *reader, const char *line) {
    const char *at = line + 5;
    uint64_t target[POSITIONS] = {0};
    reader->jump = (struct cost_visited_jump){.conditional = line[1] == 'c',
                                              .taken = read_number(reader, &at),
                                              .function = reader->jump_name};
    if (!reader->fault && reader->jump.conditional && *at == '/') {
        at++;
        reader->jump.executed = read_number(reader, &at);
    }
    if (!reader->fault)
        read_positions(reader, &at, target);
    reader->jumps = true;
    reader->jump.target = place_at(reader, target);
    if (reader->jump_file)
        reader->jump.target.file = reader->jump_file;
    reader->jump_file = reader->jump_name = NULL;
}

static void end_jump(struct reader *reader, const char *at) {
    reader->jumps = false;
    read_positions(reader, &at, reader->before);
    if (reader->fault)
        return;
    if (!reader->column_count) {
        reader->fault = "a jump stands before the line 'events:'";
        return;
    }
    reader->jump.target.function = current_function(reader);
    reader->jump.at = place_at(reader, reader->before);
    reader->visitor->jump(reader->context, &reader->jump);
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
    reader->line_position = reader->address_position = -1;
    for (at = skip_spaces(at); *at && reader->positions < POSITIONS; at = skip_spaces(at)) {
        size_t size = strcspn(at, " \t");
        if (size == 4 && memcmp(at, "line", 4) == 0)
            reader->line_position = (int)reader->positions;
        if (size == 5 && memcmp(at, "instr", 5) == 0)
            reader->address_position = (int)reader->positions;
        reader->positions++;
        at += size;
    }
}

// Options of the run have lines of their own.
static void keep_description(struct cost_profile *profile, const char *text) {
    size_t i = 0;
    while (i < COST_DESCRIPTIONS && profile->descriptions[i])
        i++;
    if (i < COST_DESCRIPTIONS && strncmp(text, "Option:", 7) != 0)
        profile->descriptions[i] = costs_string(profile, text, strlen(text));
}

static void read_description(struct reader *reader, const char *at) {
    static const char *const caches[] = {"I1 cache:", "D1 cache:", "LL cache:"};
    at = skip_spaces(at);
    keep_description(reader->profile, at);
    for (unsigned i = 0; i < 3; i++) {
        if (strncmp(at, caches[i], strlen(caches[i])) == 0) {
            const char *text = skip_spaces(at + strlen(caches[i]));
            reader->profile->caches[i] =
                *text ? costs_string(reader->profile, text, strlen(text)) : NULL;
        }
    }
}

static void read_sum(struct reader *reader, bool is_summary, const char *at) {
    uint64_t values[COST_EVENTS];
    read_values(reader, at, values);
    for (unsigned i = 0; i < COST_EVENTS && is_summary && !reader->fault; i++)
        reader->profile->summary[i] += values[i];
    reader->profile->has_summary |= is_summary;
    if (!reader->fault && reader->visitor->sum)
        reader->visitor->sum(reader->context, is_summary, values);
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
    reader->has_events |= i == 9;
    if (reader->visitor->head)
        reader->fault = reader->visitor->head(reader->context, keys[i], rest);
    if (reader->fault)
        return true;
    if (i == 1)
        reader->profile->creator = costs_string(reader->profile, rest, strlen(rest));
    else if (i == 2)
        reader->profile->process = costs_string(reader->profile, rest, strlen(rest));
    else if (i == 4)
        reader->profile->part = costs_string(reader->profile, rest, strlen(rest));
    else if (i == 3)
        reader->profile->command = costs_string(reader->profile, rest, strlen(rest));
    else if (i == 6)
        read_description(reader, rest);
    else if (i == 7)
        read_position_names(reader, rest);
    else if (i == 9)
        read_events(reader, rest);
    else if (i >= 10)
        read_sum(reader, i == 10, rest);
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

char *costs_visit(struct cost_profile *profile, FILE *in, const struct cost_visitor *visitor,
                  void *context) {
    const char *unknown = costs_string(profile, "???", 3);
    struct reader reader = {.profile = profile,
                            .visitor = visitor,
                            .context = context,
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
    else if (!reader.column_count && !(reader.has_events && reader.fault))
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

// ---- sums --------------------------------------------------------------------------------------

static struct cost_instruction instruction_at(const struct cost_place *at) {
    return (struct cost_instruction){.function = at->function,
                                     .address = at->address,
                                     .file = at->file,
                                     .line = at->line,
                                     .callee = UINT32_MAX};
}

static void add_cost(void *profile, const struct cost_place *at, const uint64_t *values) {
    costs_add_line(profile, at->function, at->file, at->line, values);
    struct cost_instruction instruction = instruction_at(at);
    if (at->has_address)
        costs_add_instruction(profile, &instruction, values);
}

static void add_call(void *profile, const struct cost_visited_call *call, const uint64_t *values) {
    costs_add_call(profile,
                   &(struct cost_call){.caller = call->at.function,
                                       .callee = call->target.function,
                                       .file = call->at.file,
                                       .line = call->at.line,
                                       .count = call->count},
                   values);
    struct cost_instruction instruction = instruction_at(&call->at);
    instruction.callee = call->target.function;
    instruction.count = call->count;
    if (call->at.has_address)
        costs_add_instruction(profile, &instruction, values);
}

static void add_jump(void *profile, const struct cost_visited_jump *jump) {
    if (jump->at.has_address)
        costs_add_jump(profile, &(struct cost_jump){.function = jump->at.function,
                                                    .from = jump->at.address,
                                                    .to = jump->target.address,
                                                    .taken = jump->taken,
                                                    .executed = jump->executed});
}

char *costs_read(struct cost_profile *profile, FILE *in) {
    static const struct cost_visitor adding = {
        .cost = add_cost, .call = add_call, .jump = add_jump};
    return costs_visit(profile, in, &adding, profile);
}

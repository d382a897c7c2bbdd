// Frames of CPython in recorded stacks: they become addresses of code that a runtime has generated,
// which symbols name.
#include "tools/shared/supervisor/recorded/recorded.h"

#define PLACES_AT_ADDRESS 32

static void on_code(void *context, const struct python_code *code, size_t size) {
    const struct recorded_process *process = context;
    interpreted_add(&process->recorded->interpreted, code, size);
}

static uint64_t mark_of(void *context, const struct python_frame *frame) {
    struct recorded_process *process = context;
    struct interpreted *interpreted = &process->recorded->interpreted;
    uint64_t mark = interpreted_mark(interpreted, frame), start = mark & ~1ull;
    bool is_new = false;
    int32_t line;
    if (mark)
        map_integers_add(&process->named, start, &is_new);
    if (is_new) {
        const struct interpreted_code *code = interpreted_find(interpreted, mark, &line);
        symbols_add_code(process->recorded->run->symbols, process->pid, start, start + 2,
                         code->name, code->file, (uint32_t)line);
    }
    return mark;
}

// Places of calls are known for the life of a process: an interpreter is not unloaded.
static bool is_call(void *context, uint64_t address) {
    struct recorded_process *process = context;
    struct symbol_frame frames[PLACES_AT_ADDRESS];
    bool is_new;
    if (map_integers_find(&process->calls, address) != MAP_NONE)
        return true;
    map_integers_add(&process->others, address, &is_new);
    if (!is_new)
        return false;
    size_t count = symbols_resolve(process->recorded->run->symbols, process->pid, address, true,
                                   frames, PLACES_AT_ADDRESS);
    bool is_it = count && interpreted_is_interpreter(frames[count - 1].name);
    if (is_it)
        map_integers_add(&process->calls, address, &is_new);
    return is_it;
}

void recorded_interpreter_start(struct recorded_process *process) {
    process->interpreter = (struct heap_interpreter){process, on_code, mark_of, is_call};
    heap_source_interpreter(process->source, &process->interpreter);
}

void recorded_interpreter_end(struct recorded_process *process) {
    map_integers_free(&process->named);
    map_integers_free(&process->calls);
    map_integers_free(&process->others);
}

void recorded_interpreter_say(struct recorded_process *process) {
    uint32_t state, version = heap_source_python(process->source, &state);
    const char *problem = interpreted_problem(state);
    if (version && problem && log_shows(process->log, 0))
        log_format(process->log, process->pid, LOG_USER,
                   "Functions of Python %u.%u are not shown: %s", version >> 24,
                   version >> 16 & 0xff, problem);
}

#include "tools/memcheck/target/findings/message.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/maps.h"
#include "base/x86.h"
#include "engine/tool.h"
#include "tools/memcheck/target/heap/heap.h"

typedef bool describer(uint64_t address, struct request_block *);

static bool in_named_block(struct finding_message *m, describer *describe) {
    struct finding_facts *facts = &m->head.facts;
    if (!describe(facts->address, &m->named))
        return false;
    facts->place = PLACE_CLIENT;
    facts->start = m->named.start;
    facts->end = m->named.start + m->named.size;
    m->names[1] = m->named.name;
    m->stacks[STACK_OF_MAKING] = m->named.made_at;
    return true;
}

static bool in_heap(struct finding_message *m) {
    struct finding_facts *facts = &m->head.facts;
    struct heap_block block;
    if (!heap_find(facts->address, &block))
        return false;
    facts->place = block.state == HEAP_FREED ? PLACE_FREED : PLACE_BLOCK;
    facts->start = block.start;
    facts->end = block.start + block.size;
    m->stacks[STACK_OF_MAKING] = block.made_at;
    if (block.state == HEAP_FREED)
        m->stacks[STACK_OF_FREEING] = block.freed_at;
    return true;
}

static bool in_stack(struct finding_message *m) {
    struct finding_facts *facts = &m->head.facts;
    struct tool_frame frame;
    if (!tool_frame_of(facts->address, &frame))
        return false;
    facts->place = PLACE_STACK;
    facts->place_thread = frame.thread;
    facts->frame = frame.frame;
    facts->frame_pc = frame.pc;
    facts->end = frame.end;
    // Leaf functions may use the red zone.
    facts->below = frame.below > RED_ZONE ? frame.below : 0;
    return true;
}

// The path of the file that is mapped at the address, from the kernel's list.
static bool path_of_mapping(uint64_t address, char *path) {
    struct maps_reader reader;
    struct maps_mapping mapping;
    bool found = false;
    maps_reader_open(&reader, "/proc/self/maps");
    while (!found && maps_reader_next(&reader, &mapping)) {
        const char *name = strchr(mapping.path, '/');
        found = address >= mapping.start && address < mapping.end && name;
        if (found)
            snprintf(path, MESSAGE_NAME, "%s", name);
    }
    maps_reader_close(&reader);
    return found;
}

static bool in_mapping(struct finding_message *m) {
    struct finding_facts *facts = &m->head.facts;
    struct tool_mapping mapping;
    if (!tool_mapping_at(facts->address, &mapping) || facts->address < mapping.start)
        return false;
    facts->start = mapping.start;
    facts->end = mapping.end;
    facts->prot = (uint32_t)mapping.prot;
    if (mapping.is_brk) {
        facts->place = PLACE_BRK;
    } else if (mapping.is_file || mapping.is_module) {
        facts->place = PLACE_FILE;
        if (path_of_mapping(facts->address, m->path))
            m->names[1] = m->path;
    } else {
        facts->place = mapping.is_shared ? PLACE_SHARED : PLACE_ANONYMOUS;
    }
    return true;
}

void message_find_place(struct finding_message *m) {
    if (!in_named_block(m, requests_describe) && !in_heap(m) &&
        !in_named_block(m, requests_describe_metapool) && !in_stack(m))
        in_mapping(m);
}

#include "tools/memcheck/target/findings/message.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

// The path of the file that is mapped at the address, from the kernel's list. Read in pieces: it
// may be long, and nothing is allocated here.
static bool path_of_mapping(uint64_t address, char *path) {
    char buffer[4096], line[MESSAGE_NAME + 128];
    size_t length = 0;
    ssize_t got;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && (got = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got && !found; i++) {
            if (buffer[i] != '\n') {
                if (length < sizeof line - 1)
                    line[length++] = buffer[i];
                continue;
            }
            line[length] = 0;
            length = 0;
            unsigned long start, end;
            const char *name = strchr(line, '/');
            if (sscanf(line, "%lx-%lx", &start, &end) == 2 && address >= start && address < end &&
                name) {
                memcpy(path, name, strnlen(name, MESSAGE_NAME - 1) + 1);
                path[MESSAGE_NAME - 1] = 0;
                found = true;
            }
        }
    }
    if (fd >= 0)
        close(fd);
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

#include "tools/memcheck/target/errors/describe.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/x86.h"
#include "engine/tool.h"
#include "tools/memcheck/target/heap/heap.h"

typedef bool teller(uint64_t address, struct request_block *);

static bool in_named_block(struct description *d, teller *describe) {
    if (!describe(d->facts.address, &d->named))
        return false;
    d->facts.place = PLACE_CLIENT;
    d->facts.start = d->named.start;
    d->facts.end = d->named.start + d->named.size;
    d->names[1] = d->named.name;
    d->made_at = d->named.made_at;
    return true;
}

static bool in_heap(struct description *d) {
    struct heap_block block;
    if (!heap_find(d->facts.address, &block))
        return false;
    d->facts.place = block.state == HEAP_FREED ? PLACE_FREED : PLACE_BLOCK;
    d->facts.start = block.start;
    d->facts.end = block.start + block.size;
    d->made_at = block.made_at;
    if (block.state == HEAP_FREED)
        d->freed_at = block.freed_at;
    return true;
}

static bool in_stack(struct description *d) {
    struct tool_frame frame;
    if (!tool_frame_of(d->facts.address, &frame))
        return false;
    d->facts.place = PLACE_STACK;
    d->facts.place_thread = frame.thread;
    d->facts.frame = frame.frame;
    d->facts.frame_pc = frame.pc;
    d->facts.end = frame.end;
    // Leaf functions may use the red zone.
    d->facts.below = frame.below > RED_ZONE ? frame.below : 0;
    return true;
}

// The path of the file that is mapped at the address, from the kernel's list. Read in pieces: it
// may be long, and nothing is allocated here.
static bool path_of_mapping(uint64_t address, char *path) {
    char buffer[4096], line[DESCRIPTION_NAME + 128];
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
                memcpy(path, name, strnlen(name, DESCRIPTION_NAME - 1) + 1);
                path[DESCRIPTION_NAME - 1] = 0;
                found = true;
            }
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static bool in_mapping(struct description *d) {
    struct tool_mapping mapping;
    if (!tool_mapping_at(d->facts.address, &mapping) || d->facts.address < mapping.start)
        return false;
    d->facts.start = mapping.start;
    d->facts.end = mapping.end;
    d->facts.prot = (uint32_t)mapping.prot;
    if (mapping.is_brk) {
        d->facts.place = PLACE_BRK;
    } else if (mapping.is_file || mapping.is_module) {
        d->facts.place = PLACE_FILE;
        if (path_of_mapping(d->facts.address, d->path))
            d->names[1] = d->path;
    } else {
        d->facts.place = mapping.is_shared ? PLACE_SHARED : PLACE_ANONYMOUS;
    }
    return true;
}

void describe_address(struct description *d) {
    if (!in_named_block(d, requests_describe) && !in_heap(d) &&
        !in_named_block(d, requests_describe_metapool) && !in_stack(d))
        in_mapping(d);
}

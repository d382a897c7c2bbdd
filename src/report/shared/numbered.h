// Texts, each kept once: its number is its place, from 0 on. For formats that refer to names by
// number. Supervisor context.
#ifndef QUERN_REPORT_NUMBERED_H
#define QUERN_REPORT_NUMBERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct numbered {
    char **list;
    size_t count, room;
    uint32_t *slots; // number plus 1
    size_t slot_count;
};

uint32_t numbered_text(struct numbered *numbered, const char *text, bool *is_new);
void numbered_free(struct numbered *numbered);

#endif

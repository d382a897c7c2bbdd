#include "fleet/settings.h"

#include <stdlib.h>
#include <string.h>

// The value of a setting; NULL: it is not given.
static const char *find(const char *packet, size_t size, const char *name) {
    size_t length = strlen(name);
    for (const char *at = packet; at < packet + size; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static uint64_t find_number(const char *packet, size_t size, const char *name) {
    const char *value = find(packet, size, name);
    return value ? strtoull(value, NULL, 10) : 0;
}

struct exporter_settings settings_read(const char *packet, size_t size) {
    const char *program = find(packet, size, "program");
    return (struct exporter_settings){
        .asked = {.listen = find(packet, size, "listen"),
                  .push = find(packet, size, "push"),
                  .spool = find(packet, size, "spool"),
                  .credentials = find(packet, size, "credentials"),
                  .program = program ? program : "",
                  .service = find(packet, size, "service"),
                  .service_version = find(packet, size, "version"),
                  .push_interval = (unsigned)find_number(packet, size, "interval"),
                  .spool_size = find_number(packet, size, "spool-size"),
                  .keep_days = (unsigned)find_number(packet, size, "keep-days"),
                  .is_quiet = find_number(packet, size, "quiet") != 0},
        .supervisor = (int)find_number(packet, size, "supervisor"),
    };
}

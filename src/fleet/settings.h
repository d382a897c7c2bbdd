// What the supervisor asks of the exporter, in the exporter.
#ifndef QUERN_FLEET_SETTINGS_H
#define QUERN_FLEET_SETTINGS_H

#include <stddef.h>

#include "fleet/fleet.h"

struct exporter_settings {
    struct fleet_settings asked; // its texts live as long as the packet
    int supervisor;              // pid
};

// Reads the packet of settings (fleet.c).
struct exporter_settings settings_read(const char *packet, size_t size);

#endif

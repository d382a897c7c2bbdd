// Part of supervisor/tool.h, for tools that write recordings: run->request->fleet exports them while
// they grow (fleet_follow, fleet_ended, fleet_lost).
#ifndef QUERN_SUPERVISOR_TOOL_FLEET_H
#define QUERN_SUPERVISOR_TOOL_FLEET_H

#include "fleet/fleet.h"

#endif

// One finding (profile/findings/finding.h) as a message, WIRE_FINDING. A finding is one packet.
//
// The engine sends faults of file descriptors under tools that take no findings. Tools that look
// for errors send their own, and number contexts (wire/findings.h).
#ifndef QUERN_WIRE_FINDING_H
#define QUERN_WIRE_FINDING_H

#include <stdint.h>

#include "profile/findings/finding.h"

// Instead of a kind: the process has reached its limit of findings and sends no more.
enum { FINDING_LIMIT = 255 };
// Or: nothing is wrong, but a user wants to know what is at the address.
enum { FINDING_PLACE = 254 };

struct wire_finding {
    uint32_t context;
    uint32_t pc_counts[FINDING_STACKS];
    uint32_t reserved;
    struct finding_facts facts;
    uint64_t pcs[]; // the stacks one after the other; then two terminated names
};

#endif

// Sends losses to the supervisor, many in a packet.
#include <pthread.h>
#include <string.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/findings/ledger.h"
#include "tools/shared/stacks.h"
#include "wire/wire.h"

static uint32_t searches; // begun so far
static int busy;          // one search at a time; no lock of the C library may be waited for
static _Alignas(8) char packet[WIRE_PAYLOAD_MAX & ~7ul];
static size_t packed;

static void flush(void) {
    if (packed)
        tool_send(WIRE_LOSSES, packet, packed, NULL, 0);
    packed = 0;
}

static void pack(const struct loss *loss) {
    const uint64_t *pcs = NULL;
    size_t count = loss->stack ? stack_pcs(loss->stack, &pcs) : 0;
    if (count > FINDING_STACK_MAX)
        count = FINDING_STACK_MAX;
    struct wire_loss head = {.loss = *loss, .pc_count = (uint32_t)count};
    if (packed + sizeof head + count * sizeof *pcs > sizeof packet)
        flush();
    memcpy(packet + packed, &head, sizeof head);
    packed += sizeof head;
    if (count)
        memcpy(packet + packed, pcs, count * sizeof *pcs);
    packed += count * sizeof *pcs;
}

void findings_send_losses(const struct leak_search *search) {
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
    struct wire_leaks leaks = {.losses = search->record_count,
                               .full = search->full,
                               .at_end = search->at_end,
                               .is_delta = search->is_delta,
                               .by_command = search->by_command,
                               .kinds = (uint8_t)search->kinds,
                               .limit = search->limit};
    memcpy(leaks.heuristic_blocks, search->heuristic_blocks, sizeof leaks.heuristic_blocks);
    memcpy(leaks.heuristic_bytes, search->heuristic_bytes, sizeof leaks.heuristic_bytes);
    tool_send(WIRE_LEAKS, &leaks, sizeof leaks, NULL, 0);
    for (size_t i = 0; i < search->record_count; i++)
        pack(&search->records[i]);
    flush();
    __atomic_add_fetch(&searches, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void findings_leak_totals(uint64_t bytes[LEAK_KINDS + 1], uint64_t blocks[LEAK_KINDS + 1]) {
    const struct ledger_answers *answers =
        ledger_wait_search(__atomic_load_n(&searches, __ATOMIC_ACQUIRE));
    memcpy(bytes, answers->leaked_bytes, sizeof answers->leaked_bytes);
    memcpy(blocks, answers->leaked_blocks, sizeof answers->leaked_blocks);
}

// Packets that read and change the stopped target: registers, memory, breakpoints.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "engine/debug/channel.h"
#include "engine/debug/packets.h"
#include "engine/debug/registers.h"
#include "engine/debug/stop.h"
#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/task.h"
#include "engine/translate/watch.h"

enum { MEMORY_MOST = REMOTE_MOST / 2 - 8 };

// ---- registers ---------------------------------------------------------------------------------

void state_read_registers(void) {
    uint8_t bytes[REGISTER_MOST];
    const struct task *task = threads_chosen();
    char *at = packets_answer;
    for (unsigned i = 0; i < registers_count(); i++)
        at = remote_put_hex(at, bytes, registers_read(task, i, bytes));
    channel_send(packets_answer, (size_t)(at - packets_answer));
}

void state_read_register(const char *text) {
    uint8_t bytes[REGISTER_MOST];
    uint64_t number = 0;
    remote_number(&text, &number);
    unsigned size = registers_read(threads_chosen(), (unsigned)number, bytes);
    if (!size) {
        packets_reply_done(false);
        return;
    }
    channel_send(packets_answer,
                 (size_t)(remote_put_hex(packets_answer, bytes, size) - packets_answer));
}

static bool change_register(struct task *task, unsigned number, const char *digits) {
    uint8_t bytes[REGISTER_MOST];
    unsigned size = registers_size(number);
    if (!size || remote_get_hex(bytes, size, digits) != size ||
        !registers_write(task, number, bytes))
        return false;
    if (task == self && tool->register_set)
        for (unsigned i = 0; i < GPR_COUNT; i++)
            tool->register_set(i);
    return true;
}

void state_write_register(const char *text) {
    uint64_t number;
    bool done = remote_number(&text, &number) && *text == '=' &&
                change_register(threads_chosen(), (unsigned)number, text + 1);
    packets_reply_done(done);
}

// gdb sends all of them to change one. Those that keep their values need no change.
void state_write_registers(const char *text) {
    uint8_t now[REGISTER_MOST], wanted[REGISTER_MOST];
    struct task *task = threads_chosen();
    bool done = true;
    for (unsigned i = 0; i < registers_count(); i++) {
        unsigned size = registers_read(task, i, now);
        if (remote_get_hex(wanted, size, text) != size) {
            done = false;
            break;
        }
        if (memcmp(now, wanted, size) != 0)
            done &= change_register(task, i, text);
        text += 2 * size;
    }
    packets_reply_done(done);
}

// ---- memory ------------------------------------------------------------------------------------

void state_read_memory(const char *text) {
    static uint8_t bytes[MEMORY_MOST];
    uint64_t address, size;
    if (!packets_read_range(&text, &address, &size)) {
        packets_reply_done(false);
        return;
    }
    if (size > sizeof bytes)
        size = sizeof bytes;
    // Up to where there is memory: gdb reads ahead.
    while (size && target_read(bytes, address, size)) {
        uint64_t part = 4096 - (address & 4095);
        size = part < size ? (size - 1 - part) / 4096 * 4096 + part : 0;
    }
    if (!size) {
        packets_reply_done(false);
        return;
    }
    channel_send(packets_answer,
                 (size_t)(remote_put_hex(packets_answer, bytes, size) - packets_answer));
}

// Also where the target may not write, as natively.
static bool write_anyway(uint64_t address, const void *bytes, size_t size) {
    int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = pwrite(fd, bytes, size, (off_t)address) == (ssize_t)size;
    close(fd);
    return done;
}

static bool change_memory(uint64_t address, const void *bytes, size_t size) {
    if (!size)
        return true;
    if (target_write(address, bytes, size) && !write_anyway(address, bytes, size))
        return false;
    debug_drop_code(address, address + size);
    TOOL_HOOK(stored, address, size);
    return true;
}

void state_write_memory(const char *text, const char *end, bool is_binary) {
    static uint8_t bytes[MEMORY_MOST];
    uint64_t address, size;
    bool done = packets_read_range(&text, &address, &size) && *text == ':' && size <= sizeof bytes;
    text++;
    if (done && is_binary)
        done = (uint64_t)(end - text) == size && change_memory(address, text, size);
    else if (done)
        done = remote_get_hex(bytes, size, text) == size && change_memory(address, bytes, size);
    packets_reply_done(done);
}

// ---- breakpoints -------------------------------------------------------------------------------

static bool change_watch(const char *packet) {
    static const enum watch_kind kinds[] = {WATCH_WRITES, WATCH_READS, WATCH_ACCESSES};
    const char *text = packet + 3;
    struct watch watch = {.kind = kinds[packet[1] - '2']};
    if (!packets_read_range(&text, &watch.start, &watch.size))
        return false;
    debug_flush_later();
    return *packet == 'Z' ? watch_add(&watch) : watch_remove(&watch);
}

void state_change_breakpoint(const char *packet) {
    enum { SOFTWARE = '0', HARDWARE = '1', WRITES = '2', ACCESSES = '4' };
    const char *text = packet + 3;
    uint64_t address;
    if (packet[1] >= WRITES && packet[1] <= ACCESSES) {
        packets_reply_done(change_watch(packet));
        return;
    }
    if (packet[1] != SOFTWARE && packet[1] != HARDWARE) {
        channel_reply(""); // gdb then says that it cannot
        return;
    }
    bool done = remote_number(&text, &address);
    if (done && *packet == 'Z')
        done = debug_insert(address);
    else if (done)
        debug_remove(address);
    packets_reply_done(done);
}

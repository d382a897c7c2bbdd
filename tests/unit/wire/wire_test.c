#include "unit.h"

#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/wire_supervisor.h"
#include "wire/wire_target.h"

static int ends[2] = {-1, -1};
static _Alignas(16) char buffer[WIRE_MESSAGE_MAX];

static void open_pair(void) {
    if (ends[0] >= 0)
        close(ends[0]);
    if (ends[1] >= 0)
        close(ends[1]);
    CHECK_EQ(wire_open(ends), 0);
    wire_init(ends[1]);
}

TEST(messages_arrive_as_sent) {
    struct wire_message message;
    open_pair();
    char *words[] = {"cat", "a b", NULL};
    wire_send_hello(12, 11, "/bin/cat", words);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK_EQ(message.type, WIRE_HELLO);
    CHECK_EQ(message.pid, getpid());
    CHECK_EQ(message.hello->ppid, 11);
    CHECK_EQ(message.size, sizeof(struct wire_hello) + 9 + 4 + 4);
    CHECK_STR(message.hello->path + 9, "cat");

    uint64_t pcs[] = {1, 2, 3};
    wire_send_fatal_signal(SIGSEGV, 1, 0x10, 5, pcs, 3);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK_EQ(message.fatal_signal->pc_count, 3);
    CHECK_EQ(message.fatal_signal->pcs[2], 3);

    wire_send_module_map(0x1000, 0x2000, 0x300, 5, "/lib/x.so");
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK_STR(message.module_map->path, "/lib/x.so");
    CHECK_EQ(message.module_map->offset, 0x300);

    wire_send_exiting(3);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK_EQ(message.exiting->status, 3);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_NOTHING);
}

TEST(long_text_is_cut) {
    struct wire_message message;
    static char text[200000];
    memset(text, 'x', sizeof text - 1);
    open_pair();
    wire_send_notice(0, text);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK_EQ(message.size, WIRE_PAYLOAD_MAX);
    CHECK_EQ(strlen(message.text->text), WIRE_PAYLOAD_MAX - sizeof(struct wire_text) - 1);
    char *words[] = {text, NULL};
    wire_send_hello(1, 1, "/p", words);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK_STR(message.hello->path, "/p");
    static uint64_t pcs[20000];
    wire_send_fatal_signal(1, 1, 1, 1, pcs, 20000);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_GOT);
    CHECK(message.fatal_signal->pc_count > 8000);
}

TEST(dead_supervisor_is_survived) {
    open_pair();
    close(ends[0]);
    ends[0] = -1;
    for (int i = 0; i < 100; i++)
        wire_send_notice(0, "into the void");
    CHECK(true); // reached: no SIGPIPE, no wait
    wire_init(-1);
    wire_send_notice(0, "nowhere");
}

TEST(closed_wire_is_told_from_empty_packet) {
    struct wire_message message;
    open_pair();
    CHECK_EQ(send(ends[1], "", 0, 0), 0);
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_BAD);
    close(ends[1]);
    ends[1] = -1;
    CHECK_EQ(wire_receive(ends[0], buffer, &message), WIRE_CLOSED);
}

TEST(other_versions_are_told_apart) {
    struct wire_message message;
    struct wire_header header = {.magic = WIRE_MAGIC, .version = WIRE_VERSION + 1, .type = 1};
    CHECK_EQ(wire_decode(&header, sizeof header, &message), WIRE_OTHER);
    header.magic = 1;
    CHECK_EQ(wire_decode(&header, sizeof header, &message), WIRE_BAD);
}

TEST(findings_with_lying_counts_are_refused) {
    struct wire_message message;
    struct {
        struct wire_header header;
        struct wire_finding finding;
        uint64_t pcs[3];
        char names[8];
    } packet = {.header = {.magic = WIRE_MAGIC,
                           .version = WIRE_VERSION,
                           .type = WIRE_FINDING,
                           .size = sizeof packet - sizeof packet.header},
                .finding.pc_counts = {1, 0, 2, 0},
                .names = "ab\0cdef"};
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_GOT);
    packet.finding.pc_counts[3] = 1;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.finding.pc_counts[3] = FINDING_STACK_MAX + 1;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.finding.pc_counts[3] = 0;
    packet.finding.facts.kind = FINDING_KINDS;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.finding.facts.kind = 0;
    packet.finding.context = LEDGER_CONTEXTS;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.finding.context = 0;
    packet.names[7] = 'g';
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.names[7] = packet.names[4] = 0; // a third name
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
}

TEST(findings_are_taken_apart) {
    struct {
        struct wire_finding message;
        uint64_t pcs[3];
        char names[8];
    } sent = {.message.pc_counts = {1, 0, 2, 0},
              .message.facts.kind = FINDING_VALUE,
              .pcs = {10, 20, 30},
              .names = "ab\0cdef"};
    struct finding finding = wire_finding_parts(&sent.message);
    CHECK_EQ(finding.facts.kind, FINDING_VALUE);
    CHECK_EQ(finding.stacks[0].count, 1);
    CHECK_EQ(finding.stacks[0].pcs[0], 10);
    CHECK_EQ(finding.stacks[1].count, 0);
    CHECK_EQ(finding.stacks[2].count, 2);
    CHECK_EQ(finding.stacks[2].pcs[1], 30);
    CHECK_EQ(finding.stacks[3].count, 0);
    CHECK_STR(finding.names[0], "ab");
    CHECK_STR(finding.names[1], "cdef");
}

TEST(lying_sizes_are_refused) {
    struct wire_message message;
    struct {
        struct wire_header header;
        struct wire_fatal_signal fatal;
        uint64_t pcs[2];
    } packet = {.header = {.magic = WIRE_MAGIC,
                           .version = WIRE_VERSION,
                           .type = WIRE_FATAL_SIGNAL,
                           .size = sizeof packet - sizeof packet.header},
                .fatal.pc_count = 2};
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_GOT);
    packet.fatal.pc_count = 3;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.fatal.pc_count = 0x20000002;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.fatal.pc_count = 2;
    packet.header.size--;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
    packet.header.type = 77;
    CHECK_EQ(wire_decode(&packet, sizeof packet, &message), WIRE_BAD);
}

static long seen_findings, seen_losses;

static void visit_finding(const struct wire_finding *message) {
    volatile uint64_t sum = 0;
    struct finding finding = wire_finding_parts(message);
    for (int i = 0; i < FINDING_STACKS; i++)
        for (size_t j = 0; j < finding.stacks[i].count; j++)
            sum += finding.stacks[i].pcs[j];
    sum += strlen(finding.names[0]) + strlen(finding.names[1]) + strlen(finding.facts.thread_name);
    seen_findings++;
}

static void visit_losses(const struct wire_message *message) {
    volatile uint64_t sum = 0;
    const char *at = message->payload, *end = at + message->size;
    while (at < end) {
        const struct wire_loss *loss = (const struct wire_loss *)at;
        for (uint32_t i = 0; i < loss->pc_count; i++)
            sum += loss->pcs[i];
        at += sizeof *loss + loss->pc_count * sizeof loss->pcs[0];
        seen_losses++;
    }
    CHECK(at == end);
}

// A message is touched only within its bounds: they end at an unmapped page.
static void visit(const struct wire_message *message) {
    volatile size_t sum = 0;
    const char *bytes = message->payload;
    switch (message->type) {
    case WIRE_HELLO:
        sum += strlen(message->hello->path);
        break;
    case WIRE_EXEC_AWAY:
        sum += strlen(message->exec_away->path);
        break;
    case WIRE_FATAL_SIGNAL:
        for (uint32_t i = 0; i < message->fatal_signal->pc_count; i++)
            sum += message->fatal_signal->pcs[i];
        break;
    case WIRE_MODULE_MAP:
        sum += strlen(message->module_map->path);
        break;
    case WIRE_NOTICE:
    case WIRE_DEBUG:
        sum += strlen(message->text->text);
        break;
    case WIRE_PRINT:
        for (uint32_t i = 0; i < message->print->pc_count; i++)
            sum += message->print->pcs[i];
        sum += strlen((const char *)(message->print->pcs + message->print->pc_count));
        break;
    case WIRE_FINDING:
        visit_finding(message->finding);
        break;
    case WIRE_LOSSES:
        visit_losses(message);
        break;
    default:
        for (size_t i = 0; i < message->size; i++)
            sum += (size_t)bytes[i];
    }
}

TEST(fuzzed_packets_never_reach_beyond) {
    size_t page = 4096;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    uint64_t state = 88172645463325252ull;
    long good = 0;
    for (int round = 0; round < 300000; round++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        size_t size = state % 480 / 8 * 8;
        char *packet = pages + page - size;
        for (size_t i = 0; i < size; i++)
            packet[i] = (char)((state >> (i % 57)) * (i + 1) % 5 ? 0 : state >> (i % 53));
        if (size >= sizeof(struct wire_header)) {
            struct wire_header *header = (struct wire_header *)packet;
            header->magic = round % 100 ? WIRE_MAGIC : header->magic;
            header->version = round % 99 ? WIRE_VERSION : header->version;
            header->type = (uint16_t)(state >> 40) % 19;
            header->size = (uint32_t)(size - sizeof *header) + (round % 20 == 0);
            // Structures with many counts are sound by chance only where most of them are 0.
            if (round % 2 && header->size) {
                size_t names = sizeof *header + sizeof(struct wire_finding);
                memset(header + 1, 0, size - sizeof *header);
                if (header->type == WIRE_FINDING && size > names + 2)
                    memset(packet + names + 1, 'x', size - names - 2);
                packet[sizeof *header + state % header->size % (size - sizeof *header)] =
                    (char)(state >> 20 & 7);
            }
        }
        struct wire_message message;
        if (wire_decode(packet, size, &message) == WIRE_GOT) {
            good++;
            visit(&message);
        }
    }
    CHECK(good > 1000);
    CHECK(good < 299000);
    CHECK(seen_findings > 100 && seen_losses > 100);
    munmap(pages, 2 * page);
}

TEST(configuration_is_read_back) {
    static const char *const options[] = {
        "trace-children=yes", "num-callers=25", "skip=a", "skip=b", "empty=", "hex=0x1f"};
    int fd = wire_config_write(options, 6);
    CHECK(fd >= 0);
    CHECK(write(fd, "x", 1) < 0 && errno == EPERM);
    CHECK_EQ(wire_config_load(fd), 0);
    close(fd);
    CHECK(wire_option_yes("trace-children"));
    CHECK(!wire_option_yes("trace"));
    CHECK_EQ(wire_option_number("num-callers", 1), 25);
    CHECK_EQ(wire_option_number("hex", 1), 31);
    CHECK_EQ(wire_option_number("empty", 9), 9);
    CHECK_EQ(wire_option_number("trace-children", 9), 9);
    CHECK_STR(wire_option("empty"), "");
    CHECK(wire_option("absent") == NULL);
    const char *first = wire_option_next("skip", NULL);
    CHECK_STR(first, "a");
    CHECK_STR(wire_option_next("skip", first), "b");
    CHECK(wire_option_next("skip", wire_option_next("skip", first)) == NULL);
}

// A supervisor in another process. It takes `count` messages and notes in the file how many it has
// taken; then it is idle, or ends.
static pid_t start_supervisor(int note, int count, bool is_idle_then) {
    pid_t pid = fork();
    if (pid)
        return pid;
    struct wire_message message;
    wire_board_working();
    for (int taken = 0; taken < count;) {
        if (wire_receive(ends[0], buffer, &message) != WIRE_GOT)
            continue;
        taken++;
        usleep(1000);
        CHECK_EQ(wire_board_write(note, "x", 1), 0);
        wire_board_took();
    }
    if (is_idle_then)
        wire_board_end_turn(true);
    _exit(0);
}

TEST(settled_messages_are_taken) {
    static const char *const options[] = {"a=b"};
    struct stat note_status;
    int note = memfd_create("note", 0);
    open_pair();
    int fd = wire_config_write(options, 1);
    CHECK_EQ(wire_config_load(fd), 0);
    close(fd);
    wire_board_set_places(note, -1);
    CHECK_EQ(fstat(note, &note_status), 0);
    CHECK_EQ(wire_board()->log.inode, note_status.st_ino);
    CHECK_EQ(wire_board()->xml.inode, 0);
    CHECK(wire_settle());
    CHECK(wire_is_settled());
    wire_send_module_unmap(0x1000, 0x2000);
    CHECK(wire_is_settled());
    for (int i = 1; i <= 20; i++) {
        wire_send_notice(0, "text");
        CHECK(!wire_is_settled());
        // The last supervisor is never idle, and ends.
        pid_t pid = start_supervisor(note, i == 1 ? 2 : 1, i < 20);
        if (i == 20)
            close(ends[0]);
        CHECK(wire_settle());
        CHECK(wire_is_settled());
        CHECK_EQ(fstat(note, &note_status), 0);
        CHECK_EQ(note_status.st_size, i + 1);
        waitpid(pid, NULL, 0);
    }
    ends[0] = -1;
    close(note);
}

TEST(damaged_configuration_is_refused) {
    int fd = memfd_create("x", 0);
    struct wire_config config = {
        .magic = WIRE_MAGIC, .version = WIRE_VERSION, .size = 4, .count = 1};
    CHECK_EQ(write(fd, &config, sizeof config), sizeof config);
    CHECK_EQ(wire_config_load(fd), -EPROTO);
    CHECK_EQ(write(fd, "a=bc", 4), 4);
    CHECK_EQ(wire_config_load(fd), -EPROTO);
    close(fd);
    CHECK_EQ(wire_config_load(fd), -EBADF);
}

UNIT_MAIN()

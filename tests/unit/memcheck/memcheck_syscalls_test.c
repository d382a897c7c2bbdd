// What memcheck says of system calls, without an engine: shadow memory is a small array of states
// here, and findings are written down.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/track/track.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/shadow/registers.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/syscalls.h"
#include "tools/shared/syscalls/pass.h"

// ---- the stand-ins -----------------------------------------------------------------------------

enum { ARENA = 8192 };
static char arena[ARENA]; // everything else is addressable and defined
static uint8_t states[ARENA];
static char found[2048];
static struct shadow_registers registers;

static bool in_arena(uint64_t address) {
    return address - (uint64_t)arena < ARENA;
}

static uint8_t *state(uint64_t address) {
    return &states[address - (uint64_t)arena];
}

static enum shadow_verdict check(uint64_t start, size_t size, uint64_t *bad, bool values) {
    for (size_t i = 0; i < size && i < ARENA; i++) {
        *bad = start + i;
        if (!in_arena(start + i))
            continue;
        if (*state(start + i) == SHADOW_NOACCESS)
            return SHADOW_BAD_ADDRESS;
        if (values && *state(start + i))
            return SHADOW_BAD_VALUE;
    }
    return SHADOW_FINE;
}

enum shadow_verdict shadow_check_defined(uint64_t start, size_t size, uint64_t *bad) {
    return check(start, size, bad, true);
}

enum shadow_verdict shadow_check_addressable(uint64_t start, size_t size, uint64_t *bad) {
    return check(start, size, bad, false);
}

void shadow_make_defined(uint64_t start, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (in_arena(start + i))
            *state(start + i) = SHADOW_DEFINED;
}

void shadow_make_defined_if_addressable(uint64_t start, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (in_arena(start + i) && *state(start + i) != SHADOW_NOACCESS)
            *state(start + i) = SHADOW_DEFINED;
}

bool track_origins;

bool shadow_has_holes;

bool heap_find(uint64_t address, struct heap_block *block) {
    return false;
}

uint32_t shadow_origin(uint64_t address) {
    return 0;
}

void findings_add_parameter(const char *name, enum finding_fault fault, uint64_t address,
                            uint32_t origin) {
    static const char *const faults[] = {"register", "gone", "undefined"};
    size_t used = strlen(found);
    snprintf(found + used, sizeof found - used, "%s%s %s", used ? "; " : "", name, faults[fault]);
    if (fault != FAULT_REGISTER && in_arena(address)) {
        used = strlen(found);
        snprintf(found + used, sizeof found - used, " at %zu", (size_t)(address - (uint64_t)arena));
    }
}

void *tool_thread_state(void) {
    return &registers;
}

bool tool_has_shadow(uint64_t start, size_t size) {
    return start + size >= start && !((start + size) >> 47);
}

bool tool_is_engines(uint64_t address) {
    return false;
}

bool tool_mapping_at(uint64_t address, struct tool_mapping *mapping) {
    *mapping = (struct tool_mapping){.start = 4096, .end = 1ul << 47, .prot = 3};
    return address < mapping->end;
}

long tool_read(void *to, uint64_t from, size_t size) {
    if (from < 4096)
        return -EFAULT;
    memcpy(to, (const void *)from, size);
    return 0;
}

static const char *verbosity = "0";

const char *tool_option(const char *name) {
    return strcmp(name, "verbosity") == 0 ? verbosity : NULL;
}

static unsigned said;

void tool_say(const char *format, ...) {
    said++;
}

// ---- help --------------------------------------------------------------------------------------

static void fresh(void) {
    memset(arena, 0, sizeof arena);
    memset(states, 0, sizeof states);
    memset(&registers, 0, sizeof registers);
    found[0] = 0;
}

static void mark(size_t offset, size_t size, uint8_t value) {
    memset(states + offset, value, size);
}

static size_t defined(size_t offset, size_t size) {
    size_t count = 0;
    while (count < size && !states[offset + count])
        count++;
    return count;
}

#define AT(offset)          ((uint64_t)arena + (offset))
#define BEFORE(number, ...) memcheck_before_system_call(number, (const uint64_t[6]){__VA_ARGS__})
#define AFTER(number, result, ...)                                                                 \
    memcheck_after_system_call(number, (const uint64_t[6]){__VA_ARGS__}, result)

// ---- the table ---------------------------------------------------------------------------------

struct named {
    long number;
    const char *name;
};

static const struct named names[] = {
#define NAME(number, name) {number, name},
#include "syscall_names.inc"
};

TEST(every_call_of_the_header_is_known) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!syscalls_entry(names[i].number))
            unit_fail(__FILE__, __LINE__, "%s (%ld) is not in the table", names[i].name,
                      names[i].number);
    CHECK(sizeof names / sizeof *names > 350);
    CHECK(!syscalls_entry(-1));
    CHECK(!syscalls_entry(335));
    CHECK(!syscalls_entry(100000));
}

static unsigned count_words(const char *text) {
    unsigned count = 0;
    for (const char *at = text; *at; at++)
        count += at == text || at[-1] == ' ';
    return count;
}

TEST(pieces_name_arguments_that_exist) {
    unsigned pieces = 0;
    for (long number = 0; number < 512; number++) {
        const struct syscall_entry *entry = syscalls_entry(number);
        if (!entry)
            continue;
        unsigned words = count_words(entry->arguments);
        CHECK(words <= 6);
        CHECK(!strstr(entry->arguments, "  "));
        for (unsigned i = 0; i < PIECES && entry->pieces[i].kind; i++, pieces++) {
            const struct piece *piece = &entry->pieces[i];
            if (piece->argument >= words || piece->count > words)
                unit_fail(__FILE__, __LINE__, "%s: piece %u", entry->name, i);
            if (!piece->count && piece->kind != PIECE_STRING && !piece->unit)
                unit_fail(__FILE__, __LINE__, "%s: piece %u has no size", entry->name, i);
        }
    }
    NOTE("%u pieces", pieces);
    CHECK(pieces > 200);
}

// ---- the two passes ----------------------------------------------------------------------------

TEST(what_is_written_must_be_defined) {
    fresh();
    mark(13, 1, SHADOW_UNDEFINED);
    BEFORE(SYS_write, 1, AT(0), 10);
    CHECK_STR(found, "");
    BEFORE(SYS_write, 1, AT(0), 14);
    CHECK_STR(found, "write(buf) undefined at 13");
    found[0] = 0;
    mark(3, 1, SHADOW_NOACCESS);
    BEFORE(SYS_write, 1, AT(0), 14);
    CHECK_STR(found, "write(buf) gone at 3");
}

TEST(what_was_read_becomes_defined) {
    fresh();
    mark(0, 100, SHADOW_UNDEFINED);
    BEFORE(SYS_read, 0, AT(0), 100);
    CHECK_STR(found, "");
    CHECK_EQ(defined(0, 100), 0);
    AFTER(SYS_read, -EINTR, 0, AT(0), 100);
    CHECK_EQ(defined(0, 100), 0);
    AFTER(SYS_read, 7, 0, AT(0), 100);
    CHECK_EQ(defined(0, 100), 7);
    mark(50, 50, SHADOW_NOACCESS);
    BEFORE(SYS_read, 0, AT(0), 100);
    CHECK_STR(found, "read(buf) gone at 50");
    AFTER(SYS_read, 100, 0, AT(0), 100);
    CHECK_EQ(defined(0, 100), 50);
}

TEST(strings_are_read_to_their_end) {
    fresh();
    strcpy(arena + 4000, "a name that goes on over the end of what is looked at at once");
    memset(arena + 4060, 'x', 500);
    mark(4561, 3000, SHADOW_UNDEFINED);
    BEFORE(SYS_chdir, AT(4000));
    CHECK_STR(found, "");
    mark(4560, 1, SHADOW_UNDEFINED);
    BEFORE(SYS_chdir, AT(4000));
    CHECK_STR(found, "chdir(path) undefined at 4560");
    found[0] = 0;
    BEFORE(SYS_chdir, 0);
    CHECK_STR(found, "chdir(path) gone");
    found[0] = 0;
    BEFORE(SYS_getcwd, 4090, 8);
    CHECK_STR(found, "getcwd(buf) gone");
}

TEST(registers_count_by_their_width) {
    fresh();
    registers.undefined[6] = registers.undefined[7] = 1;
    registers.general[7] = 0xffffffff00000000; // rdi: fd
    registers.general[6] = 1ul << 40;          // rsi: buf
    BEFORE(SYS_write, 1, AT(0), 1);
    CHECK_STR(found, "write(buf) register");
    found[0] = 0;
    registers.general[7] = 0x80000000;
    BEFORE(SYS_write, 1, AT(0), 1);
    CHECK_STR(found, "write(fd) register; write(buf) register");
    found[0] = 0;
    registers.undefined[0] = registers.general[0] = 1;
    BEFORE(SYS_getpid, 0);
    CHECK_STR(found, "(syscallno) register");
    AFTER(SYS_getpid, 1, 0);
    CHECK_EQ(registers.undefined[0], 0);
}

TEST(a_mode_counts_when_a_file_may_be_made) {
    fresh();
    registers.undefined[2] = 1;
    registers.general[2] = 1;
    BEFORE(SYS_open, (uint64_t) "x", O_RDONLY, 0);
    CHECK_STR(found, "");
    BEFORE(SYS_open, (uint64_t) "x", O_CREAT, 0);
    CHECK_STR(found, "open(mode) register");
}

TEST(counts_of_four_bytes_ignore_the_rest) {
    fresh();
    mark(0, 100, SHADOW_UNDEFINED);
    mark(100, 100, SHADOW_NOACCESS);
    BEFORE(SYS_getdents64, 3, AT(0), 0xabcd000000000064);
    CHECK_STR(found, "");
    BEFORE(SYS_getdents64, 3, AT(0), 0xabcd000000000065);
    CHECK_STR(found, "getdents64(dirp) gone at 100");
}

TEST(sizes_beyond_all_bounds) {
    fresh();
    mark(64, 1, SHADOW_NOACCESS);
    BEFORE(SYS_write, 1, AT(0), UINT64_MAX);
    CHECK_STR(found, "write(buf) gone at 64");
    found[0] = 0;
    BEFORE(SYS_move_pages, 0, 1ul << 62, AT(0), 0, AT(0), 0);
    CHECK_STR(found, "move_pages(pages) gone at 64; move_pages(status) gone at 64");
    found[0] = 0;
    BEFORE(SYS_read, 0, UINT64_MAX - 3, 16);
    CHECK_STR(found, "read(buf) gone");
}

// ---- visits ------------------------------------------------------------------------------------

TEST(vectors_are_followed) {
    fresh();
    struct iovec parts[2] = {{arena, 8}, {arena + 100, 8}};
    mark(0, 200, SHADOW_UNDEFINED);
    mark(104, 1, SHADOW_NOACCESS);
    BEFORE(SYS_readv, 0, (uint64_t)parts, 2);
    CHECK_STR(found, "readv(vector[...]) gone at 104");
    AFTER(SYS_readv, 11, 0, (uint64_t)parts, 2);
    CHECK_EQ(defined(0, 100), 8);
    CHECK_EQ(defined(100, 100), 3);
    found[0] = 0;
    BEFORE(SYS_pwritev, 0, (uint64_t)parts, 2);
    CHECK_STR(found, "pwritev(vector[1]) undefined at 103");
}

TEST(addresses_go_by_their_family) {
    fresh();
    struct sockaddr_un *address = (struct sockaddr_un *)arena;
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, "/x");
    mark(5, 100, SHADOW_UNDEFINED);
    BEFORE(SYS_connect, 3, AT(0), sizeof *address);
    CHECK_STR(found, "");
    mark(3, 1, SHADOW_UNDEFINED);
    BEFORE(SYS_connect, 3, AT(0), sizeof *address);
    CHECK_STR(found, "socketcall.connect(serv_addr.sun_path) undefined at 3");
    found[0] = 0;
    address->sun_family = AF_INET;
    mark(2, 14, SHADOW_UNDEFINED);
    BEFORE(SYS_bind, 3, AT(0), 16);
    CHECK_STR(found, "socketcall.bind(my_addr.sin_port) undefined at 2; "
                     "socketcall.bind(my_addr.sin_addr) undefined at 4");
}

TEST(a_message_is_written_as_far_as_it_came) {
    fresh();
    struct iovec parts[2] = {{arena + 200, 4}, {arena + 300, 10}};
    struct msghdr *message = (struct msghdr *)arena;
    *message = (struct msghdr){.msg_iov = parts, .msg_iovlen = 2};
    mark(200, 200, SHADOW_UNDEFINED);
    BEFORE(SYS_recvmsg, 3, AT(0), 0);
    CHECK_STR(found, "");
    AFTER(SYS_recvmsg, 6, 3, AT(0), 0);
    CHECK_EQ(defined(200, 50), 4);
    CHECK_EQ(defined(300, 50), 2);
}

TEST(lengths_in_memory_are_read_before_and_after) {
    fresh();
    uint32_t length = 16;
    mark(0, 64, SHADOW_UNDEFINED);
    mark(16, 1, SHADOW_NOACCESS);
    BEFORE(SYS_getsockname, 3, AT(0), (uint64_t)&length);
    CHECK_STR(found, "");
    length = 12;
    AFTER(SYS_getsockname, 0, 3, AT(0), (uint64_t)&length);
    CHECK_EQ(defined(0, 64), 12);
    length = 17;
    BEFORE(SYS_getsockname, 3, AT(0), (uint64_t)&length);
    CHECK_STR(found, "socketcall.getsockname(name) gone at 16");
}

TEST(requests_of_ioctl_by_table_and_by_encoding) {
    fresh();
    mark(0, 100, SHADOW_UNDEFINED);
    BEFORE(SYS_ioctl, 0, TIOCGWINSZ, AT(0));
    CHECK_STR(found, "");
    AFTER(SYS_ioctl, -ENOTTY, 0, TIOCGWINSZ, AT(0));
    CHECK_EQ(defined(0, 100), 0);
    AFTER(SYS_ioctl, 0, 0, TIOCGWINSZ, AT(0));
    CHECK_EQ(defined(0, 100), 8);
    BEFORE(SYS_ioctl, 0, _IOW('X', 250, uint64_t), AT(4));
    CHECK_STR(found, "ioctl(generic) undefined at 8");
    AFTER(SYS_ioctl, 0, 0, _IOR('X', 250, uint64_t), AT(8));
    CHECK_EQ(defined(0, 100), 16);
}

TEST(a_sleep_that_was_cut_short_says_how_much_was_left) {
    fresh();
    mark(16, 16, SHADOW_UNDEFINED);
    AFTER(SYS_nanosleep, 0, AT(0), AT(16));
    CHECK_EQ(defined(16, 16), 0);
    AFTER(SYS_nanosleep, -EINTR, AT(0), AT(16));
    CHECK_EQ(defined(16, 16), 16);
}

TEST(a_futex_call_uses_what_its_command_uses) {
    fresh();
    registers.undefined[10] = 1;
    registers.general[10] = ~0ul; // r10: timeout, count or nothing
    BEFORE(SYS_futex, AT(0), FUTEX_WAKE, 1, 0, 0, 0);
    CHECK_STR(found, "");
    BEFORE(SYS_futex, AT(0), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
    CHECK_STR(found, "futex(utime) register");
}

TEST(unknown_calls_are_told_once_and_only_to_who_asks) {
    fresh();
    said = 0;
    BEFORE(9999, 0);
    CHECK_EQ(said, 0);
    verbosity = "1";
    BEFORE(9999, 0);
    BEFORE(9999, 0);
    CHECK_EQ(said, 1);
    BEFORE(SYS_ioctl, 0, _IO('X', 251), 0);
    BEFORE(SYS_ioctl, 0, _IO('X', 251), 0);
    CHECK_EQ(said, 2);
    verbosity = "0";
    CHECK_STR(found, "");
}

UNIT_MAIN()

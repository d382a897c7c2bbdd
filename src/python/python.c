#include "python/python.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

#define PAGE          4096ul
#define PAGES_KNOWN   128
#define FRAME_BYTES   80
#define STRING_MAX    1024 // characters of a name or path
#define TABLE_MAX     16384
#define TYPE_AT       8  // in every object
#define LENGTH_AT     16 // in strings of bytes and of characters
#define STATE_AT      32 // of a string of characters
#define BYTES_AT      32 // of a string of bytes
#define STATE_KIND(s) ((s) >> 2 & 7)
#define STATE_COMPACT 0x20
#define STATE_ASCII   0x40
#define OWNED_BY_C    3 // a frame that only marks where C entered the interpreter
#define MIXER         0x9e3779b97f4a7c15ull
#define COOKIE        "xdebugpy" // at the start of _PyRuntime, from 3.13 on
#define FREE_THREADED 16         // where it is said behind the cookie

// Where things are. Fields of a thread, a frame, a code object and a string.
struct layout {
    uint16_t thread_frame; // the current frame, or a structure that holds it
    int16_t holder_frame;  // in that structure; -1: there is none
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
    int16_t frame_is_entry; // -1: entries are marked by frames of their own
    uint16_t code_line, code_file, code_name, code_table, code_start;
    uint16_t ascii_bytes, compact_bytes;
};

static const struct layout layouts[] = {
    {56, 8, 32, 48, 56, 69, 68, 72, 112, 128, 136, 184, 48, 72}, // 3.11
    {56, 0, 0, 8, 56, 70, -1, 68, 112, 128, 136, 192, 40, 56},   // 3.12
    {72, -1, 0, 8, 56, 70, -1, 68, 112, 128, 136, 200, 40, 56},  // 3.13
};

static const struct layout *layout; // NULL: no interpreter that is known
static void *(*current_thread)(void);
static uintptr_t code_type, string_type;
static uint64_t salt; // so that code of other programs has other numbers

// Versions before 3.11 have no Py_Version. As there: major and minor in the upper half; 0: none.
static uint32_t version_of_text(void) {
    const char *(*get)(void) =
        (const char *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *text = get ? get() : "";
    uint32_t parts[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        for (; *text >= '0' && *text <= '9'; text++)
            parts[i] = parts[i] * 10 + (uint32_t)(*text - '0');
        text += *text == '.';
    }
    return parts[0] << 24 | parts[1] << 16;
}

// Why the frames of this version cannot be read, or that they can.
static enum python_state state_of(uint32_t version, const char *runtime) {
    uint32_t minor = version >> 16 & 0xff;
    uint64_t free_threaded = 0;
    if (version >> 24 != 3 || minor < 11 || minor > 13)
        return PYTHON_OTHER;
    if (!runtime || !current_thread || !code_type || !string_type)
        return PYTHON_HIDDEN;
    if (memcmp(runtime, COOKIE, strlen(COOKIE)) == 0)
        memcpy(&free_threaded, runtime + FREE_THREADED, sizeof free_threaded);
    return free_threaded ? PYTHON_FREE_THREADED : PYTHON_UNSEEN;
}

uint32_t python_find(enum python_state *state) {
    const unsigned long *exported = dlsym(RTLD_DEFAULT, "Py_Version");
    const char *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    uint32_t version = exported ? (uint32_t)*exported : version_of_text();
    current_thread =
        (void *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
    string_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    salt = clock_nanoseconds() * MIXER;
    *state = state_of(version, runtime);
    if (*state == PYTHON_UNSEEN)
        layout = &layouts[(version >> 16 & 0xff) - 11];
    return version;
}

// ---- memory ------------------------------------------------------------------------------------

// Pages that could be read lately. Of the calling thread. A library that is loaded into a process
// that runs finds some 1,600 bytes for such variables, for all such libraries together.
static __thread __attribute__((tls_model("initial-exec"))) uintptr_t pages[PAGES_KNOWN];

void python_forget_memory(void) {
    memset(pages, 0, sizeof pages);
}

static bool is_page(uintptr_t page) {
    uintptr_t *known = &pages[page / PAGE % PAGES_KNOWN];
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)page, 1};
    if (*known != page && syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul) != 1)
        return false;
    *known = page;
    return true;
}

static bool is_readable(uintptr_t at, size_t size) {
    if (!at || at % sizeof(void *) || at + size < at || size > TABLE_MAX * 4)
        return false;
    for (uintptr_t page = at & ~(PAGE - 1); page < at + size; page += PAGE)
        if (!is_page(page))
            return false;
    return true;
}

static uintptr_t word_at(uintptr_t at) {
    return *(const uintptr_t *)at;
}

static int32_t half_at(uintptr_t at) {
    return *(const int32_t *)at;
}

static bool has_type(uintptr_t object, size_t size, uintptr_t type) {
    return is_readable(object, size) && word_at(object + TYPE_AT) == type;
}

// ---- frames ------------------------------------------------------------------------------------

static uint64_t number_of(uintptr_t code) {
    uint64_t number = salt;
    uint64_t parts[] = {code, word_at(code + layout->code_table), word_at(code + layout->code_name),
                        (uint64_t)(uint32_t)half_at(code + layout->code_line)};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        number = (number ^ parts[i]) * MIXER;
        number ^= number >> 32;
    }
    return number;
}

static uintptr_t first_frame(void) {
    uintptr_t thread = (uintptr_t)current_thread();
    if (!is_readable(thread, layout->thread_frame + sizeof(void *)))
        return 0;
    uintptr_t frame = word_at(thread + layout->thread_frame);
    if (layout->holder_frame < 0)
        return frame;
    uintptr_t holder = frame + (uintptr_t)layout->holder_frame;
    return is_readable(holder, sizeof(void *)) ? word_at(holder) : 0;
}

size_t python_frames(struct python_frame *frames, size_t max,
                     void (*describe)(uintptr_t code, uint64_t number)) {
    size_t count = 0;
    if (!layout)
        return 0;
    for (uintptr_t frame = first_frame(); frame && count < max;
         frame = word_at(frame + layout->frame_previous)) {
        if (!is_readable(frame, FRAME_BYTES))
            return 0;
        if (layout->frame_is_entry < 0 && *(char *)(frame + layout->frame_owner) == OWNED_BY_C) {
            if (count)
                frames[count - 1].is_entry = true;
            continue;
        }
        uintptr_t code = word_at(frame + layout->frame_code);
        if (!has_type(code, layout->code_start, code_type))
            return 0;
        uint64_t number = number_of(code);
        describe(code, number);
        frames[count++] =
            (struct python_frame){.code = number,
                                  .offset = (int32_t)(word_at(frame + layout->frame_instruction) -
                                                      code - layout->code_start),
                                  .is_entry = layout->frame_is_entry >= 0 &&
                                              *(char *)(frame + (size_t)layout->frame_is_entry)};
    }
    return count;
}

// ---- code --------------------------------------------------------------------------------------

static size_t put_character(uint8_t *to, uint32_t character) {
    if (character < 0x80) {
        to[0] = (uint8_t)character;
        return 1;
    }
    size_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    to[0] = (uint8_t)((0xff00 >> (more + 1)) | character >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        to[i] = (uint8_t)(0x80 | (character >> 6 * (more - i) & 0x3f));
    return more + 1;
}

// Copies a string as UTF-8, which takes up to four bytes for a character; the number of bytes.
static size_t copy_string(uint8_t *to, size_t room, uintptr_t string) {
    if (!has_type(string, layout->compact_bytes, string_type))
        return 0;
    uint32_t state = (uint32_t)half_at(string + STATE_AT);
    size_t length = word_at(string + LENGTH_AT), width = STATE_KIND(state), size = 0;
    uintptr_t at = string + (state & STATE_ASCII ? layout->ascii_bytes : layout->compact_bytes);
    if (!(state & STATE_COMPACT) || (width != 1 && width != 2 && width != 4))
        return 0;
    length = length < STRING_MAX ? length : STRING_MAX;
    if (!is_readable(at, length * width))
        return 0;
    for (size_t i = 0; i < length && size + 4 <= room; i++, at += width) {
        uint32_t character = width == 1   ? *(const uint8_t *)at
                             : width == 2 ? *(const uint16_t *)at
                                          : *(const uint32_t *)at;
        if (character && character <= 0x10ffff)
            size += put_character(to + size, character);
    }
    return size;
}

size_t python_describe(uintptr_t code, uint64_t number, struct python_code *to, size_t room) {
    uintptr_t table = word_at(code + layout->code_table);
    if (room < sizeof *to + 8 * STRING_MAX || !is_readable(table, BYTES_AT))
        return 0;
    size_t table_size = word_at(table + LENGTH_AT);
    if (table_size > TABLE_MAX || !is_readable(table, BYTES_AT + table_size))
        table_size = 0; // lines are not known, then
    uint8_t *at = to->bytes, *end = (uint8_t *)to + room;
    *to = (struct python_code){.code = number, .first_line = half_at(code + layout->code_line)};
    to->name_size = (uint32_t)copy_string(at, 4 * STRING_MAX, word_at(code + layout->code_name));
    at += to->name_size;
    to->file_size = (uint32_t)copy_string(at, 4 * STRING_MAX, word_at(code + layout->code_file));
    at += to->file_size;
    if (table_size <= (size_t)(end - at)) {
        memcpy(at, (const void *)(table + BYTES_AT), table_size);
        to->table_size = (uint32_t)table_size;
        at += table_size;
    }
    return to->name_size ? (size_t)(at - (uint8_t *)to) : 0;
}

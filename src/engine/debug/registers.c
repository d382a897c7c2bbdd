#include "engine/debug/registers.h"

#include <cpuid.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/layout.h"
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "wire/wire_target.h"

// Where a register is.
enum place {
    IN_GPR, // index: its number in instructions
    IN_PC,
    IN_FLAGS,
    IN_CONSTANT, // index: the value
    IN_STACK,    // of the x87 unit
    IN_CONTROL,  // of the x87 unit; index: its offset in the XSAVE area, 0x100 and more: see below
    IN_XMM,
    IN_MXCSR,
    IN_ORIG_RAX,
    IN_FS_BASE,
    IN_GS_BASE,
    IN_YMM_HIGH,
};
enum { CONTROL_TAGS = 0x100, CONTROL_FOP = 0x101 };
// Parts of the XSAVE area.
enum {
    XSAVE_CONTROL_WORD = 0,
    XSAVE_STATUS_WORD = 2,
    XSAVE_TAGS = 4,
    XSAVE_FOP = 6,
    XSAVE_FIP = 8,
    XSAVE_FDP = 16,
    XSAVE_MXCSR = 24,
    XSAVE_STACK = 32,
    XSAVE_XMM = 160,
    XSAVE_PRESENT = 512,
    PART_X87 = 1,
    PART_SSE = 2,
    PART_AVX = 4,
    INITIAL_CONTROL_WORD = 0x37f,
    INITIAL_MXCSR = 0x1f80,
    USER_CODE = 0x33,
    USER_STACK = 0x2b,
    CHANGEABLE_FLAGS = 0x40cd5, // AC OF DF SF ZF AF PF CF
};

struct description {
    const char *name;
    uint16_t size; // bytes
    uint16_t index;
    enum place place;
    const char *type;
    const char *feature; // that begins with this register, after the definitions of `types`
    const char *types;
};

#define WORD(name, reg)                                                                            \
    { name, 8, reg, IN_GPR, "int64", NULL, NULL }
#define SEGMENT(name, value)                                                                       \
    { name, 4, value, IN_CONSTANT, "int32", NULL, NULL }
#define STACK(name, number)                                                                        \
    { name, 10, number, IN_STACK, "i387_ext", NULL, NULL }
#define CONTROL(name, at)                                                                          \
    { name, 4, at, IN_CONTROL, "int", NULL, NULL }
#define XMM(number)                                                                                \
    { "xmm" #number, 16, number, IN_XMM, "vec128", NULL, NULL }
#define YMM(number)                                                                                \
    { "ymm" #number "h", 16, number, IN_YMM_HIGH, "uint128", NULL, NULL }

// Text of a fixed size that grows; what does not fit is left out.
struct debug_text {
    char *at;
    size_t used, room;
};

__attribute__((format(printf, 2, 3))) static void debug_text_add(struct debug_text *text,
                                                                 const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->at + text->used, text->room - text->used, format, arguments);
    va_end(arguments);
    if (size > 0 && (size_t)size < text->room - text->used)
        text->used += (size_t)size;
}

static const char flag_types[] =
    "<flags id=\"i386_eflags\" size=\"4\">"
    "<field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"\" start=\"1\" end=\"1\"/>"
    "<field name=\"PF\" start=\"2\" end=\"2\"/><field name=\"AF\" start=\"4\" end=\"4\"/>"
    "<field name=\"ZF\" start=\"6\" end=\"6\"/><field name=\"SF\" start=\"7\" end=\"7\"/>"
    "<field name=\"TF\" start=\"8\" end=\"8\"/><field name=\"IF\" start=\"9\" end=\"9\"/>"
    "<field name=\"DF\" start=\"10\" end=\"10\"/><field name=\"OF\" start=\"11\" end=\"11\"/>"
    "<field name=\"AC\" start=\"18\" end=\"18\"/><field name=\"ID\" start=\"21\" end=\"21\"/>"
    "</flags>";
static const char vector_types[] =
    "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>"
    "<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
    "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/>"
    "<vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
    "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/>"
    "<vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
    "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/>"
    "<field name=\"v2_double\" type=\"v2d\"/><field name=\"v16_int8\" type=\"v16i8\"/>"
    "<field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>"
    "<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"
    "<flags id=\"i386_mxcsr\" size=\"4\">"
    "<field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/>"
    "<field name=\"ZE\" start=\"2\" end=\"2\"/><field name=\"OE\" start=\"3\" end=\"3\"/>"
    "<field name=\"UE\" start=\"4\" end=\"4\"/><field name=\"PE\" start=\"5\" end=\"5\"/>"
    "<field name=\"DAZ\" start=\"6\" end=\"6\"/><field name=\"IM\" start=\"7\" end=\"7\"/>"
    "<field name=\"DM\" start=\"8\" end=\"8\"/><field name=\"ZM\" start=\"9\" end=\"9\"/>"
    "<field name=\"OM\" start=\"10\" end=\"10\"/><field name=\"UM\" start=\"11\" end=\"11\"/>"
    "<field name=\"PM\" start=\"12\" end=\"12\"/><field name=\"FZ\" start=\"15\" end=\"15\"/>"
    "</flags>";

// In the order of gdb's own descriptions, by which it numbers them.
static const struct description all[] = {
    {"rax", 8, RAX, IN_GPR, "int64", "core", flag_types},
    WORD("rbx", RBX),
    WORD("rcx", RCX),
    WORD("rdx", RDX),
    WORD("rsi", RSI),
    WORD("rdi", RDI),
    {"rbp", 8, RBP, IN_GPR, "data_ptr", NULL, NULL},
    {"rsp", 8, RSP, IN_GPR, "data_ptr", NULL, NULL},
    WORD("r8", R8),
    WORD("r9", R9),
    WORD("r10", R10),
    WORD("r11", R11),
    WORD("r12", R12),
    WORD("r13", R13),
    WORD("r14", R14),
    WORD("r15", R15),
    {"rip", 8, 0, IN_PC, "code_ptr", NULL, NULL},
    {"eflags", 4, 0, IN_FLAGS, "i386_eflags", NULL, NULL},
    SEGMENT("cs", USER_CODE),
    SEGMENT("ss", USER_STACK),
    SEGMENT("ds", 0),
    SEGMENT("es", 0),
    SEGMENT("fs", 0),
    SEGMENT("gs", 0),
    STACK("st0", 0),
    STACK("st1", 1),
    STACK("st2", 2),
    STACK("st3", 3),
    STACK("st4", 4),
    STACK("st5", 5),
    STACK("st6", 6),
    STACK("st7", 7),
    CONTROL("fctrl", XSAVE_CONTROL_WORD),
    CONTROL("fstat", XSAVE_STATUS_WORD),
    CONTROL("ftag", CONTROL_TAGS),
    CONTROL("fiseg", XSAVE_FIP + 4),
    CONTROL("fioff", XSAVE_FIP),
    CONTROL("foseg", XSAVE_FDP + 4),
    CONTROL("fooff", XSAVE_FDP),
    CONTROL("fop", CONTROL_FOP),
    {"xmm0", 16, 0, IN_XMM, "vec128", "sse", vector_types},
    XMM(1),
    XMM(2),
    XMM(3),
    XMM(4),
    XMM(5),
    XMM(6),
    XMM(7),
    XMM(8),
    XMM(9),
    XMM(10),
    XMM(11),
    XMM(12),
    XMM(13),
    XMM(14),
    XMM(15),
    {"mxcsr", 4, 0, IN_MXCSR, "i386_mxcsr", NULL, NULL},
    {"orig_rax", 8, 0, IN_ORIG_RAX, "int", "linux", ""},
    {"fs_base", 8, 0, IN_FS_BASE, "int", "segments", ""},
    {"gs_base", 8, 0, IN_GS_BASE, "int", NULL, NULL},
    {"ymm0h", 16, 0, IN_YMM_HIGH, "uint128", "avx", ""},
    YMM(1),
    YMM(2),
    YMM(3),
    YMM(4),
    YMM(5),
    YMM(6),
    YMM(7),
    YMM(8),
    YMM(9),
    YMM(10),
    YMM(11),
    YMM(12),
    YMM(13),
    YMM(14),
    YMM(15),
};

unsigned registers_count(void) {
    unsigned count = sizeof all / sizeof *all;
    return xstate_features & PART_AVX ? count : count - 16;
}

unsigned registers_size(unsigned number) {
    return number < registers_count() ? all[number].size : 0;
}

static bool has_shadows(void) {
    return tool->register_shadow && wire_option_yes("vgdb-shadow-registers");
}

// The registers, or (1, 2) their shadows: gdb sees these as further registers whose names end in s1
// (undefined bits) and s2 (origins), as in Valgrind.
static void describe_registers(struct debug_text *out, unsigned shadow) {
    static const char *const types[] = {[4] = "int32", [8] = "int64", [10] = "i387_ext"};
    unsigned count = registers_count();
    if (shadow)
        debug_text_add(out, "</feature><feature name=\"org.gnu.gdb.i386.core.valgrind.s%u\">%s",
                       shadow, vector_types);
    for (unsigned i = 0; i < count; i++) {
        const struct description *d = &all[i];
        if (d->feature && !shadow)
            debug_text_add(out, "%s<feature name=\"org.gnu.gdb.i386.%s\">%s", i ? "</feature>" : "",
                           d->feature, d->types);
        debug_text_add(out, "<reg name=\"%s", d->name);
        if (shadow)
            debug_text_add(out, "s%u", shadow);
        debug_text_add(out, "\" bitsize=\"%u\" type=\"%s\" regnum=\"%u\"/>", 8u * d->size,
                       !shadow || d->size == 16 ? d->type : types[d->size], shadow * count + i);
    }
}

const char *registers_description(void) {
    enum { ROOM = 49152 };
    static char text[ROOM];
    struct debug_text out = {text, 0, ROOM};
    if (*text)
        return text;
    debug_text_add(&out,
                   "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
                   "<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>");
    describe_registers(&out, 0);
    for (unsigned shadow = 1; shadow <= 2 && has_shadows(); shadow++)
        describe_registers(&out, shadow);
    debug_text_add(&out, "</feature></target>");
    return text;
}

// ---- the XSAVE area ----------------------------------------------------------------------------

static uint8_t *area_of(const struct task *task) {
    return task->vectors ? task->vectors : task->xstate;
}

static bool has_part(const uint8_t *area, uint64_t part) {
    uint64_t present;
    memcpy(&present, area + XSAVE_PRESENT, sizeof present);
    return present & part;
}

// A part in its initial state is not stored: now it is.
static void store_part(uint8_t *area, uint64_t part) {
    uint64_t present;
    memcpy(&present, area + XSAVE_PRESENT, sizeof present);
    if (present & part)
        return;
    if (part == PART_X87) {
        memset(area, 0, XSAVE_MXCSR);
        memset(area + XSAVE_STACK, 0, XSAVE_XMM - XSAVE_STACK);
        area[XSAVE_CONTROL_WORD] = INITIAL_CONTROL_WORD & 0xff;
        area[XSAVE_CONTROL_WORD + 1] = INITIAL_CONTROL_WORD >> 8;
    } else if (part == PART_SSE) {
        memset(area + XSAVE_XMM, 0, 256);
    }
    present |= part;
    memcpy(area + XSAVE_PRESENT, &present, sizeof present);
}

static unsigned avx_offset(void) {
    unsigned size, offset, c, d;
    __cpuid_count(0xd, 2, size, offset, c, d);
    return offset;
}

// Two bits for each physical register; XSAVE keeps one: whether it is in use.
static uint32_t full_tags(const uint8_t *area) {
    enum { VALID, ZERO, SPECIAL, EMPTY, EXPONENT = 0x7fff };
    unsigned top = area[XSAVE_STATUS_WORD + 1] >> 3 & 7;
    uint32_t tags = 0;
    for (unsigned i = 0; i < 8; i++) {
        const uint8_t *value = area + XSAVE_STACK + 16 * ((i - top) & 7);
        uint64_t mantissa;
        uint16_t exponent;
        memcpy(&mantissa, value, 8);
        memcpy(&exponent, value + 8, 2);
        exponent &= EXPONENT;
        uint32_t tag = VALID;
        if (!(area[XSAVE_TAGS] & 1u << i))
            tag = EMPTY;
        else if (!exponent && !mantissa)
            tag = ZERO;
        else if (!exponent || exponent == EXPONENT || !(mantissa >> 63))
            tag = SPECIAL;
        tags |= tag << 2 * i;
    }
    return tags;
}

static uint32_t read_control(const uint8_t *area, unsigned index) {
    uint32_t value = 0;
    if (!has_part(area, PART_X87))
        return index == XSAVE_CONTROL_WORD ? INITIAL_CONTROL_WORD
               : index == CONTROL_TAGS     ? 0xffff
                                           : 0;
    if (index == CONTROL_TAGS)
        return full_tags(area);
    if (index == CONTROL_FOP)
        index = XSAVE_FOP;
    memcpy(&value, area + index, index == XSAVE_FIP || index == XSAVE_FDP ? 4 : 2);
    return value;
}

static void read_vector(const struct task *task, const struct description *d, uint8_t *bytes) {
    const uint8_t *area = area_of(task);
    uint32_t value = 0;
    switch (d->place) {
    case IN_STACK:
        if (has_part(area, PART_X87))
            memcpy(bytes, area + XSAVE_STACK + 16 * d->index, 10);
        break;
    case IN_CONTROL:
        value = read_control(area, d->index);
        memcpy(bytes, &value, 4);
        break;
    case IN_XMM:
        if (has_part(area, PART_SSE))
            memcpy(bytes, area + XSAVE_XMM + 16 * d->index, 16);
        break;
    case IN_MXCSR: // stored with SSE or AVX; loaded whatever is present
        value = INITIAL_MXCSR;
        if (has_part(area, PART_SSE | PART_AVX))
            memcpy(&value, area + XSAVE_MXCSR, 4);
        memcpy(bytes, &value, 4);
        break;
    case IN_YMM_HIGH:
        if (has_part(area, PART_AVX))
            memcpy(bytes, area + avx_offset() + 16 * d->index, 16);
        break;
    default:
        break;
    }
}

// ---- reading and writing -----------------------------------------------------------------------

// Which register of the tool's shadow this is. False: it has none.
static bool find_shadow(const struct task *task, const struct description *d,
                        enum tool_register_kind *kind, unsigned *index) {
    const uint8_t *area = area_of(task);
    static const enum tool_register_kind kinds[] = {
        [IN_GPR] = TOOL_REGISTER_GENERAL,
        [IN_FLAGS] = TOOL_REGISTER_FLAGS,
        [IN_STACK] = TOOL_REGISTER_X87,
        [IN_XMM] = TOOL_REGISTER_VECTOR,
        [IN_YMM_HIGH] = TOOL_REGISTER_VECTOR_HIGH,
    };
    if (d->place != IN_GPR && d->place != IN_FLAGS && d->place != IN_STACK && d->place != IN_XMM &&
        d->place != IN_YMM_HIGH)
        return false;
    *kind = kinds[d->place];
    *index = d->place == IN_FLAGS ? 0 : d->index;
    if (d->place == IN_STACK && has_part(area, PART_X87))
        *index = (*index + (area[XSAVE_STATUS_WORD + 1] >> 3 & 7)) & 7;
    return true;
}

static unsigned read_shadow(const struct task *task, unsigned number, bool is_origin,
                            uint8_t bytes[REGISTER_MOST]) {
    const struct description *d = &all[number];
    enum tool_register_kind kind;
    unsigned index;
    uint64_t undefined[2] = {0};
    uint32_t origin = 0;
    memset(bytes, 0, REGISTER_MOST);
    if (find_shadow(task, d, &kind, &index))
        tool->register_shadow(task->tool, kind, index, undefined, &origin);
    if (is_origin)
        memcpy(bytes, &origin, sizeof origin);
    else
        memcpy(bytes, undefined, d->size);
    return d->size;
}

unsigned registers_read(const struct task *task, unsigned number, uint8_t bytes[REGISTER_MOST]) {
    unsigned count = registers_count();
    if (number >= (has_shadows() ? 3 : 1) * count)
        return 0;
    if (number >= count)
        return read_shadow(task, number % count, number >= 2 * count, bytes);
    const struct description *d = &all[number];
    uint64_t value = 0;
    memset(bytes, 0, REGISTER_MOST);
    switch (d->place) {
    case IN_GPR:
        value = task->gpr[d->index];
        break;
    case IN_PC:
        value = task->pc;
        break;
    case IN_FLAGS:
        value = task->flags & ~(uint64_t)FLAG_TRAP;
        break;
    case IN_CONSTANT:
        value = d->index;
        break;
    case IN_ORIG_RAX: // a system call is always made anew or over
        value = UINT64_MAX;
        break;
    case IN_FS_BASE:
        value = task->fs_base;
        break;
    case IN_GS_BASE:
        value = task->gs_base;
        break;
    default:
        read_vector(task, d, bytes);
        return d->size;
    }
    memcpy(bytes, &value, d->size);
    return d->size;
}

static bool write_vector(struct task *task, const struct description *d, const uint8_t *bytes) {
    uint8_t *area = area_of(task);
    switch (d->place) {
    case IN_STACK:
        store_part(area, PART_X87);
        memcpy(area + XSAVE_STACK + 16 * d->index, bytes, 10);
        return true;
    case IN_CONTROL:
        if (d->index != XSAVE_CONTROL_WORD && d->index != XSAVE_STATUS_WORD)
            return false;
        store_part(area, PART_X87);
        memcpy(area + d->index, bytes, 2);
        return true;
    case IN_XMM:
        store_part(area, PART_SSE);
        memcpy(area + XSAVE_XMM + 16 * d->index, bytes, 16);
        return true;
    case IN_MXCSR:
        store_part(area, PART_SSE);
        memcpy(area + XSAVE_MXCSR, bytes, 2); // the processor faults on bits that it does not know
        return true;
    case IN_YMM_HIGH:
        if (!has_part(area, PART_AVX))
            memset(area + avx_offset(), 0, 256);
        store_part(area, PART_AVX);
        memcpy(area + avx_offset() + 16 * d->index, bytes, 16);
        return true;
    default:
        return false;
    }
}

// A thread in a function that translated code has called keeps some of its general registers
// elsewhere, and is in the middle of an instruction.
bool registers_write(struct task *task, unsigned number, const uint8_t *bytes) {
    if (number >= registers_count() || task->where != IN_ENGINE)
        return false;
    const struct description *d = &all[number];
    uint64_t value = 0;
    memcpy(&value, bytes, d->size < 8 ? d->size : 8);
    switch (d->place) {
    case IN_GPR:
        task->gpr[d->index] = value;
        return true;
    case IN_PC:
        task->pc = value;
        return true;
    case IN_FLAGS:
        task->flags =
            (task->flags & ~(uint64_t)CHANGEABLE_FLAGS) | (value & (uint64_t)CHANGEABLE_FLAGS);
        return true;
    case IN_FS_BASE:
        task->fs_base = value;
        return true;
    case IN_GS_BASE:
        task->gs_base = value;
        return true;
    case IN_CONSTANT:
    case IN_ORIG_RAX: // gdb writes it when the target's code is called
        return true;
    default:
        return write_vector(task, d, bytes);
    }
}

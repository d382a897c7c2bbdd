#include "unwind/cfi.h"

// The instructions. The upper two bits may hold an opcode of their own with a six-bit operand.
enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

enum { OP_DEREF = 0x06, OP_BREG0 = 0x70, OP_BREG15 = 0x7f };

#define RETURN_ADDRESS 16

struct run {
    struct cfi_machine *machine;
    const struct cfi_cie *cie;
    struct cursor cursor;
    uint64_t pc, end;
    unsigned depth; // of the remembered states
    bool failed;
    cfi_row *row;
    void *context;
};

static int32_t checked_offset(struct run *run, int64_t value) {
    if (value != (int32_t)value)
        run->failed = true;
    return (int32_t)value;
}

static int64_t factored(struct run *run, int64_t value) {
    int64_t result;
    if (__builtin_mul_overflow(value, run->cie->data_align, &result)) {
        run->failed = true;
        return 0;
    }
    return result;
}

// Vector and other columns do not matter to a stack walk and are dropped here.
static void set_column(struct run *run, uint64_t column, struct unwind_column value) {
    if (column >= UNWIND_REGISTERS)
        return;
    struct cfi_state *state = &run->machine->state;
    state->columns[column] = value;
    if (value.kind == COLUMN_SAME)
        state->used &= ~(1u << column);
    else
        state->used |= 1u << column;
}

static void set_offset(struct run *run, uint64_t column, uint8_t kind, int64_t offset) {
    set_column(run, column,
               (struct unwind_column){.kind = kind, .value = checked_offset(run, offset)});
}

static void restore_column(struct run *run, uint64_t column) {
    if (column < UNWIND_REGISTERS)
        set_column(run, column, run->cie->initial.columns[column]);
}

// Takes a length-prefixed expression. Those that only name a register and an offset, with or
// without a load, are what compilers emit for realigned stacks and signal frames: they become plain
// columns. is_value says that the expression yields the value itself and not where it is saved.
static struct unwind_column take_expression(struct run *run, bool is_value) {
    struct cursor *cursor = &run->cursor;
    uint64_t length = cursor_uleb(cursor);
    uint64_t start = (uint64_t)(cursor->at - cursor->view->bytes);
    struct cursor body = *cursor;
    if (!cursor_skip(cursor, length) || length == 0 || length > UINT16_MAX || start > INT32_MAX) {
        run->failed = true;
        return (struct unwind_column){0};
    }
    body.end = cursor->at;
    uint8_t first = cursor_u8(&body);
    if (first >= OP_BREG0 && first <= OP_BREG15) {
        int64_t offset = cursor_sleb(&body);
        bool plain = !body.failed && offset == (int32_t)offset;
        struct unwind_column column = {.reg = first - OP_BREG0, .value = (int32_t)offset};
        column.kind = is_value ? COLUMN_REGISTER : COLUMN_AT_REGISTER;
        if (plain && cursor_left(&body) == 0)
            return column;
        if (plain && is_value && cursor_left(&body) == 1 && cursor_u8(&body) == OP_DEREF) {
            column.kind = COLUMN_AT_REGISTER;
            return column;
        }
    }
    return (struct unwind_column){.kind = is_value ? COLUMN_EXPRESSION : COLUMN_AT_EXPRESSION,
                                  .length = (uint16_t)length,
                                  .value = (int32_t)start};
}

static void define_cfa(struct run *run, uint64_t reg, int64_t offset) {
    if (reg >= RETURN_ADDRESS)
        run->failed = true;
    run->machine->state.cfa = (struct unwind_column){
        .kind = COLUMN_REGISTER, .reg = (uint8_t)reg, .value = checked_offset(run, offset)};
}

static void define_cfa_part(struct run *run, bool is_register, uint64_t reg, int64_t offset) {
    const struct unwind_column *cfa = &run->machine->state.cfa;
    if (cfa->kind != COLUMN_REGISTER)
        run->failed = true;
    else if (is_register)
        define_cfa(run, reg, cfa->value);
    else
        define_cfa(run, cfa->reg, offset);
}

static void advance(struct run *run, uint64_t delta) {
    uint64_t next;
    if (__builtin_mul_overflow(delta, run->cie->code_align, &delta) ||
        __builtin_add_overflow(run->pc, delta, &next) || next > run->end || !run->row) {
        run->failed = true;
        return;
    }
    if (next != run->pc) {
        run->row(run->context, run->pc, &run->machine->state);
        run->pc = next;
    }
}

static void run_extended(struct run *run, uint8_t opcode) {
    struct cursor *cursor = &run->cursor;
    struct cfi_machine *machine = run->machine;
    uint64_t column;
    switch (opcode) {
    case CFA_SET_LOC: {
        uint64_t target = cursor_pointer(cursor, run->cie->encoding, 0);
        if (target < run->pc || target > run->end || !run->row)
            run->failed = true;
        else if (target != run->pc) {
            run->row(run->context, run->pc, &machine->state);
            run->pc = target;
        }
        return;
    }
    case CFA_REGISTER: {
        column = cursor_uleb(cursor);
        uint64_t reg = cursor_uleb(cursor);
        if (reg >= RETURN_ADDRESS)
            run->failed = true;
        set_column(run, column,
                   (struct unwind_column){.kind = COLUMN_REGISTER, .reg = (uint8_t)reg});
        return;
    }
    case CFA_REMEMBER_STATE:
        if (run->depth == CFI_REMEMBERED)
            run->failed = true;
        else
            machine->remembered[run->depth++] = machine->state;
        return;
    case CFA_RESTORE_STATE:
        if (run->depth == 0)
            run->failed = true;
        else
            machine->state = machine->remembered[--run->depth];
        return;
    case CFA_DEF_CFA_EXPRESSION:
        machine->state.cfa = take_expression(run, true);
        return;
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION:
        column = cursor_uleb(cursor);
        set_column(run, column, take_expression(run, opcode == CFA_VAL_EXPRESSION));
        return;
    case CFA_GNU_ARGS_SIZE:
        cursor_uleb(cursor);
        return;
    default:
        run->failed = true;
    }
}

static void run_instruction(struct run *run) {
    struct cursor *cursor = &run->cursor;
    uint8_t opcode = cursor_u8(cursor);
    uint8_t operand = opcode & 0x3f;
    uint64_t column;
    switch (opcode & 0xc0) {
    case CFA_ADVANCE:
        advance(run, operand);
        return;
    case CFA_OFFSET:
        set_offset(run, operand, COLUMN_AT_CFA, factored(run, (int64_t)cursor_uleb(cursor)));
        return;
    case CFA_RESTORE:
        restore_column(run, operand);
        return;
    }
    switch (opcode) {
    case CFA_NOP:
        return;
    case CFA_ADVANCE1:
        advance(run, cursor_u8(cursor));
        return;
    case CFA_ADVANCE2:
        advance(run, cursor_u16(cursor));
        return;
    case CFA_ADVANCE4:
        advance(run, cursor_u32(cursor));
        return;
    case CFA_OFFSET_EXTENDED:
        column = cursor_uleb(cursor);
        set_offset(run, column, COLUMN_AT_CFA, factored(run, (int64_t)cursor_uleb(cursor)));
        return;
    case CFA_OFFSET_EXTENDED_SF:
        column = cursor_uleb(cursor);
        set_offset(run, column, COLUMN_AT_CFA, factored(run, cursor_sleb(cursor)));
        return;
    case CFA_GNU_NEGATIVE_OFFSET:
        column = cursor_uleb(cursor);
        set_offset(run, column, COLUMN_AT_CFA, factored(run, (int64_t)(0 - cursor_uleb(cursor))));
        return;
    case CFA_VAL_OFFSET:
        column = cursor_uleb(cursor);
        set_offset(run, column, COLUMN_CFA, factored(run, (int64_t)cursor_uleb(cursor)));
        return;
    case CFA_VAL_OFFSET_SF:
        column = cursor_uleb(cursor);
        set_offset(run, column, COLUMN_CFA, factored(run, cursor_sleb(cursor)));
        return;
    case CFA_RESTORE_EXTENDED:
        restore_column(run, cursor_uleb(cursor));
        return;
    case CFA_UNDEFINED:
        set_offset(run, cursor_uleb(cursor), COLUMN_UNDEFINED, 0);
        return;
    case CFA_SAME_VALUE:
        set_offset(run, cursor_uleb(cursor), COLUMN_SAME, 0);
        return;
    case CFA_DEF_CFA:
        column = cursor_uleb(cursor);
        define_cfa(run, column, (int64_t)cursor_uleb(cursor));
        return;
    case CFA_DEF_CFA_SF:
        column = cursor_uleb(cursor);
        define_cfa(run, column, factored(run, cursor_sleb(cursor)));
        return;
    case CFA_DEF_CFA_REGISTER:
        define_cfa_part(run, true, cursor_uleb(cursor), 0);
        return;
    case CFA_DEF_CFA_OFFSET:
        define_cfa_part(run, false, 0, (int64_t)cursor_uleb(cursor));
        return;
    case CFA_DEF_CFA_OFFSET_SF:
        define_cfa_part(run, false, 0, factored(run, cursor_sleb(cursor)));
        return;
    default:
        run_extended(run, opcode);
    }
}

static bool run_program(struct run *run) {
    while (cursor_left(&run->cursor) > 0 && !run->failed && !run->cursor.failed)
        run_instruction(run);
    return !run->failed && !run->cursor.failed;
}

uint64_t unwind_cfi_run(struct cfi_machine *machine, const struct cfi_fde *fde, cfi_row *row,
                        void *context) {
    struct run run = {.machine = machine,
                      .cie = fde->cie,
                      .cursor = fde->program,
                      .pc = fde->start,
                      .end = fde->end,
                      .row = row,
                      .context = context};
    machine->state = fde->cie->initial;
    if (!run_program(&run))
        return run.pc;
    if (run.pc < run.end)
        row(context, run.pc, &machine->state);
    return run.end;
}

// ---- entries ----

// The augmentation string says what the augmentation data holds, in order. The letters that do not
// change how frames are walked are skipped with their data.
static bool read_augmentation(struct cfi_cie *cie, struct cursor *cursor, const char *letters) {
    if (*letters != 'z')
        return *letters == 0;
    cie->augmented = true;
    uint64_t size = cursor_uleb(cursor);
    struct cursor data = *cursor;
    if (!cursor_skip(cursor, size))
        return false;
    data.end = cursor->at;
    for (letters++; *letters && !data.failed; letters++) {
        switch (*letters) {
        case 'R':
            cie->encoding = cursor_u8(&data);
            break;
        case 'P':
            cursor_number(&data, cursor_u8(&data));
            break;
        case 'L':
            cursor_u8(&data);
            break;
        case 'S':
            cie->signal = true;
            break;
        case 'B':
        case 'G':
            break;
        default:
            return false;
        }
    }
    return !data.failed;
}

static bool parse_cie(struct cfi_machine *machine, struct cfi_cie *cie, struct cursor cursor) {
    uint8_t version = cursor_u8(&cursor);
    const char *letters = (const char *)cursor.at;
    if ((version != 1 && version != 3) || !memchr(letters, 0, cursor_left(&cursor)))
        return false;
    cursor_skip(&cursor, strlen(letters) + 1);
    cie->code_align = cursor_uleb(&cursor);
    cie->data_align = cursor_sleb(&cursor);
    uint64_t return_column = version == 1 ? cursor_u8(&cursor) : cursor_uleb(&cursor);
    if (cursor.failed || return_column != RETURN_ADDRESS ||
        !read_augmentation(cie, &cursor, letters))
        return false;
    struct run run = {.machine = machine, .cie = cie, .cursor = cursor};
    machine->work += cursor_left(&cursor);
    machine->state = (struct cfi_state){0};
    if (!run_program(&run))
        return false;
    cie->initial = machine->state;
    return true;
}

// Opens the entry at an address: its body after the length, and the CIE field's value.
static bool open_entry(const struct unwind_view *view, uint64_t address, struct cursor *body) {
    uint64_t offset = address - view->address;
    if (address < view->address || offset >= view->size)
        return false;
    *body = cursor_at(view, address, view->size - offset);
    uint64_t length = cursor_u32(body);
    if (length == UINT32_MAX)
        length = cursor_u64(body);
    if (body->failed || length < 4 || length > cursor_left(body))
        return false;
    body->end = body->at + length;
    return true;
}

static const struct cfi_cie *find_cie(struct cfi_machine *machine, const struct unwind_view *view,
                                      uint64_t address) {
    struct cfi_cie *cie = &machine->cies[(address >> 3) % CFI_CIE_CACHE];
    if (cie->address == address)
        return cie->usable ? cie : NULL;
    struct cursor body;
    *cie = (struct cfi_cie){.address = address};
    cie->usable =
        open_entry(view, address, &body) && cursor_u32(&body) == 0 && parse_cie(machine, cie, body);
    return cie->usable ? cie : NULL;
}

enum cfi_entry unwind_cfi_read_entry(struct cfi_machine *machine, const struct unwind_view *view,
                                     uint64_t address, struct cfi_fde *fde) {
    struct cursor body;
    fde->next = 0;
    if (!open_entry(view, address, &body)) {
        struct cursor length = cursor_at(view, address, 4);
        return cursor_u32(&length) == 0 ? CFI_ENTRY_END : CFI_ENTRY_BAD;
    }
    fde->next = view->address + (uint64_t)(body.end - view->bytes);
    machine->work += cursor_left(&body);
    uint64_t place = cursor_address(&body);
    uint32_t back = cursor_u32(&body);
    if (back == 0)
        return CFI_ENTRY_CIE;
    fde->cie = find_cie(machine, view, place - back);
    if (!fde->cie)
        return CFI_ENTRY_BAD;
    fde->start = cursor_pointer(&body, fde->cie->encoding, 0);
    uint64_t size = cursor_number(&body, fde->cie->encoding);
    if (fde->cie->augmented)
        cursor_skip(&body, cursor_uleb(&body));
    if (body.failed || __builtin_add_overflow(fde->start, size, &fde->end))
        return CFI_ENTRY_BAD;
    fde->program = body;
    return CFI_ENTRY_FDE;
}

#include "unwind/expression.h"

#include "unwind/cursor.h"

#define STACK_MAX 32
#define STEPS_MAX 1024

enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S,
    OP_CONST2U,
    OP_CONST2S,
    OP_CONST4U,
    OP_CONST4S,
    OP_CONST8U,
    OP_CONST8S,
    OP_CONSTU,
    OP_CONSTS,
    OP_DUP,
    OP_DROP,
    OP_OVER,
    OP_PICK,
    OP_SWAP,
    OP_ROT,
    OP_ABS = 0x19,
    OP_AND,
    OP_DIV,
    OP_MINUS,
    OP_MOD,
    OP_MUL,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_PLUS,
    OP_PLUS_UCONST,
    OP_SHL,
    OP_SHR,
    OP_SHRA,
    OP_XOR,
    OP_BRA,
    OP_EQ,
    OP_GE,
    OP_GT,
    OP_LE,
    OP_LT,
    OP_NE,
    OP_SKIP,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
};

struct machine {
    struct cursor cursor;
    const uint8_t *start;
    const struct unwind_registers *registers;
    const struct unwind_memory *memory;
    uint64_t stack[STACK_MAX];
    size_t depth;
    enum expression_status status;
};

static void push(struct machine *machine, uint64_t value) {
    if (machine->depth == STACK_MAX)
        machine->status = EXPRESSION_BAD;
    else
        machine->stack[machine->depth++] = value;
}

static uint64_t pop(struct machine *machine) {
    if (machine->depth == 0) {
        machine->status = EXPRESSION_BAD;
        return 0;
    }
    return machine->stack[--machine->depth];
}

static void push_register(struct machine *machine, uint64_t reg) {
    int64_t offset = cursor_sleb(&machine->cursor);
    if (reg >= UNWIND_REGISTERS)
        machine->status = EXPRESSION_BAD;
    else
        push(machine, machine->registers->value[reg] + (uint64_t)offset);
}

static void push_loaded(struct machine *machine, unsigned size) {
    uint64_t word = 0;
    if (size == 0 || size > 8)
        machine->status = EXPRESSION_BAD;
    else if (!memory_read(machine->memory, pop(machine), &word))
        machine->status = EXPRESSION_UNREADABLE;
    else
        push(machine, size == 8 ? word : word & ((UINT64_C(1) << size * 8) - 1));
}

static void push_picked(struct machine *machine, size_t distance) {
    if (distance >= machine->depth)
        machine->status = EXPRESSION_BAD;
    else
        push(machine, machine->stack[machine->depth - 1 - distance]);
}

static void branch(struct machine *machine, bool taken) {
    int16_t distance = (int16_t)cursor_u16(&machine->cursor);
    if (!taken || machine->cursor.failed)
        return;
    ptrdiff_t target = machine->cursor.at - machine->start + distance;
    if (target < 0 || target > machine->cursor.end - machine->start)
        machine->status = EXPRESSION_BAD;
    else
        machine->cursor.at = machine->start + target;
}

static void rotate(struct machine *machine) {
    uint64_t top = pop(machine), second = pop(machine), third = pop(machine);
    push(machine, top);
    push(machine, third);
    push(machine, second);
}

static void run_binary(struct machine *machine, uint8_t op) {
    uint64_t right = pop(machine), left = pop(machine), result = 0;
    int64_t a = (int64_t)left, b = (int64_t)right;
    switch (op) {
    case OP_AND:
        result = left & right;
        break;
    case OP_DIV:
        if (b == 0)
            machine->status = EXPRESSION_BAD;
        else
            result = b == -1 ? 0 - left : (uint64_t)(a / b);
        break;
    case OP_MINUS:
        result = left - right;
        break;
    case OP_MOD:
        if (right == 0)
            machine->status = EXPRESSION_BAD;
        else
            result = left % right;
        break;
    case OP_MUL:
        result = left * right;
        break;
    case OP_OR:
        result = left | right;
        break;
    case OP_PLUS:
        result = left + right;
        break;
    case OP_SHL:
        result = right < 64 ? left << right : 0;
        break;
    case OP_SHR:
        result = right < 64 ? left >> right : 0;
        break;
    case OP_SHRA:
        result = (uint64_t)(a >> (right < 64 ? right : 63));
        break;
    case OP_XOR:
        result = left ^ right;
        break;
    case OP_EQ:
        result = a == b;
        break;
    case OP_GE:
        result = a >= b;
        break;
    case OP_GT:
        result = a > b;
        break;
    case OP_LE:
        result = a <= b;
        break;
    case OP_LT:
        result = a < b;
        break;
    case OP_NE:
        result = a != b;
        break;
    default:
        machine->status = EXPRESSION_BAD;
    }
    push(machine, result);
}

static void run_constant(struct machine *machine, uint8_t op) {
    struct cursor *cursor = &machine->cursor;
    switch (op) {
    case OP_CONST1U:
        push(machine, cursor_u8(cursor));
        return;
    case OP_CONST1S:
        push(machine, (uint64_t)(int64_t)(int8_t)cursor_u8(cursor));
        return;
    case OP_CONST2U:
        push(machine, cursor_u16(cursor));
        return;
    case OP_CONST2S:
        push(machine, (uint64_t)(int64_t)(int16_t)cursor_u16(cursor));
        return;
    case OP_CONST4U:
        push(machine, cursor_u32(cursor));
        return;
    case OP_CONST4S:
        push(machine, (uint64_t)(int64_t)(int32_t)cursor_u32(cursor));
        return;
    case OP_CONSTU:
        push(machine, cursor_uleb(cursor));
        return;
    case OP_CONSTS:
        push(machine, (uint64_t)cursor_sleb(cursor));
        return;
    default:
        push(machine, cursor_u64(cursor));
    }
}

static void run_operation(struct machine *machine, uint8_t op) {
    uint64_t value;
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push(machine, op - OP_LIT0);
        return;
    }
    if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(machine, op - OP_BREG0);
        return;
    }
    if (op >= OP_CONST1U && op <= OP_CONSTS) {
        run_constant(machine, op);
        return;
    }
    switch (op) {
    case OP_ADDR:
        push(machine, cursor_u64(&machine->cursor));
        return;
    case OP_DEREF:
        push_loaded(machine, 8);
        return;
    case OP_DEREF_SIZE:
        push_loaded(machine, cursor_u8(&machine->cursor));
        return;
    case OP_BREGX:
        push_register(machine, cursor_uleb(&machine->cursor));
        return;
    case OP_DUP:
        push_picked(machine, 0);
        return;
    case OP_OVER:
        push_picked(machine, 1);
        return;
    case OP_PICK:
        push_picked(machine, cursor_u8(&machine->cursor));
        return;
    case OP_DROP:
        pop(machine);
        return;
    case OP_SWAP:
        value = pop(machine);
        push_picked(machine, 0);
        if (machine->depth >= 2)
            machine->stack[machine->depth - 2] = value;
        return;
    case OP_ROT:
        rotate(machine);
        return;
    case OP_ABS:
        value = pop(machine);
        push(machine, (int64_t)value < 0 ? 0 - value : value);
        return;
    case OP_NEG:
        push(machine, 0 - pop(machine));
        return;
    case OP_NOT:
        push(machine, ~pop(machine));
        return;
    case OP_PLUS_UCONST:
        push(machine, pop(machine) + cursor_uleb(&machine->cursor));
        return;
    case OP_BRA:
        branch(machine, pop(machine) != 0);
        return;
    case OP_SKIP:
        branch(machine, true);
        return;
    case OP_NOP:
        return;
    default:
        run_binary(machine, op);
    }
}

enum expression_status unwind_expression_evaluate(const uint8_t *bytes, size_t size,
                                                  const struct unwind_registers *registers,
                                                  const struct unwind_memory *memory,
                                                  const uint64_t *initial, uint64_t *result) {
    struct unwind_view view = {bytes, 0, size};
    struct machine machine = {.cursor = cursor_at(&view, 0, size),
                              .start = bytes,
                              .registers = registers,
                              .memory = memory};
    if (initial)
        push(&machine, *initial);
    for (unsigned steps = 0; cursor_left(&machine.cursor) > 0; steps++) {
        if (steps == STEPS_MAX)
            return EXPRESSION_BAD;
        run_operation(&machine, cursor_u8(&machine.cursor));
        if (machine.status != EXPRESSION_OK)
            return machine.status;
        if (machine.cursor.failed)
            return EXPRESSION_BAD;
    }
    *result = pop(&machine);
    return machine.status;
}

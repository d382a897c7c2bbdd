"""Values of which some bits are undefined, and what operations make of them.

A result's bit is undefined if it could be 0 or 1, depending on the undefined bits of the operands.
These are taken to be independent of each other. That is exact for one operation.
"""


class Value:
    """`undefined` has a 1 for each undefined bit; `bits` has the others, and 0 there."""

    def __init__(self, width, bits, undefined=0):
        mask = (1 << width) - 1
        self.width = width
        self.undefined = undefined & mask
        self.bits = bits & mask & ~self.undefined

    def can_be(self, at):
        """What the bit may be: a set of 0 and 1."""
        return (0, 1) if self.undefined >> at & 1 else (self.bits >> at & 1,)


def whole(width):
    return (1 << width) - 1


def bitwise(operation, a, b):
    ones_a, ones_b = a.bits | a.undefined, b.bits | b.undefined  # bits that can be 1
    zeros_a, zeros_b = ~a.bits, ~b.bits                          # bits that can be 0
    if operation == '&':
        can_be_one, can_be_zero = ones_a & ones_b, zeros_a | zeros_b
    elif operation == '|':
        can_be_one, can_be_zero = ones_a | ones_b, zeros_a & zeros_b
    else:
        can_be_one = ones_a & zeros_b | zeros_a & ones_b
        can_be_zero = ones_a & ones_b | zeros_a & zeros_b
    return Value(a.width, can_be_one, can_be_one & can_be_zero)


def add(a, b, carries=(0,), inverted=False):
    """The sum and the carries that are possible at its end. `inverted`: b's bits are negated."""
    bits = undefined = 0
    carries = set(carries)
    for at in range(a.width):
        totals = {x + (y ^ inverted) + carry for x in a.can_be(at) for y in b.can_be(at)
                  for carry in carries}
        if {0, 1} <= {total & 1 for total in totals}:
            undefined |= 1 << at
        else:
            bits |= (next(iter(totals)) & 1) << at
        carries = {total >> 1 for total in totals}
    return Value(a.width, bits, undefined), carries


def subtract(a, b):
    return add(a, b, (1,), True)[0]


def is_below(a, b):
    """a < b, unsigned: what it may be, a set of 0 and 1."""
    return {1 - carry for carry in add(a, b, (1,), True)[1]}


def is_equal(a, b):
    if (a.bits ^ b.bits) & ~a.undefined & ~b.undefined:
        return {0}
    return {0, 1} if a.undefined | b.undefined else {1}


def is_less(a, b):
    """The same for signed numbers."""
    sign = Value(a.width, 1 << (a.width - 1))
    return is_below(bitwise('^', a, sign), bitwise('^', b, sign))


def truth(width, possible):
    """A comparison's result as a number."""
    return Value(width, 1 in possible, len(possible) == 2)


def shift_left(a, by):
    return Value(a.width, a.bits << by, a.undefined << by)


def shift_right(a, by):
    return Value(a.width, a.bits >> by, a.undefined >> by)


def sign_extend(a, width):
    def widen(bits):
        return bits | (whole(width) & ~whole(a.width) if bits >> (a.width - 1) & 1 else 0)
    return Value(width, widen(a.bits), widen(a.undefined))


def shift_arithmetic(a, by):
    wide = sign_extend(a, 2 * a.width)
    return Value(a.width, wide.bits >> by, wide.undefined >> by)


def rotate(a, by):
    def turn(bits):
        return bits << by | bits >> (a.width - by)
    return Value(a.width, turn(a.bits), turn(a.undefined))


def swap_bytes(a):
    def turn(bits):
        return int.from_bytes(bits.to_bytes(a.width // 8, 'little'), 'big')
    return Value(a.width, turn(a.bits), turn(a.undefined))

"""Programs that compute with partly undefined values, and use them."""
import bits
from bits import Value
from scripts import Report, Source, HEAD

WIDTHS = (8, 16, 32, 64)
MEMORY = 32  # bytes of the block that values are stored to
VECTOR = 16  # bytes; the block holds two vectors
CONDITION = Report('UninitCondition', '')
ADDRESS = Report('UninitValue', '')
PARAMETER = Report('SyscallParam', '')


class Program:
    def __init__(self, source, random):
        self.source, self.random = source, random
        self.values = []  # (name, Value)
        self.memory = self.allocate()
        self.count = 0

    def allocate(self):
        old = self.random.randrange(1, MEMORY)
        call, defined = self.random.choice(((f'malloc({MEMORY})', 0), (f'calloc(1, {MEMORY})', MEMORY),
                                            (f'realloc(calloc(1, {old}), {MEMORY})', old)))
        self.source.add(f'    unsigned char *m = {call};')
        return [Value(8, 0, 0 if i < defined else 0xff) for i in range(MEMORY)]

    def number(self, width):
        """Numbers with long runs of equal bits are as likely as others."""
        if self.random.random() < .5:
            return self.random.getrandbits(width)
        low = self.random.randrange(width)
        run = bits.whole(self.random.randint(1, width)) << low & bits.whole(width)
        return run ^ (bits.whole(width) if self.random.random() < .5 else 0)

    def new(self, expression, value):
        """A statement that makes a value; its bits are checked at once."""
        name = f'v{self.count}'
        self.count += 1
        self.source.add(f'    volatile uint{value.width}_t {name} = {expression}; '
                        f'BITS({name}, {value.undefined:#x}ull);')
        self.values.append((name, value))

    def pick(self, width=None):
        fitting = [pair for pair in self.values if width in (None, pair[1].width)]
        return self.random.choice(fitting) if fitting else self.make(width)

    def make(self, width=None):
        width = width or self.random.choice(WIDTHS)
        kind = self.random.randrange(3)
        if kind == 0:
            number = self.number(width)
            self.new(f'(uint{width}_t){number:#x}ull', Value(width, number))
        elif kind == 1:
            self.new(f'*(volatile uint{width}_t *)raw', Value(width, 0, bits.whole(width)))
        else:
            mask, more = self.number(width), self.number(width)
            undefined = Value(width, 0, bits.whole(width))
            value = bits.bitwise('&', undefined, Value(width, mask))
            self.new(f'*(volatile uint{width}_t *)raw & {mask:#x}ull', value)
            name, value = self.values[-1]
            self.new(f'{name} ^ {more:#x}ull', bits.bitwise('^', value, Value(width, more)))
        return self.values[-1]

    # ---- operations ----

    def combine(self):
        a, x = self.pick()
        b, y = self.pick(x.width)
        operation = self.random.choice('&|^+-')
        value = (bits.add(x, y)[0] if operation == '+' else bits.subtract(x, y) if operation == '-'
                 else bits.bitwise(operation, x, y))
        self.new(f'{a} {operation} {b}', value)

    def change(self):
        a, x = self.pick()
        by = self.random.randrange(1, x.width)
        width = x.width
        wider = self.random.choice([w for w in WIDTHS if w >= width])
        narrower = self.random.choice([w for w in WIDTHS if w <= width])
        ways = [(f'~{a}', bits.bitwise('^', x, Value(width, bits.whole(width)))),
                (f'-{a}', bits.subtract(Value(width, 0), x)),
                (f'{a} << {by}', bits.shift_left(x, by)),
                (f'{a} >> {by}', bits.shift_right(x, by)),
                (f'(int{width}_t){a} >> {by}', bits.shift_arithmetic(x, by)),
                (f'(uint{wider}_t){a}', Value(wider, x.bits, x.undefined)),
                (f'(uint{wider}_t)(int{wider}_t)(int{width}_t){a}', bits.sign_extend(x, wider)),
                (f'(uint{narrower}_t){a}', Value(narrower, x.bits, x.undefined))]
        if width > 8:
            ways.append((f'__builtin_bswap{width}({a})', bits.swap_bytes(x)))
        self.new(*self.random.choice(ways))

    def turn(self):
        """One load: two of an undefined value would count as independent."""
        width = self.random.choice((32, 64))
        a, x = self.pick(width)
        by = self.random.randrange(1, width)
        self.source.add(f'    uint{width}_t t{self.count} = {a};')
        self.new(f't{self.count} << {by} | t{self.count} >> {width - by}', bits.rotate(x, by))

    def compare(self):
        width = self.random.choice((32, 64))
        a, x = self.pick(width)
        b, y = self.pick(width)
        condition, possible = self.comparison(a, x, b, y)
        self.new(condition, bits.truth(32, possible))

    def comparison(self, a, x, b, y):
        signed = f'(int{x.width}_t)'
        return self.random.choice((
            (f'{a} == {b}', bits.is_equal(x, y)),
            (f'{a} < {b}', bits.is_below(x, y)),
            (f'{a} > {b}', bits.is_below(y, x)),
            (f'{signed}{a} < {signed}{b}', bits.is_less(x, y)),
            (f'{signed}{a} > {signed}{b}', bits.is_less(y, x))))

    def store(self):
        a, x = self.pick()
        at = self.random.randrange(MEMORY - x.width // 8 + 1)
        for i in range(x.width // 8):
            self.memory[at + i] = Value(8, x.bits >> 8 * i, x.undefined >> 8 * i)
        self.source.add(f'    *(volatile uint{x.width}_t *)(m + {at}) = {a};')

    def load(self):
        width = self.random.choice(WIDTHS)
        at = self.random.randrange(MEMORY - width // 8 + 1)
        self.new(f'*(volatile uint{width}_t *)(m + {at})', self.word(at, width))

    def copy(self):
        size = self.random.randint(1, MEMORY // 2)
        to, origin = (self.random.randrange(MEMORY - size + 1) for _ in range(2))
        self.memory[to:to + size] = self.memory[origin:origin + size]
        self.source.add(f'    memmove(m + {to}, m + {origin}, {size});')

    def field(self):
        """A bit field of a word in memory."""
        first, size = self.random.choice(((0, 3), (3, 10), (13, 19)))
        name = {0: 'a', 3: 'b', 13: 'c'}[first]
        at = 4 * self.random.randrange(MEMORY // 4)
        a, x = self.pick(32)
        old, mask = self.word(at, 32), bits.whole(size) << first
        new = Value(32, old.bits & ~mask | x.bits << first & mask,
                    old.undefined & ~mask | x.undefined << first & mask)
        self.memory[at:at + 4] = [Value(8, new.bits >> 8 * i, new.undefined >> 8 * i)
                                  for i in range(4)]
        self.source.add(f'    ((volatile struct fields *)(m + {at}))->{name} = {a};')
        value = Value(32, new.bits >> first & bits.whole(size),
                      new.undefined >> first & bits.whole(size))
        self.new(f'((volatile struct fields *)(m + {at}))->{name}', value)

    def word(self, at, width):
        parts = self.memory[at:at + width // 8]
        return Value(width, sum(part.bits << 8 * i for i, part in enumerate(parts)),
                     sum(part.undefined << 8 * i for i, part in enumerate(parts)))

    def vector(self):
        """An operation on both vectors of the block, by element."""
        width = self.random.choice(WIDTHS)
        operation = self.random.choice(('&', '|', '^', '+', '-', '=='))
        to = self.random.choice((0, VECTOR))
        result = []
        for i in range(0, VECTOR, width // 8):
            x, y = self.word(i, width), self.word(VECTOR + i, width)
            if operation == '==':
                possible = bits.is_equal(x, y)
                value = Value(width, bits.whole(width) * (1 in possible),
                              bits.whole(width) * (len(possible) == 2))
            else:
                value = (bits.add(x, y)[0] if operation == '+' else
                         bits.subtract(x, y) if operation == '-' else bits.bitwise(operation, x, y))
            result += [Value(8, value.bits >> 8 * j, value.undefined >> 8 * j)
                       for j in range(width // 8)]
        self.memory[to:to + VECTOR] = result
        kind = f'volatile vector{width}'
        checks = ''.join(f' BITS(*(uint64_t *)(m + {at}), {self.word(at, 64).undefined:#x}ull);'
                         for at in (to, to + 8))
        self.source.add(f'    *({kind} *)(m + {to}) = (vector{width})'
                        f'(*({kind} *)m {operation} *({kind} *)(m + {VECTOR}));{checks}')

    # ---- uses ----

    def branch(self):
        width = self.random.choice((32, 64))
        a, x = self.pick(width)
        if self.random.random() < .3:
            mask = self.number(width)
            possible = bits.is_equal(bits.bitwise('&', x, Value(width, mask)), Value(width, 0))
            condition = f'{a} & {mask:#x}ull'
        else:
            b, y = self.pick(width)
            condition, possible = self.comparison(a, x, b, y)
        self.source.add(f'    if ({condition}) taken();', *[CONDITION] * (len(possible) == 2))

    def index(self):
        a, x = self.pick(8)
        self.source.add(f'    sink = table[{a}];', *[ADDRESS] * (x.undefined != 0))

    def write(self):
        size = self.random.randint(1, MEMORY)
        at = self.random.randrange(MEMORY - size + 1)
        is_bad = any(part.undefined for part in self.memory[at:at + size])
        self.source.add(f'    sink = write(null, m + {at}, {size});', *[PARAMETER] * is_bad)


STEPS = [(Program.make, 3), (Program.combine, 8), (Program.change, 6), (Program.turn, 2),
         (Program.compare, 2), (Program.store, 4), (Program.load, 3), (Program.copy, 1),
         (Program.field, 2), (Program.vector, 4),
         (Program.branch, 4), (Program.index, 2), (Program.write, 1)]


def generate(random, programs):
    source = Source('values.c', HEAD)
    steps, weights = zip(*STEPS)
    for _ in range(programs):
        source.begin()
        program = Program(source, random)
        program.make()
        for step in random.choices(steps, weights, k=random.randint(5, 25)):
            step(program)
        source.add('    free(m);')
        source.end()
    return source

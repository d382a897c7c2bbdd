"""Programs that allocate, access, free and lose blocks, some of it wrongly."""
from scripts import Report, Source, HEAD

ALLOCATORS = {'malloc': ('malloc({})', 'free({})'), 'calloc': ('calloc(1, {})', 'free({})'),
              'new': ('_Znwm({})', '_ZdlPv({})'), 'new[]': ('_Znam({})', '_ZdaPv({})')}
RELEASERS = ('free({})', '_ZdlPv({})', '_ZdaPv({})')


class Block:
    def __init__(self, name, size, line, allocator):
        self.name, self.size, self.line, self.allocator = name, size, line, allocator
        self.is_live = True
        self.root = None  # what is left of it at the end

    def place(self, offset):
        """How a report describes the address."""
        state = 'alloc' if self.is_live else 'free'
        if offset < 0:
            where = f'{-offset} bytes before'
        elif offset >= self.size:
            where = f'{offset - self.size} bytes after'
        else:
            where = f'{offset} bytes inside'
        return f"{where} a block of size {self.size} {state}'d"


class Program:
    def __init__(self, source, random):
        self.source, self.random = source, random
        self.blocks = []

    def pick(self, is_live):
        fitting = [block for block in self.blocks if block.is_live == is_live]
        return self.random.choice(fitting) if fitting else None

    def allocate(self):
        name = f'p{len(self.blocks)}'
        size = self.random.choice((1, 2, 3, 7, 8, 10, 16, 24, 31, 100, self.random.randint(1, 600)))
        allocator = self.random.choice(list(ALLOCATORS))
        call = ALLOCATORS[allocator][0].format(size)
        line = self.source.add(f'    char *volatile {name} = {call};')
        self.blocks.append(Block(name, size, line, allocator))

    def resize(self):
        old = self.pick(True)
        if not old or old.allocator not in ('malloc', 'calloc'):
            return
        name = f'p{len(self.blocks)}'
        size = self.random.randint(1, 300)
        line = self.source.add(f'    char *volatile {name} = realloc({old.name}, {size});')
        old.is_live = False
        self.blocks.append(Block(name, size, line, 'malloc'))

    # ---- accesses ----

    def access(self, block, offset, width):
        is_write = self.random.random() < .5
        is_bad = not block.is_live or offset < 0 or offset + width > block.size
        # An aligned word may end behind a block: reading it cannot fault. Blocks are aligned to 16.
        if (self.source.permits_partial_loads and block.is_live and not is_write and width >= 4 and
                offset % width == 0 and 0 <= offset < block.size):
            is_bad = False
        kind = 'InvalidWrite' if is_write else 'InvalidRead'
        at = f'*(volatile uint{8 * width}_t *)({block.name} + {offset})'
        reports = [Report(kind, f'size {width}; {block.place(offset)}')] if is_bad else []
        value = 0x5a5a5a5a5a5a5a5a >> (64 - 8 * width)
        self.source.add(f'    {at} = {value:#x};' if is_write else f'    sink = {at};', *reports)

    def access_inside(self):
        block, width = self.pick(True), self.random.choice((1, 2, 4, 8))
        if block and block.size >= width:
            self.access(block, self.random.randint(0, block.size - width), width)

    def access_outside(self):
        block, width = self.pick(True), self.random.choice((1, 2, 4, 8))
        if not block:
            return
        if self.random.random() < .5:
            self.access(block, -self.random.randint(1, 8), width)
        else:
            self.access(block, block.size - min(width - 1, block.size) + self.random.randint(0, 7),
                        width)

    def access_freed(self):
        block, width = self.pick(False), self.random.choice((1, 2, 4, 8))
        if block and block.size >= width:
            self.access(block, self.random.randint(0, block.size - width), width)

    # ---- the ends of blocks ----

    def free(self, block=None):
        block = block or self.pick(True)
        if not block:
            return
        call = ALLOCATORS[block.allocator][1]
        self.source.add('    ' + call.format(block.name) + ';')
        block.is_live = False

    def free_otherwise(self):
        block = self.pick(True)
        if not block:
            return
        right = ALLOCATORS[block.allocator][1]
        wrong = self.random.choice([call for call in RELEASERS if call != right])
        self.source.add('    ' + wrong.format(block.name) + ';',
                        Report('MismatchedFree', block.place(0)))
        block.is_live = False

    def free_twice(self):
        block = self.pick(False)
        if block:
            self.source.add('    ' + self.random.choice(RELEASERS).format(block.name) + ';',
                            Report('InvalidFree', block.place(0)))

    def free_inside(self):
        block = self.pick(True)
        if block and block.size > 1:
            offset = self.random.randint(1, block.size - 1)
            self.source.add(f'    free({block.name} + {offset});',
                            Report('InvalidFree', block.place(offset)))

    def finish(self):
        """Each block that is left is freed, kept, or lost in one of the ways that there are."""
        holders = []  # blocks with room for a pointer at their start
        for block in [block for block in self.blocks if block.is_live]:
            ways = ['free', 'lose', 'keep'] + ['keep inside'] * (block.size > 1) + \
                   ['put into another'] * (len(holders) > 0)
            way = self.random.choice(ways)
            if way == 'free':
                self.free(block)
                continue
            if way == 'lose':
                block.root = 'Leak_DefinitelyLost'
            elif way == 'keep':
                block.root = 'Leak_StillReachable'
                self.source.add(f'    keep[__LINE__] = {block.name};')
            elif way == 'keep inside':
                block.root = 'Leak_PossiblyLost'
                offset = self.random.randint(1, min(7, block.size - 1))
                self.source.add(f'    keep[__LINE__] = {block.name} + {offset};')
            else:
                holder = holders.pop(self.random.randrange(len(holders)))
                # What only a possibly lost block refers to is possibly lost as well.
                is_lost = holder.root in ('Leak_DefinitelyLost', 'Leak_IndirectlyLost')
                block.root = 'Leak_IndirectlyLost' if is_lost else holder.root
                self.source.add(f'    *(void *volatile *){holder.name} = {block.name};')
            if block.size >= 8:
                holders.append(block)
            self.source.leaks[block.line] = block.root
        for block in self.blocks:
            self.source.add(f'    {block.name} = 0;')


STEPS = [(Program.allocate, 6), (Program.resize, 1), (Program.access_inside, 8),
         (Program.access_outside, 4), (Program.access_freed, 2), (Program.free, 3),
         (Program.free_otherwise, 1), (Program.free_twice, 1), (Program.free_inside, 1)]


def generate(random, programs):
    source = Source('blocks.c', HEAD)
    source.permits_partial_loads = random.random() < .5
    source.options.append('--partial-loads-ok=' + ('yes' if source.permits_partial_loads else 'no'))
    source.leaks[source.line_with('raw = malloc')] = 'Leak_StillReachable'
    steps, weights = zip(*STEPS)
    for _ in range(programs):
        source.begin()
        program = Program(source, random)
        for step in random.choices(steps, weights, k=random.randint(3, 20)):
            step(program)
        program.finish()
        source.end()
    return source

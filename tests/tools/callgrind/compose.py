"""Programs made up at random, the same one for the same number.

Functions that call each other directly, through tables and pointers and as their last act; that
recurse, loop, switch, sort with a callback, raise signals, leave by longjmp or, in C++, throw and
catch. Each call takes from a supply that ends, so that every program does.
"""
import random

HEAD = '''#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))
typedef uint64_t function(uint64_t, uint64_t);

static int supply;
static jmp_buf place;
static volatile int in_handler;
static volatile uint64_t sum;

__attribute__((unused)) static APART int compare(const void *left, const void *right) {
    int a = *(const int *)left, b = *(const int *)right;
    return a < b ? -1 : a > b;
}
'''
SORT = '''    {
        int values[] = {5, 3, 9, (int)a & 15, 1, 7};
        qsort(values, 6, sizeof *values, compare);
        b += (uint64_t)values[2];
    }
'''
FRAME = '''    {
        volatile uint64_t values[%d];
        for (unsigned i = 0; i < sizeof values / 8; i++)
            values[i] = a * i + b;
        b += values[a %% (sizeof values / 8)];
    }
'''


class Composer:
    def __init__(self, number, throws):
        self.random = random.Random(number)
        self.count = self.random.randint(8, 20)
        self.throws = throws

    def value(self, depth=0):
        if depth == 2 or self.random.random() < 0.4:
            return self.random.choice(['a', 'b', '(a ^ b)', '(a + b)', '(a >> 3)', '(b * 7)'])
        return f'({self.value(depth + 1)} {self.random.choice("+^*-")} {self.random.randint(1, 99)})'

    def call(self):
        callee = self.random.choice([f'f{self.random.randrange(self.count)}'] * 4 +
                                    [f'table[{self.value()} & 7]', 'moving'])
        return f'{callee}({self.value()}, {self.value()})'

    def statement(self):
        kind = self.random.randrange(13)
        if kind < 3:
            return f'    b += {self.call()};\n'
        if kind == 3:
            return f'    for (unsigned i = 0; i < a % {self.random.randint(2, 5)}; i++)\n' \
                   f'        b += {self.call()};\n'
        if kind == 4:
            return f'    if ({self.value()} & {self.random.choice([1, 2, 4])})\n' \
                   f'        b ^= {self.call()};\n    else\n        a += {self.call()};\n'
        if kind == 5:
            sides = [self.random.choice([self.call(), self.value()]) for _ in range(8)]
            cases = ''.join(f'    case {i}:\n        b += {side};\n        break;\n'
                            for i, side in enumerate(sides))
            return f'    switch (a % 9) {{\n{cases}    default:\n        b++;\n    }}\n'
        if kind == 6:
            return FRAME % self.random.randint(3, 30)
        if kind == 7:
            return SORT
        if kind == 8:
            return '    if (!in_handler && a % 7 == 0)\n        raise(SIGUSR1);\n'
        if kind == 9:
            return f'    moving = table[{self.value()} & 7];\n'
        if kind == 10:
            leave = 'throw (int)a' if self.throws else 'longjmp(place, 1)'
            return f'    if (!in_handler && a % 13 == 5)\n        {leave};\n'
        if kind == 11 and self.throws:
            return f'    try {{\n        b += {self.call()};\n    }} catch (int thrown) {{\n' \
                   '        b += thrown;\n    }\n'
        return f'    if (a > 1000 && b > 77)\n        b += {self.call()};\n'

    def end(self):
        return self.random.choice([f'{self.call()}', 'a + b', f'a & 1 ? {self.call()} : {self.call()}',
                                   f'b + {self.call()}'])

    def program(self):
        names = [f'f{i}' for i in range(self.count)]
        linkage = {name: 'static ' if self.random.random() < 0.7 else '' for name in names}
        parts = [HEAD]
        parts += [f'{linkage[name]}APART function {name};\n' for name in names]
        parts.append('static function *const table[] = {' +
                     ', '.join(self.random.choice(names) for _ in range(8)) + '};\n')
        parts.append('static function *volatile moving = f0;\n')
        parts.append('static void handle(int number) {\n    if (in_handler)\n        return;\n'
                     f'    in_handler = 1;\n    sum += {self.random.choice(names)}((uint64_t)number, 3);\n'
                     '    in_handler = 0;\n}\n')
        for name in names:
            body = ''.join(self.statement() for _ in range(self.random.randint(1, 5)))
            parts.append(f'{linkage[name]}APART uint64_t {name}(uint64_t a, uint64_t b) {{\n'
                         f'    if (--supply < 0)\n        return a;\n{body}    return {self.end()};\n}}\n')
        parts.append(f'static function *const all[] = {{{", ".join(names)}}};\n')
        turn = f'sum += all[turns % {self.count}]((uint64_t)turns, (uint64_t)turns * 3);'
        if self.throws:
            turn = f'try {{\n            {turn}\n        }} catch (int thrown) {{\n' \
                   '            sum += thrown;\n        }'
        parts.append('int main(void) {\n    volatile int turns = 0;\n    signal(SIGUSR1, handle);\n'
                     '    setjmp(place);\n    while (turns < 40) {\n        turns = turns + 1;\n'
                     f'        supply = 1000;\n        in_handler = 0;\n        {turn}\n    }}\n'
                     '    printf("%llu\\n", (unsigned long long)sum);\n    return 0;\n}\n')
        return '\n'.join(parts)

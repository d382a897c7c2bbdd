#!/usr/bin/env python3
"""Writes a C program with one function of about 200,000 instructions, branches included."""

import random

random.seed(7)
print("#include <stdint.h>\n#include <stdio.h>\n")
print("static uint64_t huge(uint64_t a, uint64_t b, uint64_t c, volatile uint64_t *m)\n{")
STATEMENTS = [
    "a += b * {n};",
    "b ^= a >> {s};",
    "c = c * {n} + a;",
    "m[{i}] += c;",
    "a ^= m[{i}];",
    "if (a & {n}) b += {n}; else c -= {n};",
    "b = (b << {s}) | (b >> (64 - {s}));",
    "if (c > b) c ^= a;",
]
for _ in range(45000):
    print("    " + random.choice(STATEMENTS).format(
        n=random.randrange(1, 1 << 30), s=random.randrange(1, 63), i=random.randrange(16)))
print("    return a ^ b ^ c;\n}\n")
print("int main(void)\n{\n    static volatile uint64_t memory[16];\n    uint64_t h = 1;")
print("    for (uint64_t i = 0; i < 5; i++)\n        h = huge(h, i, h + i, memory);")
print('    printf("%016llx\\n", (unsigned long long)h);\n    return 0;\n}')

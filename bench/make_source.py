#!/usr/bin/env python3
"""Writes a C file for a compiler to chew on: loops, switches, structs, floating point."""

import random
import sys

random.seed(11)
print("#include <stddef.h>\nstruct point { int x, y; double weight; struct point *next; };")
for f in range(int(sys.argv[1])):
    print(f"static int helper{f}(struct point *p, int n)\n{{\n    int total = {f};")
    for k in range(12):
        a, b = random.randrange(1, 999), random.randrange(1, 31)
        print(random.choice([
            f"    for (int i = 0; i < n; i++) total += (p[i].x * {a}) >> {b % 8};",
            f"    switch (n % 4) {{ case 0: total ^= {a}; break; case 1: total += {b}; break; "
            f"default: total -= p->y; }}",
            f"    while (p && p->weight > {a}.5) {{ total += p->y; p = p->next; if (!p) return total; }}",
            f"    if (p->x > {a} && total % {b + 1} == 0) total = total * {b} + p->y;",
            f"    p->weight = p->weight * 0.{a} + total / {b}.0;",
        ]))
    print("    return total;\n}")
    print(f"int entry{f}(struct point *p, int n) {{ return helper{f}(p, n) + {f}; }}")

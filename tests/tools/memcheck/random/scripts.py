"""Sources of many small programs, and the reports that memcheck owes for them.

A program is a function, and a statement is a line. Whatever generates programs knows for each
statement whether memcheck must report it, and how.
"""
import collections

# `kind` as in the XML; `detail`: size of the access and place of the address, where they are known
Report = collections.namedtuple('Report', 'kind detail')


class Source:
    """A C file. Lines are added in order; each may owe reports."""

    def __init__(self, name, head):
        self.name = name
        self.lines = head.strip('\n').split('\n')
        self.expected = {}  # line: [Report]
        self.leaks = {}     # line: kind
        self.options = []   # of memcheck
        self.programs = 0

    def line_with(self, part):
        return next(i for i, line in enumerate(self.lines, 1) if part in line)

    def add(self, text, *reports):
        self.lines.append(text)
        if reports:
            self.expected[len(self.lines)] = list(reports)
        return len(self.lines)

    def begin(self):
        self.add(f'static void program_{self.programs}(void) {{')
        self.programs += 1

    def end(self):
        self.add('}')

    def text(self):
        calls = [f'    program_{i}();' for i in range(self.programs)]
        return '\n'.join([*self.lines, 'int main(void) {', '    prepare();', *calls, '    return wrong;',
                          '}', ''])


HEAD = r'''
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>
#include <valgrind/memcheck.h>
struct fields { unsigned a : 3, b : 10, c : 19; };
typedef uint8_t vector8 __attribute__((vector_size(16)));
typedef uint16_t vector16 __attribute__((vector_size(16)));
typedef uint32_t vector32 __attribute__((vector_size(16)));
typedef uint64_t vector64 __attribute__((vector_size(16)));
void *_Znwm(size_t), *_Znam(size_t);
void _ZdlPv(void *), _ZdaPv(void *);
static int wrong, null;
static volatile uint64_t sink;
static void *volatile raw;
static void *volatile keep[100000];
static volatile unsigned char table[256];
__attribute__((noinline)) static void taken(void) { sink++; }
__attribute__((noinline)) static void check_bits(int line, void *at, size_t size, uint64_t wanted) {
    uint64_t got = 0;
    if (VALGRIND_GET_VBITS(at, &got, size) != 1 || got != wanted) {
        printf("line %d: undefined bits are %lx, not %lx\n", line, got, wanted);
        wrong = 1;
    }
}
#define BITS(v, wanted) check_bits(__LINE__, (void *)&v, sizeof v, wanted)
static void prepare(void) { raw = malloc(64); null = open("/dev/null", O_WRONLY); }
'''

"""The programs: each way to reach each kind of error, with contexts and compilers in turn.

Contexts and compilers rotate against kinds and ways, so that each of them meets each other one
without the whole product. A program is a corpus.Case whose source is written into a folder.
"""
import os
import re

import corpus
import ways

HEADERS = """#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/memcheck.h>
#include <wchar.h>
"""
CXX_HEADERS = """#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
"""
# What a program may name, in order: (name, what it needs). Only what it names is in its source.
PARTS = [
    ('fine', 'static char fine_text[256] = "some fine text";\nstatic char *volatile fine_place = fine_text;\n#define fine fine_place\n'),
    ('here', 'static char here_text[256] = "target";\nstatic char *volatile here_place = here_text;\n#define here here_place\n'),
    ('kept', 'char *kept;\n'),
    ('one', 'static volatile long one = 1;\n'),
    ('null', 'static int null;\n__attribute__((constructor(101))) static void open_null(void) { null = open("/dev/null", O_RDWR); }\n'),
    ('zero', 'static int zero;\n__attribute__((constructor(101))) static void open_zero(void) { zero = open("/dev/zero", O_RDONLY); }\n'),
    ('file', 'static FILE *file;\n__attribute__((constructor(101))) static void open_file(void) { file = fopen("/dev/null", "w"); }\n'),
    ('zeros', 'static FILE *zeros;\n__attribute__((constructor(101))) static void open_zeros(void) { zeros = fopen("/dev/zero", "r"); }\n'),
    ('ends', 'static int ends[2];\n__attribute__((constructor(101))) static void pair(void) { socketpair(AF_UNIX, SOCK_DGRAM, 0, ends); }\n'),
    ('same', '__attribute__((noinline)) static long same(long v) { __asm__ volatile("" : "+r"(v)); return v; }\n'),
    ('other', '__attribute__((noinline)) static long other(long v) { __asm__ volatile("" : "+r"(v)); return v + 1; }\n'),
    ('compare', 'static int compare(const void *a, const void *b) { return *(const int *)a > *(const int *)b; }\n'),
    ('aligned', '__attribute__((noinline)) static void *aligned(size_t n) { void *b = NULL; if (posix_memalign(&b, 64, n)) return NULL; return b; }\n'),
    ('printed', '__attribute__((noinline)) static char *printed(void) { char *b; return asprintf(&b, "%s and %d", "text", 7) < 0 ? NULL : b; }\n'),
    ('line_read', '__attribute__((noinline)) static char *line_read(void) { char text[] = "a line\\n", *b = NULL; size_t n = 0; '
                  'FILE *in = fmemopen(text, 7, "r"); if (getline(&b, &n, in) < 0) return NULL; fclose(in); return b; }\n'),
    ('hide', '__attribute__((noinline)) static void *hide(void *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }\n'),
    ('forget', '__attribute__((noinline)) static void forget(void) {\n    char dead[8192];\n    memset(dead, 0, sizeof dead);\n'
               '    __asm__ volatile("" : : "r"(dead) : "memory", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15");\n}\n'),
    ('Node', 'struct Node { Node *next; explicit Node(Node *n) : next(n) {} };\n'),
    ('Base', 'struct Base { virtual int get() { return 1; } virtual ~Base() {} };\nstruct Derived : Base { int get() override { return 2; } };\n'),
]
# `act(p)` is called in each of these.
CONTEXTS = {
    'main': 'int main(void) { start(); return 0; }\n',
    'thread': 'static void *run(void *unused) { (void)unused; start(); return NULL; }\n'
              'int main(void) {\n    pthread_t thread;\n    pthread_create(&thread, NULL, run, NULL);\n'
              '    pthread_join(thread, NULL);\n    return 0;\n}\n',
    'handler': 'static void handle(int number) { (void)number; start(); }\n'
               'int main(void) { signal(SIGUSR1, handle); raise(SIGUSR1); return 0; }\n',
    'atexit': 'int main(void) { atexit(start); return 0; }\n',
    'constructor': '__attribute__((constructor)) static void early(void) { start(); }\nint main(void) { return 0; }\n',
    'child': 'int main(void) {\n    int status;\n    if (!fork()) {\n        start();\n        _exit(0);\n    }\n    wait(&status);\n    return 0;\n}\n',
}
PLACES = {
    'after': 'char *b = (char *)malloc(40); memset(b, \'a\', 40); act(b + 40, 8); free(b);',
    'before': 'char *b = (char *)malloc(40); memset(b, \'a\', 40); act(b - 16, 8); free(b);',
    'across': 'char *b = (char *)malloc(40); memset(b, \'a\', 40); act(b + 39, 8); free(b);',
    'freed': 'char *b = (char *)malloc(400); memset(b, 0, 400); strcpy(b + 200, "some text"); free(b); act(b + 200, 8);',
    'grown': 'char *b = (char *)malloc(400); memset(b, 0, 400); strcpy(b + 200, "some text"); '
             'char *c = (char *)realloc(b, 900000); act(b + 200, 8); free(c);',
    'low': 'act((char *)0x10, 8);',
}
UNDEFINED = {
    'heap': 'char *b = (char *)malloc(64); act(b + 8, 8); free(b);',
    'stack': 'char b[64]; hide(b); act(b + 8, 8);',
    'copied': 'char *b = (char *)malloc(64), c[64]; memcpy(c, b, 64); free(b); hide(c); act(c + 8, 8);',
    'regrown': 'char *b = (char *)calloc(1, 8); b = (char *)realloc(b, 64); act(b + 16, 8); free(b);',
}
COMPILERS = [('gcc', ['-O0']), ('clang', ['-O0']), ('g++', ['-O0']), ('gcc', ['-O2', '-fno-builtin']),
             ('clang', ['-O1', '-fno-builtin'])]
MAIN_FIRST = list(CONTEXTS)


def source_of(act, start, context, headers=HEADERS):
    """One program: act(p, n) is the way, start() brings about the place."""
    text = act + start
    parts, needed = [], True
    while needed:
        needed = [part for part in PARTS if part not in parts and re.search(rf'\b{part[0]}\b', text)]
        parts += needed
        text += ''.join(code for _, code in needed)
    body = ''.join(code for part, code in PARTS if (part, code) in parts)
    action = f'__attribute__((noinline)) static void act(char *p, long n) {{\n    (void)p;\n    (void)n;\n    {act} // bug\n}}\n'
    return (f'{headers}\nstatic volatile long sink;\n{body}\n{action}\n'
            f'static void start(void) {{\n    {start}\n}}\n\n{CONTEXTS[context]}')


class Maker:
    def __init__(self, folder):
        self.folder, self.found = folder, {}

    def add(self, name, text, compiler, flags, end, options=()):
        path = os.path.join(self.folder, name + end)
        os.makedirs(self.folder, exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
        case = corpus.Case(name, path, [compiler, *flags] if compiler in ('gcc', 'clang') else flags)
        case.options += options
        self.found[name] = case

    def add_c(self, group, kind, way, act, start, turn):
        """turn: which context and which compiler it gets."""
        context = MAIN_FIRST[turn % len(MAIN_FIRST)]
        compiler, flags = COMPILERS[turn % len(COMPILERS)]
        name = f'{group}_{kind}_{way}_{context}'
        is_cxx = compiler == 'g++'
        options = ['--track-origins=yes'] if group == 'undefined' and turn % 2 else []
        self.add(name, source_of(act, start, context), 'gcc' if is_cxx else compiler,
                 ['-mavx2', '-mmovbe', *flags], '.cc' if is_cxx else '.c', options)

    def product(self, group, kinds, all_ways):
        """kinds: {name: code of start()}, all_ways: {name: code of act()}."""
        for number, (way, act) in enumerate(all_ways.items()):
            for offset, (kind, start) in enumerate(kinds.items()):
                self.add_c(group, kind, way, act, start, number + offset)


def chosen(table, *names):
    return {name: table[name] for name in names}


def rust_source(way, in_thread):
    call = 'std::thread::spawn(|| unsafe { act() }).join().unwrap();' if in_thread else 'unsafe { act() };'
    return f"""extern "C" {{ fn malloc(n: usize) -> *mut u8; fn free(p: *mut u8); }}
#[inline(never)] fn hide<T>(p: T) -> T {{ std::hint::black_box(p) }}
#[inline(never)] fn sink(v: u8) {{ std::hint::black_box(v); }}
#[inline(never)] fn forget() {{ std::hint::black_box([0u8; 8192]); }}
#[inline(never)] unsafe fn act() {{
    {way} // bug
}}
fn main() {{ {call} }}
"""


def all_programs(folder):
    """{name: Case}; the sources are written into the folder."""
    make = Maker(folder)
    reads = {**ways.READING_INSTRUCTIONS, **ways.CHANGING_INSTRUCTIONS, **ways.READING_FUNCTIONS, **ways.READING_CALLS}
    writes = {**ways.WRITING_INSTRUCTIONS, **ways.WRITING_FUNCTIONS, **ways.WRITING_CALLS}
    make.product('read', chosen(PLACES, 'after', 'across', 'freed'), reads)
    make.product('write', chosen(PLACES, 'after', 'before', 'freed'), writes)
    make.product('string', chosen(PLACES, 'freed', 'grown'), ways.READING_STRINGS)
    make.product('low', chosen(PLACES, 'low'), {**chosen(reads, 'mov_8', 'movups', 'memcpy_from', 'write', 'inc'),
                                                **chosen(writes, 'store_4', 'memset', 'read', 'fst', 'stos')})
    make.product('undefined', UNDEFINED, ways.UNDEFINED_WAYS)
    for group, table in (('free', ways.BAD_FREES), ('overlap', ways.OVERLAPS)):
        for number, (way, act) in enumerate(table.items()):
            for turn in (number, number + 1, number + 2):
                make.add_c(group, 'in', way, act, 'act(NULL, 0);', turn)
    for number, (way, get) in enumerate(ways.LEAKED_BY.items()):
        for offset, (kind, act) in enumerate(ways.LEAK_KINDS.items()):
            make.add_c('leak', kind, way, act.replace('GET', get), 'act(NULL, 0); forget();', number + offset)
    for number, (way, act) in enumerate(ways.CXX_HEAP.items()):
        for turn in (number, number + 3):
            context = MAIN_FIRST[turn % len(MAIN_FIRST)]
            make.add(f'cxx_{way}_{context}', source_of(act, 'act(nullptr, 0);', context, CXX_HEADERS), '',
                     ['-O0', '-fno-builtin'], '.cc')
    for way, act in ways.RUST_WAYS.items():
        for in_thread in (False, True):
            make.add(f'rust_{way}_{"thread" if in_thread else "main"}', rust_source(act, in_thread), '', [], '.rs')
    return make.found

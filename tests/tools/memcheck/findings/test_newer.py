"""Errors that Valgrind reports since 3.21; the Valgrind that is installed may not know them."""
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import suite
from script import HERE, plain
from suite import contains, equal, golden, run, test, write


def build_newer():
    path = os.path.join(suite.FOLDER, 'newer')
    if not os.path.exists(path):
        subprocess.run(['g++', '-g', '-O0', '-w', '-std=c++17', '-fno-builtin', '-o', path,
                        os.path.join(HERE, 'targets/newer.cc')], check=True)
    return path


def headlines(log):
    """Of each error its first line, its place, and the line of the program that made it."""
    lines = []
    for line in plain(log).splitlines():
        own = re.search(r'(newer\.cc:\d+)', line)
        if re.match(r'[A-Za-z].*(size|alignment|Unsafe)', line) and 'ERROR SUMMARY' not in line:
            lines += [line]
        elif re.match(r' Address', line):
            lines += [re.sub('0x[0-9a-f]+', 'A', line)]
        elif own:
            lines += ['  ' + own.group(1)]
    return '\n'.join(lines) + '\n'


@test
def errors_of_newer_versions():
    status, _, log = run([suite.QUERN, '--error-exitcode=9', build_newer()])
    equal(status, 9, 'exit status')
    golden(headlines(log))


@test
def functions_of_c11_and_c23():
    """The C library here has one function for aligned_alloc and memalign, and no free_sized yet."""
    source = write('own.c', r'''
#include <stddef.h>
static _Alignas(4096) char memory[1 << 20];
static size_t used;
static void *take(size_t size) { used += size + 4096 & ~4095ul; return memory + used - (size + 4096 & ~4095ul); }
void *malloc(size_t size) { return take(size); }
void *calloc(size_t count, size_t size) { return take(count * size + 1); }
void *realloc(void *block, size_t size) { return block ? take(size + 2) : take(size); }
void free(void *block) { used += block == memory; }
void *memalign(size_t alignment, size_t size) { return take(size + alignment); }
void *aligned_alloc(size_t alignment, size_t size) { return take(size + alignment + 1); }
void free_sized(void *block, size_t size) { used += size; }
void free_aligned_sized(void *block, size_t alignment, size_t size) { used += size + alignment; }
int main(void) {
    free(aligned_alloc(40, 80));
    free(aligned_alloc(16, 20));
    free_sized(malloc(9), 10);
    free_aligned_sized(aligned_alloc(64, 128), 64, 64);
    free_aligned_sized(aligned_alloc(64, 128), 32, 128);
    free_sized(malloc(9), 9);
    free_aligned_sized(aligned_alloc(64, 128), 64, 128);
    return 0;
}
''')
    path = suite.build(source, '-O0', '-w', '-g', '-fno-builtin')
    log = plain(run([suite.QUERN, '-q', path])[2])
    equal([line for line in log.splitlines() if re.match('[A-Z]', line)],
          ['Invalid alignment value: 40 (should be a power of 2)',
           'Invalid size value: 20 alignment value: 16 (size should be a multiple of alignment)',
           'Mismatched malloc/free_sized size value: 10',
           'Mismatched aligned_alloc/free_aligned_sized size value: 64',
           'Mismatched aligned_alloc/free_aligned_sized alignment alloc value: 64 dealloc value: 32'],
          'what was found')


@test
def realloc_to_nothing_may_be_hidden_or_kept():
    _, _, log = run([suite.QUERN, '--show-realloc-size-zero=no', build_newer()])
    equal(log.count('with size 0'), 0, 'reports')
    source = write('keeps.c', '#include <stdlib.h>\nint main(void) { volatile size_t none = 0; '
                              'return realloc(malloc(3), none) != NULL; }\n')
    path = suite.build(source, '-O0', '-w')
    for choice, status in (('yes', 0), ('no', 1)):
        equal(run([suite.QUERN, '-q', f'--realloc-zero-bytes-frees={choice}', path])[0], status, choice)


@test
def errors_of_newer_versions_are_suppressed():
    log = run([suite.QUERN, '-q', '--gen-suppressions=all', build_newer()])[2]
    kinds = set(re.findall(r'Memcheck:(\w+)', log))
    equal(kinds, {'ReallocZero', 'BadAlign', 'UnsafeZeroSize', 'SizeMismatch', 'AlignMismatch'}, 'kinds')
    entries = re.sub(r'^==.*\n', '', log, flags=re.M)
    every = write('all.supp', entries.replace('UnsafeZeroSize', 'BadSize'))
    status, _, log = run([suite.QUERN, '-q', '--error-exitcode=9', f'--suppressions={every}', build_newer()])
    equal((status, log), (0, ''), 'with suppressions')


@test
def errors_of_newer_versions_in_xml():
    path = os.path.join(suite.FOLDER, 'newer.xml')
    run([suite.QUERN, '-q', '--xml=yes', f'--xml-file={path}', build_newer()])
    found = [error.findtext('kind') for error in ElementTree.parse(path).iter('error')]
    equal(sorted(set(found)), ['InvalidAlignment', 'InvalidSize',
                               'MismatchedAllocateDeallocateAlignment',
                               'MismatchedAllocateDeallocateSize', 'ReallocSizeZero'], 'kinds')


@test
def programs_ask_for_tool_and_version():
    """The requests are newer than the installed headers, so they are written by number."""
    source = write('asks.c', r'''
#include <stdio.h>
#include <valgrind/valgrind.h>
int main(void) {
    char name[20] = "?", little[5] = "?";
    unsigned long whole = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, 0x1004, name, sizeof name, 0, 0, 0);
    unsigned long part = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, 0x1004, little, sizeof little, 0, 0, 0);
    unsigned long asked = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, 0x1004, 0, 7, 0, 0, 0);
    printf("%d %s %lu %s %lu %lu %d\n", (int)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, 0x1003, 0, 0, 0, 0, 0),
           name, whole, little, part, asked,
           (int)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, 0x1005, 0, 0, 0, 0, 0));
    return 0;
}
''')
    path = suite.build(source, '-O0')
    equal(run([path])[1], '0 ? 0 ? 0 0 0\n', 'natively')
    for tool, answer in (('memcheck', '1 memcheck 9 memc 9 9 328\n'), ('none', '0 none 5 none 5 5 328\n'),
                         ('callgrind', '0 callgrind 10 call 10 10 328\n')):
        status, out, log = run([suite.QUERN, '-q', f'--tool={tool}', '--error-exitcode=3',
                                *(['--callgrind-out-file=/dev/null'] if tool == 'callgrind' else []), path])
        equal((status, out, log), (0, answer, ''), tool)

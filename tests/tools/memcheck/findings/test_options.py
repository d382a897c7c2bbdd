"""Options of Valgrind's core that print what happens, or refuse to begin."""
import os
import re
import struct
import shutil
import subprocess

import suite
from script import plain
from suite import contains, equal, run, succeed, test, write

CALLS = '#include <stdlib.h>\nint main(void) { free(realloc(malloc(10), 20)); free(calloc(3, 4)); return 0; }\n'
DEEP = '''#include <stdlib.h>
__attribute__((noinline)) int deep(int n) { volatile char here = 0; return n ? deep(n - 1) + here : *(volatile char *)malloc(1); }
int main(void) { return deep(1200) == 1 && *(volatile int *)malloc(1) == 7; }
'''


def build_calls():
    return suite.build(write('calls.c', CALLS), '-O0', '-w', '-fno-builtin')


@test
def heap_calls_are_traced():
    for tool in ('memcheck', 'dhat'):
        log = run([suite.QUERN, '-q', f'--tool={tool}', '--trace-malloc=yes', '--run-libc-freeres=no',
                       *(['--dhat-out-file=/dev/null'] if tool == 'dhat' else []), build_calls()])[2]
        lines = [re.sub('0x[0-9A-F]+', 'A', line.split('-- ', 1)[1]) for line in log.splitlines()]
        equal(lines, ['malloc(10) = A', 'realloc(A, 20) = A', 'free(A)', 'calloc(3, 4) = A', 'free(A)'], tool)


@test
def replaced_functions_are_listed():
    log = run([suite.QUERN, '-q', '--trace-redir=yes', build_calls()])[2]
    contains(log, '(malloc) replaced\n')


@test
def functions_may_be_required():
    path = build_calls()
    succeed([suite.QUERN, '-q', '--require-text-symbol=:libc.so*:mallo?', path])
    status, _, log = run([suite.QUERN, '-q', '--require-text-symbol=:libc.so*:mallok', path])
    equal(status, 1, 'exit status')
    contains(log, 'has no function mallok, which --require-text-symbol asks for')
    contains(run([suite.QUERN, '-q', '--require-text-symbol=libc', path])[2], 'it must be :SONAME:SYMBOL')


@test
def progress_is_shown():
    path = suite.build(write('waits.c', '#include <unistd.h>\nint main(void) { char byte; return read(0, &byte, 1) != 1; }\n'))
    process = subprocess.Popen([suite.QUERN, '-q', '--progress-interval=1', path], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    process.stdin.write('x')
    process.stdin.close()
    process.stderr.read()
    equal(process.wait(), 0, 'exit status')
    equal(bool(re.fullmatch(r'--\d+-- PROGRESS: U \d+s, W \d+s, [0-9.]+% CPU, 1 thread\n', line)), True, line)


@test
def stacks_of_more_than_a_thousand_frames():
    path = suite.build(write('deep.c', DEEP), '-O0', '-g', '-w')
    log = plain(run([suite.QUERN, '-q', '--num-callers=1300', '--leak-check=full', path])[2])
    blocks = [len(re.findall(r'^   (?:at|by) ', block, re.M)) for block in re.split(r'\n\n+', log)]
    equal(max(blocks) >= 1202, True, f'frames in the deepest stack ({max(blocks)})')
    succeed([suite.QUERN, '-q', '--num-callers=999999', build_calls()])


@test
def debug_files_that_do_not_match():
    """The checksum of the link is that of another file."""
    path = suite.build(write('linked.c', 'int main(void) { return ((volatile char *)__builtin_malloc(1))[9] == 7; }\n'),
                       '-O0', '-g', '-Wl,--build-id=none')
    debug = path + '.debug'
    subprocess.run(['objcopy', '--only-keep-debug', path, debug], check=True)
    subprocess.run(['objcopy', '--strip-debug', f'--add-gnu-debuglink={debug}', path], check=True)
    with open(debug, 'ab') as file:
        file.write(b'more')
    equal('linked.c:1' in run([suite.QUERN, '-q', path])[2], False, 'lines of another file')
    contains(run([suite.QUERN, '-q', '--allow-mismatched-debuginfo=yes', path])[2], 'linked.c:1')


def damage_packed_sections(path):
    """Changes every byte of compressed data."""
    with open(path, 'rb') as file:
        data = bytearray(file.read())
    table, = struct.unpack_from('<Q', data, 40)
    count, = struct.unpack_from('<H', data, 60)
    for section in range(table, table + 64 * count, 64):
        flags, = struct.unpack_from('<Q', data, section + 8)
        start, size = struct.unpack_from('<QQ', data, section + 24)
        if flags & 0x800:
            data[start + 24:start + size] = bytes(byte ^ 0x5a for byte in data[start + 24:start + size])
    with open(path, 'wb') as file:
        file.write(data)


@test
def debug_sections_that_zstd_has_compressed():
    """In the program and in a debug file; elfutils 0.188 reads neither. Damaged ones leave no lines."""
    # Small sections are not compressed.
    source = write('packed.c', '#include <stdio.h> // and more\n#include <pthread.h>\nint main(void) { return ((volatile char *)__builtin_malloc(1))[9] == 7; }\n')
    path = suite.build(source, '-O0', '-Wl,--compress-debug-sections=zstd')
    contains(subprocess.run(['readelf', '-t', path], capture_output=True, text=True).stdout, 'ZSTD')
    contains(run([suite.QUERN, '-q', path])[2], 'packed.c:3')
    debug = path + '.debug'
    subprocess.run(['objcopy', '--only-keep-debug', path, debug], check=True)
    shutil.copy(path, 'whole')
    subprocess.run(['objcopy', '--strip-debug', f'--add-gnu-debuglink={debug}', path], check=True)
    contains(run([suite.QUERN, '-q', path])[2], 'packed.c:3')
    damage_packed_sections('whole')
    status, _, log = run([suite.QUERN, '-q', './whole'])
    contains(log, 'Invalid read of size 1')
    equal((status, 'packed.c:3' in log), (0, False), 'status, and lines of a damaged file')

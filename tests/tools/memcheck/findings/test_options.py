"""Options of Valgrind's core that print what happens, or refuse to begin."""
import os
import re
import struct
import shutil
import subprocess

import xml.etree.ElementTree as ElementTree

import suite
from script import plain
from suite import contains, equal, run, succeed, test, write

CALLS = '#include <stdlib.h>\nint main(void) { free(realloc(malloc(10), 20)); free(calloc(3, 4)); return 0; }\n'
DEEP = '''#include <stdlib.h>
__attribute__((noinline)) int deep(int n) { volatile char here = 0; return n ? deep(n - 1) + here : *(volatile char *)malloc(1); }
int main(void) { return deep(1200) == 1 && *(volatile int *)malloc(1) == 7; }
'''


def need_header(path):
    if not os.path.exists('/usr/include/' + path):
        suite.skip(f'{path} is not installed')


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


BUG = 'int main(void) { return ((volatile char *)__builtin_malloc(1))[9] == 7; }\n'
PRINTS = '''#define _GNU_SOURCE
#include <pthread.h>
#include <valgrind/valgrind.h>
static void *print(void *name) {
    if (name)
        pthread_setname_np(pthread_self(), name);
    VALGRIND_PRINTF("number %d, ", 5);
    VALGRIND_PRINTF_BACKTRACE("text %s\\n", name ? "named" : "plain");
    return NULL;
}
int main(void) {
    pthread_t thread;
    print(NULL);
    pthread_create(&thread, NULL, print, "worker 7");
    return pthread_join(thread, NULL);
}
'''
IMPOSSIBLE = '''#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    char byte;
    struct sigaction action = {.sa_handler = SIG_IGN};
    read(-1, &byte, 1);
    close(-7);
    close(9);              // not open, but possible
    dup2(1, 2000000000);
    sigaction(SIGKILL, &action, 0);
    sigaction(SIGSTOP, &action, 0);
    syscall(999, 1, 2);
    return 0;
}
'''


@test
def log_that_goes_nowhere():
    equal(run([suite.QUERN, '--log-fd=-1', suite.build(write('bug.c', BUG), '-w')]), (0, '', ''), 'status and output')


@test
def marker_at_the_beginning_alone():
    path = suite.build(write('bug.c', BUG), '-w')
    log = plain(run([suite.QUERN, '-q', '--error-markers=BEGIN', path])[2])
    equal(re.match(r'BEGIN\nInvalid read of size 1\n', log) is not None, True, log)


@test
def printing_under_every_translating_tool():
    need_header('valgrind/valgrind.h')
    path = suite.build(write('prints.c', PRINTS), '-O0', '-pthread')
    for tool in ('memcheck', 'none', 'callgrind', 'cachegrind', 'dhat', 'lackey', 'exp-bbv'):
        _, _, log = run([suite.QUERN, f'--tool={tool}', path])
        lines = re.findall(r'^\*\*\d+\*\* (.*)', log, re.M)
        equal(lines, ['number 5, text plain', 'number 5, text named'], f'lines under {tool}')
        equal(len(re.findall(r'^==\d+==    by 0x\w+: main ', log, re.M)), 1, f'stacks under {tool}')


@test
def names_of_threads_that_print():
    need_header('valgrind/valgrind.h')
    path = suite.build(write('prints.c', PRINTS), '-O0', '-pthread')
    run([suite.QUERN, '--xml=yes', '--xml-file=out.xml', path])
    messages = ElementTree.parse('out.xml').getroot().findall('clientmsg')
    equal([message.findtext('threadname') for message in messages], [None, 'worker 7'], 'names')


@test
def warnings_about_impossible_calls():
    """The same lines as Valgrind's, but for the advice about unknown system calls; none with -q or XML."""
    suite.need('valgrind')
    path = suite.build(write('impossible.c', IMPOSSIBLE), '-w')
    warnings = [re.findall(r'^==\d+== (Warning: .*|         the SIG.*)', run([tool, path])[2], re.M)
                for tool in (suite.QUERN, 'valgrind')]
    equal(warnings[0], warnings[1], 'warnings')
    equal(len(warnings[0]), 7, 'number of lines')
    contains(run([suite.QUERN, path])[2], 'WARNING: unhandled amd64-linux syscall: 999')
    equal(run([suite.QUERN, '-q', path])[2], '', 'log of a quiet run')
    equal('Warning' in run([suite.QUERN, '--xml=yes', '--xml-fd=2', path])[2], False, 'warnings beside XML')

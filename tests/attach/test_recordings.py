"""quern heap --pid: recordings of processes that run already, and that go on unharmed."""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from suite import (QUERN, alive, build, clean_environment, contains, equal, failed, need, run,
                   source_of, state, succeed, test, until, write)
from support import TARGETS, Recording, Target, pauses, target


def code_of(pid):
    """The bytes of all code of files in a process, by place."""
    code = {}
    with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb') as memory:
        for line in maps:
            fields = line.split()
            if 'x' not in fields[1] or len(fields) < 6 or not fields[5].startswith('/'):
                continue
            start, end = (int(part, 16) for part in fields[0].split('-'))
            memory.seek(start)
            code[start] = memory.read(end - start)
    return code


def kept(file, *names):
    """Blocks and bytes that were not freed, of stacks that begin in a function of one of these names."""
    out, _ = succeed([QUERN, 'print', '--top=1000', file])
    section = out.split('Most bytes not freed in the end:\n')[1].split('\n\n')[0]
    blocks = size = 0
    for found in re.finditer(r'([0-9,]+) bytes \(.*?\) in ([0-9,]+) blocks?\n +at 0x[0-9A-F]+: (.*)', section):
        if any(found[3].startswith(name) for name in names):
            size += int(found[1].replace(',', ''))
            blocks += int(found[2].replace(',', ''))
    return blocks, size


@test
def recorded_live_set_is_exact():
    """What was there before, what came and what went, together: as the program's own books have it."""
    with Target([target('books', '-O1', '-g')]) as program:
        program.ask('make 5000')
        recording = Recording(program.pid).wait_for('From before: ')
        before = json.loads(program.ask('drop 1000'))
        equal(before['blocks'], 4000, 'blocks of the program')
        program.ask('grow 300')
        books = json.loads(program.ask('make 2000'))
        said = recording.stop()
        contains(said, 'Detached from process')
        blocks, _ = kept(recording.file, '[held by table (books)]')
        equal(blocks, 4000 - 300, 'blocks from before')
        blocks, _ = kept(recording.file, 'make_one', 'grow', '[held by table (books)]')
        equal(blocks, books['blocks'], 'blocks in the end')
        blocks, size = kept(recording.file, 'make_one')
        equal((blocks, size), (2000, sum(24 + i % 40 * 16 for i in range(2000))), 'new blocks')
        equal(json.loads(program.ask('books 0')), books, 'books')
        equal(program.end(), '', 'rest of the output')


@test
def recorded_live_set_is_exact_while_it_changes():
    """The census is taken while blocks come and go: none is counted twice or lost."""
    with Target([target('books', '-O1', '-g')]) as program:
        program.ask('make 7000')
        program.process.stdin.write('spin 4\n')
        program.process.stdin.flush()
        recording = Recording(program.pid).wait_for('From before: ')
        books = json.loads(program.process.stdout.readline())
        recording.stop()
        blocks, _ = kept(recording.file, 'spin', '[held by table (books)]')
        equal(blocks, books['blocks'], 'blocks in the end')
        equal(program.end(), '', 'rest of the output')


@test
def every_byte_is_put_back():
    with Target([target('books', '-O1', '-g')]) as program:
        code = code_of(program.pid)
        recording = Recording(program.pid).wait_for('Attached to')
        changed = code_of(program.pid)
        if all(changed[start] == code[start] for start in code):
            failed('nothing was changed while recording')
        recording.stop()
        after = code_of(program.pid)
        for start in code:
            equal(after[start] == code[start], True, f'code at {start:#x} is as before')
        # The thread that Quern brought is gone as well.
        until(lambda: len(os.listdir(f'/proc/{program.pid}/task')) == 1, what='the end of the helper')
        program.ask('make 10')
        equal(program.end(), '', 'rest of the output')


@test
def attaches_again_and_again():
    with Target([target('books', '-O1', '-g')]) as program:
        for number in range(1, 6):
            recording = Recording(program.pid).wait_for('From before: ')
            books = json.loads(program.ask('make 100'))
            equal(books['blocks'], 100 * number, 'blocks of the program')
            recording.stop()
            equal(kept(recording.file, 'make_one')[0], 100, 'new blocks')
            blocks, _ = kept(recording.file, 'make_one', '[held by table (books)]')
            equal(blocks, books['blocks'], 'all blocks')
        mapped = len(open(f'/proc/{program.pid}/maps').readlines())
        Recording(program.pid).wait_for('Attached to').stop()
        until(lambda: len(open(f'/proc/{program.pid}/maps').readlines()) <= mapped + 1, what='no further mappings')
        equal(program.end(), '', 'rest of the output')


@test
def recorded_storm_goes_on():
    """200 threads that do nothing but malloc, realloc and free, and check what they have written."""
    with Target([target('storm', '-O1', '-pthread'), '200']) as program:
        for _ in range(2):
            said = Recording(program.pid, '--census=no').wait_for('Attached to').stop()
            equal(len(pauses(said)), 2, 'pauses that are said')
        equal(program.end(), 'right', 'what the threads found')


@test
def calls_see_no_interruption():
    """What waits in the kernel goes on waiting: no call ends with EINTR."""
    with Target([target('waits', '-O1', '-pthread')]) as program:
        for _ in range(5):
            Recording(program.pid).wait_for('Attached to').stop()
        equal(program.end(), '0', 'calls that were interrupted')


@test
def survives_the_death_of_quern():
    """Quern is killed at any moment of attaching, recording and detaching."""
    chance = random.Random(18)
    for words in (['storm', '20'], ['waits'], ['books']):
        with Target([target(words[0], '-O1', '-g', '-pthread'), *words[1:]]) as program:
            for number in range(8):
                recording = Recording(program.pid, '--census=no')
                if number % 4 == 3:
                    recording.wait_for('Attached to')
                    recording.process.send_signal(signal.SIGINT)
                time.sleep(chance.uniform(0, 0.15))
                recording.process.kill()
                recording.process.wait()
                equal(alive(program.pid), True, 'the program runs')
                # Whatever Quern has left behind: the next one waits until it is gone.
                until(lambda: 'quern' not in comms(program.pid), what='the end of the helper')
            Recording(program.pid).wait_for('Attached to').stop()
            # If it dies while the process stands still, nobody starts the calls again that a stop ends.
            if words[0] == 'waits':
                program.end()
            elif words[0] == 'storm':
                equal(program.end(), 'right', 'what the threads found')
            else:
                equal(json.loads(program.ask('make 7')), json.loads(program.ask('books 0')), 'books')


def comms(pid):
    names = []
    for tid in os.listdir(f'/proc/{pid}/task'):
        try:
            with open(f'/proc/{pid}/task/{tid}/comm') as file:
                names.append(file.read().strip())
        except FileNotFoundError:
            pass
    return names


@test
def sees_all_ways_to_allocate():
    """Calls within libc, by pointers, and of C++ operators."""
    write('ways.cc', r'''
#include <cstdio>
#include <cstdlib>
#include <cstring>
static void *volatile kept[8];
__attribute__((noinline)) static void by_strdup() { kept[0] = strdup("within libc"); }
__attribute__((noinline)) static void by_pointer() { void *(*volatile make)(size_t) = malloc; kept[1] = make(1001); }
__attribute__((noinline)) static void by_new() { kept[2] = new char[1002]; }
__attribute__((noinline)) static void by_calloc() { kept[3] = calloc(7, 143); }
__attribute__((noinline)) static void by_aligned() { void *block; if (posix_memalign(&block, 64, 1003)) abort(); kept[4] = block; }
__attribute__((noinline)) static void by_realloc() { kept[5] = realloc(nullptr, 1004); }
int main() {
    puts("ready"); fflush(stdout);
    getchar();
    by_strdup(); by_pointer(); by_new(); by_calloc(); by_aligned(); by_realloc();
    puts("done"); fflush(stdout);
    while (getchar() > 0);
}
''')
    program_file = build('ways.cc', '-O1', '-g', compiler='c++')
    with Target([program_file]) as program:
        recording = Recording(program.pid).wait_for('From before: ')
        equal(program.ask('x'), 'done', 'answer')
        recording.stop()
        out, _ = succeed([QUERN, 'print', '--top=1000', recording.file])
        for name in ('by_strdup', 'by_pointer', 'by_new', 'by_calloc', 'by_aligned', 'by_realloc'):
            contains(out, name)


@test
def other_tools_and_forms():
    with Target([target('books', '-O1', '-g')]) as program:
        program.ask('make 1000')
        recording = Recording(program.pid, tool='massif').wait_for('From before: ')
        program.ask('make 1000')
        recording.stop()
        contains(open(recording.file).read(), 'make_one')
        recording = Recording(program.pid, '--mode=native', tool='dhat').wait_for('From before: ')
        program.ask('make 1000')
        recording.stop()
        contains(open(recording.file).read(), 'make_one')
        status, _, err = run([QUERN, 'attach', str(program.pid), '--duration=1', '--heap-out-file=plain'])
        equal(status, 0, f'status ({err})')
        contains(err, 'Detached from process')
        # A second one at a time is refused, and harms nobody.
        recording = Recording(program.pid).wait_for('From before: ')
        status, _, err = run([QUERN, 'heap', f'--pid={program.pid}', '--heap-out-file=second'])
        equal(status, 1, 'status of the second')
        contains(err, 'it is recorded by Quern already')
        recording.stop()
        equal(program.end(), '', 'rest of the output')


@test
def program_ends_while_recorded():
    with Target([target('books', '-O1', '-g')]) as program:
        recording = Recording(program.pid).wait_for('Attached to')
        program.ask('make 100')
        program.end()
        equal(recording.process.wait(timeout=300), 0, f'status ({recording.said()})')
        equal(kept(recording.file, 'make_one')[0], 100, 'new blocks')


@test
def recordings_are_refused():
    def refusal(pid, *options):
        status, _, err = run([QUERN, 'heap', f'--pid={pid}', '--heap-out-file=refused', *options])
        equal(status, 1, f'status ({err})')
        return err
    program_file = target('books', '-O1', '-g')
    contains(refusal(2 ** 22 + 1), 'there is no such process')
    with Target([target('books', '-O1', '-static')]) as program:
        contains(refusal(program.pid), 'it is statically linked')
        program.ask('make 1')
    with Target([program_file]) as program:
        contains(refusal(program.pid, '--load=true'), '--load is for programs that Quern starts')
        contains(refusal(program.pid, '--trace-children=yes'), 'children of the process are not followed')
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: state(program.pid) == 'T', what='the stop')
        contains(refusal(program.pid), 'it is stopped by a signal')
        os.kill(program.pid, signal.SIGCONT)
        status, _, err = run([QUERN, 'dhat', f'--pid={program.pid}'])
        equal(status, 1, 'status of dhat')
        contains(err, '--mode=native')
        program.ask('make 1')
    write('filtered.c', r'''
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
int main(void) {
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    puts("ready"); fflush(stdout);
    while (getchar() > 0);
}
''')
    with Target([build('filtered.c')]) as program:
        contains(refusal(program.pid), 'a seccomp filter may end it')
    if shutil.which('musl-gcc'):
        with Target([build(source_of('books', TARGETS), compiler='musl-gcc')]) as program:
            contains(refusal(program.pid), 'it uses musl')


# ---- real programs -------------------------------------------------------------------------------

def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(('127.0.0.1', port), 1).close()
        return True
    except OSError:
        return False


@test
def redis_under_load():
    need('redis-server', 'redis-benchmark', 'redis-cli')
    port = free_port()
    server = subprocess.Popen(['redis-server', '--port', str(port), '--save', '', '--bind', '127.0.0.1',
                               '--dir', '.'], stdout=subprocess.DEVNULL, env=clean_environment())
    load = None
    try:
        until(lambda: accepts(port), what='redis')
        load = subprocess.Popen(['redis-benchmark', '-p', str(port), '-n', '100000000', '-r', '1000', '-d', '100',
                                 '-t', 'set,lpush,lpop', '-q'], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, env=clean_environment())
        for _ in range(4):
            said = Recording(server.pid).wait_for('Attached to').stop()
            equal(len(pauses(said)) >= 2, True, 'pauses are said')
        load.kill()
        out, _ = succeed(['redis-cli', '-p', str(port), 'set', 'key', 'value'])
        equal(out.strip(), 'OK', 'answer')
        out, _ = succeed(['redis-cli', '-p', str(port), 'get', 'key'])
        equal(out.strip(), 'value', 'answer')
    finally:
        for process in (load, server):
            if process:
                process.kill()
                process.wait()


@test
def nginx_workers():
    need('nginx')
    port = free_port()
    write('nginx.conf', f'''
daemon off; master_process on; worker_processes 2; pid {os.path.abspath("nginx.pid")}; error_log stderr;
events {{ worker_connections 64; }}
http {{ access_log off; server {{ listen 127.0.0.1:{port}; location / {{ return 200 "right"; }} }} }}
''')
    server = subprocess.Popen(['nginx', '-p', os.path.abspath('.'), '-c', os.path.abspath('nginx.conf')],
                              stderr=subprocess.DEVNULL, env=clean_environment())

    def ask():
        with socket.create_connection(('127.0.0.1', port), 60) as connection:
            connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
            answer = b''
            while part := connection.recv(4096):
                answer += part
            return answer
    try:
        until(lambda: accepts(port), what='nginx')
        def workers_of():
            return [int(pid) for pid in open(f'/proc/{server.pid}/task/{server.pid}/children').read().split()]
        until(lambda: len(workers_of()) == 2, what='both workers')
        workers = workers_of()
        for _ in range(2):
            for worker in workers:
                recording = Recording(worker).wait_for('Attached to')
                for _ in range(20):
                    contains(ask().decode(), 'right')
                recording.stop()
        equal(all(alive(worker) for worker in workers), True, 'workers live')
    finally:
        server.terminate()
        server.wait(timeout=300)


@test
def python_goes_on():
    write('work.py', '''
import sys, threading
total = 0
kept = []
print('ready', flush=True)
def work():
    global total
    while not ended:
        kept.append(bytearray(1000))
        if len(kept) > 1000:
            kept.clear()
        total += 1
ended = False
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
sys.stdin.readline()
ended = True
for thread in threads: thread.join()
print('right' if total and sum(map(len, kept)) % 1000 == 0 else 'wrong', flush=True)
''')
    python = next((path for path in ('/usr/bin/python3', sys.executable) if os.path.exists(path)))
    with Target([python, 'work.py']) as program:
        for _ in range(3):
            said = Recording(program.pid).wait_for('Attached to').stop()
            contains(said, 'Detached from process')
        equal(program.end(), 'right', 'what python found')


@test
def forked_children_can_be_attached_to():
    """A child of a recorded process goes on unrecorded, and can be recorded by itself."""
    write('forks.c', r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static void *volatile kept[10000];
static __attribute__((noinline)) void make(int *used) { kept[(*used)++] = malloc(100); }
int main(void) {
    char line[64];
    int used = 0;
    puts("ready"); fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'f') {
            pid_t pid = fork();
            if (pid) {
                int status;
                printf("%d\n", (int)pid); fflush(stdout);
                waitpid(pid, &status, 0);
                printf("%d\n", status); fflush(stdout);
                continue;
            }
        }
        for (int i = 0; i < 100; i++) make(&used);
        if (line[0] == 'f') continue;
        printf("%d\n", used); fflush(stdout);
    }
    return 0;
}
''')
    with Target([build('forks.c', '-g', '-O1')]) as program:
        recording = Recording(program.pid).wait_for('From before: ')
        child = int(program.ask('f'))
        recording.stop()
        for _ in range(2):
            recording = Recording(child).wait_for('From before: ')
            program.process.stdin.write('m\n')
            program.process.stdin.flush()
            program.process.stdout.readline()
            recording.stop()
            equal(kept(recording.file, 'make')[0], 100, 'new blocks of the child')

"""quern leaks --pid: the census of a running process, its leaks, and refusals."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from suite import (QUERN, build, clean_environment, contains, equal, failed, need, run, skip, source_of, state,
                   succeed, test, until)
from support import TARGETS, Target, target


def census(pid, *options):
    out, _ = succeed([QUERN, 'leaks', f'--pid={pid}', '--json', *options])
    return json.loads(out)


def refusal(pid, **more):
    status, out, err = run([QUERN, 'leaks', f'--pid={pid}'], **more)
    equal((status, out), (1, ''), f'status and output (with {err!r})')
    contains(err, f'quern: cannot attach to process {pid}: ')
    equal(err.count('\n'), 1, 'lines of the message')
    return err


def sums(got, name):
    return sum(arena[name]['bytes'] for arena in got['arenas'])


def compare(before, got, books):
    """The blocks that came since the census before are those of the program's own books."""
    equal(got['in_use']['blocks'] - before['in_use']['blocks'], books['blocks'], 'blocks')
    equal(got['in_use']['bytes'] - before['in_use']['bytes'], books['bytes'], 'bytes')
    equal(sum(arena['size'] for arena in got['arenas']), books['arena'], "mallinfo2's arena")
    equal(got['mapped']['blocks'], books['mapped_blocks'], "mallinfo2's hblks")
    equal(got['mapped_size'], books['mapped_size'], "mallinfo2's hblkhd")
    equal(sums(got, 'fast'), books['fast'], "mallinfo2's fsmblks")
    equal(sums(got, 'fast') + sums(got, 'bins') + sum(arena['top'] for arena in got['arenas']),
          books['free'], "mallinfo2's fordblks")
    equal(sum(size['blocks'] for size in got['sizes']), got['in_use']['blocks'], 'blocks by size')
    equal(sum(size['blocks'] * size['size'] for size in got['sizes']), got['in_use']['bytes'],
          'bytes by size')
    equal(sum(sums_of['blocks'] for sums_of in got['leaks'].values()), got['in_use']['blocks'],
          'blocks by kind')


@test
def live_set_is_exact():
    with Target([target('live', '-O1', '-pthread')]) as program:
        before = census(program.pid)
        equal(before['in_use']['blocks'], 4, "blocks of libc's own")
        for command in ('fill', 'drop', 'fill', 'drop', 'drop'):
            books = json.loads(program.ask(command))
            got = census(program.pid)
            compare(before, got, books)
            equal(got['leaks']['definite'], {'blocks': 0, 'bytes': 0}, 'lost blocks')
            equal(len(got['arenas']), 5, 'arenas')
            equal(got['thread_caches'], 5, 'caches')
            if sums(got, 'thread_caches') == 0 or got['mapped']['blocks'] == 0:
                failed('no block was cached or mapped')
        equal(program.end(), '', 'rest of the output')


@test
def leaks_are_exact():
    with Target([target('live', '-O1', '-pthread')]) as program:
        program.ask('fill')
        program.ask('leak 17')
        leaks = census(program.pid)['leaks']
        equal(leaks['definite'], {'blocks': 17, 'bytes': 17000}, 'lost')
        equal(leaks['possible'], {'blocks': 0, 'bytes': 0}, 'possibly lost')
        program.ask('possible 5')
        leaks = census(program.pid)['leaks']
        equal(leaks['definite'], {'blocks': 17, 'bytes': 17000}, 'lost')
        equal(leaks['possible']['blocks'], 5, 'possibly lost')
        out, _ = succeed([QUERN, 'leaks', f'--pid={program.pid}'])
        contains(out, '17,000 bytes definitely lost: 17 blocks of 1,000, one at 0x')
        contains(out, 'definitely lost: 17,000 bytes in 17 blocks')
        if not re.match(r'Process \d+ \(live\), 5 threads: stopped for \d+\.\d ms', out):
            failed(f'the pause is not in {out[:100]!r}')


@test
def types_and_holders_have_names():
    with Target([target('objects', '-O0')]) as program:
        got = census(program.pid)
        sessions = [loss for loss in got['losses'] if loss['type'] == 'Session']
        equal([(loss['kind'], loss['blocks']) for loss in sessions], [('definite', 7)], 'sessions')
        # Of the list the first is lost, and what it leads to with it.
        equal(got['leaks']['definite']['blocks'], 8, 'lost blocks')
        equal(got['leaks']['indirect'], {'blocks': 9, 'bytes': 9 * 168}, 'indirectly lost')
        holders = {holder['name']: holder for holder in got['holders']}
        equal(holders['table_of_things (objects)']['blocks'], 100, 'blocks of the table')
        shown = [loss['kind'] for loss in census(program.pid, '--show-leak-kinds=indirect')['losses']]
        equal(shown, ['indirect'], 'kinds that are listed')


@test
def resident_memory_is_explained():
    with Target([target('live', '-O1', '-pthread')]) as program:
        program.ask('fill')
        resident = census(program.pid)['resident']
        with open(f'/proc/{program.pid}/status') as file:
            kernel = int(re.search(r'VmRSS:\s+(\d+)', file.read())[1]) * 1024
        parts = sum(value for name, value in resident.items() if name != 'huge')
        # The kernel's own counters are exact to some pages for each thread.
        if abs(parts - kernel) > 5 * 64 * 4096 + 64 * 4096:
            failed(f'the parts make {parts} bytes, the kernel says {kernel}')


@test
def static_program():
    with Target([target('live', '-O1', '-static', '-pthread')]) as program:
        before = census(program.pid)
        compare(before, census(program.pid), {**json.loads(program.first), 'blocks': 0, 'bytes': 0})
        books = json.loads(program.ask('fill'))
        compare(before, census(program.pid), books)


@test
def break_moved_by_the_program():
    with Target([target('breaks', '-O1')]) as program:
        sizes = {size['size']: size['blocks'] for size in census(program.pid)['sizes']}
        equal(sizes[344], 3000, 'blocks of malloc(333)')


@test
def storm_goes_on():
    """Threads that are within malloc most of the time."""
    for threads in (1, 12):
        with Target([target('storm', '-O1', '-pthread'), str(threads)]) as program:
            for _ in range(8):
                got = census(program.pid)
                # A thread may be between free and malloc.
                most = 300 * threads + threads
                if not most - 2 * threads <= got['in_use']['blocks'] <= most:
                    failed(f'{got["in_use"]["blocks"]} blocks in use, not about {most}')
            equal(program.end(), 'right', 'what the target says')


@test
def killed_in_the_middle():
    with Target([target('storm', '-O1', '-pthread'), '4']) as program:
        for attempt in range(12):
            quern = subprocess.Popen([QUERN, 'leaks', f'--pid={program.pid}'], env=clean_environment(),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.004 * attempt)
            quern.kill()
            quern.wait()
            until(lambda: state(program.pid) in 'SR', what='the target goes on')
        equal(program.end(), 'right', 'what the target says')


@test
def no_call_is_interrupted():
    with Target([target('waits', '-O1', '-pthread')]) as program:
        for _ in range(20):
            census(program.pid)
        equal(program.end(), '0', 'calls that ended with EINTR')


@test
def stopped_process_stays_stopped():
    with Target([target('objects', '-O0')]) as program:
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: state(program.pid) == 'T', what='the target stops')
        equal(census(program.pid)['leaks']['definite']['blocks'], 8, 'lost blocks')
        equal(state(program.pid), 'T', 'state')
        os.kill(program.pid, signal.SIGCONT)
        equal(program.end(), '', 'rest of the output')


@test
def container():
    """The program exists only in a mount namespace of its own."""
    need('unshare', 'mount')
    if os.geteuid() != 0:
        skip('not root')
    path = target('objects', '-O0')
    inner = 'mount -t tmpfs none /mnt && cp "$1" /mnt/inside && exec unshare --pid --fork /mnt/inside'
    if run(['unshare', '--mount', '--pid', '--fork', 'true'])[0]:
        skip('no namespaces here')
    with Target(['unshare', '--mount', 'sh', '-c', inner, 'sh', path]) as program:
        children = []
        for folder in os.listdir('/proc'):
            try:
                with open(f'/proc/{folder}/comm') as name, open(f'/proc/{folder}/stat') as stat:
                    if name.read() == 'inside\n' and f' {program.pid} ' in stat.read():
                        children.append(int(folder))
            except OSError:
                pass
        equal(len(children), 1, 'programs in the container')
        got = census(children[0])
        holders = {holder['name']: holder for holder in got['holders']}
        equal(holders['table_of_things (inside)']['blocks'], 100, 'blocks of the table')
        equal([loss['type'] for loss in got['losses'] if loss['blocks'] == 7], ['Session'], 'types')
        program.process.stdin.close()
        program.process.wait(timeout=300)


# ---- refusals ----------------------------------------------------------------------------------


@test
def refuses_what_is_no_process():
    contains(refusal(2 ** 22 + 1), 'there is no such process')
    status, _, err = run([QUERN, 'leaks', '--pid=x'])
    equal(status, 1, 'status')
    contains(err, "invalid value 'x' for --pid")
    status, _, err = run([QUERN, 'leaks', 'true'])
    equal(status, 1, 'status')
    contains(err, 'give its number by --pid=PID')


@test
def refuses_states():
    program = target('states', '-pthread')
    for word, reason in (('zombie', 'it has ended; its parent, process'),
                         ('traced', '(states) traces it already'),
                         ('thread', 'it is a thread of process')):
        with Target([program, word]) as holder:
            contains(refusal(int(holder.first)), reason)


@test
def refuses_kernel_threads():
    try:
        with open('/proc/2/comm') as file:
            if file.read() != 'kthreadd\n':
                skip('process 2 is not of the kernel')
    except OSError:
        skip('the kernel threads cannot be seen')
    contains(refusal(2), 'it is a thread of the kernel')


@test
def refuses_32_bit_programs():
    need('as', 'ld')
    with open('small.s', 'w') as file:
        file.write('.globl _start\n_start: mov $29, %eax\nint $0x80\njmp _start\n')
    succeed(['as', '--32', 'small.s', '-o', 'small.o'])
    succeed(['ld', '-m', 'elf_i386', 'small.o', '-o', 'small'])
    try:
        process = subprocess.Popen(['./small'], env=clean_environment())
    except OSError:
        skip('the kernel runs no 32-bit programs')
    try:
        contains(refusal(process.pid), 'it is a 32-bit program')
    finally:
        process.kill()
        process.wait()


@test
def refuses_others():
    """As a user without rights."""
    need('setpriv')
    if os.geteuid() != 0:
        skip('not root')
    nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all']
    if run([*nobody, QUERN, '--version'])[0]:
        skip('quern cannot be run by another user here')
    program = target('states', '-pthread')
    os.chmod('.', 0o755)

    def said(pid):
        status, _, err = run([*nobody, QUERN, 'leaks', f'--pid={pid}'])
        equal(status, 1, 'status')
        return err
    with Target([program, 'plain']) as plain:
        err = said(plain.pid)
        contains(err, 'it belongs to user 0 (root), and quern runs as user 65534')
        contains(err, 'Run quern as that user or as root')
    with Target([*nobody, program, 'undumpable']) as undumpable:
        contains(said(undumpable.pid), 'it is not dumpable')
        # Root may all the same.
        equal(census(undumpable.pid)['program'], 'states', 'program')


@test
def refuses_other_allocators():
    library = next((f'/usr/lib/x86_64-linux-gnu/{name}' for name in
                    ('libjemalloc.so.2', 'libmimalloc.so.2', 'libtcmalloc_minimal.so.4')
                    if os.path.exists(f'/usr/lib/x86_64-linux-gnu/{name}')), None)
    if not library:
        skip('there is no other allocator')
    with Target(['env', f'LD_PRELOAD={library}', target('objects', '-O0')]) as program:
        contains(refusal(program.pid), f'{os.path.basename(library)} has a malloc of its own')
    need('musl-gcc')
    with Target([build(source_of('states', TARGETS), compiler='musl-gcc'), 'plain']) as program:
        contains(refusal(program.pid), 'it uses musl')


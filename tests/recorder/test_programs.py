"""What programs do to a preloaded library: threads, fork, exec, signals, SIGKILL."""
import os
import signal
import subprocess
import tempfile

import suite
from suite import QUERN, contains, equal, failed, run, test
from support import TARGETS, build, figure, massif, peak, record, record_and_listen, snapshots


@test
def killed_program_keeps_everything():
    program = build('killed')
    for count in (1, 1000, 50000):
        text, _, err = massif(program, arguments=[str(count)], status=-signal.SIGKILL)
        equal(peak(text)['mem_heap_B'], count * 1000, 'bytes at the end')


@test
def threads_agree_with_their_own_count():
    program = build('threads')
    for count, rounds in ((1, 20000), (2, 50000), (8, 20000), (200, 200)):
        # With no more than so many snapshots, one of them falls upon the blocks that come last.
        text, _, err = massif(program, '--alloc-fn=work', '--threshold=0', '--detailed-freq=1',
                              '--max-snapshots=1000', arguments=[str(count), str(rounds), '4000'])
        if 'could not be recorded' in err:
            failed(err)
        # What is live then is known but for libc's.
        last = snapshots(text)[-1]['mem_heap_B']
        kept = count * 10000
        if not kept <= last < kept + 1000 + 300 * count + 2000:
            failed(f'{last} bytes live, at least {kept} expected ({count} threads)')


@test
def threads_lose_nothing():
    """Blocks go from thread to thread: were events out of order, releases would come before
    allocations."""
    program = build('threads')
    for count, rounds in ((2, 100000), (8, 30000), (200, 500)):
        _, log, said = record_and_listen(program, '-v', arguments=[str(count), str(rounds)])
        contains(log, '; 0 releases of unknown blocks, 0 allocations of known ones')
        allocated = figure(log, r'heap events: (\d+) allocations')
        own = int(said.split()[0])
        # libc has one or two for each thread, and a few of its own.
        if not own <= allocated <= own + 2 * count + 10:
            failed(f'{allocated} allocations by {count} threads, which say {own}')


@test
def other_allocators_are_seen():
    program = build('threads')
    containers = build('containers')
    seen = 0
    for name in ('libjemalloc.so.2', 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2'):
        library = '/usr/lib/x86_64-linux-gnu/' + name
        if not os.path.exists(library):
            continue
        seen += 1
        _, log = record(program, '-v', arguments=['4', '10000'], env={'LD_PRELOAD': library})
        contains(log, '; 0 releases of unknown blocks, 0 allocations of known ones')
        kept = figure(log, r'at the end: ([\d,]+) bytes')
        # libstdc++, where the allocator needs it, keeps 72,704 bytes.
        if not 40000 <= kept <= 40000 + 4 * 400 + 75000:
            failed(f'{kept} bytes left with {name}')
        if name != 'libmimalloc.so.2':  # ends the program where bad_alloc is due
            _, log = record(containers, '-v', env={'LD_PRELOAD': library})
            allocated = figure(log, r'heap events: (\d+) allocations')
            if not 6008 <= allocated <= 6012:
                failed(f'{allocated} allocations with {name}')
    if not seen:
        suite.skip('no other allocator is installed')


@test
def thread_ends_leave_nothing():
    text, _, err = massif(build('thread_ends'), '--max-snapshots=1000', '--peak-inaccuracy=0')
    for one in snapshots(text):
        if one['mem_heap_B'] > 10000:
            failed(f"{one['mem_heap_B']} bytes live")


@test
def handlers_may_allocate():
    text, _, err = massif(build('handler'), '--max-snapshots=1000', '--peak-inaccuracy=0')
    if 'could not be recorded' in err:
        failed(err)


@test
def forked_children_do_not_disturb():
    text, out, err = massif(build('forks'), '--peak-inaccuracy=0')
    equal(len(out.split()), 4, 'children')
    top = peak(text)['mem_heap_B']
    if not 50000 <= top < 60000:
        failed(f'peak {top}')


@test
def forked_children_can_be_followed():
    program = build('forks')
    path = os.path.join(suite.FOLDER, 'out.%p')
    status, out, err = run([QUERN, '-q', 'massif', '--time-unit=B', '--trace-children=yes',
                            f'--massif-out-file={path}', program])
    equal(status, 0, f'status (with {err!r})')
    for pid in out.split():
        with open(os.path.join(suite.FOLDER, 'out.' + pid)) as file:
            top = peak(file.read())['mem_heap_B']
        if not 980000 <= top <= 2001000:
            failed(f'peak {top} in a child')


@test
def forked_children_have_files():
    """As in Valgrind: a child has a file unless it becomes another program. It holds what the child
    allocates itself."""
    for program in ([build('forks')], ['/bin/bash', '-c', '/bin/true; /bin/true; (exit 0); true']):
        for tool in (['valgrind', '-q', '--tool=massif'], [QUERN, '-q', '--tool=massif'],
                     [QUERN, '-q', '--tool=massif', '--time-unit=i']):
            folder = tempfile.mkdtemp(dir=suite.FOLDER)
            status, out, err = run([*tool, f'--massif-out-file={folder}/out.%p', *program])
            equal(status, 0, f'status (with {err!r})')
            files = os.listdir(folder)
            if tool[0] == 'valgrind':
                wanted = len(files)
            equal(len(files), wanted, f'files of {program[0]} with {tool[2:]}')
            for pid in out.split():
                with open(os.path.join(folder, 'out.' + pid)) as file:
                    top = peak(file.read())['mem_heap_B']
                if not 980000 <= top <= 2051000:
                    failed(f'peak {top} in a child')


@test
def followed_exec_is_recorded():
    program = build('only_grows')
    path = os.path.join(suite.FOLDER, 'out.%p')
    status, out, err = run([QUERN, '-q', 'massif', '--time-unit=B', '--trace-children=yes',
                            f'--massif-out-file={path}', '/bin/sh', '-c', f'{program}; true'])
    equal((status, err), (0, ''), 'status and log')
    peaks = []
    for name in os.listdir(suite.FOLDER):
        if name.startswith('out.'):
            with open(os.path.join(suite.FOLDER, name)) as file:
                peaks.append(peak(file.read())['mem_heap_B'])
    equal(len(peaks), 2, 'files')
    if 320000 not in peaks:
        failed(f'peaks {peaks}')


@test
def skipped_programs_are_not_recorded():
    program = build('only_grows')
    path = os.path.join(suite.FOLDER, 'out.%p')
    script = f'{program} arg1; true'
    for option in ('--trace-children-skip=*/only_grows,/none',
                   '--trace-children-skip-by-arg=arg?'):
        status, out, err = run([QUERN, '-q', 'massif', '--trace-children=yes', option,
                                f'--massif-out-file={path}', '/bin/sh', '-c', script])
        equal((status, err), (0, ''), 'status and log')
        names = [name for name in os.listdir(suite.FOLDER) if name.startswith('out.')]
        equal(len(names), 1, f'files with {option}')
        os.remove(os.path.join(suite.FOLDER, names[0]))


@test
def duration_ends_a_recorded_program():
    status, out, err = run([QUERN, 'heap', '--heap-out-file=x', '--duration=1', 'sleep', '1000'],
                           cwd=suite.FOLDER, timeout=300)
    equal(status, 0, 'status')
    contains(err, 'at the end:')


@test
def environment_is_as_without():
    program = build('environment')
    native = run([program])
    _, out, _ = massif(program, '-q')
    equal(out, native[1], 'what the program sees')
    _, out, _ = massif(program, '-q', env={'LD_PRELOAD': 'libm.so.6'})
    equal(out.splitlines()[:2], ['LD_PRELOAD=libm.so.6'] * 2, 'with a preload of its own')


@test
def closed_descriptors_are_not_written_to():
    text, _, err = massif(build('closes'), cwd=suite.FOLDER)
    equal(os.path.getsize(os.path.join(suite.FOLDER, 'mine')), 0, "size of the program's file")


@test
def libraries_come_and_go():
    plugin = os.path.join(suite.FOLDER, 'plugin.so')
    subprocess.run(['gcc', '-g', '-O1', '-fPIC', '-shared', '-fno-builtin',
                    os.path.join(TARGETS, 'plugin.c'), '-o', plugin], check=True)
    text, _, err = massif(build('loads'), arguments=[plugin])
    tree = '\n'.join(peak(text)['tree'])
    contains(tree, 'plugin_make (plugin.c:')
    contains(tree, 'main (loads.c:')


@test
def static_programs_run_translated():
    program = build('only_grows', '-static')
    status, _, err = run([QUERN, 'massif', program])
    equal(status, 0, 'status')
    contains(err, 'The program is statically linked: it runs translated')


@test
def status_and_output_are_the_programs():
    path = os.path.join(suite.FOLDER, 'out')
    status, out, err = run([QUERN, '-q', 'massif', f'--massif-out-file={path}', '/bin/sh', '-c',
                            'echo hello; exit 7'])
    equal((status, out, err), (7, 'hello\n', ''), 'result')

"""Stops, threads, signals, registers, memory, and ways to part."""
import os
import re
import signal
import subprocess

from suite import contains, equal, failed, need, test, until
from support import dialogue, gdb, gdb_words, in_order, program, read, target

SCRIPT = ['break main', 'continue', 'next', 'next', 'backtrace', 'print total', 'print values[9]',
          'print i', 'continue', 'backtrace', 'print result == 0', 'break printf', 'continue',
          'backtrace', 'finish', 'delete', 'continue']


def masked(text):
    """Only what the two must say alike: no addresses, no processes, no sources that are missing."""
    text = re.sub(r'0x[0-9a-f]+', 'ADDRESS', text)
    text = re.sub(r'^(relaying|warning:|\d+\t(in )?\.\.?/).*\n', '', text, flags=re.M)
    return re.sub(r'\d+\t\.?\.?/.*: No such file.*\n', '', text)


@test
def same_dialogue_as_valgrind():
    need('gdb', 'valgrind')
    ours, log = dialogue('errors', SCRIPT)
    theirs, their_log = dialogue('errors', SCRIPT, runner='valgrind')
    for got, wanted in zip(masked(ours).split('\n'), masked(theirs).split('\n')):
        equal(got, wanted, 'line of the dialogue')
    equal(masked(ours), masked(theirs), 'dialogue')
    in_order(ours, 'Breakpoint 1, main', 'received signal SIGTRAP', '#0 .* sum .*count=10',
             r'\$1 = 5', r'\$3 = 10', 'received signal SIGTRAP', 'Breakpoint 2, ', 'exited with code 07')
    for words in ('(action at startup) vgdb me ... ', 'TO DEBUG THIS PROCESS USING GDB',
                  '(action on error) vgdb me ... ', 'Continuing ...', 'ERROR SUMMARY: 2 errors'):
        contains(log, words)
        contains(their_log, words)


@test
def waits_at_nth_error():
    need('gdb')
    said, log = dialogue('errors', ['backtrace', 'continue'], ['--vgdb-error=2'])
    in_order(said, 'in sum .*', 'if .result', 'exited with code 07')
    equal(log.count('vgdb me'), 1, 'stops')
    contains(log, 'on error')


@test
def suppressed_errors_do_not_count():
    need('gdb')
    with open('all.supp', 'w') as file:
        file.write('{\n first\n Memcheck:Addr4\n fun:sum\n}\n')
    said, log = dialogue('errors', ['backtrace', 'continue'],
                         ['--vgdb-error=1', '--suppressions=all.supp'])
    in_order(said, 'if .result', 'exited with code 07')
    equal(log.count('vgdb me'), 1, 'stops')


@test
def stops_at_exit():
    need('gdb')
    said, log = dialogue('errors', ['print total', 'continue'], ['--vgdb-stop-at=exit'])
    in_order(said, r'\$1 = [78]', 'exited with code 07')
    contains(log, '(action at exit) vgdb me ... ')


@test
def twenty_threads():
    need('gdb')
    path = program('threads', '-pthread')
    with target(['--tool=none', path], ready='READY') as run:
        said = gdb(run, path, ['info threads', 'break tick if number == 7', 'continue',
                               'print number', 'set $before = counters[7]', 'continue',
                               'print counters[7] - $before', 'next', 'stepi',
                               'thread apply all -q print $_thread', 'delete', 'print running = 0',
                               'continue'])
        log = run.wait()
    equal(len(re.findall(r'^\*? +\d+ +Thread \d+ \(tid \d+ threads\)', said, re.M)), 21, 'threads')
    in_order(said, r'hit Breakpoint 1.*number=7', r'\$1 = 7', 'hit Breakpoint 1', r'\$2 = 1',
             'exited with code 03')
    contains(log, '\nend\n')


@test
def interrupt_and_detach():
    need('gdb')
    path = program('threads', '-pthread')
    with target(['--tool=none', path], ready='READY') as run:
        # gdb's own command: Ctrl+C may hit a moment in which gdb loses it.
        words = [word for word in gdb_words(run, path, []) if word != '-batch']
        with open('gdb.log', 'w') as file:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=file,
                                       stderr=subprocess.STDOUT, text=True)
        print('continue &', 'interrupt', sep='\n', file=process.stdin, flush=True)
        until(lambda: 'SIGINT' in read('gdb.log') or process.poll() is not None)
        process.communicate('print counters[1] > 0\nprint running = 0\ndetach\nquit\n', timeout=300)
        log = run.wait()
    in_order(read('gdb.log'), 'received signal SIGINT', r'\$1 = 1', r'\$2 = 0', 'detached')
    equal(run.process.returncode, 3, 'status')
    contains(log, '\nend\n')


@test
def gdb_that_dies_leaves_the_program_running():
    need('gdb')
    path = program('threads', '-pthread')
    with target(['--tool=none', path], ready='READY') as run:
        with open('gdb.log', 'w') as file:
            process = subprocess.Popen(gdb_words(run, path, ['break tick', 'echo STOPPED\\n',
                                                             'shell sleep 1000']),
                                       stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        until(lambda: 'STOPPED' in read('gdb.log'))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # The second gdb finds it running, without breakpoints.
        said = gdb(run, path, ['print running = 0', 'continue'])
        run.wait()
    in_order(said, r'\$1 = 0', 'exited with code 03')


@test
def signals_are_seen_and_passed():
    need('gdb')
    said, log = dialogue('signals', ['continue', 'print handled', 'signal 0', 'continue',
                                     'backtrace 1', 'continue'],
                         ['--tool=none', '--vgdb-error=0'], arguments=['fault'])
    in_order(said, 'received signal SIGUSR1', r'\$1 = 0', 'received signal SIGUSR2',
             'received signal SIGSEGV', r'#0 .* main ', 'terminated with signal SIGSEGV')
    contains(log, f'handled {signal.SIGUSR2}\n')


@test
def signals_that_gdb_passes():
    need('gdb')
    said, log = dialogue('signals', ['handle SIGUSR1 SIGUSR2 nostop noprint pass', 'continue'],
                         ['--tool=none', '--vgdb-error=0'])
    in_order(said, 'exited normally')
    contains(log, f'handled {signal.SIGUSR1 + signal.SIGUSR2}\n')


@test
def registers_and_memory_change():
    need('gdb')
    said, log = dialogue('values', [
        'break compute', 'continue', 'print a', 'print b', 'print $xmm0.v2_double[0]',
        'print $rdi == a', 'set var number = 5', 'set var text[0] = 82',
        'finish', 'print $rip == $pc', 'print twice(21)', 'continue'],
        ['--tool=none', '--vgdb-error=0'], flags=['-mavx'])
    in_order(said, r'\$1 = 41', r'\$2 = 1\.25', r'\$3 = 1\.25', r'Value returned is', r'= 42$', 'exited with code 05')
    contains(log, '42 Read only 5\n')


@test
def vector_registers():
    need('gdb')
    said, _ = dialogue('values', ['break twice', 'break 12', 'continue', 'print $ymm0.v4_double',
                                  'print $ymm0.v4_double[3] = 8.5', 'print $xmm3.v4_float[1] = 0.25',
                                  'print $xmm3.v4_float[1]', 'print $ymm0.v4_double', 'kill'],
                       ['--tool=none', '--vgdb-error=0'], flags=['-mavx', '-O1'])
    in_order(said, r'8\.5', r'0\.25', r'0\.25', r', 8\.5\}')


@test
def kill_ends_it():
    need('gdb')
    path = program('errors')
    with target(['--vgdb-error=0', path], ready='target remote') as run:
        gdb(run, path, ['kill'])
        log = run.wait()
    equal(run.process.returncode, -signal.SIGKILL, 'status')
    contains(log, 'signal 9')


@test
def refuses_what_it_cannot_do():
    path = program('threads', '-pthread')
    with target(['--vgdb=no', path], ready='READY') as run:
        done = subprocess.run([run.runner, 'vgdb', f'--pid={run.pid}'], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        equal(done.returncode, 1, 'status')
        contains(done.stderr, '--vgdb=no')
    done = subprocess.run([run.runner, 'vgdb', '--pid=1'], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)
    equal(done.returncode, 1, 'status')
    contains(done.stderr, 'process 1 does not run under Quern')


@test
def watch_points():
    need('gdb')
    said, _ = dialogue('watched', ['break main', 'continue', 'watch first', 'rwatch second',
                                   'awatch third', 'continue', 'continue', 'continue', 'continue',
                                   'continue', 'delete', 'continue'],
                       ['--tool=none', '--vgdb-error=0'])
    in_order(said, 'Hardware watchpoint 2', 'Hardware read watchpoint 3', 'watchpoint 4: third',
             'Hardware watchpoint 2: first', 'Old value = 0', 'New value = 7', 'write_first',
             'Hardware read watchpoint 3: second', 'Value = 2', 'read_second', 'watchpoint 4: third',
             'change_third', 'watchpoint 4: third', 'Hardware watchpoint 2: first',
             'New value = 1684234849', 'exited normally')


@test
def watch_points_see_what_the_tool_writes():
    """memcheck performs memcpy itself; and an error does not hide the access."""
    need('gdb')
    said, log = dialogue('watched', ['break main', 'continue', 'watch first', 'continue', 'continue',
                                     'delete', 'continue'])
    in_order(said, 'New value = 7', 'New value = 1684234849', 'exited normally')
    contains(log, 'ERROR SUMMARY: 0 errors')


@test
def shadow_registers():
    """Undefined bits of registers, in the same dialogue with both tools."""
    need('gdb', 'valgrind')
    script = ['break stop', 'continue', 'print/x $r12s1', 'print/x $r13s1', 'print/x $r14s1', 'print/x $rsps1',
              'print/x $xmm5s1', 'print/x $eflagss1', 'print/x $r13', 'print $r13s2', 'print/x $ymm5hs1', 'kill']
    said = [re.findall(r'^\$\d+ = .*', dialogue('shadows', script, ['--vgdb-error=0', '--vgdb-shadow-registers=yes'],
                                              runner, flags=['-mavx'])[0], re.M) for runner in ('quern', 'valgrind')]
    equal(said[0][:4], ['$1 = 0xffffffffffffffff', '$2 = 0x0', '$3 = 0xff', '$4 = 0x0'], 'shadows')
    equal(said[0][4:8], said[1][4:8], 'what Valgrind says, too')
    equal(len(said[0]), 9, 'values')


@test
def no_shadow_registers_unless_asked_for():
    need('gdb')
    said, _ = dialogue('shadows', ['break stop', 'continue', 'print/x $r12s1', 'kill'])
    in_order(said, 'Breakpoint 1', r'\$1 = <error|\$1 = void|Invalid register|void')

"""Commands to a process that stands still: by vgdb, by ctl, by gdb's monitor."""
import os
import re
import signal
import subprocess

from suite import QUERN, contains, equal, need, test, until
from support import gdb, in_order, program, target

# Addresses: {0} a block of 100 bytes, {1} one of 16, {3} one that only another block points to.
COMMANDS = [
    'get_vbits {0} 60', 'get_vbits {1} 16', 'get_vbits {0} 0x70', 'xb {1} 8',
    'check_memory addressable {0} 100', 'check_memory addressable {0} 101',
    'check_memory defined {1} 16', 'make_memory noaccess {1} 1', 'get_vbits {1} 16',
    'make_memory defined {1} 16', 'check_memory defined {1} 16',
    'leak_check', 'leak_check summary', 'leak_check full reachable any', 'leak_check full any kinds definite',
    'who_points_at {0}', 'who_points_at {3} 10', 'v.info last_error', 'v.info all_errors',
    'v.info location {0}', 'v.set vgdb-error 3', 'foo bar', 'v.foo', 'get_vbits', 'make_memory x {0}',
]


def addresses(run):
    with open(run.log) as file:
        return re.search(r'^READY (.*)', file.read(), re.M)[1].split()


def ask(run, *words, status=0):
    command = [*run.vgdb.split(), f'--pid={run.pid}', *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    equal(done.returncode, status, f'status of {words}: {done.stderr}')
    return done.stdout


def masked(text):
    """Without addresses, prefixes, frames, and what only one of the two says."""
    lines = [re.sub(r'^==\d+== ', '', line).strip() for line in text.split('\n')]
    lines = [re.sub(r'0x[0-9a-fA-F]+', 'ADDRESS', line) for line in lines]
    return [line for line in lines if line and not re.match(r'(at|by) ADDRESS|Held by|sending command', line)]


@test
def commands_as_in_valgrind():
    need('valgrind')
    path = program('blocks')
    with target([path], ready='READY .*\n') as ours, \
            target([path], 'valgrind', ready='READY .*\n') as theirs:
        for command in COMMANDS:
            said = [ask(run, *command.format(*addresses(run)).split()) for run in (ours, theirs)]
            equal(masked(said[0]), masked(said[1]), f'answer to {command}')


@test
def lists_of_blocks():
    with target([program('blocks')], ready='READY .*\n') as run:
        contains(ask(run, 'block_list', '1'), 'do a leak_check first')
        text = ask(run, 'leak_check', 'full', 'reachable', 'any')
        record = re.search(r'77 bytes in 1 blocks are definitely lost in loss record (\d+)', text)[1]
        equal(re.findall(r'0x[0-9A-F]+\[(\d+)\]', ask(run, 'block_list', record)), ['77'], 'blocks')
        contains(ask(run, 'block_list', '99'), 'there are 6 loss records')


@test
def ctl_and_monitor_are_the_same():
    need('gdb')
    path = program('blocks')
    with target([path], ready='READY .*\n') as run:
        kept = addresses(run)[0]
        wanted = ask(run, 'get_vbits', kept, '60')
        done = subprocess.run([QUERN, 'ctl', str(run.pid), 'get_vbits', kept, '60'],
                              capture_output=True, text=True, timeout=300)
        equal(done.stdout, wanted, 'ctl')
        said = gdb(run, path, [f'monitor get_vbits {kept} 60', 'monitor who_points_at ' + kept,
                               'monitor v.set log_output', f'monitor get_vbits {kept} 1', 'detach'])
        contains(said, wanted)
        in_order(said, r'\*0x[0-9a-f]+ points at', 'data symbol "kept"')
        equal(re.search(r'^00$', said, re.M), None, 'output that goes to the log')
        run.wait_for(r'==\d+== 00\n')


@test
def several_commands_and_the_list():
    with target([program('blocks')], ready='READY .*\n') as run:
        said = ask(run, '-c', 'v.info', 'last_error', '-c', 'v.set', 'vgdb-error', '7')
        in_order(said, 'No errors yet', 'vgdb-error value changed from 999999999 to 7')
        done = subprocess.run([QUERN, 'vgdb', '-l'], capture_output=True, text=True, timeout=300)
        contains(done.stdout, f'use --pid={run.pid} for ')


@test
def process_that_execs_meanwhile():
    """Whoever asks for it then waits or is refused. The process never gets a signal that ends it."""
    with target(['--tool=none', '--trace-children=yes', program('execs'), '100']) as run:
        answers = 0
        while run.process.poll() is None:
            done = subprocess.run([QUERN, 'vgdb', f'--pid={run.pid}', 'v.wait'], capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=300)
            answers += done.returncode == 0
        equal(run.process.returncode, 4, f'status after {answers} answers; {run.wait()[-300:]}')


@test
def counters_of_callgrind():
    with target(['--tool=callgrind', '--callgrind-out-file=out.%p', program('blocks')],
                ready='READY .*\n') as run:
        ask(run, 'dump')
        until(lambda: any(name.startswith(f'out.{run.pid}') for name in os.listdir('.')), what='a dump')
        contains(ask(run, 'status'), 'tool callgrind')


@test
def redis():
    need('gdb', 'redis-server', 'redis-cli')
    words = ['redis-server', '--port', '0', '--unixsocket', './socket', '--save', '', '--daemonize', 'no']
    cli = ['redis-cli', '-s', './socket']
    with target(['--tool=memcheck', *words], ready='Ready to accept|ready to accept') as run:
        said = gdb(run, '/usr/bin/redis-server', ['info threads', 'break epoll_wait', 'continue', 'backtrace 1',
                                   'info registers rip', 'delete', 'monitor leak_check summary',
                                   'detach'])
        equal(len(re.findall(r'^\*? +\d+ +Thread ', said, re.M)) >= 4, True, 'threads')
        in_order(said, 'Breakpoint 1', '#0 .*epoll_wait', 'LEAK SUMMARY', 'definitely lost')
        done = subprocess.run([*cli, 'ping'], capture_output=True, text=True, timeout=300)
        equal(done.stdout, 'PONG\n', 'answer after gdb has gone')
        subprocess.run([*cli, 'shutdown', 'nosave'], capture_output=True, timeout=300)
        run.wait()

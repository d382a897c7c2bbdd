"""vgdb --multi, which starts programs for gdb, and --port, to which gdb connects by TCP."""
import os
import re
import signal
import socket
import subprocess

from suite import QUERN, contains, equal, need, test, until
from support import GDB, in_order, program, read, target


def extended(commands, options=(), path='args'):
    """What gdb says to these commands after target extended-remote."""
    path = program(path)
    words = [*GDB, '-ex', 'target extended-remote | ' + ' '.join([QUERN, 'vgdb', '--multi', *options]),
             '-ex', f'set remote exec-file {path}']
    for command in commands:
        words += ['-ex', command]
    done = subprocess.run([*words, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300)
    return done.stdout


@test
def programs_run_again_and_again():
    need('gdb')
    said = extended(['break main', 'run "a b" c', 'print c', 'print v[1]', 'continue', 'run', 'print c', 'kill',
                     'run x', 'delete', 'print c', 'detach', 'run y', 'continue'])
    in_order(said, 'Breakpoint 1, main', r'\$1 = 3', r'\$2 = .*"a b"', r'\[a b\]', 'exited with code 03',
             'Breakpoint 1, main', r'\$3 = 3', 'killed', 'Breakpoint 1, main', r'\$4 = 2', 'detached')
    contains(said, 'exited with code 02')


@test
def options_of_the_runs():
    """All words behind --vargs are for quern."""
    need('gdb')
    said = extended(['run', 'monitor v.info n_errs_found', 'continue'], ['--vargs', '--tool=memcheck', '--error-exitcode=9'],
                    path='errors')
    in_order(said, 'n_errs_found 1', 'n_errs_found|exited|received')
    said = extended(['run'], ['--vargs', '--no-such-option'])
    contains(said, "--no-such-option")


@test
def a_program_that_is_not_there():
    need('gdb')
    said = extended(['set remote exec-file /nowhere', 'run', 'echo STILL HERE\\n'])
    in_order(said, 'STILL HERE')


def free_port():
    with socket.socket() as listening:
        listening.bind(('127.0.0.1', 0))
        return listening.getsockname()[1]


@test
def gdb_connects_by_tcp():
    need('gdb')
    port = free_port()
    path = program('errors')
    with target(['--vgdb-error=0', path], ready='target remote') as run:
        with open('vgdb.log', 'w') as file:
            relay = subprocess.Popen([QUERN, 'vgdb', f'--pid={run.pid}', f'--port={port}'], stdin=subprocess.DEVNULL,
                                     stdout=file, stderr=subprocess.STDOUT)
        until(lambda: 'listening on port' in read('vgdb.log') or relay.poll() is not None)
        # Other machines cannot connect.
        with open('/proc/net/tcp') as file:
            equal(re.findall(rf'^ *\d+: (\w+):{port:04X} 0+:0000 0A', file.read(), re.M), ['0100007F'], 'address')
        words = [*GDB, '-ex', f'target remote localhost:{port}', '-ex', 'break main', '-ex', 'continue', '-ex', 'kill', path]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300)
        in_order(done.stdout, 'Breakpoint 1, main')
        equal(relay.wait(300), 0, 'status of vgdb')


@test
def a_port_that_is_taken():
    with socket.socket() as listening, target(['--tool=none', program('threads', '-pthread')], ready='READY') as run:
        listening.bind(('127.0.0.1', 0))
        listening.listen()
        done = subprocess.run([QUERN, 'vgdb', f'--pid={run.pid}', f'--port={listening.getsockname()[1]}'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        equal(done.returncode, 1, 'status')
        contains(done.stderr, 'cannot wait for gdb on port')

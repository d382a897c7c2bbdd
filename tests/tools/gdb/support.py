"""Dialogues: a program that waits for gdb, and gdb with a script."""
import contextlib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.abspath(__file__).rsplit('/tests/', 1)[0] + '/tests')
from suite import QUERN, build, failed, until

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'targets')
GDB = ['gdb', '-nx', '-batch', '-ex', 'set pagination off', '-ex', 'set debuginfod enabled off',
       '-ex', 'set confirm off', '-ex', 'set remotetimeout 300']
RUNNERS = {'quern': (QUERN, QUERN + ' vgdb'), 'valgrind': ('valgrind', 'vgdb')}


def program(name, *flags):
    return build(os.path.join(TARGETS, name + '.c'), '-g', '-O0', *flags)


def read(path):
    with open(path, errors='replace') as file:
        return file.read()


class Target:
    """A run whose log and output go to a file."""

    def __init__(self, words, runner='quern', **more):
        self.log = f'{runner}.log'
        self.runner, self.vgdb = RUNNERS[runner]
        with open(self.log, 'w') as file:
            self.process = subprocess.Popen([self.runner, *words], stdout=file,
                                            stderr=subprocess.STDOUT, **more)
        self.wait_for(r'==\d+== Command')
        self.pid = int(re.search(r'==(\d+)==', read(self.log))[1])

    def wait_for(self, pattern):
        until(lambda: re.search(pattern, read(self.log)) or self.process.poll() is not None,
              what=f'{pattern} in the log')

    def wait(self):
        self.process.wait(300)
        return read(self.log)


@contextlib.contextmanager
def target(words, runner='quern', ready='', **more):
    """A run that is ended with the block. `ready`: what its log holds when gdb may come."""
    run = Target(words, runner, **more)
    try:
        if ready:
            run.wait_for(ready)
        yield run
    finally:
        if run.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(run.pid, 9)
        run.process.wait()


def gdb_words(run, path, commands):
    words = [*GDB, '-ex', f'target remote | {run.vgdb} --pid={run.pid}']
    for command in commands:
        words += ['-ex', command]
    return [*words, path]


def gdb(run, path, commands):
    """What gdb prints for these commands."""
    done = subprocess.run(gdb_words(run, path, commands), stdin=subprocess.DEVNULL, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def dialogue(name, commands, options=('--vgdb-error=0',), runner='quern', arguments=(), flags=()):
    """What gdb prints, and the log, of a program that waits for gdb at its start."""
    path = program(name, *flags)
    with target([*options, path, *arguments], runner, ready='target remote') as run:
        said = gdb(run, path, commands)
        return said, run.wait()


def in_order(text, *patterns):
    """The text contains these patterns one after the other."""
    at = 0
    for pattern in patterns:
        match = re.search(pattern, text[at:], re.M)
        if not match:
            failed(f'no {pattern!r} after the first {at} characters of\n{text}')
        at += match.end()

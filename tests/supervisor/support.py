"""What the tests of this suite share."""
import os
import signal
import subprocess

import suite
from suite import equal, run, test, until

STAND_IN = os.path.join(suite.BUILD, 'tests/supervisor/native-engine')
REAL = os.path.join(suite.BUILD, 'quern-engine')


def quern():
    return suite.stage(os.path.join(suite.FOLDER, 'stage'), STAND_IN)


def both(function):
    """A test for either engine; it gets the path of quern."""
    def with_stand_in():
        function(quern())
    with_stand_in.__name__ = function.__name__
    test(with_stand_in)
    if os.path.exists(REAL):
        def with_engine():
            function(suite.QUERN)
        with_engine.__name__ = function.__name__ + '_engine'
        test(with_engine)
    return function


def say(*words, options=(), **more):
    """Plays wire messages; (status, stdout, stderr)."""
    path = os.path.join(suite.FOLDER, 'say')
    if not os.path.exists(path):
        os.symlink('/bin/true', path)
    return run([quern(), '--tool=none', *options, path, *words], **more)


def start(words, **more):
    return subprocess.Popen(words, env=suite.clean_environment(), text=True, errors='replace',
                            **more)


def child_of(pid):
    """The main process below a supervisor, once it runs the target's program."""
    def look():
        with open(f'/proc/{pid}/task/{pid}/children') as file:
            children = file.read().split()
        return int(children[0]) if children else None
    return until(look, what='a child')


def start_cat(program, *options, **more):
    """cat under quern, at work; (the process, the main process's pid). It ends when its input does."""
    process = start([program, *options, 'none', 'cat'], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, **more)
    process.stdin.write('ready\n')
    process.stdin.flush()
    equal(process.stdout.readline(), 'ready\n', 'what cat says')
    return process, child_of(process.pid)


def ignore_ends():
    """Before exec, so that a target is never without it, however late it starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def with_engine(function):
    """A test that needs translation: only when there is an engine."""
    return test(function) if os.path.exists(REAL) else function

"""What the tests of this suite share. The target folder is one for all tests."""
import atexit
import os
import re
import shutil
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
import suite
from suite import BUILD, equal, run, skip

BUILT = tempfile.mkdtemp(prefix='quern-cargo-')
atexit.register(shutil.rmtree, BUILT, ignore_errors=True)


def find_cargo():
    program = shutil.which('cargo') or os.path.expanduser('~/.cargo/bin/cargo')
    if not os.path.exists(program):
        skip('cargo is not installed')
    return program


def environment(**more):
    """rustup and cargo look for themselves below HOME."""
    return {'HOME': os.environ['HOME'], 'PATH': BUILD + ':' + os.environ['PATH'], 'CARGO_TARGET_DIR': BUILT,
            'CARGO_NET_OFFLINE': 'true', 'CARGO_TERM_COLOR': 'never', **more}


def cargo(*words, folder='app', env=None, source=os.path.join(HERE, 'workspace'), **more):
    """(status, stdout, stderr) of cargo in a folder of the source's copy."""
    copy = os.path.join(suite.FOLDER, 'copy')
    if not os.path.exists(copy):
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns('target'))
    return run([find_cargo(), *words], cwd=os.path.join(copy, folder), env=environment(**(env or {})), **more)


def quern(*words, **more):
    return cargo('quern', *words, **more)


def works(result, status=0):
    equal(result[0], status, f'status (with {result[1][-300:]!r}, {result[2][-600:]!r})')
    return result[1], result[2]


def commands(log):
    """The programs that quern ran, without the folder and the hash of the build."""
    return [re.sub(r'-[0-9a-f]{16}$', '', os.path.basename(path))
            for path in re.findall(r'^==\d+== Command: (\S+)', log, re.M)]

"""What the tests of this suite share."""
import atexit
import os
import re

import suite
from lib.massif_file import snapshots, the_peak, without_library
from lib.recordings import build_fixed
from suite import QUERN, equal, failed, run, succeed

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'targets')
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')


def build(name, *flags):
    """Compiles a target; its path."""
    return build_fixed(name, *flags, folders=[TARGETS])


def massif(program, *options, arguments=(), status=0, **more):
    """Runs quern --tool=massif; (text of the file, stdout, stderr)."""
    path = os.path.join(suite.FOLDER, 'quern.out')
    if os.path.exists(path):
        os.remove(path)
    out, err = succeed([QUERN, '--tool=massif', '--time-unit=B', f'--massif-out-file={path}', *options,
                        program, *arguments], status, **more)
    with open(path, errors='replace') as file:
        return file.read(), out, err


def valgrind_massif(program, *options, arguments=()):
    path = os.path.join(suite.FOLDER, 'valgrind.out')
    run(['valgrind', '--tool=massif', '--time-unit=B', f'--massif-out-file={path}', *options,
         program, *arguments], timeout=300)
    with open(path, errors='replace') as file:
        return file.read()


def peak(text):
    return the_peak(snapshots(text))


def comparable(text):
    """A massif.out without what must differ: options, and where libraries are mapped."""
    return [without_places(line) for line in text.splitlines()[2:]]


def without_places(line):
    # We name the dynamic linker's first function, Valgrind does not.
    return without_library(line).replace(': _dl_start_user (in', ': ??? (in')


compared = set()
atexit.register(lambda: print(f"# {len(compared)} programs whose massif.out is Valgrind's"))


def same_as_valgrind(name, *options, flags=()):
    program = build(name, *flags)
    compared.add(name)
    ours = comparable(massif(program, *options)[0])
    theirs = comparable(valgrind_massif(program, *options))
    if len(theirs) < 30:
        failed(f'only {len(theirs)} lines to compare')
    for number, (our, their) in enumerate(zip(ours, theirs), 3):
        equal(our, their, f'line {number}')
    equal(len(ours), len(theirs), 'number of lines')


def record_and_listen(program, *options, arguments=(), status=0, **more):
    """Runs quern --tool=heap; (path of the recording, log, what the program says)."""
    path = os.path.join(suite.FOLDER, 'recording.quern')
    out, err = succeed([QUERN, 'heap', f'--heap-out-file={path}', *options, program, *arguments],
                       status, **more)
    return path, err, out


def record(*words, **more):
    """Runs quern --tool=heap; (path of the recording, log)."""
    return record_and_listen(*words, **more)[:2]


def figure(text, pattern):
    """A number with commas in it."""
    match = re.search(pattern, text)
    if not match:
        failed(f'{pattern} is not in {text[:600]!r}')
    return int(match[1].replace(',', ''))

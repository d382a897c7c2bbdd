"""What the tests of this suite share."""
import atexit
import os
import re
import subprocess

import suite
from suite import QUERN, equal, failed, run

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'targets')
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')


def build(name, *flags):
    """Compiles a target; its path."""
    source = next(os.path.join(TARGETS, name + end) for end in ('.c', '.cc')
                  if os.path.exists(os.path.join(TARGETS, name + end)))
    program = os.path.join(suite.FOLDER, name)
    compiler = 'g++' if source.endswith('.cc') else 'gcc'
    # -fno-builtin: or the compiler removes allocations that are not used.
    subprocess.run([compiler, '-g', '-O1', '-no-pie', '-fno-pie', '-fno-builtin', '-w', *flags,
                    source, '-o', program, '-lpthread', '-ldl'], check=True)
    return program


def massif(program, *options, arguments=(), status=0, **more):
    """Runs quern --tool=massif; (text of the file, stdout, stderr)."""
    path = os.path.join(suite.FOLDER, 'quern.out')
    if os.path.exists(path):
        os.remove(path)
    got = run([QUERN, '--tool=massif', '--time-unit=B', f'--massif-out-file={path}', *options,
               program, *arguments], **more)
    equal(got[0], status, f'status (with {got[2][-300:]!r})')
    with open(path, errors='replace') as file:
        return file.read(), got[1], got[2]


def valgrind_massif(program, *options, arguments=()):
    path = os.path.join(suite.FOLDER, 'valgrind.out')
    run(['valgrind', '--tool=massif', '--time-unit=B', f'--massif-out-file={path}', *options,
         program, *arguments], timeout=300)
    with open(path, errors='replace') as file:
        return file.read()


def snapshots(text):
    """The snapshots of a massif.out as dictionaries; the tree under 'tree'."""
    result = []
    for line in text.splitlines()[3:]:
        if line.startswith('snapshot='):
            result.append({'tree': []})
        elif line.startswith('#'):
            pass
        elif re.match(r' *n\d+: ', line):
            result[-1]['tree'].append(line)
        else:
            name, value = line.split('=')
            result[-1][name] = int(value) if value.isdigit() else value
    return result


def peak(text):
    peaks = [one for one in snapshots(text) if one['heap_tree'] == 'peak']
    equal(len(peaks), 1, 'number of peaks')
    return peaks[0]


def comparable(text):
    """A massif.out without what must differ: options, and where libraries are mapped."""
    return [without_places(line) for line in text.splitlines()[2:]]


def without_places(line):
    line = re.sub(r'0x(?=[0-9A-F]{7,}:)[0-9A-F]+', '0xLIBRARY', line)
    # We name the dynamic linker's first function, Valgrind does not.
    return line.replace(': _dl_start_user (in', ': ??? (in')


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
    got = run([QUERN, 'heap', f'--heap-out-file={path}', *options, program, *arguments], **more)
    equal(got[0], status, f'status (with {got[2][-300:]!r})')
    return path, got[2], got[1]


def record(*words, **more):
    """Runs quern --tool=heap; (path of the recording, log)."""
    return record_and_listen(*words, **more)[:2]


def figure(text, pattern):
    """A number with commas in it."""
    match = re.search(pattern, text)
    if not match:
        failed(f'{pattern} is not in {text[:600]!r}')
    return int(match[1].replace(',', ''))

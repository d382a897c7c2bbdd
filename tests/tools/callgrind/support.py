"""What the tests of this suite share."""
import os
import subprocess
import tempfile

from lib.callgrind_profile import Profile
from suite import BUILD, QUERN, equal, failed

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = {'recursion': '.c', 'branches': '.c', 'strings': '.c', 'signals': '.c', 'jumps': '.c',
           'threads': '.c', 'objects': '.cc', 'caches': '.c', 'phases': '.c', 'tails': '.c',
           'thrown': '.cc'}
SHAPES = {'usual': ('--I1=32768,8,64', '--D1=32768,8,64', '--LL=8388608,16,64'),
          'small': ('--I1=1024,1,64', '--D1=4096,2,32', '--LL=65536,4,64')}
VARIANTS = [(level, link) for level in '02' for link in ('dynamic', 'static')]


def program(name, level='0', link='dynamic'):
    return os.path.join(BUILD, f'tests/tools/callgrind/{name}-O{level}-{link}')


def profile(command, *options, runner=QUERN, status=0, **environment):
    """(the profile, the process)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        done = subprocess.run([runner, '--tool=callgrind', f'--callgrind-out-file={path}', *options,
                               *command], capture_output=True, text=True, timeout=300,
                              env={**os.environ, **environment})
        equal(done.returncode, status, 'exit status')
        return Profile(path), done


def mine(counter, source):
    """What concerns the program's own functions only, by name."""
    def name(function):
        return function[2] if function[1].endswith('/' + source) else None
    found = {}
    for key, count in counter.items():
        names = (name(key),) if isinstance(key[1], str) else (name(key[0]), name(key[1]))
        if None not in names:
            found[names] = found.get(names, 0) + count
    return found


def differences(ours, theirs):
    return {key: (ours.get(key), theirs.get(key)) for key in ours.keys() | theirs.keys()
            if ours.get(key) != theirs.get(key)}


def compare(name, level, link):
    source = name + SOURCES[name]
    command = [program(name, level, link)]
    ours, _ = profile(command)
    theirs, _ = profile(command, runner='valgrind')
    wanted = mine(theirs.own, source)
    if len(wanted) < 4:
        failed(f'only {len(wanted)} functions to compare')
    equal(differences(mine(ours.own, source), wanted), {}, 'own cost')
    equal(differences(mine(ours.calls, source), mine(theirs.calls, source)), {}, 'calls')
    # What the C library spends depends on the processor that it finds.
    reach = {key for key in mine(theirs.inclusive, source)
             if not leaves_program(theirs, source, key[1])}
    ours_inclusive, theirs_inclusive = mine(ours.inclusive, source), mine(theirs.inclusive, source)
    equal({key: ours_inclusive.get(key) for key in reach},
          {key: theirs_inclusive[key] for key in reach}, 'inclusive cost')
    equal(differences(lines_of(ours, source), lines_of(theirs, source)), {}, 'cost of lines')


def lines_of(profile, source):
    return {(function[2], line): cost for (function, file, line), cost in profile.lines.items()
            if function[1].endswith('/' + source) and file.endswith('/' + source)}


def leaves_program(profile, source, name):
    """Whether a function calls others than the program's own, directly or not."""
    seen, todo = set(), [name]
    while todo:
        at = todo.pop()
        for caller, callee in profile.calls:
            if caller[2] != at or not caller[1].endswith('/' + source):
                continue
            if not callee[1].endswith('/' + source):
                return True
            if callee[2] not in seen:
                seen.add(callee[2])
                todo.append(callee[2])
    return False


# Functions of the C library that every processor has, so that both runs have the same; as much
# memory is copied by them.
PLAIN_PROCESSOR = 'glibc.cpu.hwcaps=' + ','.join('-' + name for name in (
    'AVX', 'AVX2', 'AVX512F', 'AVX512VL', 'AVX512BW', 'SSSE3', 'SSE4_1', 'SSE4_2', 'ERMS', 'FSRM',
    'XSAVE', 'XSAVEC', 'Fast_Unaligned_Load', 'AVX_Fast_Unaligned_Load')) + ''.join(
        f':glibc.cpu.x86_{name}_threshold=0x1000000'
        for name in ('non_temporal', 'rep_movsb', 'rep_stosb'))
# What a line that is replaced adds to them at the most: 1000 divided by its uses, and its bytes.
BY_LINE = {'AcCost1': 1000, 'AcCost2': 1000, 'SpLoss1': 64, 'SpLoss2': 64}


def near(event, ours, theirs):
    """Start-up code and the stack lie elsewhere and leave other things in the caches: three lines."""
    return abs(ours - theirs) <= max(3 * BY_LINE.get(event, 1), theirs // 100)


def compare_events(ours, theirs, what):
    """Counts are equal, and so are misses but for what went before."""
    for event, wanted in theirs.items():
        got = ours[event]
        exact = event in ('Ir', 'Dr', 'Dw', 'Bc', 'Bi')
        for key in set(got) | set(wanted):
            one, other = got.get(key, 0), wanted.get(key, 0)
            if one != other and (exact or not near(event, one, other)):
                failed(f'{what}: {event} of {key} is {one}, not {other}')


def dumps(command, *options, runner=QUERN):
    """{what follows the file's name: its profile}"""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([runner, '-q', '--tool=callgrind', '--callgrind-out-file=out', *options,
                        *command], cwd=folder, capture_output=True, timeout=300, check=True)
        return {name[3:]: Profile(os.path.join(folder, name)) for name in os.listdir(folder)}


def spent_in(got, name):
    return sum(cost for function, cost in got.own.items() if function[2] == name)

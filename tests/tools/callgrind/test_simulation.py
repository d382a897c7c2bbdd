"""Simulation of caches and branch prediction."""
import difflib
import os
import re
import subprocess
import tempfile
from collections import Counter

from suite import QUERN, TESTS, contains, equal, failed, test
from support import PLAIN_PROCESSOR, SHAPES, VARIANTS, compare_events, mine, profile, program


def cachegrind(command, *options, runner=QUERN, of='caches.c'):
    """({(function, line of this source): costs by event}, the events, the file's head, the process)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        done = subprocess.run([runner, '--tool=cachegrind', f'--cachegrind-out-file={path}',
                               '--cache-sim=yes', *options, *command], capture_output=True, text=True, timeout=300)
        equal(done.returncode, 0, 'exit status')
        with open(path, encoding='utf-8', errors='surrogateescape') as file:
            lines = file.read().splitlines()
    events = next(line for line in lines if line.startswith('events: ')).split()[1:]
    head = lines[:lines.index('events: ' + ' '.join(events))]
    costs, total = {}, [0] * len(events)
    name = source = None
    for line in lines[len(head) + 1:-1]:
        if line.startswith('fl='):
            source = line[3:]
        elif line.startswith('fn='):
            name = line[3:]
        else:
            number, *values = map(int, line.split())
            equal(len(values), len(events), 'numbers in a line')
            total = [a + b for a, b in zip(total, values)]
            if source.endswith('/' + of):
                before = costs.get((name, number), [0] * len(events))
                costs[name, number] = [a + b for a, b in zip(before, values)]
    equal(lines[-1], 'summary: ' + ' '.join(map(str, total)), 'the last line')
    return costs, events, head, done


for _shape, _options in SHAPES.items():
    for _level in '02':
        def _lines(options=_options, level=_level):
            command = [program('caches', level, 'static')]
            ours, events, head, _ = cachegrind(command, '--branch-sim=yes', *options)
            theirs, wanted, their_head, _ = cachegrind(command, '--branch-sim=yes', *options,
                                                       runner='valgrind')
            equal(events, wanted, 'events')
            equal(head[:3], their_head[:3], 'the caches')
            if sum(costs[events.index('D1mr')] for costs in ours.values()) < 10000:
                failed('hardly any misses')
            by_event = [{event: {key: values[i] for key, values in costs.items()}
                         for i, event in enumerate(events)} for costs in (ours, theirs)]
            compare_events(*by_event, 'cachegrind')
        TESTS.append((f'cachegrind_as_valgrind_{_shape}_O{_level}', _lines))

        def _graph(options=_options, level=_level):
            command = [program('caches', level, 'static')]
            got, _ = profile(command, '--cache-sim=yes', '--branch-sim=yes', *options)
            wanted, _ = profile(command, '--cache-sim=yes', '--branch-sim=yes', *options,
                                runner='valgrind')
            equal(list(got.events), list(wanted.events), 'events')
            for kind, what in ((0, 'own'), (1, 'inclusive')):
                compare_events(*({event: mine(counters[kind], 'caches.c')
                                  for event, counters in side.events.items()}
                                 for side in (got, wanted)), what)
        TESTS.append((f'callgrind_caches_as_valgrind_{_shape}_O{_level}', _graph))


def by_function(costs, events):
    """{event: {function: count}} of what cachegrind() returns"""
    return {event: dict(sum((Counter({name: values[i]}) for (name, _), values in costs.items()),
                            Counter()))
            for i, event in enumerate(events)}


for _level in '02':
    for _chase in ('yes', 'no'):
        def _pairs(level=_level, chase=_chase):
            """Branches that are taken for one, or not, are so in every function."""
            ours, theirs = (by_function(*cachegrind(
                [program('pairs', level, 'static')], '--branch-sim=yes', '--cache-sim=no',
                f'--vex-guest-chase={chase}', runner=runner, of='pairs.c')[:2])
                            for runner in (QUERN, 'valgrind'))
            equal(list(ours), list(theirs), 'events')
            if chase == 'yes':
                # Valgrind counts what lies between two branches also where it did not run.
                if sum(ours.pop('Ir').values()) >= sum(theirs.pop('Ir').values()):
                    failed('no instruction was counted in vain')
            compare_events(ours, theirs, 'pairs')
            if sum(ours['Bcm'].values()) < 10000:
                failed('hardly any wrong predictions')
        TESTS.append((f'pairs_as_valgrind_O{_level}_{_chase}', _pairs))


for _shape in SHAPES:
    for _options in (('--simulate-wb=yes',), ('--simulate-hwpref=yes',), ('--cacheuse=yes',),
                     ('--simulate-wb=yes', '--simulate-hwpref=yes')):
        def _models(shape=SHAPES[_shape], options=_options):
            command = [program('caches', '2', 'static')]
            got, wanted = (profile(command, *options, *shape, runner=runner)[0]
                           for runner in (QUERN, 'valgrind'))
            plain, _ = profile(command, *shape)
            equal(list(got.events), list(wanted.events), 'events')
            ours, theirs, usual = ({event: mine(counters[0], 'caches.c')
                                    for event, counters in side.events.items()}
                                   for side in (got, wanted, plain))
            for side in (ours, theirs):
                for event in ('ILdmr', 'DLdmr', 'DLdmw'):
                    # The first to run makes room for itself: what start-up code has written goes.
                    side.get(event, {}).pop(('multiply',), None)
                for event in ('AcCost1', 'SpLoss1', 'AcCost2', 'SpLoss2'):
                    # How its frame lies in lines of the cache depends on what the tools put above it.
                    side.get(event, {}).pop(('main',), None)
            compare_events(ours, theirs, options)
            if ours == usual:
                failed('nothing is different from the plain model')
        TESTS.append((f'as_valgrind_with_{"_".join(option[2:-4] for option in _options)}_{_shape}', _models))


# What Valgrind adds to a program's environment, and has its dynamic linker load.
OF_VALGRIND = {'LD_LIBRARY_PATH': '/usr/lib/debug', 'GLIBCPP_FORCE_NEW': '1',
               'GLIBCXX_FORCE_NEW': '1', 'PWD': '/',
               'LD_PRELOAD': '/usr/libexec/valgrind/vgpreload_core-amd64-linux.so'}
# Misses, and wrong predictions, where the C library asks the processor what it is.
OF_START_UP = 50


def same_environment(runner):
    """For a target that is to find the same under both."""
    return {'PATH': os.environ['PATH'], 'LD_BIND_NOW': '1', 'PERL_HASH_SEED': '0', 'PYTHONHASHSEED': '0',
            'GLIBC_TUNABLES': PLAIN_PROCESSOR, **(OF_VALGRIND if runner == QUERN else {})}


for _level, _link in VARIANTS:
    def _places(level=_level, link=_link):
        """Memory lies where it does in Valgrind: what meets in a cache goes by that."""
        for tool in ('cachegrind', 'callgrind'):
            ours, theirs = (subprocess.run(
                [runner, '-q', f'--tool={tool}', f'--{tool}-out-file=/dev/null', program('places', level, link)],
                check=True, timeout=300, env=same_environment(runner), cwd='/', capture_output=True,
                text=True).stdout.splitlines() for runner in (QUERN, 'valgrind'))
            equal(list(difflib.unified_diff(theirs, ours, lineterm='', n=0)), [], f'places under {tool}')
        if len(ours) < 150:
            failed('hardly any places')
    TESTS.append((f'places_as_valgrind_O{_level}_{_link}', _places))


for _level, _link in VARIANTS:
    def _moves(level=_level, link=_link):
        """Wherever memory lies, it grows and moves as it does natively."""
        command = [program('moves', level, link)]
        ours, native = (subprocess.run([*prefix, *command], check=True, timeout=300, capture_output=True,
                                       text=True).stdout for prefix in (
            [QUERN, '-q', '--tool=callgrind', '--callgrind-out-file=/dev/null'], []))
        equal(ours, native, 'what becomes of mappings')
    TESTS.append((f'mappings_move_O{_level}_{_link}', _moves))


def counts_of(runner, command, *options):
    """{event: {function: count}} of all code"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        subprocess.run([runner, '-q', '--tool=cachegrind', '--cache-sim=yes', '--branch-sim=yes',
                        f'--cachegrind-out-file={path}', '--I1=32768,8,64', '--D1=32768,8,64',
                        '--LL=1048576,16,64', *options, *command], check=True, timeout=300,
                       env=same_environment(runner), cwd='/',
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, encoding='utf-8', errors='surrogateescape') as file:
            lines = file.read().splitlines()
    events = next(line for line in lines if line.startswith('events: ')).split()[1:]
    counts = {event: Counter() for event in events}
    name = None
    for line in lines:
        if line.startswith('fn='):
            name = line[3:]
        elif line[0].isdigit():
            for event, count in zip(events, line.split()[1:]):
                counts[event][name] += int(count)
    return counts


def compare_totals(ours, theirs, event):
    """A counter that predicts two branches may have been left by start-up code in one of two states, and
    these two keep it there: then one function has other mispredictions all the time. One that has a large
    part of all is compared whatever it has."""
    one, other = (sum(side[event].values()) for side in (ours, theirs))
    if event == 'Bcm':
        worst = max(theirs[event], key=lambda name: abs(ours[event][name] - theirs[event][name]))
        if ours['Bc'][worst] == theirs['Bc'][worst] and theirs[event][worst] < other // 5:
            one -= ours[event][worst] - theirs[event][worst]
    if abs(one - other) > other // 100 + OF_START_UP:
        failed(f'{event}: {one}, not {other}')


QUERY = """create table t(a integer primary key, b text, c int); with recursive n(i) as (select 1 union all
select i+1 from n where i<9000) insert into t select i, hex(i*7919%10007), i*31%977 from n; create index k on t(c);
select b, count(*) from t where c<100 group by b order by 2 desc limit 5; update t set c=c+1 where a%3=0;"""


# With how often they are given a text to read.
for _command, _chase, _times in (
        (('gzip', '-9c'), 'yes', 1), (('bzip2', '-9c'), 'no', 1),
        (('perl', '-ne', '/1/ && length > 2 && $n{$_}++ for split; END {print %n}'), 'yes', 1),
        (('mawk', '{for (i = 1; i < NF; i++) if (i > 2 && $i > 5) n[$i]++} END {print n["a1"]}'), 'yes', 1),
        (('/usr/bin/python3', '-c', 'import sys; n = {}\nfor w in open(sys.argv[1]).read().split():\n'
          '  n[w] = n.get(w, 0) + 1\nprint(sorted(n, key=n.get)[:9])'), 'yes', 1),
        (('sqlite3', ':memory:', QUERY), 'yes', 0), (('sort', '-S', '1M'), 'yes', 8)):
    def _real(command=_command, chase=_chase, times=_times):
        with tempfile.NamedTemporaryFile('w') as file:
            state = 1
            for i in range(20000):
                state = (state * 1103515245 + 12345) % 2 ** 31
                file.write(f'{"abcdefgh"[state >> 28]}{(state >> 16) % 977}{" " if i % 9 else chr(10)}')
            file.flush()
            ours, theirs = (counts_of(runner, [*command, *times * [file.name]], f'--vex-guest-chase={chase}')
                            for runner in (QUERN, 'valgrind'))
        for event in ('D1mr', 'D1mw', 'DLmr', 'DLmw', 'Bcm', 'Bim'):
            compare_totals(ours, theirs, event)
        if min(sum(theirs[event].values()) for event in ('D1mr', 'D1mw', 'Bcm')) < 100 * OF_START_UP:
            failed('hardly any misses')
    TESTS.append((f'real_program_as_valgrind_{os.path.basename(_command[0])}', _real))


@test
def everything_at_once():
    """Each option has translated code call other functions of the tool."""
    command = [program('objects')]
    got, _ = profile(command, '--cache-sim=yes', '--branch-sim=yes', '--collect-jumps=yes',
                     '--collect-systime=nsec', '--collect-bus=yes', '--dump-every-bb=1000000000',
                     '--fn-skip=_dl_relocate_object', '--pop-on-jump=free')
    plain, _ = profile(command)
    equal(sum(got.events['Ir'][0].values()), sum(plain.own.values()), 'instructions')


@test
def events_add_up():
    got, done = profile([program('branches', '2')], '--cache-sim=yes', '--branch-sim=yes')
    totals = [sum(own.values()) for own, _ in got.events.values()]
    equal(got.header['totals'], ' '.join(map(str, totals)), 'totals')
    equal(got.header['events'],
          'Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim', 'events')
    contains(done.stderr, 'Collected : ' + ' '.join(map(str, totals)) + '\n')
    reads, writes = totals[1:3]
    contains(re.sub(' +', ' ', done.stderr),
             f'D refs: {reads + writes:,} ({reads:,} rd + {writes:,} wr)')
    jumps, wrong = totals[9], totals[10]
    contains(re.sub(' +', ' ', done.stderr),
             f'Mispredicts: {wrong + totals[12]:,} ( {wrong:,} cond')
    if not 0 < wrong < jumps:
        failed('no prediction')


@test
def the_log_is_laid_out_as_valgrinds():
    shape = SHAPES['usual']
    for tool in ('cachegrind', 'callgrind'):
        logs = []
        for runner in (QUERN, 'valgrind'):
            done = subprocess.run([runner, f'--tool={tool}', '--cache-sim=yes', '--branch-sim=yes',
                                   f'--{tool}-out-file=/dev/null', *shape,
                                   program('caches', '2', 'static')],
                                  capture_output=True, text=True, timeout=300)
            lines = [line.split('== ', 1)[1] for line in done.stderr.splitlines() if '== ' in line]
            first = next(i for i, line in enumerate(lines) if line.startswith('I   refs'))
            # Numbers differ a little, and so may the width of those in the middle.
            logs.append([re.sub('[0-9]', 'N', line) for line in lines[first:]])
        equal(logs[0][:3], logs[1][:3], tool)
        equal([re.sub('[ N,.%]+', ' ', line) for line in logs[0] if line],
              [re.sub('[ N,.%]+', ' ', line) for line in logs[1] if line], tool)


@test
def cachegrind_counts_instructions_only_by_default():
    """As Valgrind from 3.21 on."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        done = subprocess.run([QUERN, '--tool=cachegrind', f'--cachegrind-out-file={path}',
                               program('caches', '2', 'static')], capture_output=True, text=True, timeout=300)
        with open(path) as file:
            lines = file.read().splitlines()
    equal([line for line in lines if line.startswith(('events:', 'desc:'))],
          ['events: Ir'], 'the head')
    contains(done.stderr, 'I   refs:')
    equal('misses' in done.stderr, False, 'misses in the log')


@test
def caches_that_cannot_be_are_refused():
    for option, reason in (('--D1=1000,2,64', 'power of two'), ('--I1=32768,8', 'SIZE,ASSOC,LINE'),
                           ('--LL=8192,1,8', 'at least 16'), ('--D1=64,2,64', 'less than')):
        done = subprocess.run([QUERN, '--tool=cachegrind', option, program('endings')],
                              capture_output=True, text=True, timeout=300)
        equal(done.returncode, 1, f'exit status with {option}')
        contains(done.stderr, reason)


@test
def threads_have_caches_of_their_own():
    got, _ = profile([program('threads', '2')], '--cache-sim=yes', '--branch-sim=yes')
    totals = [sum(own.values()) for own, _ in got.events.values()]
    equal(got.header['totals'], ' '.join(map(str, totals)), 'totals')


@test
def cg_annotate_reads_it_without_a_word():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        subprocess.run([QUERN, '-q', '--tool=cachegrind', f'--cachegrind-out-file={path}',
                        program('caches', '2', 'static')], check=True, timeout=300)
        done = subprocess.run(['cg_annotate', path], capture_output=True, text=True, timeout=300)
        equal((done.returncode, done.stderr), (0, ''), 'cg_annotate')
        contains(done.stdout, 'caches.c:multiply')

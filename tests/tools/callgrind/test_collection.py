"""What is collected, and when."""
import os
import re
import subprocess
import tempfile
from collections import Counter

from lib.callgrind_profile import Profile
from suite import QUERN, contains, equal, failed, test
from support import differences, dumps, leaves_program, mine, profile, program, spent_in


def compare_phases(how, *options, calls=True):
    for level, link in (('0', 'dynamic'), ('2', 'static')):
        command = [program('phases', level, link), how]
        ours, _ = profile(command, *options)
        theirs, _ = profile(command, *options, runner='valgrind')
        for kind in ('own', 'inclusive') + (('calls',) if calls else ()):
            # The function that makes requests is cut in two by them.
            got, wanted = ({key: count for key, count in mine(getattr(side, kind), 'phases.c').items()
                            if 'request' not in key} for side in (ours, theirs))
            equal(differences(got, wanted), {}, f'{how}: {kind}')
        yield ours, theirs


@test
def collection_is_toggled_by_functions():
    for pattern in ('wanted', 'lea?', 'inne*'):
        for ours, theirs in compare_phases('plain', f'--toggle-collect={pattern}'):
            equal(sum(ours.own.values()), sum(theirs.own.values()), 'total')
            if not ours.own:
                failed('nothing is collected')
    for ours, _ in compare_phases('plain', '--toggle-collect=wanted', '--cache-sim=yes',
                                  '--branch-sim=yes', '--toggle-collect=nobody'):
        for event, (own, _) in ours.events.items():
            equal(ours.header['totals'].split()[list(ours.events).index(event)],
                  str(sum(own.values())), event)


@test
def functions_of_c_plus_plus_are_named_as_in_the_source():
    for pattern in ('careful(Shape*, int)', 'careful*', 'double sum<double>*', '_Z*careful*'):
        command = [program('objects', '2', 'static')]
        ours, _ = profile(command, f'--toggle-collect={pattern}')
        theirs, _ = profile(command, f'--toggle-collect={pattern.replace("_Z*", "")}',
                            runner='valgrind')
        equal(sum(ours.own.values()), sum(theirs.own.values()), f'what is collected by {pattern}')
        if not ours.own:
            failed('nothing is collected')


@test
def collection_is_toggled_by_requests():
    list(compare_phases('toggle'))
    for ours, theirs in compare_phases('toggle', '--collect-atstart=no'):
        equal(spent_in(ours, 'leaf') > 0, True, 'something is collected')
    ours, _ = profile([program('phases')], '--collect-atstart=no')
    equal(sum(ours.own.values()), 0, 'total')


@test
def instrumentation_is_switched():
    for ours, theirs in compare_phases('start', '--instr-atstart=no'):
        equal(spent_in(ours, 'leaf') > 0, True, 'something is collected')
    list(compare_phases('stop'))
    ours, _ = profile([program('phases')], '--instr-atstart=no')
    equal(sum(ours.own.values()), 0, 'total')


@test
def locked_instructions_are_counted():
    for level in '02':
        command = [program('system', level), '3']
        ours, theirs = (profile(command, '--collect-bus=yes', runner=runner)[0]
                        for runner in (QUERN, 'valgrind'))
        got, wanted = (mine(side.events['Ge'][0], 'system.c') for side in (ours, theirs))
        equal(wanted['locked',], 3 * 4 * 50, 'what Valgrind counts')
        equal(+Counter(got), +Counter(wanted), f'-O{level}')


@test
def time_in_system_calls():
    for unit, events in (('yes', 2), ('msec', 2), ('usec', 2), ('nsec', 3)):
        command = [program('system', '2'), '3']
        ours, theirs = (profile(command, f'--collect-systime={unit}', runner=runner)[0]
                        for runner in (QUERN, 'valgrind'))
        equal(list(ours.events), ['Ir', 'sysCount', 'sysTime', 'sysCpuTime'][:events + 1], 'events')
        equal(list(theirs.events), list(ours.events), 'events of Valgrind')
        for kind, what in ((0, 'own'), (1, 'inclusive')):
            got, wanted = (mine(side.events['sysCount'][kind], 'system.c')
                           for side in (ours, theirs))
            equal(+Counter(got), +Counter(wanted), f'{what}, {unit}')
        equal(ours.header['event'], theirs.header['event'], 'description')
        spent = mine(ours.events['sysTime'][1], 'system.c')['main', 'nap']
        least = 3 * 20 * {'usec': 1000, 'nsec': 1000000}.get(unit, 1)
        # A clock in whole milliseconds may show one less each time.
        if spent < least - (3 if unit in ('yes', 'msec') else 0):
            failed(f'{spent} {unit} in nap')
    worked = mine(ours.events['sysCpuTime'][1], 'system.c')['main', 'nap']
    equal(worked < spent, True, 'sleeping takes no CPU time')


@test
def dumps_every_so_many_blocks():
    command = [program('branches', '2', 'static')]
    whole, _ = profile(command)
    parts = dumps(command, '--dump-every-bb=5000')
    if len(parts) < 3:
        failed(f'only {len(parts)} files')
    equal(sorted(parts), sorted({''} | {f'.{i}' for i in range(1, len(parts))}), 'names')
    equal(parts['.1'].header['desc'], 'Trigger: --dump-every-bb=5000', 'trigger')
    for kind in ('own', 'calls', 'inclusive'):
        together = {}
        for part in parts.values():
            for key, count in mine(getattr(part, kind), 'branches.c').items():
                together[key] = together.get(key, 0) + count
        equal(differences(together, mine(getattr(whole, kind), 'branches.c')), {}, kind)


def compare_dumps(how, *options):
    command = [program('phases', '2', 'static'), how]
    ours, theirs = dumps(command, *options), dumps(command, *options, runner='valgrind')
    equal(sorted(ours), sorted(theirs), f'{how}: files')
    for name, wanted in theirs.items():
        for kind in ('own', 'inclusive', 'calls'):
            got, want = ({key: count for key, count in mine(getattr(side, kind), 'phases.c').items()
                          if 'request' not in key and count} for side in (ours[name], wanted))
            equal(differences(got, want), {}, f'{how}: {kind} in out{name}')
        equal(ours[name].header['part'], wanted.header['part'], 'part')
        equal(ours[name].header['desc'], wanted.header['desc'], 'trigger')
    return ours


@test
def dumps_by_request():
    equal(sorted(compare_dumps('dump')), ['', '.1'], 'files')
    equal(sorted(compare_dumps('dump-at')), ['', '.1'], 'files')
    equal(sorted(compare_dumps('zero')), [''], 'files')


@test
def dumps_by_function():
    equal(len(compare_dumps('plain', '--dump-before=phases')), 4, 'files')
    equal(len(compare_dumps('plain', '--dump-after=phases')), 4, 'files')
    equal(len(compare_dumps('plain', '--zero-before=phases')), 1, 'files')


@test
def dumps_in_one_file():
    command = [program('phases', '2', 'static'), 'dump']
    parts = dumps(command)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([QUERN, '-q', '--tool=callgrind', '--callgrind-out-file=out',
                        '--combine-dumps=yes', *command], cwd=folder, capture_output=True,
                       timeout=300, check=True)
        equal(os.listdir(folder), ['out'], 'files')
        with open(os.path.join(folder, 'out'), encoding='utf-8') as file:
            text = file.read()
    equal(re.findall('^part: (.*)', text, re.M), ['1', '2'], 'parts')
    equal(re.findall('^totals: (.*)', text, re.M),
          [parts[name].header['totals'] for name in ('.1', '')], 'totals')
    equal(len(re.findall('^creator:', text, re.M)), 1, 'heads')


@test
def levels_of_recursion():
    for levels in (1, 3, 5):
        for level in '02':
            command = [program('recursion', level, 'static')]
            ours, theirs = (profile(command, f'--separate-recs={levels}', runner=runner)[0]
                            for runner in (QUERN, 'valgrind'))
            for kind in ('own', 'calls', 'inclusive'):
                got, wanted = (mine(getattr(side, kind), 'recursion.c') for side in (ours, theirs))
                if kind == 'inclusive':
                    got, wanted = ({key: count for key, count in side.items()
                                    if not leaves_program(theirs, 'recursion.c', key[1])}
                                   for side in (got, wanted))
                equal(differences(got, wanted), {}, f'{levels} levels, -O{level}: {kind}')
            deepest = {key[0].partition("'")[2] for key in mine(ours.own, 'recursion.c')}
            equal(deepest, {''} | {str(i) for i in range(2, levels + 1)}, 'levels')


@test
def dumps_of_several_events_add_up():
    command = [program('phases', '2', 'static'), 'dump']
    parts = dumps(command, '--cache-sim=yes', '--branch-sim=yes')
    whole, _ = profile([program('phases', '2', 'static')], '--cache-sim=yes', '--branch-sim=yes')
    equal(len(parts), 2, 'files')
    for event in ('Ir', 'Dr', 'Dw', 'Bc'):
        own = [mine(part.events[event][0], 'phases.c') for part in parts.values()]
        leaf = sum(part.get(('leaf',), 0) for part in own)
        equal(leaf, mine(whole.events[event][0], 'phases.c').get(('leaf',), 0), f'{event} of leaf')


@test
def a_run_is_controlled_from_outside():
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([QUERN, '--tool=callgrind', '--callgrind-out-file=out', 'cat'],
                              cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as run:
            pid = re.match(r'==(\d+)==', run.stderr.readline())[1]
            run.stdin.write('one\n')
            run.stdin.flush()
            equal(run.stdout.readline(), 'one\n', 'what cat says')

            def control(*words, status=0):
                done = subprocess.run([QUERN, 'ctl', pid, *words], capture_output=True, text=True,
                                      timeout=300)
                equal(done.returncode, status, f'status of ctl {words} ({done.stderr})')
                return done.stdout + done.stderr
            contains(control('status'), 'tool callgrind, processes 1, dumps 0')
            control('dump', 'half', 'way')
            control('zero')
            contains(control('status'), 'dumps 1, counting on')
            control('off')
            contains(control('status'), 'counting off')
            control('on')
            contains(control('status'), 'counting on')
            contains(control('sing', status=1), "tool callgrind has no request 'sing'")
            run.stdin.close()
            equal(run.wait(300), 0, 'exit status')
        equal(sorted(os.listdir(folder)), ['out', 'out.1'], 'files')
        first, last = Profile(os.path.join(folder, 'out.1')), Profile(os.path.join(folder, 'out'))
        if not sum(first.own.values()) > 2 * sum(last.own.values()) > 0:
            failed(f'{sum(first.own.values())} before, {sum(last.own.values())} after the dump')
        done = subprocess.run([QUERN, 'ctl', pid, 'status'], capture_output=True, text=True,
                              timeout=300)
        equal(done.returncode, 1, 'status of ctl when the run is over')
        contains(done.stderr, 'does not run under Quern')


@test
def counting_is_switched_from_outside():
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([QUERN, '--tool=callgrind', '--callgrind-out-file=out',
                               program('switched')], cwd=folder, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            pid = re.match(r'==(\d+)==', run.stderr.readline())[1]

            def rounds(letter):
                run.stdin.write(letter)
                run.stdin.flush()
                equal(run.stdout.read(1), letter, 'answer')

            def control(*words):
                subprocess.run([QUERN, 'ctl', pid, *words], check=True, timeout=300,
                               capture_output=True)
            for word, letter in (('off', 'a'), ('on', 'b'), ('off', 'c'), ('on', 'd')):
                rounds('-') # a call, so that the switch before has been noticed
                control(word)
                rounds('-')
                rounds(letter)
            run.stdin.close()
            equal(run.wait(300), 0, 'exit status')
        got = Profile(os.path.join(folder, 'out'))
    calls = {callee: count for (caller, callee), count in mine(got.calls, 'switched.c').items()
             if caller == 'work'}
    equal(calls, {'work_b': 1000, 'work_d': 1000}, 'calls')
    equal(spent_in(got, 'work_a') + spent_in(got, 'work_c'), 0, 'while off')
    equal(spent_in(got, 'work_b'), spent_in(got, 'work_d'), 'while on')
    inclusive = mine(got.inclusive, 'switched.c')
    equal(inclusive['work', 'work_b'], spent_in(got, 'work_b'), 'inclusive')


@test
def threads_have_files_of_their_own():
    parts = dumps([program('threads', '2')], '--separate-threads=yes')
    whole, _ = profile([program('threads', '2')])
    if len(parts) < 2 or not all(re.fullmatch(r'-\d\d', name) for name in parts):
        failed(f'files are out{sorted(parts)}')
    for name, part in parts.items():
        equal(part.header['thread'], str(int(name[1:])), 'thread')
    together = {}
    for part in parts.values():
        for key, count in mine(part.own, 'threads.c').items():
            together[key] = together.get(key, 0) + count
    equal(differences(together, mine(whole.own, 'threads.c')), {}, 'own cost')

"""Contexts: separate callers, recursions, threads."""
import os
import re
import shutil
import subprocess
import tempfile

from compose import Composer
from lib.callgrind_profile import Profile
from stripped import of_objects, strip, unbalanced
from suite import QUERN, TESTS, contains, equal, failed, test
from support import HERE, PLAIN_PROCESSOR, SOURCES, VARIANTS, differences, dumps, leaves_program, \
    mine, profile, program, spent_in


def by_context(counter, source):
    """As mine(), without what stands for the C library's own start."""
    found = {}
    for names, count in mine(counter, source).items():
        names = tuple(re.sub(r"'(__libc_start_main@.*|start_thread'clone3?)$", '', name)
                      for name in names)
        found[names] = found.get(names, 0) + count
    return found


def compare_contexts(ours, theirs, plain, source, what, least=0):
    """Costs and calls by context are Valgrind's. `plain` is a profile without contexts."""
    for kind in ('own', 'calls', 'inclusive'):
        got, wanted = (by_context(getattr(side, kind), source) for side in (ours, theirs))
        if kind == 'inclusive':
            # What the C library spends depends on the processor that it finds.
            got, wanted = ({key: count for key, count in side.items()
                            if not leaves_program(plain, source, key[1].split("'")[0])}
                           for side in (got, wanted))
        if len(wanted) < least:
            failed(f'only {len(wanted)} to compare in {source}')
        equal(differences(got, wanted), {}, f'{what}: {kind}')


for _name in ('recursion', 'branches', 'tails', 'jumps', 'threads', 'signals', 'objects'):
    for _options in (('--separate-callers=1',), ('--separate-callers=3',),
                     ('--separate-callers1=*a*', '--separate-recs=3')):
        def _contexts(name=_name, options=_options):
            source, command = name + SOURCES[name], [program(name, '2', 'static')]
            ours, theirs = (profile(command, *options, runner=runner)[0]
                            for runner in (QUERN, 'valgrind'))
            plain, _ = profile(command)
            compare_contexts(ours, theirs, plain, source, f'{name} {options}')
            if not any("'" in function for function, in by_context(theirs.own, source)):
                failed('nothing is told apart')
            equal(sum(mine(ours.own, source).values()), sum(mine(plain.own, source).values()), 'total')
        TESTS.append((f'contexts_as_valgrind_{_name}_{len(_options)}{_options[0][-1]}', _contexts))


@test
def levels_of_one_function():
    command = [program('recursion', '2', 'static')]
    # Valgrind 3.19 mixes functions up if some have more levels than the others.
    ours, _ = profile(command, '--separate-recs4=fibonacci')
    usual, four = (mine(profile(command, f'--separate-recs={levels}', runner='valgrind')[0].own,
                        'recursion.c') for levels in (2, 4))
    wanted = {key: count for side, chosen in ((four, True), (usual, False))
              for key, count in side.items() if key[0].startswith('fibonacci') == chosen}
    equal(differences(mine(ours.own, 'recursion.c'), wanted), {}, 'own cost')
    levels = {name.partition("'")[2] for name, in mine(ours.own, 'recursion.c')
              if name.startswith('fibonacci')}
    equal(levels, {'', '2', '3', '4'}, 'levels of fibonacci')


@test
def direct_recursion_is_left_out():
    """As Valgrind does it, also of functions that call themselves and others that call them."""
    for name, level in (('mutual', '0'), ('mutual', '2'), ('recursion', '0'), ('recursion', '2'),
                        ('tails', '2'), ('signals', '2')):
        command, source = [program(name, level, 'static')], name + '.c'
        plain, _ = profile(command)
        for more in ((), ('--separate-recs=3',), ('--separate-callers=2',)):
            ours, theirs = (profile(command, '--skip-direct-rec=yes', *more, runner=runner)[0]
                            for runner in (QUERN, 'valgrind'))
            compare_contexts(ours, theirs, plain, source, f'{name} {level} {more}', least=2)
            if name == 'recursion' and not more:
                equal([function for function, in mine(ours.own, source)
                       if function.startswith('fibonacci')], ['fibonacci'], 'levels of fibonacci')


@test
def contexts_of_children_and_dumps():
    whole, _ = profile([program('phases', '2', 'static')], '--separate-callers=2')
    parts = dumps([program('phases', '2', 'static'), 'dump'], '--separate-callers=2')
    equal(len(parts), 2, 'files')
    together = {}
    for part in parts.values():
        for key, count in mine(part.own, 'phases.c').items():
            together[key] = together.get(key, 0) + count
    wanted = mine(whole.own, 'phases.c')
    for key in wanted:
        if key[0].startswith('leaf'):
            equal(together.get(key), wanted[key], f'own cost of {key}')
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([QUERN, '--tool=callgrind', '--callgrind-out-file=out.%p',
                               '--separate-callers=1', program('endings'), 'fork'], cwd=folder,
                              check=True, capture_output=True, text=True, timeout=300)
        main_pid = re.match(r'==(\d+)==', done.stderr)[1]
        name, = set(os.listdir(folder)) - {f'out.{main_pid}'}
        child = Profile(os.path.join(folder, name))
        equal(mine(child.calls, 'endings.c'), {("end'main", "spin'end"): 1}, 'calls of the child')


@test
def nothing_is_lost_in_a_program_without_symbols():
    # Functions share code there, and calls are bound when they are first made.
    command = [shutil.which('perl'), '-e', 'my %h; $h{$_ % 7} .= $_ for 1..200; print keys(%h) + 0']
    environment = dict(os.environ, PERL_HASH_SEED='0')
    totals = []
    for options in ([], ['--separate-callers=3'], ['--separate-recs=5'],
                    ['--separate-callers=1', '--cache-sim=yes', '--branch-sim=yes']):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'out')
            subprocess.run([QUERN, '-q', '--tool=callgrind', f'--callgrind-out-file={path}', *options,
                            *command], check=True, capture_output=True, env=environment, timeout=300)
            got = Profile(path)
        equal(got.header['totals'].split(), [str(sum(own.values())) for own, _ in
                                             got.events.values()], 'totals')
        totals.append(sum(got.own.values()))
    # Addresses, and so the loader's and the hash's work, differ a little from run to run.
    if max(totals) > min(totals) * 1.01:
        failed(f'totals are {totals}')


@test
def code_without_a_symbol_is_whose_jump_leads_there():
    for level in '02':
        ours, theirs = ({function[2]: cost for function, cost in
                         profile([program('unnamed', level)], runner=runner)[0].own.items()
                         if function[2] in ('leads_on', 'around')} for runner in (QUERN, 'valgrind'))
        equal(ours, theirs, f'own cost at -O{level}')
        equal(ours['leads_on'], 30 * 64, 'all of it')


def compare_stripped(folder, command, names, wanted=None, least=10, options=()):
    """Own cost, calls and inclusive cost of the objects' functions beside Valgrind's."""
    (ours, out), (theirs, expected) = (profile(command, *options, runner=runner, LD_LIBRARY_PATH=folder,
                                               GLIBC_TUNABLES=PLAIN_PROCESSOR)
                                       for runner in (QUERN, 'valgrind'))
    equal(out.stdout, expected.stdout, 'output')
    for what, got, right in zip(('own cost', 'calls', 'inclusive cost'),
                                of_objects(ours, names, wanted), of_objects(theirs, names, wanted)):
        equal(differences(got, right), {}, f'{what} {options}')
        if len(right) < least:
            failed(f'only {len(right)} to compare: {what}')


@test
def shared_code_without_symbols_as_valgrind():
    """It counts for the function that runs it, whether it was called or jumped to."""
    source = os.path.join(HERE, 'shared.c')
    for flags in (['-O2'], ['-O2', '-fcf-protection=none', '-fno-plt'], ['-O3', '-fno-pie', '-no-pie']):
        with tempfile.TemporaryDirectory() as folder:
            library, path = os.path.join(folder, 'libshared.so'), os.path.join(folder, 'shared')
            linked = [flag for flag in flags if 'pie' not in flag]
            subprocess.run(['gcc', *linked, '-DLIBRARY', '-fPIC', '-shared', source, '-o', library],
                           check=True)
            subprocess.run(['gcc', *flags, '-rdynamic', '-Wl,-z,now', source, '-o', path, library],
                           check=True)
            names = {**strip(library), **strip(path)}
            for options in ((), ('--separate-callers=2',), ('--separate-recs=3',), ('--cache-sim=yes',)):
                if not options or flags == ['-O2']:
                    compare_stripped(folder, [path], names, least=25, options=options)


for _number, _flags in ((24, ('-O3', '-static')), (1, ('-O2', '-static')), (2, ('-O2', '-rdynamic')),
                        (10, ('-O1', '-Wl,-z,now'))):
    def _composed_stripped(number=_number, flags=_flags):
        throws = number % 2 == 1
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, 'composed.cc' if throws else 'composed.c')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(Composer(number, throws).program())
            subprocess.run(['g++' if throws else 'gcc', *flags, '-Wl,-z,now', source, '-o',
                            source + '.out'], check=True)
            compare_stripped(folder, [source + '.out'], strip(source + '.out'),
                             r"(_ZL?\d+)?(f\d+|main|handle$|compare$)", least=15)
    TESTS.append((f'composed_program_without_symbols_as_valgrind_{_number}', _composed_stripped))


@test
def calls_cost_what_is_spent_in_them():
    """In large programs without symbols, no function's calls claim more or less."""
    compiler = subprocess.run(['gcc', '-print-prog-name=cc1'], capture_output=True, text=True,
                              check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        source, small = os.path.join(HERE, 'shared.c'), os.path.join(folder, 'shared.i')
        subprocess.run(['gcc', '-E', source, '-o', small], check=True)
        commands = [[compiler, '-quiet', '-O2', small, '-o', '/dev/null'],
                    [shutil.which('perl'), '-e', 'my %h; $h{$_ % 7} .= $_ for 1..500; $_ = join ",", '
                     'sort map { s/1(.)/$1/gr } values %h; print length, "\\n"']]
        for command in commands:
            got, _ = profile(command)
            equal(sum(got.own.values()), int(got.header['totals']), f'{command[0]}: own costs')
            equal(unbalanced(got), {}, f'{command[0]}: cost of calls, cost within')
            if len(got.calls) < 500:
                failed(f'{command[0]}: hardly any calls')


@test
def children_that_share_memory():
    """Nothing of what they do is their parent's."""
    for level, link in VARIANTS:
        command = [program('spawned', level, link)]
        theirs = profile(command, runner='valgrind')[0]
        for option in ('--cache-sim=no', '--cache-sim=yes', '--cacheuse=yes', '--separate-callers=1',
                       '--toggle-collect=main', '--toggle-collect=by_*'):
            got, what = profile(command, option)[0], f'-O{level}, {link}, {option}'
            equal((spent_in(got, "work'by_vfork" if 'callers' in option else 'work'),
                   spent_in(got, 'work_in_child'), spent_in(got, "work_in_child'by_vfork")),
                  (spent_in(theirs, 'work'), 0, 0), f'cost, {what}')
            # Several functions go by that name.
            wrong = {function: costs for function, costs in unbalanced(got).items()
                     if '(below main)' not in function[2]}
            equal(wrong, {}, f'cost of calls and within, {what}')


@test
def numbers_in_names_of_options_are_checked():
    for option, word in (('--separate-callers99=main', 'from 0 to 16'),
                         ('--separate-recs0=main', 'from 1 to 100'),
                         ('--separate-recsX=main', 'unknown option'),
                         ('--separate-callers=17', 'from 0 to 16')):
        done = subprocess.run([QUERN, '--tool=callgrind', option, program('endings')],
                              capture_output=True, text=True, timeout=300)
        equal(done.returncode, 1, f'exit status with {option}')
        contains(done.stderr, word)
    profile([program('endings')], '--separate-callers=auto')

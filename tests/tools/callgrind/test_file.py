"""The file and its form; how processes end."""
import itertools
import os
import re
import subprocess
import tempfile

from lib.callgrind_profile import Profile
from suite import QUERN, contains, equal, failed, main, test
from support import differences, mine, profile, program, spent_in


@test
def twice_the_same():
    first, second = (profile([program('branches', '2')])[0] for _ in range(2))
    equal(differences(mine(first.own, 'branches.c'), mine(second.own, 'branches.c')), {}, 'own cost')


@test
def totals_add_up():
    got, done = profile([program('threads', '2')])
    total = sum(got.own.values())
    equal(got.header['totals'], str(total), 'totals')
    equal(got.header['summary'], str(total), 'summary')
    contains(done.stderr, f'Collected : {total}\n')
    contains(done.stderr, f'I   refs:      {total:,}\n')


@test
def forms_of_the_file_say_the_same():
    command = [program('branches', '2')]
    plain, _ = profile(command, '--compress-strings=no', '--compress-pos=no')
    short, _ = profile(command)
    equal(plain.compressed, False, 'plain names')
    equal(short.compressed, True, 'short names')
    for kind in ('own', 'calls', 'inclusive'):
        equal(mine(getattr(short, kind), 'branches.c'), mine(getattr(plain, kind), 'branches.c'),
              kind)
    no_lines, _ = profile(command, '--dump-line=no', '--dump-instr=yes')
    equal(no_lines.header['positions'], 'instr', 'positions')
    equal(mine(no_lines.own, 'branches.c'), mine(plain.own, 'branches.c'), 'own cost')
    # As Valgrind does it: there would be no positions at all.
    neither, _ = profile(command, '--dump-line=no')
    equal(neither.lines, short.lines, 'lines')


@test
def instructions_as_valgrind_places_them():
    command = [program('recursion')]
    ours, _ = profile(command, '--dump-instr=yes')
    theirs, _ = profile(command, '--dump-instr=yes', runner='valgrind')
    equal(ours.header['positions'], 'instr line', 'positions')
    symbols = subprocess.run(['nm', '-S', *command], capture_output=True, text=True).stdout
    found = re.search(r'^(\w+) (\w+) t fibonacci$', symbols, re.M)
    start, size = int(found[1], 16), int(found[2], 16)
    places = [(command[0], at) for at in range(start, start + size)]
    wanted = {at: theirs.instructions[at] for at in places if theirs.instructions[at]}
    if len(wanted) < 10:
        failed('Valgrind counts too little')
    equal({at: ours.instructions[at] for at in places if ours.instructions[at]}, wanted)


@test
def annotate_reads_it_without_a_word():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        for options in ([], ['--dump-instr=yes'], ['--compress-strings=no'],
                        ['--collect-jumps=yes'], ['--collect-jumps=yes', '--dump-instr=yes'],
                        ['--collect-systime=nsec', '--collect-bus=yes'],
                        ['--cache-sim=yes', '--branch-sim=yes'], ['--dump-line=no'],
                        ['--simulate-wb=yes', '--simulate-hwpref=yes'], ['--cacheuse=yes'],
                        ['--separate-callers=3'], ['--separate-recs=5'], ['--fn-skip=main'],
                        ['--separate-threads=yes']):
            if options == ['--separate-threads=yes']:
                path += '-01'
            subprocess.run([QUERN, '-q', '--tool=callgrind', f'--callgrind-out-file={folder}/out',
                            *options, program('branches', '2')], check=True,
                           stdout=subprocess.DEVNULL, timeout=300)
            done = subprocess.run(['callgrind_annotate', '--inclusive=yes', '--tree=both', path],
                                  capture_output=True, text=True, timeout=300)
            equal((done.returncode, done.stderr), (0, ''), 'callgrind_annotate')
            contains(done.stdout, 'branches.c:through_pointer_and_back')


@test
def signals_do_not_disturb_the_counts():
    for level in '02':
        got, done = profile([program('interrupted', level)])
        branches = 2000000 * int(done.stdout)
        calls = mine(got.calls, 'interrupted.c')
        equal(calls['work', 'branch'], branches, 'calls of branch')
        equal(calls['branch', 'leaf'], 2 * branches, 'calls of leaf')
        equal(spent_in(got, 'leaf') % (2 * branches), 0, 'cost of leaf, beyond whole calls')
        equal(spent_in(got, 'branch') % branches, 0, 'cost of branch, beyond whole calls')
        equal(mine(got.inclusive, 'interrupted.c')['branch', 'leaf'], spent_in(got, 'leaf'),
              'inclusive cost of leaf')


@test
def nothing_is_lost_whatever_the_end():
    whole, _ = profile([program('endings'), 'plain'])
    ends = (('exit', 0, 10), ('kill', -9, 0), ('abort', -6, 0), ('nowhere', -11, 3))
    ways = ((), ('--cache-sim=yes', '--branch-sim=yes'), ('--cacheuse=yes',))
    for (how, status, extra), options in itertools.product(ends, ways):
        what = ' '.join((how, *options))
        got, _ = profile([program('endings'), how], *options, status=status)
        calls = mine(got.calls, 'endings.c')
        equal(calls['main', 'end'], 1, f'{what}: calls of end')
        equal(calls['end', 'spin'], 2 if extra else 1, f'{what}: calls of spin')
        equal(spent_in(got, 'spin') > spent_in(whole, 'spin'), extra > 0, f'{what}: more in spin')
        inclusive = mine(got.inclusive, 'endings.c')['main', 'end']
        if inclusive < spent_in(got, 'end') + spent_in(got, 'spin'):
            failed(f'{what}: end has only {inclusive} inclusive')


@test
def a_forked_child_has_a_file_of_its_own():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([QUERN, '--tool=callgrind', '--callgrind-out-file=out.%p',
                               program('endings'), 'fork'], cwd=folder, capture_output=True,
                              text=True, timeout=300)
        equal(done.returncode, 0, 'exit status')
        main_pid = re.match(r'==(\d+)==', done.stderr)[1]
        files = sorted(os.listdir(folder), key=lambda name: name != f'out.{main_pid}')
        equal((len(files), files[0]), (2, f'out.{main_pid}'), 'files')
        parent, child = (Profile(os.path.join(folder, name)) for name in files)
        equal(mine(parent.calls, 'endings.c')['end', 'spin'], 1, 'calls of the parent')
        equal(mine(child.calls, 'endings.c'), {('end', 'spin'): 1}, 'calls of the child')


@test
def names_of_files_are_templates():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, QUERN_TEST_NAME='here')
        subprocess.run([QUERN, '-q', '--tool=callgrind',
                        '--callgrind-out-file=%q{QUERN_TEST_NAME}.%%', program('endings')],
                       cwd=folder, env=environment, check=True, timeout=300)
        equal(os.listdir(folder), ['here.%'], 'files')
        subprocess.run([QUERN, '-q', '--tool=callgrind', program('endings')], cwd=folder,
                       check=True, timeout=300)
        equal(len([name for name in os.listdir(folder)
                   if re.fullmatch(r'callgrind\.out\.\d+', name)]), 1, 'default names')


@test
def options_without_effect_say_so():
    for option in ('--compress-mangled=yes', '--dump-bb=yes'):
        done = subprocess.run([QUERN, '--tool=callgrind', '-v', '--callgrind-out-file=/dev/null', option,
                               program('endings')], capture_output=True, text=True, timeout=300)
        equal(done.returncode, 0, f'exit status with {option}')
        contains(done.stderr, f'{option} has no effect')
    profile([program('endings')], '--cache-sim=no', '--separate-recs=2', '--collect-atstart=yes')


@test
def kernel_maps_upwards():
    """The engine's own memory leaves the target its room."""
    for tool in ('callgrind', 'cachegrind'):
        done = subprocess.run(['setarch', '-L', QUERN, '-q', f'--tool={tool}', f'--{tool}-out-file=/dev/null',
                               program('endings')], capture_output=True, text=True, timeout=300)
        equal((done.returncode, done.stderr), (0, ''), f'how {tool} ends')


@test
def limits_are_told():
    """Of address space and of the size of files: a word, never a signal."""
    def limited(limit, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'out')
            done = subprocess.run(['sh', '-c', f'ulimit {limit} && exec "$@"', 'sh', QUERN,
                                   '--tool=callgrind', f'--callgrind-out-file={path}',
                                   *options, program('recursion')], capture_output=True, text=True,
                                  timeout=300)
            return done, Profile(path) if done.returncode == 0 else None
    # In blocks of 512 bytes. What may be lifted is, so that only the output is measured by it.
    done, got = limited('-S -f 2000')
    equal(done.returncode, 0, 'exit status with a limit that may be lifted')
    equal('main' in {function[2] for function in got.own}, True, 'main is counted')
    done, got = limited('-f 2000')
    if got is None:
        equal(done.returncode, 1, 'exit status with a limit on files')
        contains(done.stderr, '(ulimit -f)')
    for options in [], ['-q']:
        done, _ = limited('-v 4000000', *options)
        equal(done.returncode, 1, 'exit status with a limit on address space')
        contains(done.stderr, '(ulimit -v)')


if __name__ == '__main__':
    main()

"""Jumps."""
import os
import subprocess

import suite
from suite import QUERN, TESTS, equal, failed, test
from support import SOURCES, differences, mine, profile, program


def jumps_of(side, source, which):
    return {(function[2], at[1:], to[1:]): count
            for (function, at, to), count in getattr(side, which).items()
            if function[1].endswith('/' + source) and at[0].endswith('/' + source)}


# With signals and compared strings, Valgrind sees the same jump in several blocks and leaves out how
# often those were met that never took it.
for _name, _same in (('branches', False), ('jumps', True), ('recursion', True), ('tails', True),
                     ('strings', False), ('signals', False), ('thrown', True), ('caches', True)):
    for _level in '02':
        def _jumps(name=_name, level=_level, same=_same):
            source, command = name + SOURCES[name], [program(name, level, 'static')]
            ours, theirs = (profile(command, '--collect-jumps=yes', '--dump-instr=yes',
                                    runner=runner)[0] for runner in (QUERN, 'valgrind'))
            wanted = jumps_of(theirs, source, 'taken')
            if len(wanted) < 3:
                failed(f'only {len(wanted)} jumps to compare')
            equal(differences(jumps_of(ours, source, 'taken'), wanted), {}, 'taken')
            met, wanted = (jumps_of(side, source, 'met') for side in (ours, theirs))
            if same:
                equal(differences(met, wanted), {}, 'met')
            less = {key for key in wanted if met.get(key, 0) < wanted[key]}
            equal(less, set(), 'met less often')
            plain, _ = profile(command)
            equal(differences(mine(ours.own, source), mine(plain.own, source)), {}, 'own cost')
        TESTS.append((f'jumps_as_valgrind_{_name}_O{_level}', _jumps))


@test
def jumps_by_line():
    command = [program('branches', '2', 'static')]
    by_line, _ = profile(command, '--collect-jumps=yes')
    by_place, _ = profile(command, '--collect-jumps=yes', '--dump-instr=yes')
    equal(len({at for _, at, _ in by_line.taken if len(at) == 2}) > 2, True, 'lines')
    equal(sum(jumps_of(by_line, 'branches.c', 'taken').values()),
          sum(jumps_of(by_place, 'branches.c', 'taken').values()), 'jumps')


NEST = """
__attribute__((noinline)) int nest(int n, int m) {
    volatile int s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            if (j != i)
                s++;
    return s;
}
int main(void) {
    return nest(1, 1) + nest(3, 4) == 0;
}
"""


@test
def the_first_turn_of_a_loop_counts():
    """The condition is looked at 1 * 1 + 3 * 4 times. Valgrind has the first turn in a block of its own,
    and leaves out those of its blocks in which a branch was never taken."""
    for level in '02':
        path = os.path.join(suite.FOLDER, 'nest')
        subprocess.run(['gcc', '-g', f'-O{level}', '-x', 'c', '-o', path, '-'], input=NEST, text=True,
                       check=True)
        ours, _ = profile([path], '--collect-jumps=yes', '--dump-instr=yes')
        met = sorted(count for (function, _, _), count in ours.met.items() if function[2] == 'nest')
        equal(13 in met, True, f'13 among {met} at -O{level}')

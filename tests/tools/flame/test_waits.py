"""Off-CPU time."""
import xml.etree.ElementTree as tree_of

from suite import QUERN, contains, equal, failed, run, test
from support import at_least, build, stacks_of


@test
def waits_of_threads():
    program = build('waits')
    status, out, err = run([QUERN, 'flame', '--off-cpu=yes', '--flame-out-file=/dev/null',
                            '--flame-stacks-file=/dev/null', '--off-cpu-out-file=waits.svg',
                            '--off-cpu-stacks-file=waits.stacks', program])
    if "--off-cpu=yes needs the kernel's permission" in err:
        return
    equal(status, 0, f'status (with {err[-300:]!r})')
    tree_of.parse('waits.svg')
    waits = stacks_of(run([QUERN, 'export', 'waits.stacks', '--as=collapsed'])[1])
    own = sum(value for path, value in waits.items() if path.startswith('main;nap;'))
    other = sum(value for path, value in waits.items() if ';sleep_elsewhere;nap;' in path)
    # What is not told here is the time from waking up to running, and rounding.
    if not 200000 <= own + 100 <= int(out) + 100:
        failed(f'main waited {own} us, and {int(out)} us by its own clock')
    at_least(other + 100, 50000, 'waits of the other thread')
    joined = sum(value for path, value in waits.items() if path.startswith('main;')
                 and 'join' in path)
    at_least(joined, 1, 'waits for the other thread')
    contains(err, 'Threads waited ')


@test
def what_timers_cannot_do_is_refused():
    for word in ('--off-cpu=yes', '--kernel-time=no'):
        status, out, err = run([QUERN, 'flame', '--sampler=timers', word, 'true'])
        equal((status, out, err), (1, '', f'quern: {word} cannot be used with --sampler=timers\n'))

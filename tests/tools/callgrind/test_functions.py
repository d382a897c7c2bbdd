"""Functions that are left out, and functions that end at jumps."""
from suite import QUERN, TESTS, equal, test
from support import SHAPES, SOURCES, compare_events, differences, leaves_program, lines_of, mine, \
    profile, program


for _name, _level, _link, _options in (
        ('recursion', '0', 'static', ('--fn-skip=fibonacci',)),
        ('recursion', '2', 'dynamic', ('--fn-skip=main', '--fn-skip=ackermann')),
        ('tails', '2', 'static', ('--fn-skip=second',)),
        ('tails', '2', 'static', ('--fn-skip=first', '--fn-skip=choose')),
        ('tails', '0', 'dynamic', ('--fn-skip=even',)),
        ('objects', '2', 'dynamic', ('--fn-skip=*area*',)),
        ('thrown', '2', 'dynamic', ('--fn-skip=main',)),
        ('signals', '2', 'static', ('--fn-skip=work',)),
        ('caches', '2', 'static', ('--fn-skip=*a*', '--cache-sim=yes', '--branch-sim=yes',
                                   *SHAPES['usual']))):
    def _skipped(name=_name, level=_level, link=_link, options=_options):
        source, command = name + SOURCES[name], [program(name, level, link)]
        ours, theirs = (profile(command, *options, runner=runner)[0]
                        for runner in (QUERN, 'valgrind'))
        for kind in ('own', 'calls', 'inclusive'):
            got, wanted = (mine(getattr(side, kind), source) for side in (ours, theirs))
            if kind == 'inclusive':
                got, wanted = ({key: cost for key, cost in side.items()
                                if not leaves_program(theirs, source, key[1])}
                               for side in (got, wanted))
            equal(differences(got, wanted), {}, kind)
        equal(differences(lines_of(ours, source), lines_of(theirs, source)), {}, 'cost of lines')
        plain, _ = profile(command)
        equal(mine(plain.own, source) == mine(ours.own, source), False, 'nothing was left out')
        compare_events(*({event: mine(own, source) for event, (own, _) in side.events.items()}
                         for side in (ours, theirs)), 'skipped')
    TESTS.append((f'skipped_as_valgrind_{_name}_O{_level}_{_options[0][10:].strip("*")}', _skipped))


@test
def nothing_is_lost_by_leaving_out():
    """Also of functions that nobody has called."""
    command = [program('recursion', '2', 'static')]
    plain, all_left_out = (profile(command, *options)[0] for options in ((), ('--fn-skip=*',)))
    equal(sum(all_left_out.own.values()), sum(plain.own.values()), 'cost of all')
    equal(len(all_left_out.own) < len(plain.own), True, 'fewer functions')


def without_levels(counter, source):
    """Costs by name, whatever the level; nothing about calls of a function by itself."""
    found = {}
    for names, count in mine(counter, source).items():
        names = tuple(name.removesuffix("'2") for name in names)
        if len(names) < 2 or names[0] != names[1]:
            found[names] = found.get(names, 0) + count
    return found


@test
def functions_that_end_at_jumps():
    """Valgrind takes the stack for another one there: a return counts as a call besides."""
    command = [program('tails', '2', 'static'), ]
    ours, theirs = (profile(command, '--pop-on-jump=*', runner=runner)[0]
                    for runner in (QUERN, 'valgrind'))
    for kind in ('own', 'calls', 'inclusive'):
        got, wanted = (without_levels(getattr(side, kind), 'tails.c') for side in (ours, theirs))
        got.pop(('main', 'around'), None), wanted.pop(('main', 'around'), None)
        equal(differences(got, wanted), {}, kind)
    equal(mine(ours.calls, 'tails.c')['around', 'finish'], 130, 'calls that were jumps')
    some, _ = profile(command, '--pop-on-jump=first')
    calls = mine(some.calls, 'tails.c')
    equal((('first', 'second') in calls, calls['around', 'second']), (False, 65), 'of one function')

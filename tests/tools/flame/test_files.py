"""The files: the profile and the picture."""
import json
import re

from suite import QUERN, contains, equal, failed, run, test
from support import build, flame, stacks_of


@test
def profile_says_what_the_graph_says():
    profile = flame(build('hostile'), '--flame-stacks-file=out.stacks')
    own = {';'.join(path): value for path, value in profile.stacks.items()}
    status, out, err = run([QUERN, 'export', 'out.stacks', '--as=collapsed'])
    equal((status, err, stacks_of(out)), (0, '', own), 'exported as collapsed')
    status, out, err = run([QUERN, 'export', 'out.stacks', '--as=flamegraph'])
    with open('out.svg', encoding='utf-8') as file:
        equal(out, file.read(), 'the graph made again')
    scope = json.loads(run([QUERN, 'export', 'out.stacks', '--as=speedscope'])[1])
    names = [frame['name'].replace(';', ':') for frame in scope['shared']['frames']]
    told = {';'.join(names[frame] for frame in sample): weight for sample, weight
            in zip(scope['profiles'][0]['samples'], scope['profiles'][0]['weights'], strict=True)}
    equal(told, own, 'speedscope')
    contains(run([QUERN, 'print', 'out.stacks'])[1], f'sum of all stacks:       {profile.total:,}\n')
    tree = run([QUERN, 'print', '--view=top-down', 'out.stacks'])[1]
    contains(tree, '  main (hostile)\n')
    contains(run([QUERN, 'export', 'out.stacks', '--as=csv'])[2], 'can be exported as collapsed')
    # Readers of folded stacks that know nothing of it find the stacks and nothing else.
    with open('out.stacks', encoding='utf-8') as file:
        found = [int(line[1]) for line in re.findall(r'^(.*) ([0-9]+)$', file.read(), re.M)]
    equal(sum(found), profile.total, 'sum for others')


@test
def profiles_that_are_damaged():
    """Every file that begins like a profile is read or refused in one line, whatever follows."""
    head = '# quern stacks: "1"\n# command: "a b 12"\n'
    for body, total in (('a`b;c`d 3\nx 4\n', 7), ('', 0), ('# unit: "', 0), (';;; 5\n', 5),
                        ('`;`` 6\n', 6), ('\\x00\\x3B\\x 7\n', 7), ('#1 2\n', 0),
                        ('# details: "\n`a 1', 1), ('a;' * 30000 + 'b 2\n', 2)):
        with open('made.stacks', 'w', encoding='utf-8') as file:
            file.write(head + body)
        status, out, err = run([QUERN, 'print', 'made.stacks'])
        equal((status, err), (0, ''), f'status for {body[:20]!r}')
        contains(out, f'sum of all stacks:       {total}\n')
        contains(out, 'command:                 a b 12\n')
    for body in ('a`b\n', 'a b\n', 'x 99999999999999999999999\n', ' 4\n'):
        with open('made.stacks', 'w', encoding='utf-8') as file:
            file.write(head + body)
        for words in (['print'], ['export', '--as=pprof']):
            status, out, err = run([QUERN, *words, 'made.stacks'])
            equal((status, out, err.count('\n')), (1, '', 1), f'refusal of {body!r}')
            contains(err, 'line 3 is not folded stacks')


@test
def options_not_served_are_refused():
    for word in ('--trace-children-skip=x', '--trace-children-skip-by-arg=x'):
        status, out, err = run([QUERN, 'flame', word, 'true'])
        equal((status, err.count('\n')), (1, 1))
        contains(err, word.split('=')[0] + " is not supported yet by tool 'flame'")
    equal(run([QUERN, 'flame', '--freq=0', 'true'])[0], 1)
    contains(run([QUERN, 'none', '--freq=50', 'true'])[2], "is an option of tool 'flame'")


@test
def graph_needs_nothing_else():
    flame(build('shares'), arguments=['300'], status=7)
    with open('out.svg', encoding='utf-8') as file:
        text = file.read()
    for word in ('href', 'src=', 'url(', '@import', 'fetch(', 'XMLHttpRequest', 'innerHTML', 'eval('):
        if word in text:
            failed(f'{word!r} is in the SVG')
    addresses = set(re.findall(r'https?://[^"\'\s]*', text))
    equal(addresses, {'http://www.w3.org/2000/svg', 'http://www.w3.org/1999/xhtml'}, 'addresses')


@test
def inverted_graph_starts_at_the_top():
    rows = {}
    for options in ([], ['--flame-inverted=yes']):
        profile = flame(build('shares'), *options, arguments=['500'], status=7)
        rows[bool(options)] = [int(frame['rect'].get('y')) for frame in profile.frames
                               if frame['name'] in ('all', 'main')][:2]
    equal(rows[False][0] > rows[False][1], True, 'root at the bottom')
    equal(rows[True][0] < rows[True][1], True, 'root at the top')

"""What quern says about growth, and whether that is right for an endpoint of a server."""
import re

from servers import has_lines, lines_of
from suite import QUERN, equal, failed, succeed

GROWS = 'Memory that only grows'
LOST = 'Blocks that are allocated and forgotten'
PATTERNS = {
    'cache': GROWS,
    'listeners': 'Handlers that are registered and never removed',
    'cycles': 'A circle of blocks that nobody holds',
    'buffers': 'A buffer that only grows',
    'threads': 'Memory of each thread that only grows',
    'channel': 'A channel or queue that is not drained',
    'tasks': 'Tasks or threads that are started and never end',
    'boxes': GROWS,
}
QUIET = ['bounded', 'pool', 'warmup', 'load']
ENDPOINTS = [*PATTERNS, *QUIET]
FUNCTIONS = {'cache': 'grow_cache', 'listeners': 'subscribe', 'cycles': 'make_cycle', 'buffers': 'append',
             'threads': 'note_on_thread', 'channel': 'send|enqueue', 'tasks': 'detach|spawn', 'boxes': 'forget_box'}
VERDICT = re.compile(r'^\d+\. (.*) \((?:possible|likely|certain)\)(?:: (.*))?$', re.M)
RATE = re.compile(r'\+([\d,]+) ± [\d,]+ bytes a second, (steadily|unevenly)')


def growth_of(text):
    """Title, place and text of each verdict of growth. Its number counts other verdicts, too."""
    parts = re.split(r'(?m)^(?=\d+\. )', text)[1:]
    return [(*VERDICT.match(part).groups(), part.split('. ', 1)[1].rstrip())
            for part in parts if RATE.search(part)]


def judge_growing(server, endpoint, said, is_searched):
    found = growth_of(said)
    equal(len(found), 1, f'number of verdicts of growth in {said!r}')
    title, place, text = found[0]
    wanted = [PATTERNS[endpoint]]
    if endpoint == 'cycles' and (server.startswith('c-') or not has_lines(server)):
        wanted = [GROWS]    # nothing in the record tells
    if endpoint in ('cycles', 'boxes') and is_searched:
        wanted.append(LOST)
    if title not in wanted:
        failed(f'it is called {title!r}, not {wanted}: {said}')
    if not re.search(FUNCTIONS[endpoint], place or ''):
        failed(f'it names {place!r}')
    if has_lines(server) and not any(f':{line})' in place for line in lines_of(server, endpoint)):
        failed(f'it names {place!r}, not one of lines {lines_of(server, endpoint)}')
    if RATE.search(text)[1] == '0':
        failed(f'no rate in {text!r}')


def judge(server, endpoint, path, is_searched=False):
    """Compares the verdicts on a recording with what the endpoint does."""
    said = succeed([QUERN, 'diagnose', path])[0]
    if endpoint in PATTERNS:
        judge_growing(server, endpoint, said, is_searched)
    else:
        equal([one[:2] for one in growth_of(said)], [], 'verdicts of growth')

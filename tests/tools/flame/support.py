"""What the tests of this suite share."""
import os
import re
import xml.etree.ElementTree as tree_of

import suite
from suite import QUERN, equal, failed, source_of, succeed

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'targets')
SVG = '{http://www.w3.org/2000/svg}'


def build(name, *flags):
    """Compiles a target; its path. -O2 has no frame pointers."""
    source = source_of(name, TARGETS)
    if source.endswith('.rs'):
        return suite.build(source, '-O')
    return suite.build(source, '-O2', '-w', *flags, '-lpthread')


class Profile:
    """What a run left behind: folded stacks, frames of the SVG, the log."""

    def __init__(self, log, out=''):
        self.log = log
        self.out = out
        with open('out.folded', encoding='utf-8') as file:
            lines = [line.rstrip('\n').rsplit(' ', 1) for line in file]
        self.stacks = {tuple(path.split(';')): int(value) for path, value in lines}
        equal(len(self.stacks), len(lines), 'different stacks')
        self.total = sum(self.stacks.values())
        self.svg = tree_of.parse('out.svg').getroot()
        self.check_svg()

    def share(self, *names):
        """The part of all samples with these functions in the stack, in this order, as neighbours."""
        part = 0
        for path, value in self.stacks.items():
            if any(path[i:i + len(names)] == names for i in range(len(path))):
                part += value
        return part / self.total if self.total else 0

    def complete(self):
        match = re.search(r'([\d.]+) % of the stacks are complete', self.log)
        return float(match[1])

    def check_svg(self):
        """Frames lie on their callers and within them, and add up to the folded stacks."""
        frames = [{'name': group.find(SVG + 'title').text.split('\n')[0],
                   'start': int(group.get('data-s')), 'value': int(group.get('data-v')),
                   'depth': int(group.get('data-d')), 'rect': group.find(SVG + 'rect')}
                  for group in self.svg.iter(SVG + 'g') if group.get('data-v')]
        self.frames = frames
        equal(int(self.svg.get('data-total')), self.total, 'total of the SVG')
        path, rest, sums = [], {}, {}
        for frame in frames:
            del path[frame['depth']:]
            equal(len(path), frame['depth'], 'depth')
            if path:
                caller = path[-1]
                if frame['start'] < caller['start'] or \
                        frame['start'] + frame['value'] > caller['start'] + caller['value']:
                    failed(f'{frame["name"]} is not within {caller["name"]}')
                rest[id(caller)] -= frame['value']
            path.append(frame)
            rest[id(frame)] = frame['value']
            sums[id(frame)] = tuple(one['name'].replace(';', ':') for one in path[1:])
            for side, value in (('x', frame['start']), ('width', frame['value'])):
                shown = float(frame['rect'].get(side).rstrip('%'))
                if abs(shown - 100 * value / self.total) > 0.001:
                    failed(f'{side} of {frame["name"]} is {shown}')
        if frames:
            self_values = {sums[key]: value for key, value in rest.items() if value}
            equal(self_values, self.stacks, 'self values of the SVG')


def flame(program, *options, arguments=(), status=0, **more):
    out, err = succeed([QUERN, '--tool=flame', '--flame-out-file=out.svg',
                        '--flame-collapsed-file=out.folded', '--flame-stacks-file=/dev/null', *options,
                        program, *arguments], status, **more)
    return Profile(err, out)


def near(value, wanted, tolerance, what):
    if abs(value - wanted) > tolerance:
        failed(f'{what} is {value:.3f}, not {wanted:.3f} (within {tolerance})')


def cpu_time(samples, took, what, frequency=997, most=1.15):
    """Samples are a program's CPU time. They cannot be too many; too few they may be, because a
    virtual machine that its host sets aside misses ticks and counts the time all the same."""
    if not 0.6 * took <= samples / frequency <= most * took:
        failed(f'CPU time of {what} is {samples / frequency:.3f} by samples, {took:.3f} by its clock')


def at_least(value, least, what):
    if value < least:
        failed(f'{what} is {value}, less than {least}')


def stacks_of(text):
    lines = [line.rsplit(' ', 1) for line in text.splitlines()]
    return {path: int(value) for path, value in lines}

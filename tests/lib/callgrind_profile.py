"""Reads callgrind.out files, anyone's, strictly by the grammar."""
import collections
import re

SPACES = {'ob': 'ob', 'cob': 'ob', 'fl': 'fl', 'fi': 'fl', 'fe': 'fl', 'cfi': 'fl', 'cfl': 'fl',
          'fn': 'fn', 'cfn': 'fn', 'jfi': 'fl', 'jfn': 'fn'}


class Profile:
    """own[function], calls[caller, callee], inclusive[caller, callee]; lines[function, file, line];
    taken[function, (file, *position), (file, *position)] and met[the same] of jumps, those of branches.

    A function is (object, file, name). These are costs by the first event; events[name] has
    (own, inclusive) of each event."""

    def __init__(self, path):
        self.names = {'ob': {}, 'fl': {}, 'fn': {}}
        self.header = {}
        self.own = collections.Counter()
        self.lines = collections.Counter()
        self.instructions = collections.Counter()
        self.calls = collections.Counter()
        self.inclusive = collections.Counter()
        self.taken = collections.Counter()
        self.met = collections.Counter()
        self.compressed = False
        self.events = {}
        self.at = {}
        self.before = []
        self.call = self.jump = None
        with open(path, encoding='utf-8', errors='surrogateescape') as file:
            for number, line in enumerate(file, 1):
                try:
                    self.take(line.rstrip('\n'))
                except (KeyError, ValueError, IndexError) as error:
                    raise ValueError(f'{path}:{number}: {line!r}: {error!r}') from error

    def take(self, line):
        if not line or line.startswith('#'):
            return
        if found := re.fullmatch(r'(version|creator|pid|cmd|part|desc|positions|event|events|summary|'
                                 r'totals|thread): ?(.*)', line):
            self.header[found[1]] = found[2]
            if found[1] == 'positions':
                self.before = [0] * len(found[2].split())
            if found[1] == 'events':
                self.events = {name: (collections.Counter(), collections.Counter())
                               for name in found[2].split()}
        elif found := re.fullmatch(r'([a-z]+)=(.*)', line):
            if found[1] == 'calls':
                count, *position = found[2].split()
                self.position(position, False)
                self.call = int(count)
            elif jump := re.fullmatch(r'(jump=(\d+)|jcnd=(\d+)/(\d+)) (.*)', line):
                to = self.at.pop('jfi', self.at['fi']), *self.position(jump[5].split(), False)
                self.jump = to, int(jump[2] or jump[3]), jump[4] and int(jump[4])
            else:
                self.name(found[1], found[2])
        else:
            self.cost(line.split())

    def name(self, key, text):
        space = SPACES[key]
        if found := re.fullmatch(r'\((\d+)\)(?: (.*))?', text):
            self.compressed = True
            if found[2] is not None:
                if found[1] in self.names[space]:
                    raise ValueError('defined twice')
                self.names[space][found[1]] = found[2]
            text = self.names[space][found[1]]
        self.at[key] = text
        if key == 'fl':
            self.at['fi'] = text
        if key == 'fe':
            self.at['fi'] = text

    def position(self, words, keep):
        if len(words) != len(self.before):
            raise ValueError('wrong number of positions')
        values = [before if word == '*' else before + int(word) if word[0] in '+-'
                  else int(word, 0) for word, before in zip(words, self.before)]
        if keep:
            self.before = values
        return values

    def cost(self, words):
        size = len(self.before)
        position = self.position(words[:size], True)
        if self.jump:
            if words[size:]:
                raise ValueError('a jump has no cost')
            me = self.at.get('ob'), self.at['fl'], self.at['fn']
            to, taken, met = self.jump
            key = me, (self.at['fi'], *position), to
            self.taken[key] += taken
            if met is not None:
                if not 0 < taken <= met:
                    raise ValueError('taken more often than met')
                self.met[key] += met
            self.jump = None
            return
        values = [int(word) for word in words[size:]]
        if not values or len(values) > len(self.events):
            raise ValueError('wrong number of events')
        if max(values) >= 1 << 62:
            raise ValueError('less than nothing')
        cost = values[0]
        me = self.at.get('ob'), self.at['fl'], self.at['fn']
        if self.call is None:
            self.own[me] += cost
            for (own, _), value in zip(self.events.values(), values):
                own[me] += value
            self.lines[me, self.at['fi'], position[-1]] += cost
            self.instructions[me[0], position[0]] += cost
        else:
            callee = (self.at.pop('cob', me[0]), self.at.pop('cfi', self.at['fi']),
                      self.at.pop('cfn'))
            self.calls[me, callee] += self.call
            self.inclusive[me, callee] += cost
            for (_, inclusive), value in zip(self.events.values(), values):
                inclusive[me, callee] += value
            self.call = None

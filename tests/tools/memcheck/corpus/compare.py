"""What differs between two runs of the same program, which of that is listed as intended, and which
cases are listed as open."""
import difflib
import os
import re
import tomllib

import logs

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, 'differences.toml'), 'rb') as file:
    LISTED = tomllib.load(file)
LEFT_OUT = re.compile('|'.join(f'(?:{line})' for entry in LISTED.get('wording', [])
                               for line in entry['lines']))


class Outcome:
    """A run: how it ended, what the program printed, what the tool said."""

    def __init__(self, status, output, log, is_xml):
        self.status, self.output, self.log, self.is_xml = status, output, log, is_xml

    def parts(self):
        """{name: [paragraph]}"""
        if self.is_xml:
            return {'xml': [without_wording(paragraph)
                            for paragraph in logs.xml_paragraphs(self.log)]}
        found = {}
        for number, paragraphs in enumerate(logs.processes(self.log), 1):
            kept = [without_wording(paragraph) for paragraph in paragraphs]
            first, rest = logs.without_list([paragraph for paragraph in kept if paragraph])
            name = 'log' if number == 1 else f'log {number}'
            found[name] = first
            if rest:
                found[name + ' list'] = rest
        return merge_string_functions(found)

    def reports(self):
        return [paragraph for name, part in self.parts().items() if not name.endswith('list')
                for paragraph in part if logs.is_report(paragraph)]


def merge_string_functions(parts):
    """From how many places of its own code a replaced function touches memory is its own affair: of
    its reports with the same headline and stack the first counts, and sums are not compared."""
    for name in [name for name in parts if not name.endswith('list')]:
        if not any(logs.in_string_function(paragraph) for paragraph in parts[name]):
            continue
        seen, kept = set(), []
        for paragraph in parts[name]:
            key = tuple(item for item in paragraph if not str(item).startswith('Thread '))[:2]
            if logs.in_string_function(paragraph) and key in seen:
                continue
            seen.add(key)
            kept.append(tuple(item for item in paragraph if not (
                isinstance(item, str) and item.startswith('ERROR SUMMARY'))))
        parts[name] = [paragraph for paragraph in kept if paragraph]
        parts.pop(name + ' list', None)
    return parts


def without_wording(paragraph):
    """Without lines, and stacks that follow them, in which the tools differ by design."""
    kept, skip = [], False
    for item in paragraph:
        if isinstance(item, str):
            skip = LEFT_OUT.match(item.strip()) is not None
        if not skip:
            kept.append(item)
    return tuple(kept)


NAMELESS = 'UnknownInlinedFun'


def nameless_places(parts):
    """Where Valgrind did not find the name of an inlined function."""
    return {place for part in parts.values() for paragraph in part
            for function, place in logs.frames_of(paragraph) if function == NAMELESS}


def without_names(parts, places):
    """parts, without the names of functions at these places."""
    def plain(item):
        if isinstance(item, str):
            return item
        return tuple((NAMELESS if place in places else function, place)
                     for function, place in item)
    return {name: [tuple(map(plain, paragraph)) for paragraph in part]
            for name, part in parts.items()}


class Difference:
    def __init__(self, where, theirs, ours):
        self.where, self.theirs, self.ours = where, theirs, ours

    def key(self):
        return self.where, self.theirs, self.ours

    def __str__(self):
        theirs, ours = self.theirs or 'nothing', self.ours or 'nothing'
        return f'{self.where}: valgrind {theirs!r}, quern {ours!r}'


def narrow(where, theirs, ours):
    """The items of two paragraphs that differ."""
    if len(theirs) != len(ours) or theirs[0] != ours[0]:
        return Difference(where, logs.show(theirs), logs.show(ours))
    mine, other = [], []
    for left, right in zip(theirs, ours):
        if left != right:
            other.append(left)
            mine.append(right)
    title = theirs[0] if isinstance(theirs[0], str) else ''
    return Difference(f'{where}, {title}' if title else where, logs.show(other), logs.show(mine))


def without_consequences(parts):
    """parts, without what follows from the reports: the list of -s, and how many there were."""
    follows = ('ERROR SUMMARY', 'Use --track-origins=yes', 'For counts of detected')
    plain = {name: [tuple(item for item in paragraph
                          if not (isinstance(item, str) and item.startswith(follows)))
                    for paragraph in part]
             for name, part in parts.items() if not name.endswith('list')}
    return {name: [paragraph for paragraph in part if paragraph] for name, part in plain.items()}


def differences(theirs, ours, reports_only=False):
    """theirs, ours: Outcome. A list of Difference. reports_only: without_consequences."""
    found = []
    if theirs.status != ours.status:
        found.append(Difference('exit status', str(theirs.status), str(ours.status)))
    if theirs.output != ours.output:
        found.append(Difference('output', theirs.output[-300:], ours.output[-300:]))
    left, right = theirs.parts(), ours.parts()
    places = nameless_places(left)
    left, right = without_names(left, places), without_names(right, places)
    if reports_only:
        left, right = without_consequences(left), without_consequences(right)
    for name in list(left) + [name for name in right if name not in left]:
        one, two = left.get(name, []), right.get(name, [])
        match = difflib.SequenceMatcher(None, one, two, autojunk=False)
        for what, from1, to1, from2, to2 in match.get_opcodes():
            if what == 'replace' and to1 - from1 == to2 - from2:
                found += [narrow(name, *pair) for pair in zip(one[from1:to1], two[from2:to2])]
            elif what != 'equal':
                found += [Difference(name, logs.show(item), '') for item in one[from1:to1]]
                found += [Difference(name, '', logs.show(item)) for item in two[from2:to2]]
    return found


def is_counted(paragraph):
    return not re.search(r'(are|still) (still )?(reachable|indirectly lost)', logs.show(paragraph))


def contradictions(outcome):
    """Where the list of -s and the sums do not fit the reports of the same log."""
    reasons, parts = [], outcome.parts()
    for name, entries in parts.items():
        if not name.endswith(' list'):
            continue
        log = parts[name.removesuffix(' list')]
        plain = [tuple(item for item in paragraph if not str(item).startswith('Thread '))
                 for paragraph in log if logs.is_report(paragraph) and is_counted(paragraph)]
        losses = sum(' in loss record ' in str(paragraph[0]) for paragraph in plain)  # never in the list
        counts = []
        for number, entry in enumerate(entries[:-1], 1):
            match = re.fullmatch(r'(\d+) errors in context (\d+) of (\d+):', str(entry[0]))
            rest = tuple(item for item in entry[1:] if not str(item).startswith('Thread '))
            if not match or int(match[2]) != number or int(match[3]) != len(plain):
                reasons.append(f'{name}: entry {number} is {logs.show(entry)!r}')
            elif rest not in plain:
                reasons.append(f'{name}: not in the log: {logs.show(rest)!r}')
            else:
                counts.append(int(match[1]))
        summary = f'ERROR SUMMARY: {sum(counts) + losses} errors from {len(plain)} contexts'
        if len(counts) + losses != len(plain) or not str(entries[-1][0]).startswith(summary):
            reasons.append(f'{name}: {len(plain)} reports, but {logs.show(entries[-1])!r}')
    return reasons


class Rule:
    """One reason for differences of many cases. Patterns are matched against what the tools say; those
    for Quern may refer to groups of those for Valgrind."""

    def __init__(self, entry):
        self.reason, self.cases = entry['reason'], entry['cases']
        self.pairs = [re.compile(f'(?s:{theirs}\0{ours})') for theirs, ours in entry['pairs']]
        self.used = set()

    def explains(self, difference):
        text = f'{difference.theirs}\0{difference.ours}'
        for number, pair in enumerate(self.pairs):
            if pair.fullmatch(text):
                self.used.add(number)
                return True
        return False


RULES = [Rule(entry) for entry in LISTED.get('rule', [])]


def unused_rules():
    """After all cases: patterns that never matched."""
    return [f'{rule.reason} ({rule.pairs[number].pattern!r})' for rule in RULES
            for number in range(len(rule.pairs)) if number not in rule.used]


def listed():
    """{case: [Difference]} of differences.toml"""
    found = {}
    for entry in LISTED.get('difference', []):
        if not entry.get('reason'):
            raise ValueError(f'the difference of {entry["case"]} has no reason')
        for case in [entry['case']] if isinstance(entry['case'], str) else entry['case']:
            found.setdefault(case, []).append(
                Difference(entry['where'], entry['valgrind'], entry['quern']))
    return found


class Open:
    """Why a case is known to differ by a fault of ours, and whether it says the same each time."""

    def __init__(self, cause, is_steady):
        self.cause, self.is_steady = cause, is_steady


def open_cases():
    """{case: Open} of open.toml"""
    with open(os.path.join(HERE, 'open.toml'), 'rb') as file:
        groups = tomllib.load(file).get('group', [])
    found = {}
    for group in groups:
        if not group.get('cause'):
            raise ValueError(f'the open cases {group["cases"]} have no cause')
        for case in group['cases']:
            if case in found:
                raise ValueError(f'{case} is listed twice in open.toml')
            found[case] = Open(group['cause'], group.get('steady', True))
    return found


def unexplained(case, found, explained):
    """Reasons to fail: what differs and is not listed, what is listed and does not differ."""
    left = list(explained)
    rules = [rule for rule in RULES if case in rule.cases]
    needed = list(rules)
    reasons = []
    for difference in found:
        same = [entry for entry in left if entry.key() == difference.key()]
        rule = next((rule for rule in rules if rule.explains(difference)), None)
        if same:
            left.remove(same[0])
        elif rule:
            needed = [other for other in needed if other is not rule]
        else:
            reasons.append(str(difference))
    reasons += [f'a rule that lists it does not apply: {rule.reason}' for rule in needed]
    return reasons + [f'listed, but it does not happen: {entry}' for entry in left]

"""The table of results, docs/wild.md. The file is its own store: record() reads it, replaces what a run
has found out about one group, and writes it again with the sums.
"""
import collections
import fcntl
import os
import re

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/wild.md')
Row = collections.namedtuple('Row', 'name seconds cells')
# Of a group: {command line: {tool: cell}} and {(command line, tool): text}.
Section = collections.namedtuple('Section', 'title rows differences')

UNKNOWN = 'not examined: '
OPENING = '''# The wide hunt

`tests/run --wild` runs command lines of software that Quern was not written for, and writes this file.
Every command runs natively and under the tools. It must print the same and end with the same status.
memcheck must not report an error that Valgrind does not report. `tests/wild/groups` has the command
lines, `tests/wild/known.toml` the differences that somebody has examined.

| cell | meaning |
|---|---|
| `ok` | as natively; memcheck has the errors of Valgrind |
| `known` | a difference with a reason, in the list below the table |
| `not ok` | a difference that nobody has explained yet |
| `-` | the tool is left out for this command line |
| | not run yet |
| `(3, V 5)` | memcheck's errors, and Valgrind's. `V -`: the command does not run under Valgrind as natively, or takes too long there |
'''


def read():
    """{group: Section} of the file."""
    sections = {}
    if not os.path.exists(PATH):
        return sections
    with open(PATH) as file:
        parts = re.split(r'^## ', file.read(), flags=re.M)[2:]
    for part in parts:
        heading, _, body = part.partition('\n')
        name, _, title = heading.partition(': ')
        lines = [line for line in body.splitlines() if line.startswith(('|', '- '))]
        table = [[word.strip() for word in line.strip('|').split('|')] for line in lines
                 if line.startswith('|')]
        tools = table[0][1:]
        rows = {row[0].strip('`'): dict(zip(tools, row[1:])) for row in table[2:]}
        differences = {}
        for line in lines:
            found = re.match(r'- `(.*?)`, (\w+): (.*)', line)
            if found:
                differences[found[1], found[2]] = found[3]
        sections[name] = Section(title, rows, differences)
    return sections


def write(sections, tools):
    lines = [OPENING, '## Sums', '', '| tool | command lines | ok | known | not ok |', '|---|--:|--:|--:|--:|']
    for tool in tools:
        cells = [cells.get(tool, '') for section in sections.values() for cells in section.rows.values()]
        counts = [sum(cell.startswith(verdict) for cell in cells) for verdict in ('ok', 'known', 'not ok')]
        lines.append(f'| {tool} | {sum(counts)} | ' + ' | '.join(map(str, counts)) + ' |')
    for name, section in sorted(sections.items()):
        lines += ['', f'## {name}: {section.title}', '', f'| command line | {" | ".join(tools)} |',
                  '|---|' + '---|' * len(tools)]
        for command, cells in section.rows.items():
            lines.append(f'| `{command}` | ' + ' | '.join(cells.get(tool, '') for tool in tools) + ' |')
        if section.differences:
            lines.append('')
        for (command, tool), text in section.differences.items():
            lines.append(f'- `{command}`, {tool}: {text}')
    # Some commands fill the disk; the table must survive that.
    with open(f'{PATH}.new', 'w') as file:
        file.write('\n'.join(lines) + '\n')
    os.replace(f'{PATH}.new', PATH)


def judge(groups, tools, find_reason):
    """Judges what is in the file by what is known now: find_reason(command line, tool, difference).
    Command lines that no longer exist disappear."""
    with open(__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sections = read()
        for name, section in sections.items():
            names = {program['name'] for program in groups[name]['program']}
            for gone in [command for command in section.rows if command not in names]:
                del section.rows[gone]
            for (command, tool), text in list(section.differences.items()):
                if command not in names:
                    del section.differences[command, tool]
                    continue
                reason = text.startswith(UNKNOWN) and find_reason(command, tool, text[len(UNKNOWN):])
                if reason:
                    section.differences[command, tool] = reason
                    cell = section.rows[command]
                    cell[tool] = cell[tool].replace('not ok', 'known')
        write(sections, tools)


def record(group, title, tools, rows, names):
    """Replaces what the file says about these rows; rows that are in names no longer disappear. Several
    hunts may run at once."""
    with open(__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        replace(group, title, tools, rows, names)


def replace(group, title, tools, rows, names):
    sections = read()
    old = sections.get(group, Section(title, {}, {}))
    cells = {name: dict(old.rows[name]) for name in names if name in old.rows}
    differences = {key: text for key, text in old.differences.items() if key[0] in names}
    for row in rows:
        mine = cells.setdefault(row.name, {})
        for tool, (verdict, note, difference, reason) in row.cells.items():
            mine[tool] = verdict + (f' ({note})' if note and note != '0' else '')
            differences.pop((row.name, tool), None)
            if difference:
                # A reason says it better than the first line that differs.
                text = reason or UNKNOWN + difference
                differences[row.name, tool] = ' '.join(text.split()).replace('|', '/')
    order = {name: cells[name] for name in names if name in cells}
    ranks = {name: number for number, name in enumerate(names)}
    sections[group] = Section(title, order, dict(sorted(
        differences.items(), key=lambda item: (ranks[item[0][0]], tools.index(item[0][1])
                                               if item[0][1] in tools else 0))))
    write(sections, tools)

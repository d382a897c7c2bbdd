"""Losses, SQL, changes, and what is refused."""
import os
import subprocess
import urllib.parse

import given
from given import Server, printed
from suite import BUILD, QUERN, contains, equal, failed, test


def loss(kind, words, size, *functions):
    frames = ''.join(f'<frame><ip>0x1</ip><fn>{name}</fn></frame>' for name in functions)
    return (f'<error><unique>0x1</unique><tid>1</tid><kind>Leak_{kind}</kind><xwhat><text>{words}</text>'
            f'<leakedbytes>{size}</leakedbytes><leakedblocks>1</leakedblocks></xwhat><stack>{frames}</stack></error>')


@test
def losses_are_counted_once():
    """What is lost indirectly is in two records; what is reachable is no leak; malloc wanted nothing."""
    definite = loss('DefinitelyLost', '1,100 (100 direct, 1,000 indirect) bytes in 1 blocks are definitely lost',
                    1100, 'malloc', 'owner', 'main')
    indirect = loss('IndirectlyLost', '1,000 bytes in 1 blocks are indirectly lost', 1000, 'calloc', 'owned', 'main')
    reachable = loss('StillReachable', '50 bytes in 1 blocks are still reachable', 50, 'malloc', 'keeper', 'main')
    path = os.path.join(given.FOLDER, 'losses.xml')
    for losses, wanted_rows in ((definite + indirect + reachable, {'owner': 100, 'owned': 1000, 'main': 0}),
                                (definite + reachable, {'owner': 1100, 'main': 0})):
        with open(path, 'w') as file:
            file.write('<?xml version="1.0"?>\n<valgrindoutput><protocolversion>4</protocolversion>'
                       f'<protocoltool>memcheck</protocoltool><tool>memcheck</tool>{losses}</valgrindoutput>\n')
        facts = {fact['label']: fact['value'] for fact in printed(path)['facts']}
        equal((facts['leaked'], facts['still reachable']), (1100, 50), 'sums')
        rows = printed('--view=functions', path)['rows']
        equal({row['name']: row['self'] for row in rows}, wanted_rows, 'functions')
        for limit, words in ((1100, 'fine: not freed 1,100 bytes'), (1099, 'TOO MUCH: not freed 1,100 bytes')):
            done = subprocess.run([QUERN, 'check', f'--max-leaked={limit}', path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=300)
            contains(done.stdout, words)


@test
def suppressions_match_linkage_names():
    """Those made from a file that has none: here and in Valgrind, whose suppressions match linkage names."""
    folder = given.FOLDER
    program, path, rules = (os.path.join(folder, name) for name in ('hidden', 'hidden.xml', 'hidden.supp'))
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'hidden.cc')
    subprocess.run(['g++', '-std=c++17', '-g', '-O1', '-w', source, '-o', program], check=True)
    for writer in (QUERN, 'valgrind'):
        subprocess.run([writer, '--xml=yes', f'--xml-file={path}', '--leak-check=full', program], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        rows = printed('--view=findings', '--top=1000', path)['rows']
        if len({row['kind'] for row in rows}) < 3:
            failed(f'only {[row["kind"] for row in rows]} in the XML of {writer}')
        with open(rules, 'w') as file:
            file.write(''.join('\n'.join(row['suppression']) + '\n' for row in rows))
        for reader in (QUERN, 'valgrind'):
            done = subprocess.run([reader, '--leak-check=full', f'--suppressions={rules}', program],
                                  capture_output=True, text=True, timeout=300)
            contains(done.stderr, 'ERROR SUMMARY: 0 errors')


@test
def findings_say_where():
    """The program's own frame, not free or a function of the library."""
    program, path = (os.path.join(given.FOLDER, name) for name in ('twice', 'twice.xml'))
    with open(program + '.c', 'w') as file:
        file.write('#include <stdlib.h>\n#include <string.h>\nchar *volatile p;\n'
                   'void release(void) { free(p); }\n'
                   'int main(void) { p = malloc(3); release(); release();\n'
                   'return strlen(p) > 9 ? 1 : 0; }\n')
    subprocess.run(['gcc', '-g', '-O0', program + '.c', '-o', program], check=True)
    for writer in (QUERN, 'valgrind'):
        subprocess.run([writer, '--xml=yes', f'--xml-file={path}', program], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=300)
        rows = printed('--view=findings', path)['rows']
        found = {(row['kind'], row['sections'][0]['frames'][row['where']]['function']) for row in rows}
        equal(found, {('InvalidFree', 'release'), ('InvalidRead', 'main')}, f'places in the XML of {writer}')


@test
def findings_are_ordered():
    """Errors as they came, then leaks, the largest first; or by a column."""
    rows = printed('--view=findings', '--top=1000', given.FILES['memcheck.ours'])['rows']
    errors = [row['index'] for row in rows if not row['leak']]
    leaks = [row['bytes'] for row in rows if row['leak']]
    equal(errors, sorted(errors), 'errors')
    equal(leaks, sorted(leaks, reverse=True), 'leaks')
    equal([row['leak'] for row in rows], sorted(row['leak'] for row in rows), 'errors before leaks')
    if len(errors) < 2 or len(leaks) < 2:
        failed('too few findings')
    number = given.NAMES.index('memcheck.ours')
    for key, reverse in (('count', True), ('bytes', True), ('kind', False), ('what', False)):
        found = [row[key] for row in given.SERVER.ask(f'findings?file={number}&sort={key}&count=1000')['rows']]
        equal(found, sorted(found, reverse=reverse), f'by {key}')


@test
def holders_are_told():
    rows = printed('--view=findings', '--top=1000', given.FILES['memcheck.ours'])['rows']
    held = [part['text'] for row in rows if row['kind'] == 'Leak_StillReachable'
            for part in row['sections'] if part['text'] and 'Held by' in part['text']]
    if not any('"held"' in text for text in held):
        failed(f'holders: {held}')


@test
def sql_only_reads_and_ends():
    number = given.NAMES.index('heap.quern')
    words = urllib.parse.quote
    rows = given.SERVER.ask(f'query?file={number}&sql={words("SELECT count(*) AS n FROM allocations;")}')
    blocks = {fact['label']: fact['value'] for fact in printed(given.FILES['heap.quern'])['facts']}
    equal(rows['rows'], [{'n': blocks['allocations']}], 'rows')
    for sql in ('DELETE FROM stacks', "ATTACH '/etc/passwd' AS x", 'PRAGMA database_list', 'SELECT 1; SELECT 2',
                "SELECT writefile('/tmp/x', 1)", "SELECT load_extension('x')", '', 'nonsense',
                "SELECT 1) UNION SELECT (2"):
        status = given.SERVER.get(f'/{given.SERVER.token}/ask/query?file={number}&sql={words(sql)}')[0]
        equal(status, 422, f'status of {sql!r}')
    many = given.SERVER.ask(f'query?file={number}&sql=' + words(
        'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'))
    equal(len(many['rows']), 5001, 'rows of a statement without an end')


@test
def changes_are_differences():
    numbers = [given.NAMES.index(name) for name in ('callgrind.ours', 'callgrind.peer')]
    diff = given.SERVER.ask(f'diff?file={numbers[0]}&after={numbers[1]}')
    totals = [printed(given.FILES[given.NAMES[number]])['metrics'][0]['total'] for number in numbers]
    equal(diff['after'] - diff['before'], totals[1] - totals[0], 'the change of the whole')
    before, after = ({(row['name'], row['library']): row['self'] for row in
                      printed('--view=functions', '--top=20000', given.FILES[given.NAMES[number]])['rows']}
                     for number in numbers)
    for row in diff['functions'][:50]:
        key = row['name'], row['library']
        equal((row['self_before'], row['self_after']), (before.get(key, 0), after.get(key, 0)), key)
    same = given.SERVER.ask(f'diff?file={numbers[0]}&after={numbers[0]}')
    equal([row for row in same['functions'] if row['self_before'] != row['self_after']], [], 'changes')


@test
def files_without_a_page_are_told_at_once():
    """Nothing is served for files that are empty or of no format; beside others they are named."""
    empty = os.path.join(given.FOLDER, 'empty')
    open(empty, 'w').close()
    told = {empty: 'it is empty', given.FILES['nothing']: 'it is none of these: a recording',
            given.FOLDER: 'it is not a regular file', '/nowhere': 'No such file'}
    for paths in [[path] for path in told] + [list(told)]:
        # Where something is served it would not end.
        done = subprocess.run(['timeout', '300', QUERN, 'view', '--no-browser', *paths],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal((done.returncode, done.stdout), (1, ''), f'view of {paths}')
        for path in paths:
            contains(done.stderr, f"quern: cannot show '{path}': {told[path]}")
    server = Server(*told, given.FILES['massif.damaged'], given.FILES['collapsed'])
    try:
        equal(server.ask(f'overview?file={len(told) + 1}')['problem'], None, 'the good one')
        contains(server.ask('overview?file=0')['problem'], 'it is empty')
    finally:
        status, said = server.end()
    equal(status, 0, 'status after SIGTERM')
    for path in told:
        equal(said.count(f"cannot show '{path}'"), 1, f'how often {path} is named')
    # Known at its beginning, found wrong when it was read.
    contains(said, f"quern: cannot show '{given.FILES['massif.damaged']}': ")


@test
def mistakes_are_told():
    for words, part in ((['view'], 'usage'), (['view', '/nowhere'], 'No such file'),
                        (['view', '--port=x', given.FILES['collapsed']], '--port'),
                        (['view', '--nonsense', given.FILES['collapsed']], 'unknown option'),
                        (['view', f'--port={given.SERVER.port}', given.FILES['collapsed']], 'cannot serve'),
                        (['print', '--json', '--view=x', given.FILES['heap.quern']],
                         "invalid value 'x' for --view"),
                        (['print', '--json', '--size=1-2', given.FILES['heap.quern']], '--from and --to'),
                        (['print', '--json', '--function=main', given.FILES['heap.quern']], '--from and --to'),
                        (['print', '--json', '--view=calls', '--function=nobody', given.FILES['callgrind.ours']],
                         'no such function'),
                        (['print', '--json', '--by=x', '--view=functions', given.FILES['heap.quern']],
                         'no such metric')):
        done = subprocess.run([QUERN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=300)
        equal(done.returncode, 1, f'status of {words}')
        contains(done.stderr, part)


@test
def without_the_page_the_way_to_it_is_named():
    """A quern that was built where there was no npm: one line, status 1, no server."""
    without_page(os.path.join(BUILD, 'tests', 'view', 'quern-without-page'))


def without_page(quern):
    path = given.FILES.get('collapsed', __file__)
    for words, part in ((['view', path], 'quern print shows files in the terminal'),
                        (['export', path, '--as=html'], 'cannot write a page')):
        done = subprocess.run(['timeout', '300', quern, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        equal((done.returncode, done.stdout), (1, ''), f'result of {words[0]}')
        equal(done.stderr.count('\n'), 1, f'lines of {words[0]} ({done.stderr})')
        for told in (part, 'built without the page', './try in its source folder'):
            contains(done.stderr, told)
    says = subprocess.run([quern, 'view', '--help'], stdout=subprocess.PIPE, text=True).stdout
    contains(says, './try in its source folder')

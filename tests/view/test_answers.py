"""Answers of the server are those of quern print and of the files."""
import json
import os
import socket
import struct
import subprocess
import time
import urllib.parse
import xml.etree.ElementTree

import files as targets
import given
from given import Server, printed
from suite import QUERN, ROOT, contains, equal, failed, test


# A statement that runs until the server gives it up.
ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'


def wait_for_works(server, ids):
    while sorted(work['id'] for work in server.ask('works')['works'] if work['what']) != ids:
        time.sleep(0.05)


@test
def slow_questions_block_nobody_and_can_be_cancelled():
    server = Server(given.FILES['heap.quern'])
    words = urllib.parse.urlencode({'file': 0, 'sql': ENDLESS, 'work': 'slow'})
    slow = socket.create_connection(('127.0.0.1', server.port))
    slow.sendall(f'GET /{server.token}/ask/query?{words} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n'.encode())
    wait_for_works(server, ['slow'])
    for question in ('overview?file=0', 'functions?file=0', 'sites?file=0', 'diagnosis?file=0',
                     'query?file=0&sql=SELECT+1', 'overview?file=0&from=1000'):
        server.ask(question)
    wait_for_works(server, ['slow'])
    equal([work['what'] for work in server.ask('works')['works']], ['running the statement'], 'what it does')
    slow.close()
    wait_for_works(server, [])
    server.stop()


@test
def every_metric_is_known_at_every_node():
    """With all=1 a row has what the same node has in the tree of each metric."""
    for name in ('heap.quern', 'dhat.ours'):
        number = given.NAMES.index(name)
        metrics = [one['name'] for one in given.SERVER.ask(f'overview?file={number}')['metrics']]
        seen = 0
        for words in ('', '&invert=1', '&merge=1'):
            places = dict.fromkeys(metrics, '')  # of the same node, by metric
            while True:
                rows = {metric: given.SERVER.ask(f'children?file={number}&metric={metric}&node={places[metric]}&all=1{words}')['rows']
                        for metric in metrics if places[metric] is not None}
                by_name = {metric: {(row['function'], row['library']): row for row in rows[metric]} for metric in rows}
                for row in rows[metrics[0]]:
                    key = row['function'], row['library']
                    equal(row['all'], [by_name.get(metric, {}).get(key, {'total': 0})['total'] for metric in metrics],
                          f'{key} of {name}{words}')
                    seen += 1
                inner = next((row for row in rows[metrics[0]] if row['children']), None)
                if not inner:
                    break
                for metric in metrics:
                    found = by_name.get(metric, {}).get((inner['function'], inner['library']))
                    above = places[metric]
                    places[metric] = (f'{above}.' if above else '') + str(found['place']) if found else None
        if seen < 10:
            failed(f'only {seen} rows of {name}')
    rows = given.SERVER.ask(f'children?file={given.NAMES.index("heap.quern")}&all=1&focus=main')['rows']
    equal([row for row in rows if 'all' in row], [], 'rows of a part')


@test
def places_are_own_lines_and_add_up():
    for name, in_all in (('heap.quern', ('peak', 'total', 'count', 'leaked', 'temporary')), ('dhat.ours', ('total', 'count'))):
        number = given.NAMES.index(name)
        totals = {one['name']: one['total'] for one in given.SERVER.ask(f'overview?file={number}')['metrics']}
        for by in ('line', 'function', 'file', 'library'):
            for innermost in '01':
                rows = given.SERVER.ask(f'places?file={number}&by={by}&innermost={innermost}&count=20000')['rows']
                for metric in in_all:
                    if metric in totals:
                        equal(sum(row[metric] for row in rows), totals[metric], f'{metric} of {name} by {by}')
    number = given.NAMES.index('heap.quern')
    rows = given.SERVER.ask(f'places?file={number}&sort=count&search=target.c')['rows']
    with open(os.path.join(os.path.dirname(__file__), 'target.c')) as file:
        source = file.read().splitlines()
    for row in rows:
        place = given.SERVER.ask(f'place?file={number}&place={row["place"]}')
        equal((place['function'], place['line'], place['found']), (row['function'], row['line'], True), 'place')
        shown = {line[0]: line for line in place['lines']}
        equal(shown[row['line']][1], source[row['line'] - 1], 'text of the line')
        if shown[row['line']][5] < row['count']:
            failed(f'the line has fewer blocks than the place: {shown[row["line"]]}, {row}')
        equal(place['stacks'][0]['frames'][place['stacks'][0]['at']]['function'], row['function'], 'the own frame')
    if len(rows) < 2:
        failed(f'too few own lines: {rows}')
    status, _, body = given.SERVER.get(f'/{given.SERVER.token}/ask/place?file={number}&place=99999')
    equal((status, 'no such place' in body), (422, True), 'a place that is not there')


@test
def lifetimes_below_the_clock_are_one_row():
    number = given.NAMES.index('heap.quern')
    bins = given.SERVER.ask(f'histograms?file={number}')['lifetimes']
    equal([(one['from'], one['to']) for one in bins[:3]], [(0, 2000000), (2000000, 4000000), (4000000, 8000000)][:len(bins)], 'rows')


@test
def answers_are_those_of_print():
    for number, name in enumerate(given.NAMES):
        if name in given.DAMAGED:
            continue
        overview = printed(given.FILES[name])
        equal(given.SERVER.ask(f'overview?file={number}'), overview, f'overview of {name}')
        if 'flame' not in overview['views']:
            continue
        for metric in overview['metrics'][:3]:
            by = f'--by={metric["name"]}'
            for view, question in (('functions', 'functions'), ('libraries', 'libraries')):
                equal(given.SERVER.ask(f'{question}?file={number}&count=20&metric={metric["name"]}'),
                      printed(f'--view={view}', by, given.FILES[name]), f'{view} of {name}')
            equal(given.SERVER.ask(f'tree?file={number}&width=100&metric={metric["name"]}'),
                  printed('--view=top-down', by, given.FILES[name]), f'tree of {name}')
        for view in {'calls', 'source', 'assembly'} & set(overview['views']):
            grow = next(row for row in printed('--view=costs', '--top=5000', given.FILES[name])['rows']
                        if row['name'] == 'grow')
            equal(given.SERVER.ask(f'{view}?file={number}&function={grow["function"]}'),
                  printed(f'--view={view}', '--function=grow', given.FILES[name]), f'{view} of {name}')


MASSIF = """desc: x
cmd: ./x
time_unit: ms
#-----------
snapshot=0
#-----------
time=1
mem_heap_B=1000
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=peak
n2: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 900 0x1000: strdup %s
  n0: 600 0x2000: main (x.c:4)
  n1: 300 0x3000: ??? %s
   n0: 300 0x2010: main (x.c:9)
 n0: 100 in 3 places, all below massif's threshold (1.00%%)
"""


@test
def libraries_are_told_where_they_are_known():
    """By formats that name them of some functions only, or of none."""
    told = MASSIF % ('(in /usr/lib/libc (old).so)', '(in /opt/libplug.so.1)')
    made = {'told': told, 'untold': MASSIF % ('(strdup.c:8)', '(x.c:7)'),
            'xtree': '# callgrind format\nevents: Ir\nfl=a.c\nfn=main\n3 5\n',
            'folded': 'main;work 5\n', 'folded.told': '# quern stacks: "1"\nx`main;libc`work 5\n'}
    paths = dict(given.FILES)
    for name, content in made.items():
        targets.damage(paths, given.FOLDER, name, content.encode())
    for name, known in (('told', True), ('untold', False), ('xtree', False), ('folded', False),
                        ('folded.told', True), ('heap.quern', True), ('callgrind.ours', True),
                        ('callgrind.peer', True), ('cachegrind.ours', False),
                        ('cachegrind.peer', False), ('memcheck.peer', True), ('collapsed', False)):
        equal('libraries' in printed(paths[name])['views'], known, f'libraries of {name}')
    rows = printed('--view=libraries', paths['told'])['rows']
    equal(sorted((row['name'], row['self'], row['total']) for row in rows),
          [('[unknown]', 100, 1000), ('libc (old).so', 900, 900), ('libplug.so.1', 0, 300)], 'sums')


@test
def sums_are_right():
    """What the target does is known; what other formats of the same recording say is, too."""
    collapsed = subprocess.run([QUERN, 'export', given.FILES['heap.quern'], '--as=collapsed', '--by=count'],
                               stdout=subprocess.PIPE, text=True, check=True).stdout
    by_function = {}
    for line in collapsed.splitlines():
        stack, value = line.rsplit(' ', 1)
        name = stack.split(';')[-1]
        by_function[name] = by_function.get(name, 0) + int(value)
    equal(by_function['inner'], 1200, 'blocks of inner')
    rows = printed('--view=functions', '--by=count', given.FILES['heap.quern'])['rows']
    equal({row['name']: row['self'] for row in rows if row['self']}, by_function, 'functions')
    equal(sum(row['count'] for row in printed('--view=threads', given.FILES['heap.quern'])['rows']),
          sum(by_function.values()), 'blocks of all threads')
    histogram = printed('--view=histograms', given.FILES['heap.quern'])
    for kind in ('sizes', 'lifetimes'):
        equal(sum(row['blocks'] for row in histogram[kind]), sum(by_function.values()), kind)
    tree = printed('--view=top-down', '--by=count', '--threshold=0.001', given.FILES['heap.quern'])
    equal(sum(node[3] + node[5] for node in tree['nodes']), tree['total'],
          'own values of all nodes, and what is left out')
    up = printed('--view=bottom-up', '--by=count', '--threshold=0.001', given.FILES['heap.quern'])
    first = {up['functions'][node[1]][0]: node[2] for node in up['nodes'] if node[0] == 0}
    equal(first, {name: by_function[name] for name in first}, 'the first level of bottom-up')
    equal(sum(first.values()) + up['nodes'][0][5], sum(by_function.values()), 'all of it')


@test
def a_window_is_that_of_print():
    number = given.NAMES.index('heap.quern')
    end = given.SERVER.ask(f'timeline?file={number}')['end']
    middle = end // 2
    words = f'file={number}&from={middle // 2}&to={middle}'
    text = subprocess.run([QUERN, 'print', f'--from={middle // 2 / 1e9:.9f}', f'--to={middle / 1e9:.9f}',
                           '--peak-only', given.FILES['heap.quern']], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    overview = given.SERVER.ask(f'overview?{words}')
    equal(f'Peak memory usage: {overview["metrics"][0]["total"]:,} bytes\n', text, 'peak')
    if not 0 < overview['metrics'][2]['total'] < given.SERVER.ask(f'overview?file={number}')['metrics'][2]['total']:
        failed(f'{overview["metrics"][2]["total"]} blocks in the window')


@test
def a_window_says_how_long_it_is():
    number = given.NAMES.index('heap.quern')
    end = given.SERVER.ask(f'timeline?file={number}')['end']

    def times(words):
        return {fact['label']: fact['value'] for fact in given.SERVER.ask(f'overview?file={number}{words}')['facts']
                if fact['label'] in ('time', 'window from', 'window to', 'length of the window')}

    def window(start, stop):
        return {'window from': start, 'window to': stop, 'length of the window': stop - start}
    third = end // 3
    equal(times(''), {'time': end}, 'the whole run')
    equal(times(f'&from={third}&to={2 * third}'), window(third, 2 * third), 'in the middle')
    equal(times(f'&from={third}'), window(third, end), 'to the end')
    equal(times(f'&to={third}'), window(0, third), 'from the start')
    equal(times(f'&from={end}0&to={end}00'), window(end, end), 'behind the end')


@test
def sql_is_about_the_window():
    number = given.NAMES.index('heap.quern')
    end = given.SERVER.ask(f'timeline?file={number}')['end']
    words = f'file={number}&from={end // 4}&to={end // 2}'
    facts = {fact['label']: fact['value'] for fact in given.SERVER.ask(f'overview?{words}')['facts']}
    sql = urllib.parse.quote('SELECT count(*) AS n, sum(size) AS bytes, sum(freed_time IS NULL) AS live, '
                             'min(time) AS first, max(time) AS last FROM allocations')
    row = given.SERVER.ask(f'query?{words}&sql={sql}')['rows'][0]
    equal((row['n'], row['bytes'], row['live']),
          (facts['allocations'], facts['allocated'], facts['blocks not freed']), 'blocks of the window')
    if not end / 4e9 <= row['first'] <= row['last'] <= end / 2e9:
        failed(f'{row} in {end // 4} to {end // 2}')
    sql = urllib.parse.quote('SELECT sum(allocated_blocks) AS n, sum(peak_bytes) AS peak FROM stacks')
    equal(given.SERVER.ask(f'query?{words}&sql={sql}')['rows'],
          [{'n': facts['allocations'], 'peak': facts['peak of the heap']}], 'stacks of the window')


@test
def a_recording_without_an_index_is_told_while_it_is_read():
    program, path = os.path.join(given.FOLDER, 'pairs'), os.path.join(given.FOLDER, 'bare.quern')
    subprocess.run(['cc', '-O2', '-pthread', '-o', program, os.path.join(ROOT, 'bench/programs/pairs.c')],
                   check=True)
    subprocess.run([QUERN, '--tool=heap', '-q', f'--heap-out-file={path}', program, '2', '3000000', '5'],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)
    with open(path, 'r+b') as file:
        file.seek(-16, os.SEEK_END)
        position, magic = struct.unpack('<Q8s', file.read(16))
        equal(magic, b'QUERNIDX', 'the end of the recording')
        file.truncate(position)
    # Reading takes about a second: whoever asks at once sees it.
    known = None
    for _ in range(20):
        server = Server(path)
        try:
            state = server.ask('files')['files'][0]
            while not state['ready']:
                known = state.get('so_far') or known
                state = server.ask('files')['files'][0]
            facts = {fact['label']: fact['value'] for fact in server.ask('overview')['facts']}
        finally:
            server.stop()
        if known and known['allocations']:
            break
    if not known or not 0 < known['allocations'] <= facts['allocations']:
        failed(f'while it is read: {known}; then: {facts}')
    equal(known['peak'], max(most for _, most in known['points']), 'the peak so far')
    if known['peak'] > facts['peak of the heap'] or known['time'] > 2 * facts['time']:
        failed(f'{known["peak"]} bytes, {known["time"]} ns; then: {facts}')
    if 'so_far' in state:
        failed('it is still told when everything is read')


@test
def damaged_files_are_told():
    for name in given.DAMAGED:
        overview = given.SERVER.ask(f'overview?file={given.NAMES.index(name)}')
        if not overview['problem']:
            failed(f'{name} has no problem')
        status, _, body = given.SERVER.get(f'/{given.SERVER.token}/ask/tree?file={given.NAMES.index(name)}')
        equal(status, 422, f'tree of {name}')
        done = subprocess.run([QUERN, 'export', given.FILES[name], '--as=html'], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        equal((done.returncode, done.stdout), (1, ''), f'export of {name}')
        contains(done.stderr, overview['problem'][:20])
    for name in ('cut.quern', 'memcheck.cut'):
        if 'cut off' not in (given.SERVER.ask(f'overview?file={given.NAMES.index(name)}')['notice'] or ''):
            failed(f'nothing is said of {name}, which is cut off')


@test
def findings_are_those_of_the_file():
    for name in ('memcheck.ours', 'memcheck.peer'):
        wanted = []
        for error in xml.etree.ElementTree.parse(given.FILES[name]).getroot().iter('error'):
            stacks = [[frame.findtext('fn') for frame in stack] for stack in error.iter('stack')]
            wanted.append((error.findtext('kind'), error.findtext('what') or error.findtext('xwhat/text'),
                           int(error.findtext('xwhat/leakedbytes') or 0), stacks))
        rows = printed('--view=findings', '--top=1000', given.FILES[name])['rows']
        got = [(row['kind'], row['what'], row['bytes'],
                [[frame['function'] for frame in part['frames']] for part in row['sections']
                 if part['frames']])
               for row in sorted(rows, key=lambda row: row['index'])]
        equal(got, wanted, name)
        kinds = {row['kind'] for row in rows}
        if not {'InvalidWrite', 'InvalidRead', 'Leak_DefinitelyLost'} <= kinds:
            failed(f'{name} has only {kinds}')
        if max(len(row['sections']) for row in rows) < 2:
            failed(f'{name} has no second stacks')


@test
def suppressions_match():
    """Those of the page, given to quern, leave nothing to report."""
    for name in ('memcheck.ours', 'memcheck.peer'):
        path = os.path.join(given.FOLDER, 'own.supp')
        with open(path, 'w') as file:
            for row in printed('--view=findings', '--top=1000', given.FILES[name])['rows']:
                file.write('\n'.join(row['suppression']) + '\n')
        done = subprocess.run([QUERN, '--leak-check=full', '--error-exitcode=9', f'--suppressions={path}',
                               os.path.join(given.FOLDER, targets.NAME), 'errors'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        equal(done.returncode, 0, f'status with the suppressions of {name} ({done.stderr[-600:]})')


@test
def points_are_those_of_the_file():
    for name in ('dhat.ours', 'dhat.peer'):
        with open(given.FILES[name]) as file:
            wanted = json.load(file)
        names = ('tb', 'tbk', 'tl', 'mb', 'mbk', 'gb', 'gbk', 'eb', 'ebk', 'rb', 'wb')
        rows = {row['point']: row for row in printed('--view=points', '--top=3000', given.FILES[name])['rows']}
        equal(len(rows), len(wanted['pps']), f'points of {name}')
        bytes_known = 0
        for number, point in enumerate(wanted['pps']):
            row = rows[number]
            equal([row[one] for one in names], [point[one] for one in names], f'{name}, {number}')
            equal(row['frames'], [wanted['ftbl'][frame] for frame in point['fs']], 'frames')
            accesses, packed = [], iter(point.get('acc', []))
            for value in packed:
                accesses += [next(packed)] * -value if value < 0 else [value]
            equal(row.get('accesses', []), accesses, f'accesses of {name}, {number}')
            bytes_known += len(accesses)
        if not bytes_known:
            failed(f'{name} has no accesses')


@test
def a_large_graph_is_read_quickly():
    """200,000 functions: memory of the server until the first view, and that it comes."""
    process = given.LARGE.process.pid
    given.LARGE.ask('overview')
    given.LARGE.ask('tree?width=1500')
    with open(f'/proc/{process}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    with open(f'/proc/{process}/status') as file:
        memory = int(next(line for line in file if line.startswith('VmHWM')).split()[1]) // 1024
    print(f'# 200,000 functions: {seconds:.1f} s of CPU time, {memory} MiB')
    # bench/run read says whether it is quick; here, what no slow machine explains.
    if seconds > 100 or memory > 1024:
        failed(f'{seconds} s, {memory} MiB')
    equal(given.LARGE.ask('overview')['facts'][1]['value'], 200000, 'functions')
    # The tree has room for all that it shows: nothing is left at a function that is not its own.
    tree = given.LARGE.ask('tree?width=1500')
    own = {row['name']: row['own'] for row in given.LARGE.ask('costs?count=20000&sort=inclusive')['rows']}
    selves = {}
    for node in tree['nodes'][1:]:
        name = tree['functions'][node[1]][0]
        selves[name] = selves.get(name, 0) + node[3]
    wrong = {name: (value, own[name]) for name, value in selves.items()
             if name in own and value > own[name] + 20}
    if wrong or len(set(selves) & set(own)) < 100:
        failed(f'of {len(selves)} functions, more than their own: {list(wrong.items())[:5]}')

"""Diagnoses, costs, sources, assembly, markers and sites."""
import json
import os
import re
import subprocess

import files as targets
import given
from given import Server, printed
from suite import QUERN, contains, equal, failed, test


@test
def a_diagnosis_is_that_of_diagnose():
    rows = printed('--view=diagnosis', given.FILES['heap.quern'])['rows']
    text = subprocess.run([QUERN, 'diagnose', given.FILES['heap.quern']], stdout=subprocess.PIPE, text=True).stdout
    titles = re.findall(r'^[0-9]+\. (.* \((?:certain|likely|possible)\))', text, re.M)
    equal([f'{row["title"]} ({row["certainty"]})' for row in rows], titles, 'titles')
    if not rows:
        failed('nothing stands out')


@test
def costs_are_those_of_annotate():
    for name in ('callgrind.ours', 'callgrind.peer'):
        done = subprocess.run([QUERN, 'annotate', '--threshold=100', '--show=Ir', '--inclusive=yes',
                               '--show-percs=no', given.FILES[name]],
                              stdout=subprocess.PIPE, text=True, check=True)
        costs = printed('--view=costs', '--top=1000', given.FILES[name])['rows']
        for row in costs[:10]:
            contains(done.stdout, f'{row["inclusive"]:,}')
        number = given.NAMES.index(name)
        grow = next(row for row in costs if row['name'].startswith('grow'))
        around = given.SERVER.ask(f'calls?file={number}&function={grow["function"]}')
        callees = {one['name'].split("'")[0]: one['count'] for one in around['callees']}
        equal(callees.get('deeper'), 1200, f'calls of deeper in {name} ({callees})')
        if not any(one['name'] in ('main', 'worker') for one in around['callers']):
            failed(f'callers are {around["callers"]}')
        source = given.SERVER.ask(f'source?file={number}&function={grow["function"]}')
        if not source['found']:
            failed(f'{source["file"]} was not found')
        text = ' '.join(line[3] for line in source['lines'] if line[2])
        contains(text, 'deeper(')


@test
def reach_and_groups_are_those_of_the_calls():
    number = given.NAMES.index('callgrind.ours')
    rows = printed('--view=costs', '--top=10000', given.FILES['callgrind.ours'])['rows']
    main = next(row for row in rows if row['name'] == 'main')
    near = given.SERVER.ask(f'calls?file={number}&function={main["function"]}')
    reach = given.SERVER.ask(f'reach?file={number}&function={main["function"]}&count=10000')['rows']
    equal({row['name'] for row in reach if row['distance'] == 1},
          {row['name'] for row in near['callees'] if row['function'] != main['function']}, 'nearest')
    far = next(row for row in reach if row['distance'] == 2)
    back = given.SERVER.ask(f'reach?file={number}&function={far["function"]}&callers=1&count=10000')
    equal([row['distance'] for row in back['rows'] if row['name'] == 'main'], [2], 'the way back')
    for by in ('class', 'file', 'object'):
        groups = given.SERVER.ask(f'groups?file={number}&by={by}&count=10000')
        equal(sum(row['own'] for row in groups['rows']), groups['total'], f'sum by {by}')
    status, _, body = given.SERVER.get(f'/{given.SERVER.token}/ask/groups?file={number}&by=colour')
    equal(status, 422, f'status of an unknown grouping ({body})')


@test
def jumps_are_those_of_the_profile():
    path = os.path.join(given.FOLDER, 'callgrind.jumps')
    program = os.path.join(given.FOLDER, targets.NAME)
    subprocess.run([QUERN, '-q', '--tool=callgrind', '--dump-instr=yes', '--collect-jumps=yes',
                    f'--callgrind-out-file={path}', program], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    answer = printed('--view=assembly', '--function=churn', path)
    addresses = {line[0] for line in answer['lines']}
    if not answer['jumps']:
        failed('churn has a loop, but no jump')
    for start, target, taken, met in answer['jumps']:
        if start not in addresses or (met and taken > met):
            failed(f'jump from {start} to {target}: {taken} of {met}')
    if not any(target in addresses and int(target, 16) < int(start, 16)
               for start, target, _, _ in answer['jumps']):
        failed(f'no jump leads back: {answer["jumps"]}')


@test
def derived_events_are_sums_of_a_file():
    """Misses in all and the estimate of cycles are computed for every function."""
    path = os.path.join(given.FOLDER, 'callgrind.derived')
    with open(path, 'w') as file:
        file.write('# callgrind format\nevents: Ir D1mr DLmr\nfl=a.c\nfn=main\n1 100 5 2\n'
                   'cfn=work\ncalls=4 9\n2 50 1 0\nfn=work\n9 50 1 0\n')
    rows = {row['name']: row for row in printed('--view=costs', '--by=CEst', path)['rows']}
    equal((rows['main']['own'], rows['main']['inclusive']), (100 + 50 + 200, 350 + 60), 'main')
    equal(rows['work']['own'], 50 + 10, 'work')
    rows = {row['name']: row for row in printed('--view=costs', '--by=2 Ir + 100 * LLm', path)['rows']}
    equal((rows['main']['own'], rows['main']['inclusive']), (200 + 200, 400 + 100), 'main by a formula')
    equal([fact['label'] for fact in printed(path)['facts'][:3]], ['Ir', 'D1mr', 'DLmr'], 'facts')


@test
def functions_without_symbols_tell_their_object():
    path = os.path.join(given.FOLDER, 'callgrind.nameless')
    with open(path, 'w') as file:
        file.write('# callgrind format\nevents: Ir\nob=/usr/lib/libx.so.3\nfl=???\nfn=0x0000000000001af0\n0 7\n'
                   'ob=\nfn=0x0000000000001af0\n0 8\nob=/bin/y\nfn=0xag\n0 9\n')
    names = sorted(row['name'] for row in printed('--view=costs', path)['rows'])
    equal(names, ['0x0000000000001af0', '0xag', 'libx.so.3+0x1af0'], 'names')


@test
def only_sources_are_shown():
    """A profile that names another file as its source does not get it shown."""
    path = os.path.join(given.FOLDER, 'callgrind.hostile')
    secret = os.path.join(given.FOLDER, 'id_rsa')
    with open(secret, 'w') as file:
        file.write('SECRET\n' * 20)
    os.mkfifo(os.path.join(given.FOLDER, 'pipe.c'))
    for name in (secret, '/etc/passwd', os.path.join(given.FOLDER, 'pipe.c'), given.FOLDER):
        with open(path, 'w') as file:
            file.write(f'# callgrind format\nversion: 1\npositions: line\nevents: Ir\n\nfl={name}\n'
                       'fn=main\n1 10\n2 20\n')
        server = Server(path)
        try:
            _, _, body = server.get(f'/{server.token}/ask/source?function=0')
            if 'SECRET' in body or 'root:' in body or '"found":true' in body:
                failed(f'{name} is shown: {body[:200]}')
        finally:
            server.stop()


def costs_by_address(path, wanted):
    """{address: cost of its own} of a function, read from the file by other means."""
    costs, names, function, address, call = {}, {}, None, 0, False
    with open(path) as file:
        for line in file:
            key, _, rest = line.strip().partition('=')
            if key in ('fn', 'cfn'):
                number, _, name = rest.partition(' ')
                name = names.setdefault(number, name)
                function = name if key == 'fn' else function
            elif key == 'calls':
                call = True
            elif line[:1] in '+-*' or line[:2] == '0x':
                first, *_, cost = line.split()
                address = (int(first, 16) if first[:2] == '0x' else address if first == '*' else
                           address + int(first, 10))
                if function == wanted and not call:
                    costs[address] = costs.get(address, 0) + int(cost)
                call = False
    return costs


@test
def assembly_is_that_of_the_file():
    for name in ('instructions.ours', 'instructions.peer'):
        contains(printed(given.FILES[name])['views'], 'assembly')
        rows = printed('--view=costs', '--top=5000', given.FILES[name])['rows']
        churn = next(row for row in rows if row['name'] == 'churn')
        code = given.SERVER.ask(f'assembly?file={given.NAMES.index(name)}&function={churn["function"]}')
        equal(code['found'], True, f'the program of {name} is here')
        told = {int(line[0], 16): line[1] for line in code['lines'] if line[1]}
        equal(told, costs_by_address(given.FILES[name], 'churn'), f'costs by address of {name}')
        equal(sum(told.values()), churn['own'], f'all of churn in {name}')
        # What another disassembler makes of the same addresses: as many bytes for each.
        dump = subprocess.run(['objdump', '-d', '--no-show-raw-insn', os.path.join(given.FOLDER, targets.NAME)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        known = {line.split(':')[0].strip(): line.split(':', 1)[1].split()[0]
                 for line in dump.splitlines() if line.startswith(' ') and ':' in line}
        for line in code['lines']:
            if line[0] not in known:
                failed(f'{name}: no instruction begins at {line[0]} ({line[3]})')
            if known[line[0]] in ('call', 'push', 'pop', 'ret', 'sub', 'add', 'mov', 'lea'):
                equal(line[3].split()[0], known[line[0]], f'{name}, {line[0]}')
        calls = {line[7] for line in code['lines'] if line[7]}
        if not any('malloc' in one for one in calls):
            failed(f'{name}: churn calls {calls}')
    status, _, body = given.SERVER.get(f'/{given.SERVER.token}/ask/assembly?file={given.NAMES.index("callgrind.ours")}')
    equal(status, 422, 'status without addresses')
    contains(body, '--dump-instr=yes')


@test
def only_code_is_shown():
    """A profile that names another file as its program does not get it shown."""
    path = os.path.join(given.FOLDER, 'callgrind.objects')
    secret = os.path.join(given.FOLDER, 'secret.so')
    with open(secret, 'w') as file:
        file.write('SECRET\n' * 2000)
    # An ELF file whose segments lie far outside of it.
    with open('/proc/self/exe', 'rb') as file:
        head = file.read(4096)
    broken = os.path.join(given.FOLDER, 'broken.so')
    with open(broken, 'wb') as file:
        file.write(head[:64] + b'\xff' * 800)
    os.mkfifo(os.path.join(given.FOLDER, 'pipe.so'))
    for name in (secret, '/etc/passwd', os.path.join(given.FOLDER, 'pipe.so'), given.FOLDER, broken, '', '/dev/zero'):
        with open(path, 'w') as file:
            file.write(f'# callgrind format\nversion: 1\npositions: instr line\nevents: Ir\n\nob={name}\n'
                       'fl=x.c\nfn=main\n0x0 1 10\n0x40 1 10\n0xfffffffffffffff0 1 10\n')
        server = Server(path)
        try:
            code = server.ask('assembly?function=0')
            equal([line[3] for line in code['lines']], [None] * 3, f'instructions of {name!r}')
        finally:
            server.stop()


@test
def markers_are_those_of_the_program():
    timeline = printed('--view=timeline', given.FILES['heap.quern'])
    equal([mark['name'] for mark in timeline['marks']], ['<i>growing</i>', 'grown'], 'markers')
    equal([(scope['name'], scope['entered'], scope['blocks']) for scope in timeline['scopes']],
          [('growth', 1, 600)], 'scopes')
    query = subprocess.run([QUERN, 'query', given.FILES['heap.quern'], '--json',
                            'SELECT time, live_bytes FROM marks ORDER BY time'],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(query.returncode, 0, f'status of quern query ({query.stderr})')
    equal([mark['heap'] for mark in timeline['marks']],
          [row['live_bytes'] for row in json.loads(query.stdout)], 'heap at the markers')


@test
def sites_of_a_massif_out_are_its_nodes():
    for name in ('massif.ours', 'massif.peer'):
        # The first level of each tree, by what stands behind the address.
        wanted = []
        with open(given.FILES[name]) as file:
            for line in file:
                if line.startswith('n'):
                    wanted.append({})
                elif line.startswith(' n') and ' 0x' in line:
                    bytes_, site = line.split(':', 1)[1].split(None, 1)
                    site = site.split(': ', 1)[1].strip()
                    wanted[-1][site] = wanted[-1].get(site, 0) + int(bytes_)
        sites = given.SERVER.ask(f'sites?file={given.NAMES.index(name)}')
        labels = [site['frames'][0] for site in sites['sites']]
        if not wanted or len(sites['times']) != len(wanted) or not labels:
            failed(f'{name} has {len(sites["times"])} detailed snapshots, {len(labels)} sites')
        for step, tree in zip(sites['steps'], wanted):
            equal(step[:len(labels)], [tree.get(label, 0) for label in labels], f'sites of {name}')

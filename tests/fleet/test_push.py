"""--push, quern push, quern query --store and quern diff --store, with real servers; and what becomes of
the intervals when a server is down, killed, full, slow, or answers something else."""
import glob
import json
import os
import re
import subprocess
import time

import suite
from stores import STORES, ClickHouse, Impostor, Postgres, forgetful_proxy, free_port
from support import OBEDIENT, Server, build_plain, metrics, settled
from suite import QUERN, clean_environment, contains, equal, failed, run, succeed, test, until


def spool():
    return os.path.join(suite.FOLDER, 'spool')


def waiting():
    return sorted(glob.glob(os.path.join(spool(), '*.interval')))


def pushing(url, *options, interval=1, **more):
    return Server(f'--push={url}', f'--push-interval={interval}', f'--push-spool={spool()}',
                  '--metrics-port=0', *options, **more)


def every(store):
    """A test for each store."""
    def make(function):
        for name, kind in STORES.items():
            def one(kind=kind):
                function(kind)
            one.__name__ = f'test_{function.__name__}_{name}'
            one.__module__ = __name__
            test(one)
        return function
    return make(store)


def all_there(store, processes=1):
    """The intervals in the store are each there once, from the first to the last; their number."""
    rows = store.rows('SELECT process, count(*) AS n, count(DISTINCT number) AS d, min(number) AS a, '
                      'max(number) AS z, sum(is_last) AS l FROM intervals GROUP BY process')
    equal(len(rows), processes, 'processes')
    for process, count, different, first, last, ends in rows:
        equal((count, different, first, ends), (last, last, '1', '1'), f'intervals of {process}')
    doubled = store.rows('SELECT process, number, stack, count(*) AS n FROM counts GROUP BY process, '
                         'number, stack HAVING count(*) > 1')
    equal(doubled, [], 'rows that are there twice')
    return sum(int(row[1]) for row in rows)


def sums(store, function):
    """allocated blocks, bytes, temporary blocks, and what is alive, of stacks that begin there."""
    rows = store.rows("SELECT sum(allocated_blocks) AS b, sum(allocated_bytes) AS y, "
                      f"sum(temporary_blocks) AS t FROM stacks WHERE folded = 'main;{function}'")
    live = store.rows(f"SELECT live_blocks, live_bytes FROM stacks WHERE folded = 'main;{function}' "
                      'ORDER BY number DESC LIMIT 1')
    return [int(value) for row in rows + live for value in row]


@every
def a_run_is_in_the_store(kind):
    with kind() as store:
        with pushing(store.url, '--service=shop', '--service-version=7') as server:
            server.tell('h 100 1000')
            settled(server, 'quern_push_pushed_total', 2)
            server.tell('f 30')
            server.tell('t 50 10')
            before = metrics(server)['quern_push_pushed_total']
            settled(server, 'quern_push_pushed_total', before + 2)
            server.tell('h 5 1000')
        equal((sums(store, 'hold'), sums(store, 'use_shortly')),
              ([105, 105000, 1, 75, 75000], [50, 500, 50, 0, 0]), 'sums')
        all_there(store)
        rows = store.rows('SELECT DISTINCT service, version, command FROM run')
        equal([row[:2] for row in rows], [('shop', '7')], 'run')
        equal(store.rows("SELECT DISTINCT depth, function, file, inlined FROM frames WHERE stack IN "
                         "(SELECT stack FROM names WHERE folded = 'main;hold') ORDER BY depth"),
              [('0', 'hold', 'obedient.c', '0'), ('1', 'main', 'obedient.c', '0')], 'frames')
        ids = [line for line in succeed(['readelf', '-n', server.program])[0].splitlines()
               if 'Build ID' in line]
        equal(store.rows('SELECT DISTINCT build_id FROM run')[0][0], ids[0].split()[-1], 'build-id')
        equal(waiting(), [], 'spool')


@every
def a_store_that_is_killed_loses_nothing(kind):
    with kind() as store:
        with pushing(store.url) as server:
            server.tell('h 10 100')
            for _ in range(2):
                done = metrics(server)['quern_push_pushed_total'] if server.url else 0
                settled(server, 'quern_push_pushed_total', done + 2)
                store.kill()
                server.tell('h 10 100')
                made = metrics(server)['quern_push_intervals_total']
                found = settled(server, 'quern_push_intervals_total', made + 2)
                equal(found['quern_push_up'], 0, 'up') if found['quern_push_failures_total'] else None
                server.tell('t 10 100')
                store.start()
            settled(server, 'quern_push_up', 1)
        # What the exporter could not bring before its end waits.
        if waiting():
            succeed([QUERN, 'push', f'--push={store.url}', *waiting()])
        equal(waiting(), [], 'spool')
        all_there(store)
        equal((sums(store, 'hold')[:2], sums(store, 'use_shortly')[:3]),
              ([30, 3000], [20, 2000, 20]), 'sums')


@every
def a_store_that_is_down_delays_nothing(kind):
    with kind() as store:
        store.kill()
        with pushing(store.url) as server:
            server.tell('h 10 100')
            settled(server, 'quern_push_intervals_total', 3)
            began = time.monotonic()
            for _ in range(100):
                server.tell('t 100 10')
            took = time.monotonic() - began
            said = server.end()
        if took > 30:
            failed(f'100 orders took {took:.1f} s')
        count = re.search(r'of (\d+) intervals, 0 are in .*; dropped: 0; (\d+) wait in', said)
        if not count or count[1] != count[2]:
            failed(said[-600:])
        equal(len(waiting()), int(count[2]), 'intervals in the spool')
        contains(said, 'cannot push to')
        store.start()
        files = waiting()
        kept = {path: open(path, 'rb').read() for path in files}
        succeed([QUERN, 'push', f'--push={store.url}', *files])
        equal((waiting(), all_there(store)), ([], int(count[1])), 'after quern push')
        # Once more: nothing is there twice.
        for path, content in kept.items():
            suite.write(path, content)
        succeed([QUERN, 'push', f'--push={store.url}', *files])
        equal(all_there(store), int(count[1]), 'after a second quern push')
        equal(sums(store, 'use_shortly')[:2], [10000, 100000], 'sums')


@test
def a_full_spool_drops_the_oldest_and_says_so():
    with pushing(f'clickhouse://127.0.0.1:{free_port()}', '--push-spool-size=4K') as server:
        found = {}
        while found.get('quern_push_dropped_total', 0) < 3:
            server.tell('h 3 10')
            server.tell('t 3 10')
            found = metrics(server) if server.url else settled(server, 'quern_push_waiting', 1)
            made = found['quern_push_intervals_total']
            found = settled(server, 'quern_push_intervals_total', made + 1)
            if found['quern_push_spool_bytes'] > 4096:
                failed(f'the spool is too large: {found}')
            equal(found['quern_push_intervals_total'],
                  found['quern_push_dropped_total'] + found['quern_push_waiting'], 'accounts')
        said = server.end()
    made, dropped, left = [int(n) for n in re.search(
        r'of (\d+) intervals, 0 are in .*; dropped: (\d+); (\d+) wait', said).groups()]
    equal((made, len(waiting())), (dropped + left, left), 'accounts at the end')
    # After a loss, everything is described once more: the store can make sense of what is left.
    with ClickHouse() as store:
        succeed([QUERN, 'push', f'--push={store.url}', *waiting()])
        equal(store.rows("SELECT count(*) AS n FROM stacks WHERE folded = ''"), [('0',)], 'unknown')
        equal(store.rows('SELECT count(*) AS n FROM samples WHERE host = \'\''), [('0',)], 'nobody')
        last = store.rows("SELECT live_blocks FROM stacks WHERE folded = 'main;hold' "
                          'ORDER BY number DESC LIMIT 1')
        equal(int(last[0][0]) % 3, 0, 'blocks that are held')


def answering(text):
    def act(connection):
        connection.settimeout(60)
        connection.recv(65536)
        connection.sendall(text)
    return act


def silent(connection):
    while connection.recv(65536):
        pass


@test
def servers_that_are_something_else_delay_nothing():
    answers = [answering(b'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n'),
               answering(b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
               answering(b'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
               answering(b'\0\xff' * 5000), answering(b''),
               answering(b'HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nx'), silent]
    for number, act in enumerate(answers):
        for scheme in ('clickhouse', 'postgresql'):
            with Impostor(act) as impostor:
                with pushing(f'{scheme}://127.0.0.1:{impostor.port}/x') as server:
                    server.tell('h 10 100')
                    settled(server, 'quern_push_intervals_total', 2)
                    server.tell('t 1000 10')
                    began = time.monotonic()
                    said = server.end()
                    took = time.monotonic() - began
            made, here = re.search(r'of (\d+) intervals, 0 are in .*; dropped: 0; (\d+) wait',
                                   said).groups()
            equal((made, len(waiting())), (here, int(here)), f'answer {number} as {scheme}')
            if took > 60:
                failed(f'the end took {took:.0f} s with answer {number}')
            for path in waiting():
                os.unlink(path)


@test
def an_answer_that_gets_lost_doubles_nothing():
    lost = set()

    def is_forgotten(path):
        table = re.search(r'INSERT%20INTO%20quern.(\w+)', path)
        if not table or table[1] in lost:
            return False
        lost.add(table[1])
        return True
    with ClickHouse() as store:
        proxy = forgetful_proxy(store.port, is_forgotten)
        with pushing(f'clickhouse://127.0.0.1:{proxy.server_address[1]}') as server:
            server.tell('h 10 100')
            settled(server, 'quern_push_failures_total', 5)
            settled(server, 'quern_push_up', 1)
        if waiting():
            succeed([QUERN, 'push', f'--push={store.url}', *waiting()])
        proxy.shutdown()
        proxy.server_close()
        equal(lost, {'processes', 'names', 'frames', 'counts', 'intervals'}, 'lost answers')
        all_there(store)
        equal(sums(store, 'hold')[:2], [10, 1000], 'sums')


@every
def tables_that_somebody_drops_come_back(kind):
    with kind() as store:
        with pushing(store.url) as server:
            server.tell('h 10 100')
            settled(server, 'quern_push_pushed_total', 1)
            if kind is ClickHouse:
                succeed(['curl', '-sf', f'http://127.0.0.1:{store.port}/', '-d', 'DROP DATABASE quern'])
            else:
                succeed(['psql', store.url, '-qc', 'DROP SCHEMA quern CASCADE'])
            server.tell('h 10 100')
            found = settled(server, 'quern_push_intervals_total', 3)
            settled(server, 'quern_push_pushed_total', found['quern_push_intervals_total'])
        if int(store.rows('SELECT count(*) AS n FROM intervals')[0][0]) < 1:
            failed('nothing came back')


SECRET = 'pass word/1'


@every
def secrets_stay_secret(kind):
    with kind(password=SECRET) as store:
        store.secrets = {'QUERN_PUSH_PASSWORD': SECRET}
        if kind is ClickHouse:
            store.secrets['QUERN_PUSH_USER'] = 'default'
        own = {name: store.secrets.get(name, '') for name in ('QUERN_PUSH_USER', 'QUERN_PUSH_PASSWORD')}
        credentials = suite.write('credentials', f'{"default" if kind is ClickHouse else "tester"}:'
                                  f'{SECRET}\n', 0o600)
        env = {name: value for name, value in own.items() if value}
        for options, more in ([f'--push-credentials={credentials}'], {}), ([], env):
            with pushing(store.url, *options, env=more) as server:
                server.tell('h 10 100')
                settled(server, 'quern_push_pushed_total', 1)
                children = succeed(['pgrep', '-P', str(server.process.pid)])[0].split()
                for pid in [str(server.process.pid), *children]:
                    with open(f'/proc/{pid}/cmdline', 'rb') as file:
                        if SECRET.encode() in file.read():
                            failed('the password is on a command line')
                    with open(f'/proc/{pid}/comm') as file:
                        is_target = file.read().strip() == 'server'
                    with open(f'/proc/{pid}/environ', 'rb') as file:
                        if is_target and SECRET.encode() in file.read():
                            failed("the password is in the program's environment")
            if SECRET in server.said():
                failed('the password is in the log')
            for path in glob.glob(os.path.join(suite.FOLDER, 'server.*.quern')):
                with open(path, 'rb') as file:
                    if SECRET.encode() in file.read():
                        failed('the password is in the recording')
        suite.write('credentials', 'default:wrong\n', 0o600)
        status, _, err = run([QUERN, 'query', f'--store={store.url}', '--credentials=credentials',
                              'SELECT 1 AS one'])
        equal(status, 1, 'status with a wrong password')
        contains(err, 'quern: cannot answer that: ')


@test
def urls_that_cannot_be():
    program = build_plain(OBEDIENT)
    for url, reason in (('http://localhost/', "stores of 'http' are not supported yet"),
                        ('mysql://x', "stores of 'mysql' are not supported yet"),
                        ('nothing', "stores of 'nothing' are not supported yet"),
                        ('clickhouse://u:secret@h/', 'a password in a URL can be seen'),
                        ('postgresql://u:secret@h/d', 'a password in a URL can be seen'),
                        ('postgresql://h/d?password=secret', 'a password in a URL can be seen'),
                        ('clickhouse://h/a;b', 'the URL must be clickhouse://'),
                        ('postgresql://[h/d', 'end of string')):
        status, out, err = run([QUERN, 'heap', f'--push={url}', f'--push-spool={spool()}', program])
        equal((status, out), (1, ''), f'status with {url} (with {err!r})')
        contains(err, reason)
        if 'secret' in err:
            failed(f'the password is in the message: {err}')
    status, _, err = run([QUERN, 'heap', '--push=clickhouse://h', '--push-spool=/proc/x', program])
    equal(status, 1, 'status without a spool')
    contains(err, "cannot use the folder '/proc/x'")
    suite.write('credentials', 'nonsense\n')
    status, _, err = run([QUERN, 'heap', '--push=clickhouse://h', '--push-credentials=credentials',
                          program])
    contains(err, 'it must be one line USER:PASSWORD')
    equal(status, 1, 'status with nonsense in the file')


HOSTILE = 'o\'brien\\ "x"; DROP TABLE counts; --\t\n\x01\x7f%é$1'


@every
def names_are_data(kind):
    program = build_plain(OBEDIENT, name="it's \\ a \"server\"")
    with kind() as store:
        with pushing(store.url, f'--service={HOSTILE}', program=program) as server:
            server.tell('h 10 100')
            # The interval that the blocks are in, and the next one.
            made = settled(server, 'quern_heap_live_blocks', 10)['quern_push_intervals_total']
            settled(server, 'quern_push_pushed_total', made + 2)
            out, _ = succeed([QUERN, 'query', '--json', f'--store={store.url}',
                              'SELECT DISTINCT service, command FROM run'])
            row, = json.loads(out)
            equal(row['service'], HOSTILE.replace('\t', '\\x09').replace('\n', '\\x0A')
                  .replace('\x01', '\\x01').replace('\x7f', '\\x7F'), 'service')
            contains(row['command'], "it's")
            modules = [row[0] for row in store.rows('SELECT DISTINCT module FROM frames')]
            equal(any(name.endswith("it's \\ a \"server\"") for name in modules), True, 'module')
            out, _ = succeed([QUERN, 'diff', f'--store={store.url}', '--before=-1h',
                              f'--service={row["service"]}'])
            contains(out, '+1,000 bytes (0 -> 1,000)\n   at hold\n')


@every
def what_grew_over_the_fleet(kind):
    with kind() as store:
        with pushing(store.url, '--service=api', name='one') as one, \
                pushing(store.url, '--service=api', name='two') as two, \
                pushing(store.url, '--service=other', name='three') as three:
            servers = one, two, three
            for server in servers:
                server.tell('h 10 100')
            for server in servers:
                made = settled(server, 'quern_heap_live_blocks', 10)['quern_push_intervals_total']
                settled(server, 'quern_push_pushed_total', made + 2)
            middle = int(time.time())
            # The intervals of that time are in the store before anything else happens.
            for server in servers:
                until(lambda: int(time.time()) > middle + 1)
                settled(server, 'quern_push_pushed_total',
                        metrics(server)['quern_push_intervals_total'])
                server.tell('h 20 50')
                server.tell('f 2')
                made = metrics(server)['quern_push_intervals_total']
                settled(server, 'quern_push_pushed_total', made + 2)
            day = time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(middle))
            out, _ = succeed([QUERN, 'diff', f'--store={store.url}', f'--before={day}',
                              '--after=now', '--service=api'])
            lines = out.splitlines()
            contains(lines[0], ': 2,000 bytes in 2 processes')
            contains(lines[1], ': 3,800 bytes in 2 processes')
            equal(lines[3:], ['Grown:', '+1,800 bytes (2,000 -> 3,800)', '   at hold', '   by main'],
                  'lists')
            out, _ = succeed([QUERN, 'diff', f'--store={store.url}', f'--before={day}'])
            contains(out, '+2,700 bytes (3,000 -> 5,700)')
        # Processes that have ended hold nothing.
        until(lambda: int(time.time()) > middle + 5)
        out, _ = succeed([QUERN, 'diff', f'--store={store.url}', f'--before={day}', '--service=api'])
        contains(out, '-2,000 bytes (2,000 -> 0)')


@every
def a_recording_can_be_pushed_later(kind):
    program = build_plain(OBEDIENT)
    path = os.path.join(suite.FOLDER, 'run.quern')
    subprocess.run([QUERN, 'heap', '-q', f'--heap-out-file={path}', program], input='h 10 100\n',
                   text=True, check=True, stdout=subprocess.DEVNULL)
    with kind() as store:
        for _ in range(2):
            succeed([QUERN, 'push', f'--push={store.url}', '--service=late', path])
        equal(store.rows("SELECT service, allocated_blocks, live_bytes FROM stacks WHERE folded = "
                         "'main;hold'"), [('late', '10', '1000')], 'rows')
        status, _, err = run([QUERN, 'push', f'--push={store.url}', 'missing', program, path])
        equal(status, 1, 'status')
        contains(err, "cannot push 'missing': No such file or directory")
        contains(err, f"cannot push '{program}': it is not a recording")
        damaged = suite.write('a.interval', 'quern interval 1 1 1 1 x\nprocesses 99999\n')
        _, _, err = run([QUERN, 'push', f'--push={store.url}', damaged])
        contains(err, 'it is damaged')


@test
def times_of_diff():
    for text in ('tomorrow', '2026-13-01', '-5x', '-', ''):
        status, _, err = run([QUERN, 'diff', '--store=clickhouse://127.0.0.1:1', f'--before={text}'])
        equal(status, 1, f'status with {text!r}')
        contains(err, '--before')
    for text in ('Tuesday', 'yesterday', 'today', '2026-01-02', '2026-01-02 03:04', '-2h', 'now'):
        status, _, err = run([QUERN, 'diff', f'--store=clickhouse://127.0.0.1:{free_port()}',
                              f'--before={text}'])
        contains(err, 'cannot compare')


@every
def statements_only_read(kind):
    with kind() as store:
        with pushing(store.url) as server:
            server.tell('h 1 1')
        for sql in ('DROP TABLE counts', "INSERT INTO names VALUES (1, 'x')",
                    'SELECT 1; DROP TABLE counts'):
            equal(run([QUERN, 'query', f'--store={store.url}', sql])[0], 1, f'status of {sql}')
        all_there(store)


@every
def many_processes_at_once(kind):
    """FLEET_PROCESSES=200: as in a fleet."""
    count = int(os.environ.get('FLEET_PROCESSES', '8'))
    program = build_plain(OBEDIENT)
    with kind() as store:
        # So many pushes a second are enough for the store.
        servers = [pushing(store.url, program=program, name=f'server{i}', interval=max(1, count // 10))
                   for i in range(count)]
        for server in servers:
            server.tell('h 10 100')
        for server in servers:
            settled(server, 'quern_push_intervals_total', 2)
        for _ in range(2):
            store.kill()
            for server in servers:
                server.tell('t 10 100')
            made = metrics(servers[-1])['quern_push_intervals_total']
            settled(servers[-1], 'quern_push_intervals_total', made + 2)
            store.start()
            for server in servers:
                server.tell('h 1 100')
        said = ''
        for server in servers:
            server.process.stdin.close()
        for server in servers:
            said += server.end()
            server.errors.close()
        if waiting():
            succeed([QUERN, 'push', f'--push={store.url}', *waiting()], timeout=1200)
        dropped = sum(int(n) for n in re.findall(r'dropped: (\d+)', said))
        equal((waiting(), dropped), ([], 0), 'left')
        all_there(store, processes=count)
        equal((sums(store, 'hold')[:2], sums(store, 'use_shortly')[:3]),
              ([12 * count, 1200 * count], [20 * count, 2000 * count, 20 * count]), 'sums')

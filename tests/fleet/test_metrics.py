"""--metrics-port: Prometheus' metrics, profiles for pprof, and who may ask."""
import json
import os
import re
import socket
import subprocess

import suite
from support import Server, build_plain, get, metrics, settled, OBEDIENT
from suite import QUERN, contains, equal, failed, need, run, succeed, test, until


def changes(before, after, *names):
    return {name: after[name] - before[name] for name in names}


@test
def metrics_are_what_the_program_did():
    with Server('--metrics-port=0') as server:
        server.tell('h 1 10')
        before = settled(server, 'quern_heap_allocations_total', 1)
        server.tell('h 1000 500')
        server.tell('t 300 64')
        server.tell('f 400')
        after = settled(server, 'quern_heap_releases_total', 700)
        equal(changes(before, after, 'quern_heap_live_bytes', 'quern_heap_live_blocks',
                      'quern_heap_allocated_bytes_total', 'quern_heap_allocations_total',
                      'quern_heap_releases_total', 'quern_heap_temporary_total',
                      'quern_heap_resizes_total'),
              {'quern_heap_live_bytes': 600 * 500, 'quern_heap_live_blocks': 600,
               'quern_heap_allocated_bytes_total': 1000 * 500 + 300 * 64,
               'quern_heap_allocations_total': 1300, 'quern_heap_releases_total': 700,
               'quern_heap_temporary_total': 300, 'quern_heap_resizes_total': 0}, 'changes')
        equal(after['quern_process_running'], 1, 'running')
        if not after['quern_process_resident_bytes'] > 600 * 500:
            failed(f'resident: {after}')
        equal([name for name in after if name.startswith('quern_leaks')], [], 'leaks before a search')


@test
def a_search_for_leaks_shows():
    with Server('--metrics-port=0', '--leak-check=full') as server:
        server.tell('l 7 1000')
        settled(server, 'quern_heap_allocations_total', 7)
        pid = re.search(r'==(\d+)==', server.said())[1]
        succeed([QUERN, 'ctl', pid, 'leaks'])
        found = settled(server, 'quern_leaks_lost_blocks', 5)
        # A stale register may keep one or two.
        if found['quern_leaks_lost_bytes'] != 1000 * found['quern_leaks_lost_blocks']:
            failed(f'lost: {found}')


def free_port():
    with socket.socket() as listening:
        listening.bind(('127.0.0.1', 0))
        return listening.getsockname()[1]


@test
def prometheus_scrapes():
    need('prometheus', 'promtool')
    with Server('--metrics-port=0', '--service=orders', '--service-version=1.2') as server:
        server.tell('h 100 1000')
        settled(server, 'quern_heap_live_blocks', 100)
        port = free_port()
        target = server.url.removeprefix('http://')
        config = suite.write('prometheus.yml', f"""
global: {{scrape_interval: 200ms}}
scrape_configs:
  - job_name: quern
    static_configs: [{{targets: ['{target}']}}]
""")
        done = subprocess.run(['promtool', 'check', 'metrics'], capture_output=True, text=True,
                              input=get(server.url + '/metrics')[1])
        equal((done.returncode, done.stderr), (0, ''), 'promtool')
        engine = subprocess.Popen(
            ['prometheus', f'--config.file={config}', f'--web.listen-address=127.0.0.1:{port}',
             f'--storage.tsdb.path={os.path.join(suite.FOLDER, "tsdb")}'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def asked(query):
                try:
                    status, text = get(f'http://127.0.0.1:{port}/api/v1/query?query={query}')
                except OSError:
                    return None
                return status == 200 and json.loads(text)['data']['result']
            rows = until(lambda: asked('quern_heap_live_blocks'), what='a row in Prometheus')
            equal((rows[0]['metric']['service'], int(rows[0]['value'][1]) >= 100),
                  ('orders', True), 'row')
            rows = until(lambda: asked('quern_info'))
            equal(rows[0]['metric']['version'], '1.2', 'version')
        finally:
            engine.kill()
            engine.wait()


def raw_profile(url):
    """Bytes and blocks by sample type and innermost function, as pprof reads them."""
    out, _ = succeed(['go', 'tool', 'pprof', '-raw', url], env={'PPROF_TMPDIR': suite.FOLDER})
    types = re.search(r'^Samples:\n(.+)\n', out, re.M)[1].split()
    names = dict(re.findall(r'^\s+(\d+): 0x\w+ (?:M=\d+ )?(\S+)', out, re.M))
    sums = {}
    for values, first in re.findall(r'^((?: *-?\d+)+): (\d+)', out.split('Locations')[0], re.M):
        for kind, value in zip(types, values.split()):
            key = kind.split('[')[0], names[first]
            sums[key] = sums.get(key, 0) + int(value)
    return sums


@test
def pprof_reads_the_heap():
    need('go')
    with Server('--metrics-port=0') as server:
        server.tell('h 50 2000')
        server.tell('t 9 100')
        settled(server, 'quern_heap_releases_total', 9)
        sums = raw_profile(server.url + '/debug/pprof/heap')
        equal([sums.get((kind, 'hold')) for kind in
               ('alloc_objects/count', 'alloc_space/bytes', 'inuse_objects/count',
                'inuse_space/bytes')], [50, 100000, 50, 100000], 'hold')
        equal([sums.get((kind, 'use_shortly')) for kind in
               ('alloc_objects/count', 'alloc_space/bytes', 'inuse_objects/count',
                'inuse_space/bytes')], [9, 900, 0, 0], 'use_shortly')


@test
def pprof_reads_some_seconds_of_it():
    need('go')
    with Server('--metrics-port=0') as server:
        server.tell('h 50 2000')
        settled(server, 'quern_heap_live_blocks', 50)
        asking = subprocess.Popen(['curl', '-s', '-o', 'delta',
                                   server.url + '/debug/pprof/heap?seconds=6'])
        # The exporter has noted what was there when it has a connection.
        port = server.url.rsplit(':', 1)[1]
        until(lambda: re.search(rf'127.0.0.1:{port}\s', succeed(
            ['ss', '-tnH', 'state', 'established'])[0]), what='a connection')
        server.tell('f 20')
        server.tell('t 3 10')
        asking.wait(60)
        sums = raw_profile('delta')
        equal((sums.get(('inuse_objects/count', 'hold')), sums.get(('alloc_objects/count', 'hold')),
               sums.get(('alloc_objects/count', 'use_shortly'))), (-20, 0, 3), 'sums')


@test
def a_bounded_recording_is_followed():
    with Server('--metrics-port=0', '--max-size=16K') as server:
        server.tell('h 1000 24')
        before = settled(server, 'quern_heap_allocations_total', 1000)
        for turn in range(1, 6):
            server.tell('m 20000')
            found = settled(server, 'quern_heap_releases_total', turn * 20000)
            equal(changes(before, found, 'quern_heap_releases_total', 'quern_heap_live_blocks',
                          'quern_heap_allocations_total'),
                  {'quern_heap_releases_total': turn * 20000, 'quern_heap_live_blocks': 0,
                   'quern_heap_allocations_total': turn * 20000}, 'changes')
        contains(server.end(), 'merged:')


@test
def children_count_for_themselves():
    with Server('--metrics-port=0', '--trace-children=yes') as server:
        server.tell('h 10 10')
        server.tell('r 20')
        found = settled(server, 'quern_processes_total', 21)
        until(lambda: len(re.findall(r'^quern_process_running\{.*\} 1$',
                                     get(server.url + '/metrics')[1], re.M)) == 1,
              what='one running process')
        equal(found['quern_processes_dropped_total'], 0, 'dropped')


@test
def strangers_are_refused():
    with Server('--metrics-port=0') as server:
        url = server.find_url()
        equal(get(url + '/metrics', Host='rebound.example')[0], 403, 'another host')
        equal(get(url + '/metrics', Origin='http://site.example')[0], 403, 'a page of a site')
        equal(get(url + '/metrics', Host='127.0.0.1.example')[0], 403, 'a name like the address')
        equal(get(url + '/nothing')[0], 404, 'no such page')
        equal(get(url + '/debug/pprof/heap?seconds=-1')[0], 400, 'seconds')
        equal(get(url + '/debug/pprof/heap?pid=1')[0], 404, 'another process')
        status, text = get(url + '/debug/pprof/profile?seconds=1')
        equal(status, 404, 'CPU time')
        contains(text, 'not supported yet')
        equal(run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-d', 'x',
                   url + '/metrics'])[1], '405', 'POST')


@test
def labels_are_escaped():
    need('promtool')
    name = 'a"b\\c\n\x01é'
    with Server('--metrics-port=0', f'--service={name}') as server:
        server.find_url()
        text = get(server.url + '/metrics')[1]
        done = subprocess.run(['promtool', 'check', 'metrics'], capture_output=True, text=True,
                              input=text)
        equal((done.returncode, done.stderr), (0, ''), 'promtool')
        contains(text, 'service="a\\"b\\\\c\\\\x0A\\\\x01é"')


@test
def a_port_that_cannot_be_had():
    program = build_plain(OBEDIENT)
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        for where, reason in ((str(port), 'Address already in use'), ('70000', 'give [ADDRESS:]PORT'),
                              ('example.com:1', 'give [ADDRESS:]PORT'), (':1', 'give [ADDRESS:]PORT'),
                              ('192.0.2.1:1', 'Cannot assign requested address')):
            status, out, err = run([QUERN, 'heap', f'--metrics-port={where}', program])
            equal((status, out), (1, ''), f'status at {where} (with {err!r})')
            contains(err, f'--metrics-port={where}: {reason}')
    status, _, err = run([QUERN, 'memcheck', '--metrics-port=0', program])
    equal(status, 1, 'status of memcheck')
    contains(err, '--metrics-port is not supported yet with --tool=memcheck')


@test
def the_end_of_quern_ends_the_exporter():
    with Server('--metrics-port=0') as server:
        server.tell('h 10 10')
        server.find_url()
        server.process.kill()
        server.end(status=-9)
        # suite.main() fails the test if the exporter stays.


@test
def an_exporter_that_dies_hurts_nobody():
    with Server('--metrics-port=0') as server:
        server.tell('h 10 10')
        settled(server, 'quern_heap_live_blocks', 10)
        children = succeed(['pgrep', '-P', str(server.process.pid), '-x', 'quern-exporter'])[0]
        os.kill(int(children), 9)
        server.tell('h 10 10')
        contains(server.end(), 'Recorded in')

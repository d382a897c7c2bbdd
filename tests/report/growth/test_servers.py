"""Each test records one server under load on one endpoint and compares the verdicts in all views. The load
is a number of requests, so that a slow machine sees the same work."""
import os
import signal
import subprocess

import suite
from servers import JEMALLOC, load, program_of, record
from suite import QUERN, TESTS, build, equal, failed, skip, succeed, test
from verdicts import ENDPOINTS, LOST, growth_of, judge
from views import compare_views

REQUESTS = 2400


def judge_server(server, endpoint):
    if server.endswith('-preload') and not os.path.exists(JEMALLOC):
        skip('libjemalloc2 is not installed')
    path = os.path.join(suite.FOLDER, 'server.quern')
    record(server, endpoint, path, REQUESTS)
    judge(server, endpoint, path)
    compare_views(path)


def add_tests(server, endpoints):
    for endpoint in endpoints:
        TESTS.append((f'{server}_{endpoint}'.replace('-', '_'),
                      lambda server=server, endpoint=endpoint: judge_server(server, endpoint)))


for _server in ('c-lines', 'cc-lines', 'rust-debug'):
    add_tests(_server, ENDPOINTS)
for _server in ('c-release', 'cc-debug-jemalloc', 'rust-debug-preload'):
    add_tests(_server, ['cache', 'bounded'])


@test
def ramp_is_no_spike():
    """What only rises has no peak to speak of."""
    program = build(suite.write('rises.c', '''#include <stdlib.h>
#include <time.h>
int main(void)
{
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    for (int i = 0; i < 40000; i++)
        *(char *volatile *)&(char *){0} = malloc(1024);
    return 0;
}
'''), '-g')
    succeed([QUERN, '-q', '--tool=heap', '--heap-out-file=ramp', program])
    said = succeed([QUERN, 'diagnose', 'ramp'])[0]
    if 'peak' in said:
        failed(said)
    compare_views('ramp')


@test
def search_takes_no_time():
    """The time of a search for leaks is not the program's, and does not change verdicts."""
    path = os.path.join(suite.FOLDER, 'searched.quern')
    with subprocess.Popen([QUERN, '-q', '--tool=heap', f'--heap-out-file={path}', '--leak-check=full',
                           program_of('c-lines')], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        port = int(process.stdout.readline())
        load(port, 'boxes', REQUESTS)
        process.send_signal(signal.SIGINT)
        process.wait(300)
    found = growth_of(succeed([QUERN, 'print', '--view=growth', path])[0])
    equal([one[0] for one in found], [LOST], 'verdicts')
    compare_views(path)

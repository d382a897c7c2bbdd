"""A server in one command: --ready-port and --load."""
import json
import os
import re
import shutil
import socket
import subprocess
import time

from suite import QUERN, TESTS, skip, test
from support import HERE, build, free_port, run, same

# A server under a tool on a slow machine takes its time to begin.
PATIENT = ['--ready-timeout=280']


def scenario(tool, *more):
    program = build('serve', 'serve.c')
    port = free_port()
    with open('load', 'w') as file:
        file.write(f'for i in 1 2 3 4 5 6 7; do exec 3<>/dev/tcp/127.0.0.1/{port}\n'
                   'printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3; exec 3>&-; done\n')
    words = [word.replace('PORT', str(port)) for word in more]
    return run(QUERN, f'--tool={tool}', *words, *PATIENT, '--load=bash ./load', program, str(port))


@test
def server_memcheck():
    done = scenario('memcheck', '--ready-port=PORT', '--leak-check=full', '--error-exitcode=5',
                    '--show-leak-kinds=all', '--json-file=found.json')
    same('status', done.status, 5)
    same('answers', done.out.count('ok\n'), 7)
    # What registers and stacks still hold by chance is not lost, but it is there.
    with open('found.json') as file:
        lost = [finding for finding in json.load(file)['findings'] if 'lose' in [
            frame['function'] for frame in finding['stacks'][0]['frames']]]
    same('blocks', sum(int(re.search('in ([0-9]+) blocks', finding['message'])[1])
                       for finding in lost), 7)


@test
def server_log():
    done = scenario('memcheck', '--ready-log=^now serv', '--leak-check=full')
    same('status', done.status, 0)
    same('answers', done.out.count('ok\n'), 7)
    assert 'now serving' in done.out


NGINX = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok\\n"; }} }} }}
"""


def server(name, port):
    """The words that start it, and a load for it that ends by itself."""
    folder = os.getcwd()
    with open('load', 'w') as file:
        file.write(f'for i in 1 2 3 4 5 6 7; do exec 3<>/dev/tcp/127.0.0.1/{port}\n'
                   'printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3; exec 3>&-; done\n')
    if name == 'bundled':
        return [build('serve', 'serve.c'), str(port)], 'bash ./load'
    if name == 'redis':
        return (['redis-server', '--port', str(port), '--save', '', '--appendonly', 'no'],
                f'redis-benchmark -p {port} -n 300 -c 2 -t set,lpush -q')
    with open('nginx.conf', 'w') as file:
        file.write(NGINX.format(folder=folder, port=port))
    return ['/usr/sbin/nginx', '-c', f'{folder}/nginx.conf', '-e', f'{folder}/error.log'], 'bash ./load'


def serve(name, tool, *more):
    """A run with a load. A port that somebody else has taken meanwhile is not our fault."""
    for _ in range(5):
        port = free_port()
        words, load = server(name, port)
        done = run(QUERN, f'--tool={tool}', f'--ready-port={port}', *PATIENT, f'--load={load}', *more, *words)
        said = done.out + done.err
        if os.path.exists('error.log'):
            with open('error.log') as file:
                said += file.read()
        is_taken = re.search('already in use|accepts connections there', said)
        if not is_taken and (name != 'bundled' or done.status != 3):
            break
    return done


# What a server is known by, and a function that allocates in it.
SERVERS = {'bundled': 'lose', 'redis': 'zmalloc', 'nginx': 'ngx_alloc'}


def serves(name, tool):
    if not shutil.which({'redis': 'redis-server', 'nginx': '/usr/sbin/nginx'}.get(name, 'cc')):
        skip(f'{name} is not there')
    out = f'--{tool}-out-file=file'
    more = ['--leak-check=full', '--show-leak-kinds=all', '--xml=yes', '--xml-file=file']
    done = serve(name, tool, *(more if tool == 'memcheck' else [out]))
    same(f'status (with {done.err[-300:]!r})', done.status, 0)
    if name != 'redis':
        same('answers', done.out.count('ok\n'), 7)
    functions = run(QUERN, 'print', '--view=functions', '--top=100000', 'file')
    same('print', functions.status, 0)
    assert SERVERS[name] in functions.out, functions.out[:600]


for _name in SERVERS:
    for _tool in ('memcheck', 'massif', 'dhat', 'callgrind'):
        def _serves(name=_name, tool=_tool):
            serves(name, tool)
        TESTS.append((f'server_{_name}_{_tool}', _serves))


@test
def server_never_ready():
    done = run(QUERN, '-q', '--ready-port=1', '--ready-timeout=1', '--load=true', 'sleep', '300')
    same('status', done.status, 1)
    assert '--ready-timeout' in done.err, done.err


@test
def server_ends_early():
    done = run(QUERN, '-q', '--ready-log=never', '--load=true', '/bin/true')
    same('status', done.status, 1)
    assert 'ended with status 0 before it was ready' in done.err, done.err


@test
def load_fails():
    for load, end in (('exit 3', 'status 3'), ('./nothing', 'status 127'), ('kill -9 $$', 'SIGKILL')):
        done = run(QUERN, '-q', '--ready-log=go', f'--load={load}', '--json-file=f.json', 'sh', '-c',
                   'echo go; exec sleep 300')
        same('status', done.status, 1)
        assert re.search(f"the load '.*' (ended with|was ended by) {end}\n", done.err), done.err
        with open('f.json') as file:
            same('status in the file', json.load(file)['status'], 1)


def is_running(pid):
    """Neither gone, nor dead and not yet waited for."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except OSError:
        return False


@test
def load_hangs():
    """--duration ends it, with all that it has started, and whatever it does with signals."""
    # The shell does not listen; or only what it has started.
    for load in ('trap "" TERM; sleep 1000 & echo $! >pid; wait; sleep 1000',
                 '(trap "" TERM; exec sleep 1000 >/dev/null 2>&1) & echo $! >pid; wait'):
        done = run(QUERN, '-q', '--tool=none', '--ready-log=go', '--duration=3', f'--load={load}', 'sh',
                   '-c', 'echo go; exec sleep 300')
        same('status', done.status, 1)
        assert 'the load was still running when --duration was over' in done.err, done.err
        with open('pid') as file:
            pid = int(file.read())
        end = time.monotonic() + 60
        while is_running(pid):
            assert time.monotonic() < end, f'what {load} has started still runs'
            time.sleep(0.01)


@test
def port_of_another():
    """Somebody else's port makes nobody ready: neither if it was open before, nor if later."""
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        port = other.getsockname()[1]
        # The target waits for the other one, and says so.
        words = [QUERN, '-q', f'--ready-port={port}', '--tool=none', '--ready-timeout=8', '--load=echo loaded', 'sh',
                 '-c', 'echo ran; exec sleep 300']
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as later:
            same('first line', later.stdout.readline(), 'ran\n')
            other.listen(64)
            said = later.communicate(timeout=300)
            same('status', (later.returncode, said[0]), (1, ''))
            assert f'process {os.getpid()} ' in said[1] and "does not belong to the program" in said[1], said[1]
        done = run(*words)
        same('status', (done.status, done.out), (1, ''))
        assert f'process {os.getpid()} ' in done.err and 'already' in done.err, done.err


@test
def port_inherited():
    """A socket that the target gets from outside is its own."""
    with socket.socket() as given:
        given.bind(('127.0.0.1', 0))
        given.listen(64)
        given.set_inheritable(True)
        done = subprocess.run([QUERN, '-q', f'--ready-port={given.getsockname()[1]}', '--load=echo loaded',
                               'sleep', '300'], pass_fds=[given.fileno()], stdout=subprocess.PIPE,
                              text=True, timeout=300)
        same('run', (done.returncode, done.stdout), (0, 'loaded\n'))


@test
def load_knows_the_program():
    """A line of either output makes it ready; the load gets the number of the program."""
    for to in (1, 2):
        done = run(QUERN, '-q', '--tool=none', '--ready-log=^(never|go[0-9]+)$', '--load=echo $QUERN_PID >pid',
                   'sh', '-c', f'echo $$; echo ago1 >&{to}; sleep 0.2; test ! -e pid || echo early; '
                               f'echo go1 >&{to}; exec sleep 300')
        same('status', done.status, 0)
        with open('pid') as file:
            wanted = file.read() + ('ago1\ngo1\n' if to == 1 else '')
        os.remove('pid')
        same('output', (done.out, done.err), (wanted, '' if to == 1 else 'ago1\ngo1\n'))


@test
def scenario_is_told():
    done = run(QUERN, '--tool=none', '--ready-log=go', '--load=true', 'sh', '-c',
               'echo go; exec sleep 300')
    said = re.findall('== (Ready after [0-9.]+ s; load: true|The load ended after [0-9.]+ s; '
                      'stopping the program)$', done.err, re.M)
    same('lines', (done.status, len(said)), (0, 2))


@test
def load_refused():
    for words, part in ((['--load=true'], '--ready-port'), (['--ready-log=('], 'regular')):
        done = run(QUERN, *words, '/bin/true')
        same('status', done.status, 1)
        assert part in done.err, done.err


# ---- other ways to be ready ----

def late(kind, place, *more):
    """A run of late.py; the load fails if it begins before the server is almost ready."""
    if os.path.exists('almost'):
        os.remove('almost')
    return run(QUERN, '-q', '--tool=heap', '--heap-out-file=f.quern', *PATIENT, *more, '--load=test -e almost',
               'python3', os.path.join(HERE, 'late.py'), kind, place)


def is_ready(kind, place, *more):
    done = late(kind, place, *more)
    same(f'{kind}: status and errors', (done.status, done.err), (0, ''))


@test
def ready_udp_port():
    port = str(free_port())
    is_ready('udp', port, f'--ready-udp-port={port}')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('127.0.0.1', 0))
        port = str(taken.getsockname()[1])
        done = late('udp', port, f'--ready-udp-port={port}')
        same('status', done.status, 1)
        assert f'--ready-udp-port={port}: process {os.getpid()} ' in done.err, done.err
        assert 'already receives there' in done.err, done.err


@test
def ready_path():
    for kind in ('file', 'stream', 'datagrams'):
        is_ready(kind, f'place-{kind}', f'--ready-path=place-{kind}')
    # One that is there already counts when it is written anew.
    is_ready('file', 'place-file', '--ready-path=place-file')
    done = run(QUERN, '-q', '--ready-path=place-file', '--ready-timeout=1', 'sleep', '300')
    same('status', done.status, 1)
    assert 'has not made --ready-path=place-file after 1 s' in done.err, done.err


@test
def ready_url():
    for host in ('127.0.0.1', 'localhost'):
        port = str(free_port())
        is_ready('url', port, f'--ready-url=http://{host}:{port}/health?deep#part')
    port = str(free_port())
    done = late('url', port, f'--ready-url=http://127.0.0.1:{port}/', '--ready-timeout=3')
    same('status', done.status, 1)
    assert 'answers --ready-url with status 503 after 3 s' in done.err or 'does not answer' in done.err, done.err
    for url, reason in (('https://127.0.0.1/', 'must begin with http://'), ('http://:3000/', 'not a URL'),
                        ('http://127.0.0.1:99999/', 'not a URL'), ('http://[::1/', 'not a URL')):
        done = run(QUERN, '-q', f'--ready-url={url}', 'true')
        same(f'status with {url}', done.status, 1)
        assert f'--ready-url={url}: ' in done.err and reason in done.err, done.err
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        done = run(QUERN, '-q', f'--ready-url=http://127.0.0.1:{port}/', 'true')
        same('status', done.status, 1)
        assert f'process {os.getpid()} ' in done.err and 'already accepts connections' in done.err, done.err


@test
def ready_terminal():
    """C's stdio keeps lines back unless it writes to a terminal."""
    with open('quiet.c', 'w') as file:
        file.write('#include <stdio.h>\n#include <unistd.h>\n'
                   'int main(void) { printf("one\\ntwo %d\\n", isatty(1)); pause(); }\n')
    run('cc', '-g', '-o', 'quiet', 'quiet.c')
    words = [QUERN, '-q', '--tool=none', '--load=true', '--ready-log=^two']
    done = subprocess.run([*words, '--ready-terminal=yes', *PATIENT, './quiet'], capture_output=True, timeout=300)
    same('with a terminal', (done.returncode, done.stdout, done.stderr), (0, b'one\ntwo 1\n', b''))
    done = run(*words, '--ready-timeout=2', './quiet')
    same('status', done.status, 1)
    assert '--ready-terminal=yes gives it one' in done.err, done.err
    done = run(QUERN, '-q', '--ready-terminal=yes', './quiet')
    same('status', done.status, 1)
    assert 'needs --ready-log' in done.err, done.err

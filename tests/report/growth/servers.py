"""The servers of this suite: how they are built, loaded and recorded.

A server is named LANGUAGE-BUILD or LANGUAGE-BUILD-jemalloc, or -preload: the same program, started with
jemalloc preloaded."""
import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import suite
from suite import QUERN, equal, need, skip

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = 3
LANGUAGES = {'c': 'targets/twelve.c', 'cc': 'targets/twelve.cc', 'rust': 'server/src/main.rs'}
# Flags of a compiler, or cargo's profile. A release has no lines.
BUILDS = {'debug': ('-O0', '-g'), 'release': ('-O2',), 'lines': ('-O2', '-g')}
PROFILES = {'debug': 'dev', 'release': 'release', 'lines': 'with-lines'}
ALLOCATORS = ['', '-jemalloc', '-preload']
EVERY_SERVER = [f'{language}-{build}{allocator}' for language in LANGUAGES for build in BUILDS
                for allocator in ALLOCATORS]
JEMALLOC = '/usr/lib/x86_64-linux-gnu/libjemalloc.so.2'

# Servers are built once for all tests. A folder in GROWTH_BUILT is kept, for the next run.
BUILT = os.environ.get('GROWTH_BUILT') or tempfile.mkdtemp(prefix='quern-growth-')
OWNER = os.getpid()


@atexit.register
def remove_built():
    if os.getpid() == OWNER and not os.environ.get('GROWTH_BUILT'):
        shutil.rmtree(BUILT, ignore_errors=True)


def source_of(server):
    return os.path.join(HERE, LANGUAGES[server.split('-')[0]])


def lines_of(server, endpoint):
    """The lines of the source that allocate for an endpoint."""
    with open(source_of(server)) as file:
        return [number for number, line in enumerate(file, 1) if f'// grows: {endpoint}\n' in line]


def has_lines(server):
    return '-release' not in server


# ---- building ----

def cargo():
    """cargo, where its crates are Debian's."""
    program = shutil.which('cargo') or os.path.expanduser('~/.cargo/bin/cargo')
    registry = '/usr/share/cargo/registry'
    names = os.listdir(registry) if os.path.isdir(registry) else []
    if not os.path.exists(program):
        skip('cargo is not installed')
    if not all(any(name.startswith(crate) for name in names) for crate in ('tokio-1', 'hyper-0.14')):
        skip('librust-tokio-dev and librust-hyper-dev are not installed')
    return program


def build_with_cargo(profile, has_jemalloc):
    """The path of the server in Rust."""
    folder = os.path.join(BUILT, 'cargo')
    name = 'debug' if profile == 'dev' else profile
    copy = os.path.join(BUILT, 'server')
    shutil.copytree(os.path.join(HERE, 'server'), copy, dirs_exist_ok=True)
    words = [cargo(), 'build', '--offline', '--quiet', f'--profile={profile}']
    done = subprocess.run(words + ['--features=jemalloc'] * has_jemalloc, cwd=copy, capture_output=True, text=True,
                          env={**os.environ, 'CARGO_TARGET_DIR': folder})
    if done.returncode:
        skip('the crates do not build: ' + done.stderr[-200:].replace('\n', ' '))
    return os.path.join(folder, name, 'twelve')


def program_of(server):
    """The path of the program; built once."""
    language, build, allocator = (server.removesuffix('-preload') + '-').split('-')[:3]
    path = os.path.join(BUILT, f'twelve-{language}-{build}-{allocator}')
    if os.path.exists(path):
        return path
    if language == 'rust':
        shutil.copy(build_with_cargo(PROFILES[build], bool(allocator)), path)
        return path
    compiler = {'c': 'gcc', 'cc': 'g++'}[language]
    need(compiler)
    libraries = ['-ljemalloc'] if allocator else []
    subprocess.run([compiler, *BUILDS[build], '-pthread', source_of(server), '-o', path, *libraries], check=True)
    return path


# ---- load ----

def ask(connection, answers, path):
    connection.sendall(f'GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n'.encode())
    length = 0
    while (line := answers.readline()) not in (b'\r\n', b''):
        if line.lower().startswith(b'content-length:'):
            length = int(line.split(b':')[1])
    answers.read(length)


def load(port, path, requests, seconds=0.0):
    """Asks for a path, by several clients side by side: as fast as they can, or evenly over some seconds."""
    ready = threading.Barrier(CLIENTS)
    each = max(1, requests // CLIENTS)

    def client():
        with socket.create_connection(('127.0.0.1', port)) as connection, connection.makefile('rb') as answers:
            ready.wait()
            start = time.monotonic()
            for number in range(each):
                time.sleep(max(0.0, start + seconds * number / each - time.monotonic()))
                ask(connection, answers, path)
    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()


def record(server, endpoint, path, requests, seconds=0.0, options=()):
    """Records a server under load on one endpoint and stops it by SIGINT."""
    environment = {**os.environ}
    if server.endswith('-preload'):
        environment['LD_PRELOAD'] = JEMALLOC
    command = [QUERN, '-q', '--tool=heap', f'--heap-out-file={path}', *options, program_of(server)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        port = int(process.stdout.readline())
        if endpoint == 'load':
            # The sessions end, and the server goes on.
            load(port, endpoint, requests * 2 // 3, seconds * 2 / 3)
            load(port, 'stop', CLIENTS)
            load(port, 'nothing', requests // 3, seconds / 3)
        else:
            load(port, endpoint, requests, seconds)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=suite.TEST_SECONDS)[1]
        equal((process.returncode, said), (0, b''), f'status and messages of {server}')

"""debuginfod servers that answer, that answer slowly, and that do not answer."""
import glob
import os
import re
import signal
import socket
import subprocess
import threading

import suite
from lib.terminal import on_terminal
from suite import contains, equal, run, until
from support import with_engine

SOURCE = '''
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    char *block = malloc(10), letter;
    if (count == 1 || words[1][0] == 'e')
        block[10] = 1;
    while (count > 1 && read(0, &letter, 1) > 0)
        ;
    return 0;
}
'''


class Server:
    """Answers a debuginfod client, in threads."""

    def __init__(self, is_silent=False, is_slow=False):
        self.is_silent, self.is_slow = is_silent, is_slow
        self.asked = []
        self.files = {}  # by build-id
        self.over = threading.Event()
        self.listener = socket.socket()
        self.listener.bind(('127.0.0.1', 0))
        self.listener.listen(64)
        self.url = f'http://127.0.0.1:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # the end
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection:
            request = b''
            while b'\r\n\r\n' not in request:
                part = connection.recv(4096)
                if not part:
                    return
                request += part
            wanted = request.split()[1].decode().split('/')[2]
            self.asked.append(wanted)
            if self.is_silent:
                self.over.wait()
                return
            content = self.files.get(wanted)
            head = f'Content-Length: {len(content or b"")}\r\nConnection: close\r\n\r\n'
            connection.sendall((('HTTP/1.1 200 OK\r\n' if content else 'HTTP/1.1 404 Not Found\r\n')
                                + head).encode())
            for at in range(0, len(content or b''), 64):
                if self.is_slow and at:
                    self.over.wait()
                    return
                connection.sendall(content[at:at + 64])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def stripped():
    """A program whose debug information is in a file of its own; (program, build-id, that file)."""
    program = suite.build(suite.write('stripped.c', SOURCE), '-O0')
    notes = subprocess.run(['readelf', '-n', program], stdout=subprocess.PIPE, text=True, check=True)
    number = re.search('Build ID: (\\w+)', notes.stdout)[1]
    subprocess.run(['objcopy', '--only-keep-debug', program, 'debug'], check=True)
    subprocess.run(['strip', program], check=True)
    with open('debug', 'rb') as file:
        return program, number, file.read()


def environment(server):
    """A client would wait for longer than any test."""
    return {'DEBUGINFOD_URLS': server.url, 'DEBUGINFOD_TIMEOUT': '10000',
            'XDG_CACHE_HOME': os.path.join(suite.FOLDER, 'cache')}


def start(words, server):
    return subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            env=suite.clean_environment(**environment(server)))


def note():
    return os.path.join(suite.FOLDER, 'cache', 'quern-silent-servers')


@with_engine
def server_names_a_stripped_program():
    program, number, debug = stripped()
    with Server() as server:
        server.files[number] = debug
        for _ in range(2):
            status, out, err = run([suite.QUERN, program], env=environment(server))
            contains(err, ': main (stripped.c:7)')
            equal((status, err.count('no answer')), (0, 0))
        equal(server.asked.count(number), 1, 'downloads')


@with_engine
def server_is_asked_before_names_are_needed():
    program, number, debug = stripped()
    with Server() as server:
        process = start([suite.QUERN, program, 'wait'], server)
        until(lambda: number in server.asked, what='a question of the client')
        process.communicate(timeout=300)
        equal(process.returncode, 0)


@with_engine
def silent_server_is_left_alone():
    program, number, _ = stripped()
    with Server(is_silent=True) as server:
        for _ in range(2):
            status, out, err = run([suite.QUERN, program], env=environment(server))
            equal(status, 0)
            contains(err, f'{server.url}: no answer in time')
            equal(err.count('no answer'), 1, 'complaints')
            contains(err, 'Invalid write of size 1')
            contains(err, f'(in {program})')
            equal(os.path.exists(note()), True, 'note of the silence')
    equal(glob.glob('cache/debuginfod_client/*/debuginfo.*'), [], 'incomplete downloads')


@with_engine
def slow_server_is_left_alone():
    program, number, debug = stripped()
    with Server(is_slow=True) as server:
        server.files[number] = debug
        status, out, err = run([suite.QUERN, program], env=environment(server))
        equal((status, err.count('no answer')), (0, 1))
        contains(err, f'(in {program})')
    equal(glob.glob('cache/debuginfod_client/*/debuginfo.*'), [], 'incomplete downloads')


@with_engine
def signal_ends_a_run_that_waits_for_a_server():
    program, number, _ = stripped()
    with Server(is_silent=True) as server:
        process = start([suite.QUERN, program, 'error'], server)
        until(lambda: number in server.asked, what='a question of the client')
        process.send_signal(signal.SIGTERM)
        equal(process.wait(timeout=300), -signal.SIGTERM)


@with_engine
def servers_are_not_asked_if_not_wanted():
    program, number, _ = stripped()
    with Server() as server:
        status, out, err = run([suite.QUERN, '--enable-debuginfod=no', program],
                               env=environment(server))
        equal((status, server.asked), (0, []))


@with_engine
def terminal_shows_what_is_waited_for():
    program, number, _ = stripped()
    with Server(is_silent=True) as server:
        _, text, _ = on_terminal([suite.QUERN, program], 'stderr', **environment(server))
        contains(text, f'waiting for debug information of {program} from {server.url}\r\033[K')

"""Who may ask the server, and what: tokens, hosts, origins, hostile requests."""
import os
import random
import socket
import subprocess

import given
from given import Server
from suite import QUERN, contains, equal, failed, test


@test
def it_listens_on_loopback_only():
    with open('/proc/net/tcp') as table:
        lines = [line.split() for line in table if f':{given.SERVER.port:04X} ' in line]
    bound = {line[1].split(':')[0] for line in lines if line[3] == '0A'}
    equal(bound, {'0100007F'}, 'the addresses it listens on')
    with open('/proc/net/tcp6') as table:
        equal([line for line in table if f':{given.SERVER.port:04X} ' in line and ' 0A ' in line], [],
              'IPv6')


@test
def without_the_token_nothing_is_given():
    wrong = given.SERVER.token[:-1] + ('0' if given.SERVER.token[-1] != '0' else '1')
    for path in ('/', '/ask/files', '/page.js', f'/{wrong}/', f'/{wrong}/ask/overview',
                 f'/{given.SERVER.token[:-1]}/', f'/{given.SERVER.token}0/', f'//{given.SERVER.token}/',
                 f'/x/{given.SERVER.token}/', f'/{given.SERVER.token.upper()}x/'):
        status, _, body = given.SERVER.get(path)
        if status not in (403, 404) or 'heap.quern' in body:
            failed(f'{path} gives {status}: {body[:100]}')


@test
def tokens_differ():
    other = Server(given.FILES['collapsed'])
    try:
        if other.token == given.SERVER.token or len(other.token) != 32:
            failed(f'token {other.token}')
    finally:
        equal(other.stop(), 0, 'status after SIGTERM')


@test
def another_host_is_refused():
    own = f'127.0.0.1:{given.SERVER.port}'
    equal(given.SERVER.get(f'/{given.SERVER.token}/ask/files', Host=own)[0], 200, 'its own name')
    equal(given.SERVER.get(f'/{given.SERVER.token}/ask/files', Host=f'localhost:{given.SERVER.port}')[0], 200,
          'localhost')
    for host in ('evil.example', f'evil.example:{given.SERVER.port}', '127.0.0.1', 'localhost',
                 f'127.0.0.1:{given.SERVER.port}.evil.example', f'127.0.0.1:{given.SERVER.port + 1}', ''):
        equal(given.SERVER.get(f'/{given.SERVER.token}/ask/files', Host=host)[0], 403, f'Host {host!r}')


@test
def no_host_is_refused():
    with socket.create_connection(('127.0.0.1', given.SERVER.port), timeout=300) as raw:
        raw.sendall(f'GET /{given.SERVER.token}/ask/files HTTP/1.0\r\n\r\n'.encode())
        answer = raw.recv(4096).decode()
    if ' 403 ' not in answer.split('\r\n')[0] and ' 400 ' not in answer.split('\r\n')[0]:
        failed(answer[:100])


@test
def another_origin_is_refused():
    for origin in ('http://evil.example', 'null', f'https://127.0.0.1:{given.SERVER.port}',
                   f'http://127.0.0.1:{given.SERVER.port}.evil.example', 'http://127.0.0.1', 'file://'):
        equal(given.SERVER.get(f'/{given.SERVER.token}/ask/files', Origin=origin)[0], 403, f'Origin {origin}')
    own = f'http://127.0.0.1:{given.SERVER.port}'
    equal(given.SERVER.get(f'/{given.SERVER.token}/ask/files', Origin=own)[0], 200, 'its own')
    equal(given.SERVER.get(f'/{given.SERVER.token}/ask/files', Sec_Fetch_Site='cross-site')[0], 403, 'site')


@test
def only_reading_is_possible():
    for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'HEAD'):
        status = given.SERVER.get(f'/{given.SERVER.token}/ask/files', method=method)[0]
        if status == 200:
            failed(f'{method} gives 200')


@test
def paths_lead_nowhere():
    for path in ('../../../../etc/passwd', '..%2f..%2f..%2fetc/passwd', '%2e%2e/%2e%2e/etc/passwd',
                 'page.js/../../etc/passwd', '/etc/passwd', 'heap.quern', '.', '..', 'ask/',
                 'ask/../../etc/passwd', 'ask/overview/../../../etc/passwd', 'page.js%00.html',
                 'ask/overview?file=/etc/passwd', 'ask/overview?file=-1', 'ask/overview?file=999',
                 'ask/overview?file=99999999999999999999999', 'ask/tree?node=../..',
                 'ask/tree?node=9.9.9', 'ask/tree?node=99999999999999999999', 'ask/tree?metric=x',
                 'ask/source?path=/etc/passwd', 'ask/nothing'):
        _, _, body = given.SERVER.get(f'/{given.SERVER.token}/{path}')
        if 'root:' in body or 'QUERNREC' in body:
            failed(f'{path} gives {body[:100]}')


@test
def hostile_requests_do_no_harm():
    for request in (b'\r\n\r\n', b'GET', b'\x00' * 5000, b'GET / HTTP/9.9\r\n\r\n',
                    b'GET /' + b'A' * 200000 + b' HTTP/1.1\r\n\r\n',
                    b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 20000 + b'\r\n',
                    b'GET /%ff%fe%00 HTTP/1.1\r\nHost: x\r\n\r\n'):
        with socket.create_connection(('127.0.0.1', given.SERVER.port), timeout=300) as raw:
            try:
                raw.sendall(request)
                raw.shutdown(socket.SHUT_WR)
                raw.recv(4096)
            except OSError:
                pass
    given.SERVER.ask('files')


@test
def mutated_requests_do_no_harm():
    """A request that would be answered, changed at random, the same way each time."""
    chance = random.Random(7)
    whole = (f'GET /{given.SERVER.token}/ask/tree?file=0&width=100&metric=peak HTTP/1.1\r\n'
             f'Host: 127.0.0.1:{given.SERVER.port}\r\nAccept: */*\r\nConnection: close\r\n'
             'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n').encode()
    parts = (b'\r\n', b'\r\n\r\n', b'\0', b'%', b'%zz', b'&', b'=', b'a' * 5000, b'Content-Length: -1\r\n',
             b'Expect: 100-continue\r\n')
    for _ in range(400):
        request = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            at, what = chance.randrange(len(request)), chance.randrange(4)
            if what == 0:
                request[at] = chance.randrange(256)
            elif what == 1:
                request[at:at] = chance.choice(parts)
            elif what == 2:
                del request[at:min(at + chance.randint(1, 40), len(request) - 1)]
            else:
                request += request[at:]
        with socket.create_connection(('127.0.0.1', given.SERVER.port), timeout=300) as raw:
            try:
                raw.sendall(request)
                raw.shutdown(socket.SHUT_WR)
                answer = raw.recv(4096)
            except OSError:
                continue
            if b'root:' in answer:
                failed(f'{bytes(request)!r} gives {answer!r}')
    given.SERVER.ask('files')
    equal(given.SERVER.process.poll(), None, 'the status of the server')


@test
def silent_connections_keep_nobody_out():
    """Connections that say nothing, or begin to; they are closed, and others are served meanwhile."""
    silent = [socket.create_connection(('127.0.0.1', given.SERVER.port), timeout=300) for _ in range(120)]
    try:
        for one in silent[:60]:
            one.sendall(b'GET / HTTP/1.1\r\nHost: ')
        given.SERVER.ask('files')
        for one in (silent[0], silent[-1]):
            equal(one.recv(1), b'', 'what a silent connection gets')
    finally:
        for one in silent:
            one.close()


@test
def answers_have_strict_headers():
    _, headers, _ = given.SERVER.get(f'/{given.SERVER.token}/')
    policy = headers['Content-Security-Policy']
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                 "base-uri 'none'", "form-action 'none'"):
        contains(policy, part)
    if 'unsafe' in policy or '*' in policy or 'http' in policy:
        failed(policy)
    equal(headers['X-Content-Type-Options'], 'nosniff')
    equal(headers['Referrer-Policy'], 'no-referrer')
    equal(headers['Cache-Control'], 'no-store')
    if 'Access-Control-Allow-Origin' in headers:
        failed('other origins may read')
    for question in ('files', 'overview', 'nonsense'):
        equal(given.SERVER.get(f'/{given.SERVER.token}/ask/{question}')[1]['Content-Type'],
              'application/json; charset=utf-8')


@test
def hostile_names_are_text_everywhere():
    _, _, body = given.SERVER.get(f'/{given.SERVER.token}/ask/functions?count=1000')
    if '<' in body:
        failed('an answer holds <')
    contains(body, '\\u003cimg')
    page = os.path.join(given.FOLDER, 'page.html')
    subprocess.run([QUERN, 'export', given.FILES['heap.quern'], '--as=html', '-o', page], check=True)
    with open(page) as file:
        contains(file.read(), "default-src 'none'")
    with open(page) as file:
        if '<img' in file.read():
            failed('the name is markup in the page')

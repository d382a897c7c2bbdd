"""ClickHouse and PostgreSQL as servers of a test: started, killed and started again; and servers that
answer other things."""
import http.client
import http.server
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time

import suite
from suite import QUERN, equal, failed, need, skip, succeed, until


def free_port():
    with socket.socket() as listening:
        listening.bind(('127.0.0.1', 0))
        return listening.getsockname()[1]


class Store:
    """A server with its data in a folder. In a `with`, it ends with it."""
    process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.clean()

    def clean(self):
        pass

    def kill(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def rows(self, sql):
        """The answer of quern query, without the names."""
        out, _ = succeed([QUERN, 'query', f'--store={self.url}', sql], env=self.secrets)
        return [tuple(line.split('\t')) for line in out.splitlines()[1:]]

    secrets = {}


class ClickHouse(Store):
    def __init__(self, password=''):
        need('clickhouse-server')
        self.port = free_port()
        self.url = f'clickhouse://127.0.0.1:{self.port}'
        folder = os.path.join(suite.FOLDER, 'clickhouse')
        os.makedirs(folder + '/data', exist_ok=True)
        self.config = suite.write('clickhouse/config.xml', f"""<yandex>
<logger><level>warning</level><console>1</console></logger>
<http_port>{self.port}</http_port><tcp_port>{free_port()}</tcp_port>
<listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>100000000</mark_cache_size></yandex>
""")
        suite.write('clickhouse/users.xml', f"""<yandex>
<profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
<users><default><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas></yandex>
""")

    def start(self):
        with open(os.path.join(suite.FOLDER, 'clickhouse', 'log'), 'a') as log:
            self.process = subprocess.Popen(['clickhouse-server', f'--config-file={self.config}'],
                                            stdout=log, stderr=log, start_new_session=True)

        def answers():
            try:
                connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=5)
                connection.request('GET', '/ping')
                return connection.getresponse().read().strip().startswith(b'Ok')
            except OSError:
                return False
        until(answers, what='an answer of ClickHouse')


class Postgres(Store):
    BIN = '/usr/lib/postgresql/15/bin'

    def __init__(self, password=''):
        if not os.path.exists(f'{self.BIN}/initdb'):
            skip('postgresql-15 is not installed')
        # The server refuses to run as root.
        self.words = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] \
            if os.getuid() == 0 else []
        self.folder = tempfile.mkdtemp(prefix='quern-postgres-')
        if self.words:
            shutil.chown(self.folder, 'postgres')
        self.port = free_port()
        self.url = f'postgresql://tester@127.0.0.1:{self.port}/postgres'
        secret = os.path.join(self.folder, 'secret')
        with open(secret, 'w') as file:
            file.write(password or 'unused')
        os.chmod(secret, 0o644)
        subprocess.run([*self.words, f'{self.BIN}/initdb', '-D', f'{self.folder}/data', '-U', 'tester',
                        '-A', 'scram-sha-256' if password else 'trust', f'--pwfile={secret}'],
                       check=True, capture_output=True, cwd='/')

    def start(self):
        with open(os.path.join(suite.FOLDER, 'postgres.log'), 'a') as log:
            self.process = subprocess.Popen(
                [*self.words, f'{self.BIN}/postgres', '-D', f'{self.folder}/data', '-p',
                 str(self.port), '-k', self.folder, '-c', 'listen_addresses=127.0.0.1', '-c',
                 'fsync=off', '-c', 'max_connections=400'],
                stdout=log, stderr=log, start_new_session=True, cwd='/')
        until(lambda: subprocess.run([f'{self.BIN}/pg_isready', '-q', '-h', '127.0.0.1', '-p',
                                      str(self.port)]).returncode == 0, what='PostgreSQL')

    def clean(self):
        shutil.rmtree(self.folder, ignore_errors=True)


STORES = {'clickhouse': ClickHouse, 'postgres': Postgres}


class Impostor:
    """Listens at a port and does this with each connection."""

    def __init__(self, act):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    act(self.request)
                except OSError:
                    pass
        socketserver.ThreadingTCPServer.daemon_threads = True
        self.server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def forgetful_proxy(port, is_forgotten):
    """An HTTP server in front of the one at this port. It passes everything on, but hangs up instead
    of giving the answer if is_forgotten(path)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_POST(self):
            body = self.rfile.read(int(self.headers['Content-Length']))
            connection = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
            connection.request('POST', self.path, body)
            answer = connection.getresponse()
            text = answer.read()
            if is_forgotten(self.path):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            self.send_header('Content-Length', str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server

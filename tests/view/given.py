"""The servers and files that all tests of this suite use. `run` sets them before the first test."""
import http.client
import json
import signal
import subprocess

from suite import QUERN, equal, failed

SERVER = LARGE = None  # quern view of all files, and of a large one
FILES = {}  # name: path
NAMES = []
DAMAGED = ['damaged.quern', 'nothing', 'massif.damaged', 'memcheck.damaged', 'dhat.damaged']
FOLDER = ''


class Server:
    """quern view, and raw requests to it."""

    def __init__(self, *paths):
        self.process = subprocess.Popen([QUERN, 'view', '--no-browser', *paths],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            failed(f'no address; it said {self.process.stderr.read()!r}')
        self.port = int(self.address.split(':')[2].split('/')[0])
        self.token = self.address.split('/')[3]

    def get(self, path, method='GET', **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=300)
        connection.putrequest(method, path, skip_host='Host' in headers)
        for name, value in headers.items():
            connection.putheader(name.replace('_', '-'), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode('utf-8', 'replace')
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def ask(self, question):
        status, _, body = self.get(f'/{self.token}/ask/{question}')
        equal(status, 200, f'status of {question} ({body[:200]})')
        return json.loads(body)

    def stop(self):
        return self.end()[0]

    def end(self):
        """Its status and what it has said on standard error."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=300)
        return self.process.returncode, said


def printed(*words):
    done = subprocess.run([QUERN, 'print', '--json', *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    equal(done.returncode, 0, f'status of quern print --json {words} ({done.stderr})')
    return json.loads(done.stdout)

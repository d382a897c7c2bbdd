"""A server that does as it is told, under quern, and ways to ask its exporter."""
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.abspath(__file__).rsplit('/tests/', 1)[0] + '/tests')
import suite
from lib.recordings import build_plain
from suite import QUERN, clean_environment, equal, failed, until

OBEDIENT = os.path.join(HERE, 'targets', 'obedient.c')


class Server:
    """The target under `quern heap` with these options; in a `with`, it ends with it."""

    def __init__(self, *options, tool='heap', env=None, program=None, name='server'):
        self.program = program or build_plain(OBEDIENT, name=name)
        self.recording = os.path.join(suite.FOLDER, f'{os.path.basename(self.program)}.%p.quern')
        words = [QUERN, tool, f'--heap-out-file={self.recording}', *options, self.program]
        self.errors = open(os.path.join(suite.FOLDER, f'errors.{name}'), 'w+')
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True,
                                        env=clean_environment(**(env or {})))
        self.url = None
        self.has_ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.has_ended:
            self.end()
        self.errors.close()

    def said(self):
        with open(self.errors.name) as file:
            return file.read()

    def find_url(self):
        """Where the exporter listens, as quern said it."""
        match = until(lambda: re.search(r'metrics and profiles at (http://\S+)/', self.said()),
                      what='an address for metrics')
        self.url = match[1]
        return self.url

    def tell(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), 'ok\n', f'answer to {line!r}')

    def end(self, status=0):
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        self.has_ended = True
        got = self.process.wait(300)
        self.process.stdout.close()
        if status is not None:
            equal(got, status, f'status (with {self.said()[-500:]!r})')
        return self.said()


def get(url, **headers):
    """(status, text) of an answer."""
    request = urllib.request.Request(url, headers={name.replace('_', '-'): value
                                                   for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(server):
    """The numbers of the page by name, those of several processes added up."""
    status, text = get((server.url or server.find_url()) + '/metrics')
    equal(status, 200, 'status of /metrics')
    found = {}
    for line in text.splitlines():
        if not line.startswith('#'):
            name, value = re.fullmatch(r'(\w+)(?:\{.*\})? (\S+)', line).groups()
            found[name] = found.get(name, 0) + float(value)
    return found


def settled(server, name, least):
    """The metrics once this one has reached the number."""
    def look():
        found = metrics(server)
        return found if found.get(name, -1) >= least else None
    return until(look, what=f'{name} >= {least}')

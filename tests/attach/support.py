"""What the tests of this suite share: targets that run, and recordings of them."""
import os
import re
import signal
import subprocess
import tempfile
import time

from suite import QUERN, build, clean_environment, equal, failed, source_of

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'targets')


class Target:
    """A program that runs, answers on stdout and ends when its stdin does."""

    def __init__(self, words, **more):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=clean_environment(), **more)
        self.pid = self.process.pid

    def __enter__(self):
        self.first = self.process.stdout.readline().strip()
        return self

    def ask(self, words):
        self.process.stdin.write(words + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        """Its last words."""
        self.process.stdin.close()
        rest = self.process.stdout.read().strip()
        equal(self.process.wait(timeout=300), 0, 'status of the target')
        return rest

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass


def target(name, *flags):
    return build(source_of(name, TARGETS), *flags)


class Recording:
    """quern heap --pid, up to the moment when it records."""

    def __init__(self, pid, *options, tool='heap', **more):
        self.folder = tempfile.mkdtemp(dir='.')
        self.file = os.path.join(self.folder, 'recording')
        self.log = os.path.join(self.folder, 'log')
        words = [QUERN, tool, f'--pid={pid}', f'--log-file={self.log}', f'--{tool}-out-file={self.file}', *options]
        self.errors = os.path.join(self.folder, 'errors')
        with open(self.errors, 'w') as errors:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=errors,
                                            env=clean_environment(), **more)

    def said(self):
        texts = []
        for path in (self.errors, self.log):
            if os.path.exists(path):
                with open(path) as file:
                    texts.append(file.read())
        return ''.join(texts)

    def wait_for(self, words):
        until = time.monotonic() + 300
        while words not in self.said():
            if self.process.poll() is not None and words not in self.said():
                failed(f'quern ended without {words!r}: {self.said()}')
            if time.monotonic() > until:
                failed(f'quern does not say {words!r}: {self.said()}')
            time.sleep(0.01)
        return self

    def stop(self):
        """As Ctrl+C does. What was said."""
        self.process.send_signal(signal.SIGINT)
        equal(self.process.wait(timeout=300), 0, f'status of quern ({self.said()})')
        return self.said()


def pauses(said):
    return [float(number) for number in re.findall(r'for ([0-9.]+) ms at most', said)]

"""Plays a script on the real error code and supervisor; a compiled target gives it addresses."""
import os
import re
import subprocess

import suite
from suite import failed, run

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINE = os.path.join(suite.BUILD, 'tests/tools/memcheck/findings/scripted-engine')
BIAS = 0x400000


class Target:
    """The compiled program: where its functions, lines and variables are."""

    def __init__(self):
        source = os.path.join(HERE, 'target.c')
        self.path = os.path.join(suite.FOLDER, 'target')
        subprocess.run(['gcc', '-g', '-O1', '-o', self.path, source], check=True)
        self.symbols = {}
        for line in subprocess.run(['nm', self.path], check=True, capture_output=True,
                                   text=True).stdout.splitlines():
            words = line.split()
            if len(words) == 3:
                self.symbols[words[2]] = int(words[0], 16) + BIAS
        self.maps = []
        headers = subprocess.run(['readelf', '-lW', self.path], check=True, capture_output=True,
                                 text=True).stdout
        for line in headers.splitlines():
            words = line.split()
            if words and words[0] == 'LOAD':
                offset, start, size = int(words[1], 16), int(words[2], 16), int(words[4], 16)
                low = start & ~0xfff
                self.maps += ['map', hex(low + BIAS), hex((start + size + 0xfff & ~0xfff) + BIAS),
                              hex(offset & ~0xfff), self.path]

    def pc(self, function, offset=0):
        return hex(self.symbols[function] + offset)

    def after(self, function, call):
        """The return address in `function` of the call of `call`."""
        listing = subprocess.run(['objdump', '-d', f'--disassemble={function}', self.path],
                                 check=True, capture_output=True, text=True).stdout
        lines = listing.splitlines()
        for line, following in zip(lines, lines[1:]):
            if f'<{call}>' in line and 'call' in line:
                return hex(int(following.split(':')[0], 16) + BIAS)
        failed(f'{function} does not call {call}')


def stage():
    return suite.stage(os.path.join(suite.FOLDER, 'stage'), ENGINE)


def say_path():
    path = os.path.join(suite.FOLDER, 'say')
    if not os.path.exists(path):
        os.symlink('/bin/true', path)
    return path


def play(target, *script, options=(), **more):
    """Plays a script; (status, log without prefixes)."""
    maps = target.maps if target else []
    status, _, err = run([stage(), '--default-suppressions=no', *options, say_path(), *maps,
                          *script], **more)
    return status, plain(err)


def plain(text):
    """The log without ==PID== and without the banner."""
    lines = [re.sub(r'^(==|--|\*\*)\d+(==|--|\*\*) ', r'\1', line) if line[:2] in ('==', '--', '**')
             else line for line in text.splitlines()]
    lines = [line[2:] if line.startswith('==') else line for line in lines]
    for i, line in enumerate(lines):
        if line.startswith('Command: '):
            return '\n'.join(lines[i + 2:]) + '\n'
    return '\n'.join(lines) + '\n'


def errors_of(log):
    """The part of the log before the summaries."""
    return log.split('\nHEAP SUMMARY:')[0]


LOSSES = ['keep', '1', '0x21', '0x22', 'keep', '2', '0x23', 'heap', '9', '2', '500', '7', '158',
          'loss', '0', '1', '1', '3', '0', '0', '0', '0', '0', '0', '0', '0', '0',
          'loss', '1', '1', '1', '8', '0', '0', '0', '0', '0', '0', '0', '0', '0',
          'loss', '0', '2', '2', '8', '1008', '0', '0', '3', '0', '0', '0', '0', '0',
          'loss', '2', '2', '1', '50', '0', '0', '0', '0', '0', '0', '0', '0', '0',
          'loss', '3', '1', '1', '77', '0', '0', '0', '0', '1', '2', '3', '0', '1']

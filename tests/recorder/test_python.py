"""Stacks of CPython in recordings and in massif.out: the interpreter's frames among the native ones."""
import os
import re

import suite
from suite import QUERN, contains, equal, failed, run, skip, succeed, test

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = os.path.join(HERE, 'targets', 'python_threads.py')
PYTHON = '/usr/bin/python3.11'
INTERPRETER = '_PyEval_EvalFrameDefault'
OF_PYTHON = re.compile(r'(\S+) \((\w+\.py):([0-9]+)\)$')


def record(*arguments, options=(), environment=None):
    if not os.path.exists(PYTHON):
        skip('python3.11 is not installed')
    return run([QUERN, '--tool=heap', '--diagnose=no', '--heap-out-file=python.quern', *options, PYTHON,
                *arguments], env=environment)


def at_least(got, least, what):
    if got < least:
        failed(f'{what}: {got}, less than {least}')


def stacks_in(text):
    """Stacks of a listing: bytes, and the functions with their places, innermost first."""
    stacks = []
    for part in re.split(r'(?m)^(?=[\d,]+ bytes \()', text)[1:]:
        frames = re.findall(r'(?m)^   (?:at|by) 0x[0-9A-F]+: (.*)$', part)
        stacks.append((int(part.split(' ')[0].replace(',', '')), frames))
    return stacks


def frames_of_python(frames):
    found = [OF_PYTHON.match(frame) for frame in frames]
    return tuple((one[1].rsplit('.', 1)[-1], one[2], int(one[3])) for one in found if one)


def stacks_of_faulthandler(path):
    with open(path, encoding='utf-8') as file:
        parts = re.split(r'(?m)^Stack \(most recent call first\):$', file.read())
    return {tuple((name, os.path.basename(place), int(line)) for place, line, name in
                  re.findall(r'File "(.*)", line ([0-9]+) in (.+)', part)) for part in parts[1:]}


@test
def stacks_of_python_threads_as_faulthandler_shows_them():
    record(THREADS, 'dumps')
    text = succeed([QUERN, 'print', '--num-callers=200', '--top=100', 'python.quern'])[0]
    taken = [frames for held, frames in stacks_in(text.split('\n\n')[1]) if held >= 1000000]
    equal({frames_of_python(frames) for frames in taken}, stacks_of_faulthandler('dumps'))
    at_least(len(taken), 7, 'different stacks')
    for frames in taken:
        if any(frame.startswith(INTERPRETER) for frame in frames):
            failed(f'a call of the interpreter is left in {frames}')
        if 'bytearray' in frames[0] or OF_PYTHON.match(frames[0]):
            failed(f'no native function is innermost in {frames}')


@test
def massif_has_them_too():
    if not os.path.exists(PYTHON):
        skip('python3.11 is not installed')
    succeed([QUERN, '-q', '--tool=massif', '--depth=200', '--threshold=0', '--massif-out-file=massif.out', PYTHON,
             THREADS, 'dumps'])
    with open('massif.out', encoding='utf-8') as file:
        peak = file.read().split('heap_tree=peak\n')[1].split('#-----------')[0]
    stacks, path = set(), []
    for line in peak.split('\n'):
        match = re.match(r'( *)n(\d+): (\d+) (?:0x[0-9A-F]+: )?(.*)', line)
        if not match:
            continue
        path[len(match[1]):] = [match[4]]
        if match[2] == '0' and int(match[3]) >= 1000000:
            stacks.add(frames_of_python(path))
    equal(stacks, stacks_of_faulthandler('dumps'))


@test
def every_object_of_python():
    """With each object an allocation, and threads that take turns, every frame is told."""
    with open('objects.py', 'w', encoding='utf-8') as file:
        file.write('import threading\nkept = []\ndef make():\n    for i in range(3000):\n'
                   '        kept.append([i] * 3)\n        kept.append(str(i) * 7)\n'
                   'threads = [threading.Thread(target=make) for _ in range(4)]\n'
                   'for one in threads: one.start()\nfor one in threads: one.join()\n')
    status, _, log = record('objects.py', environment={'PYTHONMALLOC': 'malloc'})
    equal(status, 0)
    text = succeed([QUERN, 'print', '--num-callers=200', '--top=1000', 'python.quern'])[0].split('\n\n')[1]
    lines = {}
    for held, frames in stacks_in(text):
        for frame in frames:
            if frame in ('make (objects.py:5)', 'make (objects.py:6)'):
                lines[frame] = lines.get(frame, 0) + held
                break
    at_least(lines.get('make (objects.py:5)', 0), 12000 * (56 + 24), 'bytes of line 5')
    at_least(lines.get('make (objects.py:6)', 0), 12000 * 50, 'bytes of line 6')
    if 'damaged' in log:
        failed(log)


@test
def growth_names_functions_of_python():
    with open('cache.py', 'w', encoding='utf-8') as file:
        file.write('cache = {}\ndef make(key):\n    return bytearray(2000)\n'
                   'def put(key):\n    cache[key] = make(key)\n'
                   'for key in range(4000):\n    put(key)\n    bytearray(3000)\n')
    record('cache.py')
    said = succeed([QUERN, 'diagnose', 'python.quern'])[0]
    equal(re.findall(r'(?m)^\d+\. (.*) \(\w+\): (.*)$', said), [('Memory that only grows', 'make (cache.py:3)')])
    contains(succeed([QUERN, 'print', '--view=mine', 'python.quern'])[0], ' make (cache.py:3)')


@test
def a_forked_child_has_them():
    with open('forks.py', 'w', encoding='utf-8') as file:
        file.write('import os\ndef mine():\n    return bytearray(3000000)\ndef yours():\n'
                   '    return bytearray(5000000)\nmine()\nif os.fork() == 0:\n    kept = [mine(), yours()]\n'
                   '    os._exit(0)\nos.wait()\n')
    equal(record('forks.py', options=['--trace-children=yes', '--heap-out-file=%p.quern'])[0], 0)
    texts = [succeed([QUERN, 'print', name])[0] for name in os.listdir('.') if name.endswith('.quern')]
    equal(len(texts), 2)
    child = next(text for text in texts if 'yours (forks.py:5)' in text)
    contains(child, 'mine (forks.py:3)')
    contains(child, '<module> (forks.py:8)')


@test
def without_frames_of_python():
    record(THREADS, 'dumps', options=['--python-stacks=no'])
    text = succeed([QUERN, 'print', '--num-callers=200', '--top=100', 'python.quern'])[0]
    equal([line for line in text.split('\n') if OF_PYTHON.search(line)], [])
    contains(text, INTERPRETER)


@test
def python_that_is_not_supported():
    program = suite.build(os.path.join(HERE, '..', 'tools', 'flame', 'targets', 'interpreter.c'), '-rdynamic',
                          '-DFREE_THREADED=1', '-DVERSION=0x030d00f0')
    log = run([QUERN, '--tool=heap', '--heap-out-file=other.quern', program])[2]
    contains(' '.join(re.sub(r'==\d+==', '', log).split()), 'Functions of Python 3.13 are not shown: builds '
             'without the global lock (free-threaded) are not supported')

"""Code that is in no file of the program: generated code, and the kernel's."""
import os
import re
import subprocess

import suite
from suite import QUERN, contains, equal, failed, need, succeed, test
from support import TARGETS, at_least, build, flame

FIB = os.path.join(TARGETS, 'fib.js')


def map_of(log):
    """The perf map of the process in a log: its names. It is removed."""
    path = f'/tmp/perf-{re.search(r"==([0-9]+)==", log)[1]}.map'
    with open(path, encoding='utf-8') as file:
        names = {line.rstrip('\n').split(' ', 2)[2] for line in file}
    os.unlink(path)
    return names


@test
def generated_code_has_the_names_of_its_map():
    need('node')
    for sampler in ('perf', 'timers'):
        profile = flame('node', f'--sampler={sampler}', arguments=['--perf-basic-prof', FIB])
        names = map_of(profile.log)
        at_least(profile.share(f'JS:*fib {FIB}:3:13'), 0.3, f'share of fib by {sampler}')
        shown = {name for path in profile.stacks for name in path if name.startswith('JS:')}
        equal(shown - {name.replace(';', ':') for name in names}, set(), 'names that are not in the map')


@test
def generated_code_has_the_names_of_its_dump():
    """A jit dump, in the folder of the run."""
    need('node')
    profile = flame('node', arguments=['--perf-prof', FIB])
    at_least(profile.share(f'JS:*fib {FIB}:3:13'), 0.3, 'share of fib')
    equal(profile.share('[generated code]'), 0, 'share without a name')


@test
def generated_code_without_a_map():
    need('node')
    profile = flame('node', arguments=[FIB])
    at_least(profile.share('[generated code]'), 0.3, 'share of generated code')


@test
def recordings_keep_the_names_of_generated_code():
    """Also when the map is gone."""
    need('node')
    _, log = succeed([QUERN, '--tool=heap', '--heap-out-file=out.quern', 'node', '--perf-basic-prof',
                      FIB])
    map_of(log)
    out, _ = succeed([QUERN, 'export', 'out.quern', '--as', 'collapsed'])
    contains(out, f'keep {FIB}:4:14;')


@test
def callgrind_names_generated_code():
    need('node')
    with open('short.js', 'w') as file:
        file.write('function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\nfib(25);\n')
    _, log = succeed([QUERN, '--tool=callgrind', '--callgrind-out-file=out', 'node',
                      '--perf-basic-prof', 'short.js'])
    map_of(log)
    with open('out', encoding='utf-8') as file:
        contains(file.read(), f'fib {os.getcwd()}/short.js:1:13')


def may_see_kernel():
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        if os.geteuid() and int(file.read()) > 1:
            return False
    with open('/proc/kallsyms', encoding='ascii') as file:
        return int(file.readline().split()[0], 16) != 0


@test
def functions_of_the_kernel():
    if not may_see_kernel():
        suite.skip('the kernel is not shown here')
    profile = flame(build('kernel'), '--sampler=perf')
    at_least(profile.share('vfs_read'), 0.5, 'share of vfs_read')
    stacks = [path for path in profile.stacks if 'vfs_read' in path]
    for path in stacks:
        equal(path[:2], ('main', 'read_much'))
        equal(path.count('read'), 1, 'calls of read')
        if path.index('read') > path.index('vfs_read'):
            failed(f'{path} is not in order')
    at_least(profile.complete(), 99, 'complete stacks')


@test
def without_functions_of_the_kernel():
    if not may_see_kernel():
        suite.skip('the kernel is not shown here')
    profile = flame(build('kernel'), '--sampler=perf', '--kernel-stacks=no')
    equal(profile.share('vfs_read'), 0)
    at_least(profile.share('main', 'read_much', 'read'), 0.5, 'share of read')


@test
def kernel_stacks_that_cannot_be():
    for options in (['--kernel-time=no'], ['--sampler=timers']):
        _, err = succeed([QUERN, '--tool=flame', '--kernel-stacks=yes', *options, 'true'], 1)
        contains(err, f'--kernel-stacks=yes cannot be used with {options[0]}')


def stacks_of_python(profile):
    """The frames of Python in each stack, outermost first: (function, file, line), and samples."""
    stacks = {}
    for path, value in profile.stacks.items():
        frames = [re.fullmatch(r'(.+) \((threads\.py|threading\.py):([0-9]+)\)', name) for name in path]
        key = tuple((frame[1].rsplit('.', 1)[-1], frame[2], int(frame[3])) for frame in frames if frame)
        stacks[key] = stacks.get(key, 0) + value
    return stacks


def stacks_of_faulthandler(text):
    stacks = {}
    for part in re.split(r'\n\n|^(?:Current thread|Thread) .*$', text, flags=re.MULTILINE):
        frames = re.findall(r'File "(.*)", line ([0-9]+) in (.+)', part)
        key = tuple((name, os.path.basename(file), int(line)) for file, line, name in reversed(frames))
        stacks[key] = stacks.get(key, 0) + 1
    return stacks


@test
def stacks_of_python_threads_as_faulthandler_shows_them():
    """Stacks with a tenth of the samples are among what faulthandler saw, and the reverse."""
    if not os.path.exists('/usr/bin/python3.11'):
        suite.skip('python3.11 is not installed')
    script = os.path.join(TARGETS, 'threads.py')
    profile = flame('/usr/bin/python3.11', '--python-lines=yes', arguments=[script, 'dumps', '12000000'])
    with open('dumps', encoding='utf-8') as file:
        dumped = stacks_of_faulthandler(file.read())
    sampled = stacks_of_python(profile)
    spinning = {stack for stack, count in sampled.items()
                if stack[-1:] == (('spin', 'threads.py', 14),) and count > profile.total / 20}
    equal({stack[3][0] for stack in spinning}, {'deep', 'method', 'compare', 'comprehension'},
          'threads that were sampled')
    for stack in spinning:
        if stack not in dumped:
            failed(f'faulthandler does not show {stack}')
    often = {stack for stack, count in dumped.items()
             if count > 20 and stack[-1:] == (('spin', 'threads.py', 14),)}
    equal(often - set(sampled), set(), 'stacks that were not sampled')
    for path in profile.stacks:
        if path[-1].startswith('spin ') and any(name.startswith('_PyEval_EvalFrameDefault') for name in path):
            failed(f'a call of the interpreter is left in {path}')
    at_least(sum(sampled[stack] for stack in spinning) / profile.total, 0.8, 'share of spinning')


@test
def native_functions_between_those_of_python():
    if not os.path.exists('/usr/bin/python3.11'):
        suite.skip('python3.11 is not installed')
    with open('sort.py', 'w') as file:
        file.write('def key(value):\n    for _ in range(3000): value * value\n'
                   '    return value\ndef order():\n    sorted(range(3000), key=key)\norder()\n')
    profile = flame('/usr/bin/python3.11', '--python-lines=yes', arguments=['sort.py'])
    between = {path[path.index('order (sort.py:5)') + 1:path.index('key (sort.py:2)')]
               for path in profile.stacks if 'key (sort.py:2)' in path and 'order (sort.py:5)' in path}
    if not between or any(len(names) < 3 or '_PyEval_EvalFrameDefault' in names for names in between):
        failed(f'between order and key are {between}')
    at_least(profile.share('order (sort.py:5)'), 0.7, 'share of order')


@test
def a_function_of_python_is_one_box():
    if not os.path.exists('/usr/bin/python3.11'):
        suite.skip('python3.11 is not installed')
    with open('lines.py', 'w') as file:
        file.write('def work():\n    for i in range(12000000):\n        i * i\n        i + i\n        i - i\n'
                   'work()\n')
    for options, wanted in (([], ['work (lines.py:1)']),
                            (['--python-lines=yes'], [f'work (lines.py:{line})' for line in (2, 3, 4, 5)])):
        profile = flame('/usr/bin/python3.11', *options, arguments=['lines.py'])
        names = {name for path in profile.stacks for name in path if name.startswith('work ')}
        equal(sorted(names), wanted)


@test
def python_without_its_functions():
    if not os.path.exists('/usr/bin/python3.11'):
        suite.skip('python3.11 is not installed')
    profile = flame('/usr/bin/python3.11', '--python-stacks=no', arguments=['-c', 'sum(range(20000000))'])
    names = {name for path in profile.stacks for name in path}
    equal({name for name in names if '.py:' in name or '<string>' in name}, set())
    for options in (['--sampler=perf'], ['--off-cpu=yes'], ['--kernel-stacks=yes']):
        _, err = succeed([QUERN, '--tool=flame', '--python-stacks=yes', *options, 'true'], 1)
        contains(err, '--python-stacks=yes needs --sampler=timers')


@test
def no_python_in_the_program():
    profile = flame(build('shares'), '--python-stacks=yes', arguments=['100'], status=7)
    contains(profile.log, 'there is no interpreter in the program at its start')


def said_of_interpreter(*flags):
    """What is said of Python, for a program that looks like an interpreter."""
    profile = flame(build('interpreter', '-rdynamic', *flags), '--python-stacks=yes')
    return ' '.join(re.sub(r'==\d+==', '', profile.log).split())


@test
def python_that_is_not_supported():
    """The log says why functions are not shown, and never that they are."""
    for flags, reason in ((['-DFREE_THREADED=0'], '3.10 are not shown: 3.11 to 3.13 are supported'),
                          (['-DFREE_THREADED=0', '-DVERSION=0x030e00f0'],
                           '3.14 are not shown: 3.11 to 3.13 are supported'),
                          (['-DFREE_THREADED=1', '-DVERSION=0x030d00f0'],
                           '3.13 are not shown: builds without the global lock (free-threaded) are not supported'),
                          (['-DHIDDEN', '-DVERSION=0x030d00f0'],
                           '3.13 are not shown: the program does not export the symbols'),
                          (['-DFREE_THREADED=0', '-DVERSION=0x030d00f0'], '3.13 are in no sample')):
        said = said_of_interpreter(*flags)
        contains(said, f'Functions of Python {reason}')
        if 'are shown' in said:
            failed(said)


@test
def python_that_is_supported():
    if not os.path.exists('/usr/bin/python3.11'):
        suite.skip('python3.11 is not installed')
    profile = flame('/usr/bin/python3.11', arguments=['-c', 'for i in range(3000000): i * i'])
    contains(profile.log, 'Functions of Python 3.11 are shown')


def build_awaits():
    for name, words in (('tokio', ['--crate-type', 'rlib']), ('awaits', ['--extern', 'tokio=libtokio.rlib'])):
        subprocess.run(['rustc', '--edition', '2021', '-g', '-O', '--crate-name', name, *words,
                        os.path.join(TARGETS, name + '.rs')], check=True)
    return './awaits'


def hot(profile):
    """Stacks with a tenth of the samples, from main on, without what spin calls."""
    cut = {}
    for path, value in profile.stacks.items():
        if 'awaits::spin' in path:
            path = path[:path.index('awaits::spin') + 1]
            cut[path] = cut.get(path, 0) + value
    return {path for path, value in cut.items() if value > profile.total / 10}


@test
def awaits_stand_on_each_other_when_runtimes_are_folded():
    need('rustc')
    program = build_awaits()
    plain = flame(program, '--kernel-stacks=no')
    at_least(plain.share('tokio::enter', 'tokio::poll_task'), 0.8, 'share of the executor')
    folded = flame(program, '--kernel-stacks=no', '--fold-runtimes=yes')
    equal(hot(folded), {('main', '[std]', 'awaits::main', '[tokio]', 'awaits::main::{async block}',
                         'awaits::serve::{async fn}', 'awaits::handle::{async fn}', 'awaits::spin')})
    equal({name for path in folded.stacks for name in path if name.startswith(('tokio::', 'core::', 'std::'))},
          set())


@test
def what_is_not_mine_is_folded():
    need('rustc')
    mine = flame(build_awaits(), '--kernel-stacks=no', '--mine=awaits::main*,awaits::handle*,awaits::spin')
    equal(hot(mine), {('[awaits]', 'awaits::main', '[tokio]', 'awaits::main::{async block}',
                       'awaits::handle::{async fn}', 'awaits::spin')})

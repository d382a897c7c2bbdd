"""Code that is in no file of the program: generated code, and the kernel's."""
import os
import re

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

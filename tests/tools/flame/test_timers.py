"""Sampling by timers of the threads."""
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as tree_of

import suite
from suite import QUERN, contains, equal, failed, run, test
from support import Profile, TARGETS, at_least, build, cpu_time, flame, near

# The kernel's clock ticks 250 times a second where it ticks slowest: a stack stands for four samples.
TIMERS = '--sampler=timers'


@test
def timers_where_perf_is_not_permitted():
    files = ['--flame-out-file=out.svg', '--flame-collapsed-file=out.folded',
             '--flame-stacks-file=/dev/null']
    status, out, err = run([build('forbid'), QUERN, 'flame', *files, build('shares'), '20000'])
    equal(status, 7, f'status (with {err[-300:]!r})')
    profile = Profile(err, out)
    cpu_time(profile.total, float(profile.out), 'all')
    near(profile.share('main', 'seventy'), 0.70, 0.15, 'seventy')
    contains(profile.log, 'By CPU timers, ')
    contains(profile.log, 'Not by perf: sampling is not permitted here')


@test
def timers_of_threads():
    profile = flame(build('threads'), TIMERS)
    took = {name: float(value) for name, value in map(str.split, profile.out.splitlines())}
    for name in ('left', 'right'):
        cpu_time(profile.share(name) * profile.total, took[name], name)
        # No frame of the library that was preloaded is in between.
        near(profile.share('start_thread', 'run_' + name, name), profile.share(name), 0.02, name)
    at_least(profile.complete(), 98, 'complete stacks')


@test
def timers_of_c_threads():
    with open('thrd.c', 'w') as file:
        file.write('#include <threads.h>\n#include "work.h"\n'
                   'int busy(void *n) {turn(600000000); sink++; return 5;}\n'
                   'int main(void) {thrd_t t; int got; thrd_create(&t, busy, 0);'
                   'thrd_join(t, &got); return got;}')
    subprocess.run(['gcc', '-O2', '-g', '-w', '-I', TARGETS, 'thrd.c', '-o', 'thrd'], check=True)
    at_least(flame('./thrd', TIMERS, status=5).share('busy'), 0.9, 'busy')


@test
def timers_of_threads_that_are_shorter_than_a_tick():
    with open('short.c', 'w') as file:
        file.write('#include <pthread.h>\n#include <stdio.h>\n#include <time.h>\n#include "work.h"\n'
                   'void *brief(void *n) {turn(1000000); sink++; return 0;}\n'
                   'int main(void) {for (int i = 0; i < 400; i++) {pthread_t t;'
                   'pthread_create(&t, 0, brief, 0); pthread_join(t, 0);}'
                   'struct timespec c; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &c);'
                   'printf("%f\\n", c.tv_sec + c.tv_nsec / 1e9); return 0;}')
    subprocess.run(['gcc', '-O2', '-g', '-w', '-I', TARGETS, 'short.c', '-o', 'short'], check=True)
    profile = flame('./short', TIMERS)
    cpu_time(profile.total, float(profile.out), 'all', most=1.2)
    at_least(profile.share('brief'), 0.7, 'brief')


@test
def timers_walk_through_everything():
    at_least(flame(build('through'), TIMERS, arguments=['signal']).share('handler'), 0.9, 'handler')
    profile = flame(build('through'), TIMERS, arguments=['inlined'])
    at_least(profile.share('main', 'holder', 'inlined_outer', 'inlined_inner', 'turn'), 0.9, 'turn')
    profile = flame(build('deep', '-fno-optimize-sibling-calls'), TIMERS, '--stack-bytes=4096',
                    arguments=['3000'])
    at_least(profile.share('[cut short]', 'descend'), 0.95, 'share cut short')
    contains(profile.log, '%: stack larger than --stack-bytes')


@test
def timers_of_children():
    profile = flame(build('children'), TIMERS)
    for name in ('parent_work', 'forked_work'):
        cpu_time(profile.share('main', name) * profile.total, 0.6, name)
    equal(profile.share('executed_work'), 0, 'executed')
    profile = flame(build('children'), TIMERS, '--trace-children=yes')
    for name in ('parent_work', 'forked_work', 'executed_work'):
        cpu_time(profile.share('children', 'main', name) * profile.total, 0.6, name)


@test
def timers_leave_nothing_behind():
    """In the environment of the program's children, and among its open files."""
    profile = flame('sh', TIMERS, arguments=['-c', 'env | grep -E "QUERN_SAMPLER|PRELOAD"; exit 3'],
                    status=3)
    equal(profile.out, '', 'variables')
    status, out, err = run([QUERN, 'flame', '-q', TIMERS, '--flame-out-file=/dev/null',
                            '--flame-stacks-file=/dev/null', 'ls', '/proc/self/fd'])
    equal((status, len(out.split()), err), (0, 4, ''), 'open files of ls')


@test
def timers_and_a_killed_target():
    profile = flame(build('shares'), TIMERS, arguments=['3000', 'kill'], status=-signal.SIGKILL)
    cpu_time(profile.total, float(profile.out), 'all')


@test
def ordinary_user():
    with open('/proc/sys/kernel/perf_event_paranoid') as file:
        paranoid = int(file.read())
    suite.need('setpriv')
    if os.getuid() != 0 or paranoid > 2:
        suite.skip('only root can become another user, and only some kernels let users sample')
    program = build('shares')
    shutil.copy(QUERN, 'quern')
    os.chmod('.', 0o777)
    status, out, err = run(['setpriv', '--reuid=65534', '--clear-groups', '--inh-caps=-all',
                            '--bounding-set=-all', './quern', 'flame', '--flame-out-file=out.svg',
                            '--flame-collapsed-file=out.folded', program])
    equal(status, 7, f'status with {err[-300:]!r}')
    near(Profile(err).share('main', 'seventy'), 0.70, 0.08, 'seventy')


@test
def files_that_cannot_be_written():
    status, out, err = run([QUERN, 'flame', '-q', '--flame-out-file=/no/such/out.svg',
                            '--flame-stacks-file=/dev/null', 'true'])
    equal((status, out), (1, ''))
    equal(err, "quern: cannot write '/no/such/out.svg': No such file or directory; "
               "the program was not run\n")
    status, out, err = run([QUERN, 'flame', '-q', '--flame-out-file=/dev/full', 'true'])
    contains(err, "quern: cannot write '/dev/full': No space left on device")


@test
def names_of_files():
    status, out, err = run([QUERN, 'flame', '-q', 'true'])
    equal((status, err), (0, ''))
    names = sorted(os.listdir('.'))
    equal(len(names), 2, 'files')
    if not re.fullmatch(r'flame\.\d+\.stacks flame\.\d+\.svg', ' '.join(names)):
        failed(f'the files are called {names}')
    tree_of.parse(names[1])

"""Child processes, with the real engine."""
import os
import re
import signal
import subprocess
import time

import suite
from suite import contains, equal, failed, others, run, until
from support import ignore_ends, start, with_engine


def commands(text):
    return re.findall(r'^==\d+== Command: (.*)$', text, re.M)


@with_engine
def children_are_followed():
    script = '/bin/echo a; (/bin/echo b); exit 3'
    status, out, err = run([suite.QUERN, 'none', '--trace-children=yes', 'sh', '-c', script])
    equal((status, out), (3, 'a\nb\n'))
    equal(commands(err)[1:], ['/bin/echo a', '/bin/echo b'], 'commands')
    equal(len(set(re.findall(r'^==(\d+)==', err, re.M))), 3, 'processes')
    status, out, err = run([suite.QUERN, 'none', 'sh', '-c', script])
    equal((status, out, len(commands(err))), (3, 'a\nb\n', 1))


@with_engine
def children_are_skipped_by_pattern():
    script = '/bin/echo a; /bin/true x; /bin/true y'
    for option, wanted in (('--trace-children-skip=*/echo,*/nothing', ['/bin/true x', '/bin/true y']),
                           ('--trace-children-skip-by-arg=?', []),
                           ('--trace-children-skip-by-arg=x', ['/bin/echo a', '/bin/true y'])):
        status, out, err = run([suite.QUERN, 'none', '--trace-children=yes', option, 'sh', '-c',
                                script])
        equal((status, out), (0, 'a\n'))
        equal(commands(err)[1:], wanted, f'commands with {option}')


@with_engine
def exec_keeps_the_process():
    status, out, err = run([suite.QUERN, 'none', '--trace-children=yes', 'sh', '-c',
                            'echo $$; exec sh -c "echo \\$\\$; exit 4"'])
    equal(status, 4)
    equal(len(set(out.split())), 1, 'pids')
    equal(len(commands(err)), 2, 'banners')


@with_engine
def exec_that_is_not_followed_is_said():
    said = 'The program executed /bin/echo, which was not followed (--trace-children=yes follows it)'
    for option, script, wanted in (
            ('--trace-children=no', 'exec /bin/echo a', 1), ('--trace-children=no', '/bin/echo a; :', 0),
            ('--trace-children=no', 'exec /bin/none; /bin/echo a; :', 0),
            ('--trace-children=yes', 'exec /bin/echo a', 0), ('-q', 'exec /bin/echo a', 0)):
        err = run([suite.QUERN, 'none', option, 'bash', '-O', 'execfail', '-c', script])[2]
        equal(err.count(said), wanted, f'lines with {option} {script}')


@with_engine
def crash_is_named():
    with open('crash.c', 'w') as file:
        file.write('int crash(volatile int *p) { return *p; }\n'
                   'int main(int n, char **v) { return n > 5 ? 0 : crash((int *)16); }\n')
    subprocess.run(['gcc', '-g', '-O0', '-o', 'crash', 'crash.c'], check=True)
    status, out, err = run([suite.QUERN, 'none', './crash'])
    equal(status, -signal.SIGSEGV)
    text = re.sub(r'(==)\d+(==)|(0x)[0-9A-F]+(:)', r'\1\2\3\4', err)
    contains(text, '==== Process terminating with default action of signal 11 (SIGSEGV)\n'
                   '====  Access not within mapped region at address 0x10\n'
                   '====    at 0x: crash (crash.c:1)\n'
                   '====    by 0x: main (crash.c:2)\n')


@with_engine
def followed_child_lives_on():
    os.mkfifo('go')
    process = start([suite.QUERN, '--log-file=log.%p', 'none', '--trace-children=yes', 'sh', '-c',
                     '(read line <go; exec sh -c "kill -SEGV \\$\\$") & exit 5'])
    equal(process.wait(timeout=300), 5)
    open('go', 'w').close()
    mark = os.environ[suite.MARK]
    until(lambda: not others(mark), what='the end of the child')
    texts = [open(name).read() for name in os.listdir('.') if name.startswith('log.')]
    equal(sum('signal 11 (SIGSEGV)' in text for text in texts), 1, 'reports of the death')


@with_engine
def duration_ends_followed_processes():
    script = 'sleep 1000 & wait; wait'
    begin = time.monotonic()
    status = run([suite.QUERN, '-q', '--duration=1', 'none', '--trace-children=yes', 'sh', '-c',
                  script], preexec_fn=ignore_ends)[0]
    took = time.monotonic() - begin
    equal(status, -signal.SIGKILL)
    if took > 100:
        failed(f'it took {took:.1f} s')

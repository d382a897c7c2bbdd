"""Signals to the supervisor."""
import os
import signal
import subprocess
import sys
import time

import suite
from suite import equal, failed, run, test
from support import both, ignore_ends, quern, start, start_cat, with_engine

TRAPS = '''import os, signal, sys, time
def caught(number, frame):
    os.write(1, (signal.Signals(number).name + '\\n').encode())
    if number == signal.SIGTERM:
        sys.exit(3)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), caught)
os.write(1, b'ready\\n')  # not print: a signal may come while that holds its buffer
while True:
    time.sleep(10)
'''


def start_traps(program, *names, options=(), **more):
    path = os.path.join(suite.FOLDER, 'traps.py')
    with open(path, 'w') as file:
        file.write(TRAPS)
    process = start([program, '-q', *options, 'none', sys.executable, path, *names],
                    stdout=subprocess.PIPE, **more)
    equal(process.stdout.readline(), 'ready\n')
    return process


@both
def signals_are_handed_on(program):
    names = ['SIGUSR1', 'SIGHUP', 'SIGINT', 'SIGUSR2', 'SIGWINCH', 'SIGALRM', 'SIGTERM']
    process = start_traps(program, *names)
    for name in names:
        process.send_signal(getattr(signal, name))
        equal(process.stdout.readline(), name + '\n')
    equal(process.wait(timeout=300), 3)


@test
def unhandled_termination_is_handed_on():
    process, _ = start_cat(quern(), '-q')
    process.terminate()
    process.wait(timeout=300)
    process.communicate()
    equal(process.returncode, -signal.SIGTERM)


@test
def group_signal_from_the_target_comes_once():
    text = ('import os, signal, time\n'
            'count = 0\n'
            'def caught(*_):\n'
            '    global count\n'
            '    count += 1\n'
            'signal.signal(signal.SIGUSR1, caught)\n'
            'os.kill(0, signal.SIGUSR1)\n'
            'time.sleep(0.3)\n'
            'print(count)\n')
    done = subprocess.run([quern(), '-q', 'none', sys.executable, '-c', text], text=True,
                          stdout=subprocess.PIPE, start_new_session=True,
                          env=suite.clean_environment(), timeout=300)
    equal(done.stdout, '1\n')


@both
def duration_ends_a_program(program):
    begin = time.monotonic()
    status, out, err = run([program, '--duration=1', 'none', 'sleep', '1000'])
    took = time.monotonic() - begin
    equal(status, 0)
    if not 0.9 < took < 100:
        failed(f'it took {took:.1f} s')


@with_engine
def duration_ends_stopped_programs():
    """Under every tool, whichever signal stopped them. They do not go on before that."""
    for tool in ('none', 'memcheck', 'callgrind', 'heap', 'flame'):
        running = []
        for name in ('STOP', 'TSTP'):
            words = [suite.QUERN, '-q', f'--tool={tool}', '--duration=1', 'sh', '-c',
                     f'kill -{name} $$; echo on; read line']
            running.append((name, start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)))
        try:
            for name, process in running:
                try:
                    equal((process.wait(timeout=300), process.stdout.read()), (0, ''), f'end of {tool} {name}')
                except subprocess.TimeoutExpired:
                    failed(f'SIG{name} under {tool} keeps it from ending')
        finally:
            for _, process in running:
                process.kill()
                process.wait()


@test
def duration_keeps_a_status():
    # The interrupt waits until the program is ready for it.
    status = run([quern(), '--duration=1', '-q', 'none', sys.executable, '-c',
                  'import signal, sys, time\n'
                  'signal.signal(signal.SIGINT, lambda *_: sys.exit(5))\n'
                  'signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])\n'
                  'time.sleep(1000)'],
                 preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]))[0]
    equal(status, 5)
    equal(run([quern(), '--duration=100', '-q', 'none', 'sh', '-c', 'exit 6'])[0], 6)


@test
def duration_asks_twice():
    """Who does not listen to SIGINT gets SIGTERM; that is an end as it was wished for, too."""
    status = run([quern(), '--duration=1', '-q', 'none', 'sleep', '1000'],
                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))[0]
    equal(status, 0, 'status')


@test
def duration_insists():
    begin = time.monotonic()
    status = run([quern(), '--duration=1', '-q', 'none', 'sleep', '1000'],
                 preexec_fn=ignore_ends)[0]
    took = time.monotonic() - begin
    equal(status, -signal.SIGKILL)
    if not 10.5 < took < 100:
        failed(f'it took {took:.1f} s')

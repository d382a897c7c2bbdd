"""How a run ends: statuses, signals, --duration."""
import os
import signal
import subprocess
import time

import suite
from suite import alive, contains, equal, failed, others, run, test, until
from support import both, quern, say, start, start_cat


@both
def exit_status(program):
    equal(run([program, '-q', 'none', 'sh', '-c', 'exit 7'])[0], 7)
    equal(run([program, '-q', 'none', 'true'])[0], 0)


@both
def ends_by_the_same_signal(program):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGUSR1, signal.SIGINT):
        status = run([program, '-q', 'none', 'sh', '-c', f'kill -{int(number)} $$'])[0]
        equal(status, -number, 'status')
    equal([name for name in os.listdir('.') if 'core' in name], [], 'core files')


@both
def target_killed_in_the_middle(program):
    process, child = start_cat(program, stderr=subprocess.PIPE)
    os.kill(child, signal.SIGKILL)
    text = process.communicate(timeout=300)[1]
    equal(process.returncode, -signal.SIGKILL)
    contains(text, f'=={child}== Process ended by signal 9 (SIGKILL)')


@both
def supervisor_killed_in_the_middle(program):
    process, child = start_cat(program, '-q')
    process.kill()
    process.wait()
    until(lambda: not alive(child), what='the end of the target')
    process.stdin.close()
    process.stdout.close()


def supervisor_killed_at_once(delay):
    process = start([quern(), '-q', 'none', 'sleep', '100'])
    time.sleep(delay)
    process.kill()
    process.wait()


@test
def supervisor_killed_while_launching():
    for i in range(30):
        supervisor_killed_at_once(i * 0.0003)
    mark = os.environ[suite.MARK]
    until(lambda: not others(mark), what='the end of all targets')


@test
def daemon_gives_the_prompt_back():
    # The daemon lets go of its standard descriptors; nobody else may hold them.
    status, out, err = say('detach', 'quiet', 'await', 'go', options=['--log-file=log'])
    equal((status, err), (0, ''))
    mark = os.environ[suite.MARK]
    if not others(mark):
        failed('the daemon is gone before the prompt comes')
    open('go', 'w').close()
    until(lambda: not others(mark), what='the end of the daemon')


@test
def daemon_is_heard_until_its_end():
    log = os.path.join(suite.FOLDER, 'log')
    path = os.path.join(suite.FOLDER, 'say')
    os.symlink('/bin/true', path)
    process = start([quern(), '--log-file=log', 'none', path, 'detach', 'await', 'go', 'notice',
                     '0', 'from the background'])
    equal(process.wait(timeout=300), 0)
    open('go', 'w').close()
    until(lambda: 'from the background' in open(log).read(), what='the late message')


@test
def collector_ends_with_the_last_process():
    say('detach', 'sleep', '300', options=['-q'])
    mark = os.environ[suite.MARK]
    until(lambda: not others(mark), what='the end of the collector')

"""What the target must find as it is natively."""
import signal
import subprocess

import suite
from suite import contains, equal, run, test
from support import both, quern, start


def same_as_native(program, words, **more):
    native = run(words, **more)
    translated = run([program, '-q', 'none', *words], **more)
    equal(translated, native, 'what it found')


@both
def environment_is_untouched(program):
    same_as_native(program, ['env', '-0'])


@both
def descriptors_are_untouched(program):
    same_as_native(program, ['sh', '-c', 'for i in /proc/self/fd/*; do [ -e $i ] && echo $i; done'])


@both
def limits_are_untouched(program):
    for setting in ('true', 'ulimit -s unlimited', 'ulimit -Sn 64', 'ulimit -s 1024', 'ulimit -s 64',
                    'ulimit -Sv 100000', 'ulimit -Sd 2000', 'ulimit -Sf 0', 'ulimit -n 300'):
        native = run(['bash', '-c', f'{setting}; bash -c "ulimit -a"'])
        inside = run(['bash', '-c', f'{setting}; {program} -q none bash -c "ulimit -a"'])
        equal(inside, native, f'limits after {setting}')


@test
def low_hard_limits_are_explained():
    for letter, value in (('d', 2000), ('f', 0), ('n', 8)):
        done = subprocess.run(['bash', '-c', f'ulimit -{letter} {value}; {quern()} -q none true'],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=suite.clean_environment(), timeout=300)
        equal(done.returncode, 1, f'status with ulimit -{letter}')
        contains(done.stderr, f'ulimit -S{letter}')


@test
def signals_are_untouched():
    show = 'grep -E "^Sig(Blk|Ign)" /proc/self/status'

    def prepare():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM])
    words = ['grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status']
    native = run(words, preexec_fn=prepare)
    equal(run([quern(), '-q', 'none', *words], preexec_fn=prepare), native, show)


@test
def group_and_session_are_shared():
    words = ['sh', '-c', 'cut -d" " -f5,6,7 /proc/$$/stat']
    process = start([quern(), '-q', 'none', *words], stdout=subprocess.PIPE, start_new_session=True)
    group, session, _ = process.communicate(timeout=300)[0].split()
    equal((int(group), int(session)), (process.pid, process.pid), 'group and session')


@both
def standard_input_is_handed_through(program):
    done = subprocess.run([program, '-q', 'none', 'cat'], input='line 1\nline 2\n', text=True,
                          stdout=subprocess.PIPE, env=suite.clean_environment(), timeout=300)
    equal(done.stdout, 'line 1\nline 2\n')

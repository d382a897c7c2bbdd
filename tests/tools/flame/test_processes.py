"""Child processes, execs, ends, and what goes wrong."""
import os
import re
import signal
import subprocess

import suite
from suite import QUERN, clean_environment, contains, equal, run, test
from support import Profile, TARGETS, at_least, build, cpu_time, flame, near


@test
def forked_children_are_followed_executed_ones_if_asked():
    program = build('children')
    profile = flame(program)
    for name in ('parent_work', 'forked_work'):
        cpu_time(profile.share('main', name) * profile.total, 0.6, name)
    equal(profile.share('executed_work'), 0, 'executed')
    profile = flame(program, '--trace-children=yes')
    for name in ('parent_work', 'forked_work', 'executed_work'):
        cpu_time(profile.share('children', 'main', name) * profile.total, 0.6, name)


@test
def program_that_executes_another():
    program = build('shares')
    shell = ['-c', f'exec {program} 1000']
    profile = flame('sh', '--trace-children=yes', arguments=shell, status=7)
    at_least(profile.share('shares', 'main', 'seventy'), 0.5, 'seventy')
    profile = flame('sh', arguments=shell, status=7)
    equal(profile.share('seventy'), 0, 'seventy without --trace-children')
    contains(profile.log, 'executed another, shares, which is sampled with --trace-children=yes')


@test
def killed_target_loses_nothing():
    profile = flame(build('shares'), arguments=['3000', 'kill'], status=-signal.SIGKILL)
    cpu_time(profile.total, float(profile.out), 'all')
    near(profile.share('main', 'seventy'), 0.70, 0.08, 'seventy')
    contains(profile.log, 'Process ended by signal 9 (SIGKILL)')


def cpu_seconds_below(pid):
    """What the children of a process have used."""
    ticks = 0
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        children = file.read().split()
    for child in children:
        with open(f'/proc/{child}/stat') as file:
            ticks += sum(map(int, file.read().rsplit(')', 1)[1].split()[11:13]))
    return ticks / os.sysconf('SC_CLK_TCK')


@test
def interrupt_reaches_the_target():
    program = build('shares')
    started = subprocess.Popen([QUERN, 'flame', '--flame-out-file=out.svg',
                                '--flame-collapsed-file=out.folded', program, '1000000'],
                               stderr=subprocess.PIPE, text=True, env=clean_environment())
    suite.until(lambda: cpu_seconds_below(started.pid) > 0.5, what='half a second of work')
    started.send_signal(signal.SIGINT)
    log = started.communicate(timeout=300)[1]
    equal(started.returncode, -signal.SIGINT)
    at_least(Profile(log).share('main', 'seventy'), 0.5, 'seventy')


@test
def switched_off_and_on():
    for sampler in ('perf', 'timers'):
        running = subprocess.Popen(
            [QUERN, 'flame', f'--sampler={sampler}', '--flame-out-file=out.svg',
             '--flame-collapsed-file=out.folded', '--flame-stacks-file=/dev/null', build('phases')],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pid = re.match(r'==(\d+)==', running.stderr.readline())[1]
        said = []
        for number, word in enumerate(('on', 'off', 'on')):
            subprocess.run([QUERN, 'ctl', pid, word], check=True, timeout=300)
            running.stdin.write(f'{number}\n')
            running.stdin.flush()
            equal(running.stdout.readline(), f'{number}\n', 'what the program says')
            said.append(subprocess.run([QUERN, 'ctl', pid, 'status'], check=True, timeout=300,
                                       capture_output=True, text=True).stdout)
        profile = Profile(running.communicate(timeout=300)[1])
        equal(running.returncode, 0, 'status')
        at_least(profile.share('main', 'first') * profile.total, 50, f'first by {sampler}')
        equal(profile.share('second'), 0, f'second by {sampler}')
        at_least(profile.share('main', 'third') * profile.total, 50, f'third by {sampler}')
        for answer, word in zip(said, ('on', 'off', 'on')):
            contains(answer, f', sampling {word}')
        at_least(int(re.search(r'samples (\d+)', said[0])[1]), 50, 'samples of the first phase')


@test
def duration_ends_the_run():
    profile = flame('sleep', '--duration=1', arguments=['100'])
    at_least(20, profile.total, 'samples of a sleeping program')
    contains(profile.log, 'Flame graph: out.svg')


@test
def static_program():
    profile = flame(build('shares', '-static'), status=7)
    near(profile.share('main', 'seventy'), 0.70, 0.08, 'seventy')


@test
def library_that_was_unloaded_keeps_its_names():
    for name, text in (('plugin.c', '#include "work.h"\nvoid plugged(void) {turn(400000000); sink++;}'),
                       ('loads.c', '#include <dlfcn.h>\nint main(int n, char **w) {'
                        'void *l = dlopen(w[1], RTLD_NOW);'
                        '((void (*)(void))dlsym(l, "plugged"))(); dlclose(l); return 0;}')):
        with open(name, 'w') as file:
            file.write(text)
    subprocess.run(['gcc', '-O2', '-g', '-w', '-I', TARGETS, '-shared', '-fPIC', 'plugin.c', '-o',
                    'plugin.so'], check=True)
    subprocess.run(['gcc', '-O2', '-g', '-w', 'loads.c', '-o', 'loads'], check=True)
    profile = flame('./loads', arguments=['./plugin.so'])
    at_least(profile.share('main', 'plugged'), 0.9, 'plugged')


@test
def not_permitted_says_what_to_do():
    status, out, err = run([build('forbid'), QUERN, 'flame', '--sampler=perf', 'true'])
    equal((status, out), (1, ''))
    equal(err.count('\n'), 1, 'lines')
    contains(err, 'quern: sampling is not permitted here')
    contains(err, 'sysctl kernel.perf_event_paranoid=1')
    contains(err, 'CAP_PERFMON')
    equal(os.listdir('.'), ['forbid'], 'files left')
    status, out, err = run([build('forbid'), QUERN, 'flame', build('shares', '-static')])
    equal((status, out, err.count('\n')), (1, '', 1), 'a static program')
    contains(err, 'sysctl kernel.perf_event_paranoid=1')
    contains(err, 'the program is statically linked')

"""What processes report over the wire."""
import os
import re
import signal
import subprocess

import suite
from suite import alive, contains, equal, test
from support import ignore_ends, quern, say, start


@test
def fatal_signal_is_shown():
    source = os.path.join(suite.FOLDER, 'crash.c')
    with open(source, 'w') as file:
        file.write('int crash(int *p) { return *p; }\nint main(void) { return crash(0); }\n')
    subprocess.run(['gcc', '-g', '-O0', '-no-pie', '-o', 'crash', source], check=True)
    names = dict(reversed(line.split()[::2]) for line in
                 subprocess.check_output(['nm', 'crash'], text=True).splitlines()
                 if line.endswith((' crash', ' main')))
    crash, main = (int(names[name], 16) for name in ('crash', 'main'))
    status, out, err = say('map', '0x401000', '0x402000', '0x1000', os.path.abspath('crash'),
                           'fatal', '11', '1', '0x0', hex(crash + 8), hex(main + 15))
    equal(status, -signal.SIGSEGV)
    text = re.sub(r'==\d+==', '==1==', err)
    contains(text, '==1== \n==1== Process terminating with default action of signal 11 (SIGSEGV)\n'
                   '==1==  Access not within mapped region at address 0x0\n'
                   f'==1==    at 0x{crash + 8:X}: crash (crash.c:1)\n'
                   f'==1==    by 0x{main + 14:X}: main (crash.c:2)\n')


@test
def fatal_signals_and_quiet():
    contains(say('fatal', '11', '1', '0', '0x1', options=['-q'])[2], 'SIGSEGV')
    contains(say('fatal', '15', '0', '0', '0x1')[2], 'signal 15 (SIGTERM)')
    equal(say('fatal', '15', '0', '0', '0x1', options=['-q'])[2], '')


@test
def garbage_is_survived():
    status, out, err = say('garbage', '100', 'garbage', '1', 'garbage', '70000', 'garbage', '0',
                           'notice', '0', 'still here', 'exit', '9')
    equal(status, 9)
    equal(err.count('malformed message'), 1, 'complaints')
    contains(err, '== still here')


@test
def others_cannot_be_named_as_children():
    """What a target says of other processes must not get them killed."""
    victim = start(['sleep', '1000'])
    path = os.path.join(suite.FOLDER, 'say')
    os.symlink('/bin/true', path)
    stubborn = start([quern(), '-q', '--duration=1', 'none', path, 'forked', '0', str(victim.pid),
                      'forked', '1', str(victim.pid), 'sleep', '600000'],
                     preexec_fn=ignore_ends)
    equal(stubborn.wait(timeout=300), -signal.SIGKILL)
    alive_still = alive(victim.pid)
    victim.kill()
    victim.wait()
    equal(alive_still, True, 'the victim lives')


@test
def failed_exec_changes_nothing():
    err = say('map', '0x401000', '0x402000', '0x1000', '/bin/true', 'stay', 'fatal', '11', '1', '0',
              '0x401131')[2]
    equal(err.count('Command:'), 1, 'banners')
    contains(err, '(in /')


@test
def other_version_is_explained():
    contains(say('version', '99')[2], 'quern and quern-engine are of different versions; install')


@test
def flood_of_messages():
    words = []
    for i in range(4):
        words += ['fork'] + ['notice', '0', 'flood'] * 2000 + ['end']
    status, out, err = say(*words, 'exit', '2')
    equal(status, 2)
    equal(len(re.findall(r'^==\d+== flood$', err, re.M)), 8000, 'lines')


@test
def options_reach_the_engine():
    err = say('option', 'num-callers', 'option', 'trace-children', 'option', 'trace-syscalls',
              'option', 'verbosity', 'option', 'engine-path', 'option', 'parent-pid', 'option',
              'log-fd', options=['--num-callers=20', '--trace-children=yes', '-v'])[2]
    for line in ('num-callers is 20', 'trace-children is yes', 'trace-syscalls is no',
                 'verbosity is 1', f'engine-path is {os.path.realpath(suite.FOLDER)}/stage/quern-engine',
                 f'parent-pid is {os.getpid()}', 'log-fd is absent'):
        contains(err, f'== {line}\n')

"""Summaries, exit statuses, and processes that are killed."""
import os
import re
import signal
import subprocess

import suite
from script import play, say_path, stage
from suite import contains, equal, failed, golden, run, test, write


@test
def summary_of_a_clean_run():
    status, log = play(None, 'heap', '7', '7', '1234567', '0', '0', 'leaks', '0', '1', '0')
    equal(status, 0)
    golden(log)


@test
def hints():
    _, log = play(None, 'heap', '2', '1', '30', '1', '10', 'stack', '0x11', 'condition', '0',
                  options=['--leak-check=no'])
    golden(log)
    _, log = play(None, 'stack', '0x11', 'condition', '0', options=['--track-origins=yes'])
    golden(log, 'origins')


@test
def quiet_shows_errors_only():
    _, log = play(None, 'keep', '1', '0x22', 'stack', '0x11', 'condition', '0', 'loss', '0', '1',
                  '1', '10', *'000000000', 'leaks', '1', '1', '0',
                  options=['-q', '--leak-check=full'])
    golden(log)


@test
def error_exitcode():
    script = ['stack', '0x11', 'condition', '0', 'exit', '3']
    equal(play(None, *script)[0], 3)
    equal(play(None, *script, options=['--error-exitcode=42'])[0], 42)
    equal(play(None, 'exit', '3', options=['--error-exitcode=42'])[0], 3)
    equal(play(None, 'stack', '0x11', 'condition', '0', 'fatal', '11',
               options=['--error-exitcode=42'])[0], 42)
    equal(play(None, 'fatal', '11', options=['--error-exitcode=42'])[0], -signal.SIGSEGV)
    equal(play(None, 'stack', '0x11', 'condition', '0', 'kill', '9',
               options=['--error-exitcode=42'])[0], 42)


@test
def killed_processes_are_summed_up():
    status, log = play(None, 'stack', '0x11', 'times', '1000', 'condition', '0', 'count', '10', '4',
                       '5000', '1000', 'count', '1', '0', '500', '0', 'kill', '9')
    equal(status, -signal.SIGKILL)
    golden(log)


@test
def killed_from_outside():
    process = subprocess.Popen([stage(), say_path(), 'stack', '0x11', 'times', '7', 'condition',
                                '0', 'stack', '0x22', 'times', '1', 'condition', '0', 'sleep',
                                '600000'], stderr=subprocess.PIPE, text=True,
                               env=suite.clean_environment())
    seen = ''
    while 'at 0x22' not in seen:
        seen += process.stderr.readline()
    os.kill(int(re.search(r'==(\d+)==', seen)[1]), signal.SIGKILL)
    contains(process.communicate(timeout=300)[1], 'ERROR SUMMARY: 8 errors from 2 contexts')
    equal(process.returncode, -signal.SIGKILL)


@test
def fatal_signal_then_summary():
    _, log = play(None, 'stack', '0x11', 'read', '0x10', '4', 'heap', '1', '0', '8', '1', '8',
                  'finish', 'fatal', '11')
    golden(log)


@test
def exit_on_first_error():
    status, log = play(None, 'stack', '0x11', 'condition', '0', 'stack', '0x12', 'condition', '0',
                       options=['--exit-on-first-error=yes', '--error-exitcode=9'])
    equal(status, 9)
    golden(log)
    write('x.supp', '{\n n\n Memcheck:Cond\n obj:*\n}\n')
    status, log = play(None, 'stack', '0x11', 'condition', '0', 'stack', '0x12', 'value', '8', '0',
                       options=['--exit-on-first-error=yes', '--suppressions=x.supp'])
    golden(log, 'suppressed')


@test
def markers():
    _, log = play(None, 'stack', '0x11', 'condition', '0', options=['-q', '--error-markers=<<,>>'])
    golden(log)


@test
def forked_children_have_their_own_summary():
    status, _, err = run([stage(), '--error-exitcode=7', say_path(), 'stack', '0x11', 'times', '3',
                          'condition', '0', 'fork', 'times', '2', 'condition', '0', 'stack', '0x12',
                          'value', '4', '0', 'exit', '0', 'joined', 'condition', '0', 'exit', '0'])
    sums = re.findall(r'==(\d+)== ERROR SUMMARY: (.*)', err)
    equal([text for _, text in sums], ['6 errors from 2 contexts (suppressed: 0 from 0)',
                                       '4 errors from 1 contexts (suppressed: 0 from 0)'])
    if sums[0][0] == sums[1][0]:
        failed('both summaries are of one process')
    contains(err, 'child exited with 7')
    equal(status, 7)


@test
def what_was_found_before_an_exec_is_forgotten():
    status, log = play(None, 'stack', '0x11', 'condition', '0', 'exec', '/bin/other', 'stack',
                       '0x12', 'value', '8', '0')
    contains(log, 'Command: /bin/other')
    contains(log, 'ERROR SUMMARY: 1 errors from 1 contexts')
    status, log = play(None, 'stack', '0x11', 'condition', '0', 'away',
                       options=['--error-exitcode=5'])
    equal(status, 0)
    if 'SUMMARY' in log:
        failed('a process that became another program was summed up')

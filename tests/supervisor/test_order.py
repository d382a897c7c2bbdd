"""The order of reports and of what the target prints, wherever both can be seen together."""
import os
import pty
import re
import subprocess

import suite
from suite import equal, failed, run
from support import start, with_engine

REPORTS = {'Invalid write of size 1': 'error', 'ERROR SUMMARY': 'summary', 'Command:': 'command',
           'Process terminating': 'crash'}
TIMES = 5  # each test; an order may be right by chance


def events(text):
    """The lines of the program, and reports as words, in their order."""
    found = []
    text = re.sub(r'\033\[\d*m', '', text)  # colours of a terminal
    for line in text.replace('\r', '').splitlines():
        word = next((word for part, word in REPORTS.items() if part in line), None)
        if word or not re.match(r'==\d+==', line):
            found.append(word or line)
    return found


def in_a_pipe(*words):
    return subprocess.run([suite.QUERN, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=suite.clean_environment(), text=True,
                          timeout=300).stdout


def program():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'targets', 'order.c')
    return suite.build(source, '-O0')


LINES = ['write', 'writev', 'sendfile', 'splice', 'vmsplice', 'dup', 'ring']
WAYS = ['command'] + [word for line in LINES for word in ('error', line)] + ['summary']


@with_engine
def report_precedes_the_next_line_in_a_pipe():
    target = program()
    for _ in range(TIMES):
        equal(events(in_a_pipe(target, 'ways')), WAYS)


@with_engine
def report_precedes_the_next_line_in_a_file():
    target = program()
    for _ in range(TIMES):
        with open('both', 'w') as file:
            subprocess.run([suite.QUERN, target, 'ways'], stdout=file, stderr=file,
                           env=suite.clean_environment(), check=True, timeout=300)
        with open('both') as file:
            equal(events(file.read()), WAYS)


def lines_of_terminal(words, **more):
    """The lines that a command prints on a terminal, which is its stdout, as they come."""
    master, terminal = pty.openpty()
    process = start(words, stdout=terminal, **more)
    os.close(terminal)
    text = ''
    try:
        while part := os.read(master, 4096):
            text += part.decode()
            *lines, text = text.split('\n')
            yield from (line.rstrip('\r') for line in lines)
    except OSError:  # the end
        pass
    equal(process.wait(timeout=300), 0)
    os.close(master)


@with_engine
def report_precedes_the_next_line_on_a_terminal():
    target = program()
    for _ in range(TIMES):
        lines = lines_of_terminal([suite.QUERN, '--log-fd=1', target, 'ways'])
        equal(events('\n'.join(lines)), WAYS)


@with_engine
def report_is_in_the_log_file_when_a_terminal_shows_the_next_line():
    target = program()
    for _ in range(TIMES):
        count = 0
        for line in lines_of_terminal([suite.QUERN, '--log-file=log', target, 'ways']):
            count += 1
            with open('log') as file:
                reports = events(file.read()).count('error')
            if reports < count:
                failed(f'{reports} reports when the terminal shows {line}, line {count}')
        equal(count, len(LINES), 'lines')


@with_engine
def report_precedes_the_next_line_with_xml():
    target = program()
    for _ in range(TIMES):
        status, out, err = run([suite.QUERN, '--xml=yes', '--xml-fd=1', target, 'ways'])
        found = re.findall(f'<kind>InvalidWrite</kind>|^(?:{"|".join(LINES)})$', out, re.M)
        equal([word.replace('<kind>InvalidWrite</kind>', 'error') for word in found], WAYS[1:-1])


@with_engine
def reports_of_children_precede_what_their_parent_prints():
    target = program()
    for _ in range(TIMES):
        text = in_a_pipe('--trace-children=yes', target, 'children')
        equal(events(text), ['command', 'error', 'child', 'error', 'summary', 'waited', 'error',
                             'crash', 'summary', 'crashed', 'error', 'command', 'exec', 'summary',
                             'summary'])
        text = in_a_pipe(target, 'children')
        equal(events(text), ['command', 'error', 'child', 'error', 'summary', 'waited', 'error',
                             'crash', 'summary', 'crashed', 'error', 'exec', 'summary'])


@with_engine
def banners_and_summaries_precede_output_in_every_tool():
    for tool in ('none', 'callgrind', 'dhat'):
        for _ in range(TIMES):
            text = in_a_pipe(f'--tool={tool}', '--trace-children=yes', '--log-fd=1', 'sh', '-c',
                             '/bin/echo a; /bin/echo b; /bin/echo c')
            equal([word for word in events(text) if word != 'summary'],
                  ['command', 'command', 'a', 'command', 'b', 'command', 'c'], tool)


@with_engine
def target_that_reads_its_own_log_goes_on():
    target = program()
    from_log, log = os.pipe()
    words = [suite.QUERN, f'--log-fd={log}', target, 'drain', str(from_log), str(log)]
    lines = list(lines_of_terminal(words, pass_fds=(from_log, log)))
    os.close(log)
    os.close(from_log)
    equal((lines.count('line'), lines[-1]), (100, 'drained'))

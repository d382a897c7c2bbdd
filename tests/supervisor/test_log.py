"""Where the log goes and what it says."""
import os
import re
import socket
import subprocess
import time

import suite
from suite import contains, equal, failed, run, test
from support import both, quern, say, start


@both
def log_to_full_device(program):
    status, out, err = run([program, '--log-file=/dev/full', 'none', 'sh', '-c', 'echo done; exit 3'])
    equal((status, out), (3, 'done\n'))
    equal(err.count('\n'), 1, 'lines on stderr')
    contains(err, "quern: cannot write to '/dev/full': No space left on device")


@test
def log_to_full_file_system():
    small = os.path.join(suite.FOLDER, 'small')
    os.mkdir(small)
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', small],
                             stderr=subprocess.DEVNULL).returncode == 0
    if not mounted:
        small = '/dev/full'
    try:
        place = small if not mounted else os.path.join(small, 'log')
        words = []
        for i in range(300):
            words += ['notice', '0', f'line {i} of many that together are too long for the disk']
        status, out, err = say(*words, 'exit', '4', options=[f'--log-file={place}'])
        equal(status, 4)
        equal(err.count('\n'), 1, 'lines on stderr')
        contains(err, 'No space left on device')
    finally:
        if mounted:
            subprocess.run(['umount', small], check=True)


@both
def closed_stderr(program):
    status, out, _ = run(['sh', '-c', f'exec {program} none sh -c "echo fine; exit 5" 2>&-'])
    equal((status, out), (5, 'fine\n'))


@both
def closed_standard_descriptors_stay_closed(program):
    shell = 'ls /proc/self/fd >names 0<&- 2>&-'
    run(['sh', '-c', shell])
    with open('names') as file:
        native = file.read()
    run(['sh', '-c', f'{program} -q none {shell}'])
    with open('names') as file:
        equal(file.read(), native)


@test
def reader_of_the_log_goes_away():
    status, out, err = run(['bash', '-c', f'{quern()} --log-fd=5 none sh -c "sleep 0.3; exit 6" '
                                          '5> >(true); echo $?'])
    equal(out, '6\n')


@test
def log_file_has_parent_and_pid():
    status, out, err = say('notice', '0', 'inside', options=['--log-file=log.%p.%n'])
    equal((status, err), (0, ''))
    names = [name for name in os.listdir('.') if name.startswith('log.')]
    equal(len(names), 1, 'log files')
    pid = names[0].split('.')[1]
    text = open(names[0]).read()
    contains(text, f'=={pid}== inside\n')
    contains(text, f'=={pid}== Parent PID: {os.getpid()}\n')


@test
def forked_process_gets_its_own_file():
    say('fork', 'notice', '0', 'from the child', 'end', 'notice', '0', 'from the parent',
        options=['--log-file=log.%p'])
    texts = [open(name).read() for name in os.listdir('.') if name.startswith('log.')]
    equal(len(texts), 2, 'log files')
    child, parent = sorted(texts, key=lambda text: 'Command' in text)
    contains(child, 'from the child')
    contains(parent, 'from the parent')
    if 'from the child' in parent:
        failed("the child's line is in the parent's file")


@test
def forked_process_can_be_muted():
    words = ('fork', 'notice', '0', 'muted', 'hello', '/bin/x', 'notice', '0', 'heard', 'end',
             'notice', '0', 'parent')
    err = say(*words, options=['--child-silent-after-fork=yes'])[2]
    contains(err, 'heard')
    contains(err, 'parent')
    contains(err, 'Command: /bin/x')
    if 'muted' in err.replace('notice 0 muted', ''):
        failed('the child was heard')
    contains(say(*words)[2], '== muted')


@test
def log_file_that_cannot_be_made():
    status, out, err = run([quern(), '--log-file=no/such/log', 'none', 'touch', 'ran'])
    equal(status, 1)
    contains(err, "cannot write log file 'no/such/log': No such file or directory")
    equal(os.path.exists('ran'), False, 'the program ran')


@test
def log_descriptor():
    status, out, err = run(['sh', '-c', f'{quern()} --log-fd=7 none echo out 7>log; cat log'])
    contains(out, '== Command: echo out\n')
    equal(err, '')
    status, out, err = run([quern(), '--log-fd=77', 'none', 'touch', 'ran'])
    equal((status, os.path.exists('ran')), (1, False))
    contains(err, '--log-fd=77: Bad file descriptor')


@test
def log_socket():
    listener = socket.create_server(('127.0.0.1', 0))
    port = listener.getsockname()[1]
    status, out, err = say('notice', '0', 'over the net',
                           options=[f'--log-socket=127.0.0.1:{port}'])
    connection = listener.accept()[0]
    with connection.makefile() as file:
        contains(file.read(), '== over the net\n')
    listener.close()
    equal((status, err), (0, ''))
    status, out, err = say('notice', '0', 'on stderr', options=[f'--log-socket=127.0.0.1:{port}'])
    equal(status, 0)
    contains(err, 'the log goes to stderr')
    contains(err, '== on stderr')


@test
def time_stamps():
    path = os.path.join(suite.FOLDER, 'say')
    os.symlink('/bin/true', path)
    begin = time.monotonic()
    process = start([quern(), '--tool=none', '--time-stamp=yes', path, 'notice', '0', 'now', 'await',
                     'go', 'notice', '0', 'then'], stderr=subprocess.PIPE)
    err = ''
    while not err.endswith(' now\n'):  # a stamp is that of the moment when the line is written
        err += process.stderr.readline() or failed(f'it ends with {err!r}')
    time.sleep(0.12)
    open('go', 'w').close()
    err += process.communicate(timeout=300)[1]
    took = time.monotonic() - begin
    stamps = dict(reversed(line) for line in
                  re.findall(r'^==00:00:00:(\d\d\.\d\d\d) \d+== (now|then)$', err, re.M))
    if not 0.1 < float(stamps['then']) - float(stamps['now']) < took:
        failed(f'stamps are {stamps} of {took:.3f} s')


@test
def prefixes_and_levels():
    words = ('notice', '0', 'plain', 'notice', '1', 'more', 'debug', 'inner', 'notice', '0', 'a\nb')
    err = say(*words)[2]
    for pattern in (r'^==\d+== plain$', r'^--\d+-- inner$', r'^==\d+== a\n==\d+== b$'):
        if not re.search(pattern, err, re.M):
            failed(f'{pattern} is not in {err}')
    if '== more' in err:
        failed('level 1 was shown without -v')
    contains(say(*words, options=['-v'])[2], '== more')
    err = say('notice', '0', 'plain', options=['-q'])[2]
    equal(err, '')


@both
def banner_comes_first(program):
    path = os.path.join(suite.FOLDER, 'all')
    for _ in range(20):
        with open(path, 'w') as file:
            subprocess.run([program, 'none', '/bin/echo', 'a b', '<'], stdout=file, stderr=file,
                           env=suite.clean_environment())
        lines = [re.sub(r'==\d+==', '==1==', line) for line in open(path).read().splitlines()]
        equal(lines[3:6], ['==1== Command: /bin/echo a\\ b \\<', '==1== ', 'a b <'], 'log')

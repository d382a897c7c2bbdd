"""What the suites written in Python share: finding tests, reporting, running quern.

A suite's `run` defines functions with @test and ends with main(). A long suite divides its tests
among files test_*.py beside `run`; load_tests(__file__) imports them. A test fails by raising:
failed(...), equal(...), contains(...) and golden(...) do that. A test that cannot run here calls
skip(...) or need(...). Every process of a test gets a mark in its environment. main() fails a test
that leaves a marked process behind.
"""
import difflib
import fnmatch
import glob
import importlib
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get('BUILD', os.path.join(ROOT, 'build')))
QUERN = os.environ.get('QUERN', os.path.join(BUILD, 'quern'))
MARK = 'QUERN_TEST_MARK'
TESTS = []
# Set by tests/run --rebase: golden files are written, not compared.
REBASE = bool(os.environ.get('QUERN_REBASE'))
# Limits only end what hangs: a slow and busy machine may take twenty times as long as usual.
TEST_SECONDS = 1800
# A process that a test has ended may take this long to disappear.
LEFT_SECONDS = 120
TWICE_MAX = 3
judged_twice = []


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def skip(reason):
    raise Skipped(reason)


def need(*programs):
    """Skips the test if one of the programs is not installed."""
    for program in programs:
        if not shutil.which(program):
            skip(f'{program} is not installed')


def failed(reason):
    raise Failed(reason)


def equal(got, wanted, what='result'):
    if got != wanted:
        raise Failed(f'{what} is {got!r}, not {wanted!r}')


def contains(text, part):
    if part not in text:
        raise Failed(f'{part!r} is not in {text[-600:]!r}')


def masked(text):
    """The text without pids, folders, times, versions and addresses of code.

    The address of a frame is masked only if the frame has a name. Scripted tests choose the
    addresses of frames without names.
    """
    text = re.sub(r'(==|--|\*\*)\d+(==|--|\*\*)', r'\1PID\2', text)
    text = re.sub(r'\b([Qq]uern-)\d+\.\d+\.\d+', r'\1VERSION', text)
    text = re.sub(r'^(\s+(?:at|by) )0x[0-9A-Fa-f]+: (?!\?\?\?)', r'\1ADDRESS: ', text, flags=re.M)
    text = re.sub(r'<ip>0x[0-9A-Fa-f]+</ip>', '<ip>ADDRESS</ip>', text)
    text = re.sub(r'<(p?pid)>\d+</', r'<\1>PID</', text)
    text = re.sub(r'<time>[^<]*</time>', '<time>TIME</time>', text)
    return text.replace(FOLDER, 'FOLDER') if FOLDER else text


def golden(text, part='', exact=False):
    """Compares the text with golden/TEST.txt (golden/TEST.PART.txt) beside the test's file.

    The text is masked first, unless exact. With tests/run --rebase it is written to that file.
    """
    name, function = running
    folder = os.path.join(os.path.dirname(inspect.getfile(function)), 'golden')
    path = os.path.join(folder, f'{name}{part and "." + part}.txt')
    text = text if exact else masked(text)
    if REBASE:
        os.makedirs(folder, exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
        return
    if not os.path.exists(path):
        raise Failed(f'{os.path.relpath(path, ROOT)} is missing; tests/run --rebase writes it')
    with open(path) as file:
        wanted = file.read()
    if text != wanted:
        changed = [line for line in difflib.unified_diff(wanted.splitlines(), text.splitlines(),
                                                         lineterm='', n=0)
                   if line[:1] in '+-' and line[:3] not in ('+++', '---')]
        raise Failed(f'{os.path.relpath(path, ROOT)} differs: '
                     + (' | '.join(changed[:8]) or 'line ends'))


def give_up(*_):
    raise Failed(f'it took more than {TEST_SECONDS} s')


def twice(judge, *arguments, **options):
    """Judges. If that fails, judges once more, with new runs of both tools. A suite may need that
    TWICE_MAX times.

    This is for leak searches that are compared with Valgrind's: any word in memory may look like a
    pointer by chance.
    """
    try:
        return judge(*arguments, **options)
    except Failed as failure:
        if len(judged_twice) == TWICE_MAX:
            raise
        judged_twice.append(failure)
        print(f'# twice - {failure}', flush=True)
    return judge(*arguments, **options)


def test(function):
    """Makes the function a test. A prefix test_ is no part of the test's name."""
    TESTS.append((function.__name__.removeprefix('test_'), function))
    return function


def load_tests(driver):
    """Imports the files test_*.py beside this driver."""
    folder = os.path.dirname(os.path.abspath(driver))
    sys.path.insert(0, folder)
    for path in sorted(glob.glob(os.path.join(folder, 'test_*.py'))):
        importlib.import_module(os.path.basename(path)[:-len('.py')])


def until(condition, seconds=300.0, what='the condition'):
    """Waits until condition() is true and returns its result."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f'{what} did not come true within {seconds} s')
        time.sleep(0.01)


def state(pid):
    """The state letter of a process, '' when there is none."""
    try:
        with open(f'/proc/{pid}/stat', 'rb') as file:
            return file.read().rsplit(b')', 1)[1].split()[0].decode()
    except (OSError, IndexError):
        return ''


def alive(pid):
    return state(pid) not in ('', 'Z', 'X')


def marked(mark):
    """The processes that carry this mark and still run.

    A target's environment is among the words of the engine's command line.
    """
    found = []
    wanted = f'{MARK}={mark}'.encode()
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        words = []
        for file_name in ('environ', 'cmdline'):
            try:
                with open(f'/proc/{name}/{file_name}', 'rb') as file:
                    words += file.read().split(b'\0')
            except OSError:
                pass
        if wanted in words and alive(name):
            found.append(int(name))
    return found


def others(mark):
    """The marked processes without this one."""
    return [pid for pid in marked(mark) if pid != os.getpid()]


def clean_environment(**more):
    """The environment of a test: none of the user's options, and the mark."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('QUERN_OPTS', 'VALGRIND_OPTS', 'DEBUGINFOD_URLS')}
    environment['HOME'] = FOLDER
    environment.update(more)
    return environment


def stage(folder, engine):
    """A folder with quern beside this engine; the path of quern in it."""
    if not os.path.exists(folder):
        os.makedirs(folder)
        shutil.copy(QUERN, os.path.join(folder, 'quern'))
        shutil.copy(engine, os.path.join(folder, 'quern-engine'))
        shutil.copy(os.path.join(BUILD, 'default.supp'), folder)
    return os.path.join(folder, 'quern')


# Of the test that runs: its temporary folder; its name and function.
FOLDER = ''
running = None


def main():
    global FOLDER, running
    bad = 0
    if sys.argv[1:] == ['--list']:
        print('\n'.join(name for name, _ in TESTS))
        return
    patterns = sys.argv[1:]
    # A shell starts background jobs with this signal ignored. Programs under test inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, function in TESTS:
        if patterns and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        running = name, function
        FOLDER = tempfile.mkdtemp(prefix='quern-test-')
        os.chdir(FOLDER)
        mark = f'{os.getpid()}-{name}'
        os.environ[MARK] = mark
        reason = skipped = None
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(TEST_SECONDS)
        try:
            function()
        except Failed as error:
            reason = str(error)
        except Skipped as error:
            skipped = str(error)
        except Exception as error:  # a test that breaks is a test that fails
            line = traceback.extract_tb(error.__traceback__)[-1]
            reason = f'{type(error).__name__}: {error} ({line.name}, line {line.lineno})'
        signal.alarm(0)
        del os.environ[MARK]
        left = others(mark)
        end = time.monotonic() + LEFT_SECONDS
        while left and not reason and time.monotonic() < end:
            time.sleep(0.05)
            left = others(mark)
        if left and not reason:
            reason = f'processes are left behind: {left}'
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        os.chdir('/')
        shutil.rmtree(FOLDER, ignore_errors=True)
        if reason:
            bad += 1
            print(f'not ok {name} - {" ".join(reason.split())[:1000]}', flush=True)
        elif skipped:
            print(f'ok {name} # skipped: {skipped}', flush=True)
        else:
            print(f'ok {name}', flush=True)
    sys.exit(1 if bad else 0)


def run(words, stdin=subprocess.DEVNULL, timeout=300, env=None, **more):
    """Runs a command; (status, stdout, stderr). A death by signal n gives status -n."""
    done = subprocess.run(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, env=clean_environment(**(env or {})), text=True,
                          errors='replace', **more)
    return done.returncode, done.stdout, done.stderr


def succeed(words, status=0, **more):
    """Runs a command that must end with this status; (stdout, stderr)."""
    got, out, err = run(words, **more)
    equal(got, status, f'status of {words[:3]} (with {err[-300:]!r})')
    return out, err


def source_of(name, *folders):
    """The path of the source NAME.c, .cc, .s or .rs in one of these folders."""
    for folder in folders:
        for end in ('.c', '.cc', '.s', '.rs'):
            path = os.path.join(folder, name + end)
            if os.path.exists(path):
                return path
    raise Failed(f'there is no source {name} in {folders}')


def build(source, *flags, name='', compiler=''):
    """Compiles a source into the test's folder, with debug information; the path of the program.

    Libraries among the flags come after the source. The name is that of the source without its end.
    """
    stem, end = os.path.splitext(os.path.basename(source))
    program = os.path.join(FOLDER, name or stem)
    libraries = [flag for flag in flags if flag.startswith('-l')]
    flags = [flag for flag in flags if flag not in libraries]
    compiler = compiler or {'.cc': 'g++', '.rs': 'rustc'}.get(end, 'gcc')
    subprocess.run([compiler, '-g', *flags, source, '-o', program, *libraries], check=True)
    return program


def write(name, text, mode=0o644):
    """Writes a file, and its folders, below the test's folder; the path."""
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)
    return path


def xtree(path, source):
    """An xtree file: its events, and its stacks with their values. A stack consists of its frames in
    files whose names begin with `source`: (function, line, file), outermost first."""
    events, found, names, chain = [], {}, {}, []
    for line in open(path):
        named = re.match(r'(c?f[nil])=\((\d+)\)(?: (.*))?', line)
        if named:
            kind = 'function' if named[1].endswith('n') else 'file'
            text = named[3] or names[kind, named[2]]
            names[kind, named[2]] = text
            if named[1] == 'fn':
                function = text
            elif named[1] == 'fl':
                file = text.rsplit('/', 1)[-1]
            is_call = named[1].startswith('c')
        elif line.startswith('events:'):
            events = line.split()[1:]
        elif re.match(r'\d+( \d+)+$', line):
            chain.append((function, line.split()[0], file))
            if is_call:
                continue
            own = tuple(frame for frame in chain if frame[2].startswith(source))
            values = [int(word) for word in line.split()[1:]]
            found[own] = [sum(pair) for pair in zip(found.get(own, [0] * len(values)), values)]
            chain = []
        elif line.startswith('totals:'):
            found['totals'] = [int(word) for word in line.split()[1:]]
    return events, found

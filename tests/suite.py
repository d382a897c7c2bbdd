"""What the suites written in Python share: finding tests, reporting, running quern.

A suite's `run` defines functions with @test and ends with main(). A test fails by raising; it has
failed(...) and equal(...) for that. One that cannot be tried here says so by skip(...) or
need(...). Every process of a test gets a mark in its environment; main()
fails a test that leaves a marked process behind.
"""
import fnmatch
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
# Limits only end what hangs: a slow and busy machine may take twenty times as long as usual.
TEST_SECONDS = 1800
# What a test has ended may take so long to be gone.
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
    """The test is skipped where one of them is not installed."""
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


def give_up(*_):
    raise Failed(f'it took more than {TEST_SECONDS} s')


def twice(judge, *arguments, **options):
    """Judges, and if it fails once more, with new runs of both tools; a suite may need that only
    TWICE_MAX times.

    For searches of leaks beside the peer's: any word in memory may look like a pointer by chance.
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
    TESTS.append((function.__name__, function))
    return function


def until(condition, seconds=300.0, what='the condition'):
    """Waits until condition() is true and returns what it gave."""
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
    """Those of them that are not this process."""
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


FOLDER = ''


def main():
    global FOLDER
    bad = 0
    patterns = sys.argv[1:]
    # A shell starts its background jobs with this signal ignored, and programs under test inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, function in TESTS:
        if patterns and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
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


def xtree(path, source):
    """An xtree file: its events, and its stacks with their values. A stack is what it has of the
    files that begin with `source`: (function, line, file), outermost first."""
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

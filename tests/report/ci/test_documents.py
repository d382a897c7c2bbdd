"""The commands in docs/ci.md and the other documents do their work."""
import json
import os
import re
import shutil
import subprocess
from xml.etree import ElementTree

from suite import QUERN, ROOT, test
from support import HERE, build, free_port, memcheck, run, same


def steps_of(document):
    """The shell steps of its examples, GitHub's and GitLab's; not those that fetch Quern itself."""
    with open(os.path.join(ROOT, 'docs', document)) as file:
        github, gitlab = re.findall(r'```yaml\n(.*?)```', file.read(), re.S)
    steps = []
    for block, line in re.findall(r'run: (?:\|\n((?:          .*\n)+)|(.*)\n)', github):
        steps.append('\n'.join(part[10:] for part in block.splitlines()) if block else line)
    lists = re.findall(r'script:\n((?:    - .*\n)+)', gitlab)
    words = [line[6:] for lines in lists for line in lines.splitlines()]
    return ([step for step in steps if 'ninja' not in step and 'git clone' not in step],
            [word for word in words if 'ninja' not in word and 'git clone' not in word])


def run_steps(steps, environment):
    """{first words of a step: its status}"""
    result = {}
    for step in steps:
        done = subprocess.run(['sh', '-ec', step], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        result[' '.join(step.split()[:3])] = done.returncode
    return result


@test
def documented_steps():
    for source in ('mistakes.c', 'serve.c'):
        shutil.copy(os.path.join(HERE, source), source)
    with open('Makefile', 'w') as file:
        file.write('tests: mistakes.c\n\tcc -g -o $@ $<\nserver: serve.c\n\tcc -g -o $@ $<\n')
    os.mkdir('bin')
    os.symlink(QUERN, 'bin/quern')
    path = os.path.abspath('bin') + ':' + os.environ['PATH']
    subprocess.run(['make', '-s', 'tests'], check=True)
    memcheck('--json-file=found.json', './tests')
    for steps, count in zip(steps_of('ci.md'), (4, 5), strict=True):
        same('steps', len(steps), count)
        for known, status in ((True, 0), (False, 9)):
            with open('quern-baseline.txt', 'w') as file:
                file.write('# quern baseline 1\n')
            if known:
                run(QUERN, 'baseline', 'update', 'quern-baseline.txt', 'found.json')
            for _ in range(3):
                got = run_steps(steps, {**os.environ, 'PATH': path, 'PORT': str(free_port())})
                if 3 not in got.values():  # else somebody else has taken the port meanwhile
                    break
            wanted = {step: status if '--leak-check' in step else 0 for step in got}
            same('statuses', got, wanted)
            assert any('--leak-check' in step for step in got), got
        for name in ('quern.xml', 'heap.xml'):
            ElementTree.parse(name)
            os.remove(name)
        os.remove('server.quern')
    for name, count in (('quern.sarif', 3), ('server.sarif', 0)):
        with open(name) as file:
            same(f'results of {name}', len(json.load(file)['runs'][0]['results']), count)


def table_commands():
    """The commands of the table "What to run", and those of the block about baselines."""
    with open(os.path.join(ROOT, 'docs/ci.md')) as file:
        text = file.read()
    table = text.split('## What to run\n')[1].split('\n## ')[0]
    block = re.search('```\n(quern .*?)```', text.split('## Baselines\n')[1], re.S)[1]
    return re.findall('`(quern [^`]*)`', table), block.splitlines()


# What the commands of the table end with, where it is not 0: the program has mistakes.
TABLE = {'quern --leak-check': 9, 'quern --tool=heap --max-peak=50M --max-leaked=0': 1, 'quern check --sarif-file': 3}


@test
def documented_table():
    build('tests'), build('server', 'serve.c')
    os.mkdir('bin')
    os.symlink(QUERN, 'bin/quern')
    environment = {**os.environ, 'PATH': os.path.abspath('bin') + ':' + os.environ['PATH']}
    run(QUERN, '-q', '--xml=yes', '--xml-file=memcheck.xml', './tests')
    for name in ('before', 'after', 'heap.7011'):
        run(QUERN, '-q', '--tool=heap', f'--heap-out-file={name}.quern', './tests')
    commands, baseline = table_commands()
    same('commands', (len(commands), len(baseline)), (7, 2))
    for command in commands + baseline:
        wanted = [status for start, status in TABLE.items() if command.startswith(start)]
        for _ in range(5):
            port = str(free_port())
            # The load of the document takes a minute; the server wants its port, the growth of a
            # second says nothing of a minute.
            words = command.replace('wrk -d60', 'curl -sf').replace('3000', port).replace(
                './server', f'./server {port}').replace('1M/min', '1G/min')
            done = subprocess.run(['sh', '-ec', words], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=300)
            if 'accepts connections there' not in done.stderr:
                break
        if 'found.json' in command:
            wanted = [0]
        same(f'{words} (with {done.stderr[-300:]!r})', done.returncode, (wanted or [0])[0])
    same('known', memcheck('--baseline=quern-baseline.txt', '--error-exitcode=9', './tests').status, 0)


def document_commands(path):
    """The commands in the blocks of a document, without the remarks behind them."""
    with open(os.path.join(ROOT, path)) as file:
        blocks = re.findall('^```\n(.*?)^```', file.read(), re.S | re.M)
    lines = [line for block in blocks for line in block.splitlines()]
    return [re.split('   +|  ?# ', line)[0] for line in lines
            if line.startswith('quern ') and '[options]' not in line and ' view ' not in line]


@test
def documented_commands():
    """Those of the other documents: each does its work."""
    build('program'), build('server', 'serve.c')
    os.mkdir('bin')
    os.symlink(QUERN, 'bin/quern')
    with open('Makefile', 'w') as file:
        file.write('all:\n\techo made\n')
    with open('my.supp', 'w') as file:
        file.write('{\n   an entry\n   Memcheck:Leak\n   fun:malloc\n}\n')
    for name in ('run', 'old', 'new', 'heap.7011'):
        run(QUERN, '-q', '--tool=heap', f'--heap-out-file={name}.quern', './program')
    port, count = str(free_port()), 0
    path = os.path.abspath('bin') + ':' + os.environ['PATH']
    for document in ('README.md', 'docs/recordings.md', 'docs/query.md', 'docs/suppressions.md',
                     'docs/viewer.md'):
        for command in document_commands(document):
            words = command.replace('./server', f'./server {port}').replace('--duration=60', '--duration=1')
            done = subprocess.run(['sh', '-ec', words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=300, env={**os.environ, 'PATH': path})
            if 'cannot write a page' in done.stderr:  # built without it
                continue
            same(f'{words} (with {done.stderr[-300:]!r})', done.returncode, 0)
            count += 1
    assert count >= 12, count

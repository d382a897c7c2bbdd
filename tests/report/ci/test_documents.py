"""The commands in docs/ci.md and the other documents do their work."""
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
from xml.etree import ElementTree

from suite import BUILD, QUERN, ROOT, TESTS, skip, test
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


# ---- guides ----

GUIDES = os.path.join(ROOT, 'docs/guides')
# All guides are followed in one folder, so that cargo builds the example once.
FOLLOWED = tempfile.mkdtemp(prefix='quern-guides-')
atexit.register(shutil.rmtree, FOLLOWED, ignore_errors=True)


def blocks_of(guide):
    """[(language, text)] of the blocks of a guide."""
    with open(os.path.join(GUIDES, guide)) as file:
        return re.findall('^```([a-z]+)\n(.*?)^```', file.read(), re.S | re.M)


def commands_of(text):
    """The commands of a block, each with whether it fails."""
    joined = re.split(r'(?<!\\)\n', text.rstrip('\n'))
    return [(line.split('    # ')[0].rstrip(), '# fails' in line) for line in joined]


def masked(line):
    """A line without its numbers, addresses, hashes and spaces."""
    line = re.sub(r'-[0-9a-f]{16}\b', '-#', re.sub('0x[0-9A-Fa-f]+', '#', line))
    line = re.sub(r'\((likely|certain|possible)\)', '(#)', line)
    return ' '.join(re.sub(r'\d[\d,.]*', '#', line).split())


def follow(guide):
    """Runs the commands of a guide in a copy of what they need, one shell for all, as its reader does."""
    cargo = shutil.which('cargo')
    if not cargo:
        skip('cargo is not installed')
    if not os.listdir(FOLLOWED):
        for part in ('examples/shop', 'rust/quern-heap'):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(FOLLOWED, part),
                            ignore=shutil.ignore_patterns('target'))
        os.symlink(BUILD, os.path.join(FOLLOWED, 'build'))
    port = str(free_port())
    script, wanted, shown = [], [], []
    for language, text in blocks_of(guide):
        if language == 'text':
            shown += [(len(wanted), line) for line in text.splitlines()]
            continue
        same(f'language of {text!r}', language, 'sh')
        for command, fails in commands_of(text.replace('3000', port)):
            script.append(f'{command}\necho "=== {len(wanted)} $?"')
            wanted.append(fails)
    done = subprocess.run(['bash', '-c', '\n'.join(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=1500, cwd=FOLLOWED,
                          env={**os.environ, 'CARGO_NET_OFFLINE': 'true'})
    parts = re.split(r'^=== \d+ (\d+)\n', done.stdout, flags=re.M)
    statuses, outputs = [int(status) for status in parts[1::2]], parts[0::2]
    for number, fails in enumerate(wanted):
        assert number < len(statuses) and bool(statuses[number]) == fails, \
            f'{script[number]} ended with {statuses[number:number + 1]}: {outputs[number][-600:]}'
    for number, line in shown:
        there = {masked(got) for got in outputs[number - 1].splitlines()}
        assert masked(line) in there, f'{line!r} is not in {outputs[number - 1][-1500:]!r}'


for _guide in sorted(os.listdir(GUIDES)):
    def _follow(guide=_guide):
        follow(guide)
    if _guide != 'README.md':
        TESTS.append((f'guide_{_guide.removesuffix(".md").replace("-", "_")}', _follow))


@test
def guides_are_listed():
    with open(os.path.join(GUIDES, 'README.md')) as file:
        listed = re.findall(r'\]\(([a-z-]+\.md)\) \|', file.read())
    same('guides', sorted(listed + ['README.md']), sorted(os.listdir(GUIDES)))

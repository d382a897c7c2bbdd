"""Diagnoses as findings; exit statuses."""
import json
import os
import re
import shutil
import stat
import subprocess
from xml.etree import ElementTree

from suite import QUERN, ROOT, test
from support import build, run, same, validate_junit, validate_sarif


def example(source, *flags):
    for name in ('common.h', source):
        shutil.copy(os.path.join(ROOT, 'examples/diagnose', name), '.')
    compiler = 'c++' if source.endswith('.cc') else 'cc'
    program = './' + source.split('.')[0]
    subprocess.run([compiler, '-g', '-O1', '-fno-inline', '-pthread', '-o', program, *flags, source],
                   check=True)
    return program


DIAGNOSED = (('heap', 'tiny_blocks.c', 'Diagnosis_TinyBlocks', 'new_point'),
             ('dhat', 'over_allocation.c', 'Diagnosis_OverAllocation', 'read_line'),
             ('memcheck', 'cycle.cc', 'Diagnosis_Cycle', 'main'))


def diagnosed(tool, program, *more):
    name = ['--leak-check=full'] if tool == 'memcheck' else [f'--{tool}-out-file=out']
    return run(QUERN, f'--tool={tool}', *name, *more, program)


@test
def diagnosis_in_files():
    for tool, source, rule, function in DIAGNOSED:
        files = ['--json-file=d.json', f'--sarif-file={tool}.sarif', '--junit-file=d.xml', '--github']
        done = diagnosed(tool, example(source), *files)
        same(f'status of {tool}', done.status, 0)
        with open('d.json') as file:
            found = [finding for finding in json.load(file)['findings'] if finding['rule'] == rule]
        assert found, f'{rule} is not in the JSON of {tool}'
        names = ' '.join(str(frame['function']) for frame in found[0]['stacks'][0]['frames'])
        assert function in names, names
        same(f'level of {rule}', found[0]['level'], 'warning')
        with open(f'{tool}.sarif') as file:
            results = [result for result in json.load(file)['runs'][0]['results']
                       if result['ruleId'] == rule]
        place = results[0]['locations'][0]['physicalLocation']
        same(f'place of {rule}', place['artifactLocation']['uri'], source)
        assert f'quern.{tool}.{rule}' in [case.get('classname') for case in ElementTree.parse(
            'd.xml').getroot().find('testsuite').findall('testcase')]
        assert re.search(f'^::warning file={source},line=', done.err, re.M), done.err[-600:]
        validate_junit('d.xml')
        # The fixed program has none of it.
        diagnosed(tool, example(source, '-DFIXED'), '--json-file=d.json')
        with open('d.json') as file:
            same(f'findings of the fixed {source}', json.load(file)['findings'], [])
    validate_sarif(*(f'{tool}.sarif' for tool, *_ in DIAGNOSED))


@test
def diagnosis_fails_if_wished():
    for tool, source, rule, function in DIAGNOSED:
        program = example(source)
        same(f'{tool} no', diagnosed(tool, program, '--diagnose=no', '--json-file=d.json').status, 0)
        with open('d.json') as file:
            assert rule not in file.read(), f'{tool}: --diagnose=no'
        same(f'{tool} error', diagnosed(tool, program, '--diagnose=error').status, 1)
        done = diagnosed(tool, program, '--diagnose=error', '--json-file=d.json')
        assert 'Diagnosis:' in done.err, done.err[-600:]
        run(QUERN, 'baseline', 'update', 'known.txt', 'd.json')
        done = diagnosed(tool, program, '--diagnose=error', '--baseline=known.txt')
        same(f'{tool} known', done.status, 0)
        same(f'fixed {tool}', diagnosed(tool, example(source, '-DFIXED'), '--diagnose=error').status, 0)


@test
def diagnosis_keeps_logs_as_they_are():
    """Scripts that read Valgrind's log find nothing new in it."""
    for tool, source, shown in (('memcheck', 'cycle.cc', False), ('dhat', 'over_allocation.c', False),
                                ('heap', 'tiny_blocks.c', True)):
        program = example(source)
        done = diagnosed(tool, program)
        same(f'{tool} by itself', 'Diagnosis:' in done.err, shown)
        same(f'{tool} --diagnose=yes', 'Diagnosis:' in diagnosed(
            tool, program, '--diagnose=yes').err, True)
        same(f'{tool} --diagnose=no', 'Diagnosis:' in diagnosed(
            tool, program, '--diagnose=no').err, False)


@test
def heap_leaks():
    """What a search for leaks in a native run finds goes where memcheck's losses go."""
    program = build('mistakes')
    words = [QUERN, '-q', '--tool=heap', '--heap-out-file=h', '--leak-check=full', '--json-file=l.json']
    same('no status asked for', run(*words, program).status, 0)
    same('status', run(*words, '--error-exitcode=9', program).status, 9)
    with open('l.json') as file:
        found = [finding for finding in json.load(file)['findings'] if finding['fails']]
    same('rules', [finding['rule'] for finding in found], ['Leak_DefinitelyLost'])
    run(QUERN, 'baseline', 'update', 'known.txt', 'l.json')
    same('known', run(*words, '--error-exitcode=9', '--baseline=known.txt', program).status, 0)


def documented_statuses():
    """[(status, when)] of the table in docs/ci.md."""
    with open(os.path.join(ROOT, 'docs/ci.md')) as file:
        table = file.read().split('## Exit statuses\n')[1].split('\n## ')[0]
    return [tuple(cell.strip().replace('`', '') for cell in row.strip('|\n').split('|'))
            for row in re.findall(r'^\|.*\|$', table, re.M)[2:]]


@test
def exit_statuses_are_documented_once():
    """The table of docs/ci.md is that of the manual page."""
    page = run(QUERN, '--generate=man').out
    part = page.split('.SH EXIT STATUS\n')[1].split('.SH ')[0].replace('\\-', '-')
    wanted = [tuple(item.split('\n')[:2]) for item in part.split('.TP\n.B ')[1:]]
    same('table', documented_statuses(), wanted)


@test
def exit_statuses():
    """Each of the table, seen."""
    program = build('mistakes')
    sleeping = ['sh', '-c', 'echo go; exec sleep 300']
    run(QUERN, '-q', '--tool=heap', '--heap-out-file=whole', program)
    with open('whole', 'rb') as whole, open('cut', 'wb') as cut:
        content = whole.read()
        cut.write(content[:len(content) // 2])
    run(QUERN, '-q', '--tool=heap', '--heap-out-file=more', build('twice', 'mistakes.c', '-DTWICE'))
    with open('plain', 'w') as file:
        file.write('x')
    seen = {
        "the program's own": [(5, ['-q', 'sh', '-c', 'exit 5']), (-11, ['-q', 'sh', '-c', 'kill -SEGV $$']),
                              (4, ['-q', '--tool=none', '--ready-log=go', '--load=true', 'sh', '-c',
                                   'trap "exit 4" INT; echo go; while :; do sleep 0.1; done'])],
        '0': [(0, ['-q', '--duration=1', 'sleep', '300']),
              (0, ['-q', '--ready-log=go', '--load=true', *sleeping]), (0, ['print', 'whole']),
              (0, ['print', 'cut'])],
        '--error-exitcode': [(9, ['-q', '--error-exitcode=9', program]),
                             (9, ['-q', '--error-exitcode=9', '--max-allocs=1', program])],
        '1': [(1, ['-q', '--max-allocs=1', program]), (1, ['--nothing', program]),
              (1, ['--suppressions=nothing', program]), (1, ['print', 'plain']), (1, ['print', 'nothing']),
              (1, ['check']), (1, ['-q', '--json-file=no/where', '/bin/true']),
              *((1, ['-q', f'--tool={tool}', f'--{tool}-out-file=no/where', '/bin/true'])
                for tool in ('heap', 'massif', 'dhat', 'callgrind', 'cachegrind', 'flame')),
              (1, ['-q', '--ready-log=never', '--ready-timeout=1', '--load=true', *sleeping]),
              (1, ['-q', '--ready-log=go', '--load=false', *sleeping])],
        '2': [(2, ['export', 'cut', '--as', 'json', '-o', 'out']), (2, ['diff', 'cut', 'whole'])],
        '3': [(3, ['diff', '--by=leaked', '--fail-above=5%', 'whole', 'more']),
              (3, ['check', '--max-peak=1', 'whole'])],
        '126': [(126, ['./plain']), (126, ['/'])],
        '127': [(127, ['./nothing']), (127, ['no-such-program'])],
    }
    same('rows', list(seen), [status for status, _ in documented_statuses()])
    for runs in seen.values():
        for status, words in runs:
            done = run(QUERN, *words)
            same(f'status of {words} (with {done.err[-200:]!r})', done.status, status)


@test
def special_files():
    """What is no file is written to, never replaced, and what cannot be written is told."""
    os.mkfifo('pipe')
    with subprocess.Popen(['cat', 'pipe'], stdout=subprocess.PIPE, text=True) as reader:
        same('status', run(QUERN, '-q', '--json-file=pipe', '/bin/true').status, 0)
        same('format', json.loads(reader.communicate()[0])['format'], 'quern-findings')
    with open('file', 'w') as file:
        file.write('old')
    os.symlink('file', 'link')
    run(QUERN, '-q', '--json-file=link', '/bin/true')
    with open('file') as file:
        same('file behind the link', (os.path.islink('link'), json.load(file)['status']), (True, 0))
    os.mknod('full', 0o666 | stat.S_IFCHR, os.makedev(1, 7)) if os.getuid() == 0 else os.symlink(
        '/dev/full', 'full')
    done = run(QUERN, '-q', '--json-file=full', '/bin/true')
    same('status', (done.status, stat.S_ISCHR(os.stat('full').st_mode)), (1, True))
    assert "cannot write 'full': No space left" in done.err, done.err
    # Standard output that leads to a file keeps what stands there.
    with open('out', 'w') as out:
        subprocess.run([QUERN, '-q', '--json-file=/dev/stdout', 'echo', 'before'], stdout=out, check=True)
    with open('out') as file:
        first, rest = file.read().split('\n', 1)
    same('output', (first, json.loads(rest)['status']), ('before', 0))


@test
def profile_is_named():
    """After a scenario the log says what to do with the profile; scripts find Valgrind's log."""
    for tool in ('massif', 'callgrind', 'dhat', 'heap'):
        name = f'--{tool}-out-file=out.{tool}'
        done = run(QUERN, f'--tool={tool}', name, '--ready-log=go', '--load=true', 'sh', '-c',
                   'echo go; exec sleep 300')
        same('status', done.status, 0)
        assert re.search(f'quern print (/.*/)?out.{tool}$', done.err, re.M), done.err
        if tool in ('massif', 'callgrind'):
            assert 'quern print' not in run(QUERN, f'--tool={tool}', name, '/bin/true').err


@test
def diff_fails():
    few, many = build('few'), build('many', 'mistakes.c', '-DMORE')
    for name in ('few', 'many'):
        run(QUERN, '-q', '--tool=heap', f'--heap-out-file={name}.quern', './' + name)
    words = [QUERN, 'diff', '--by=count']
    same('grown', run(*words, '--fail-above=5%', 'few.quern', 'many.quern').status, 3)
    same('shrunk', run(*words, '--fail-above=5%', 'many.quern', 'few.quern').status, 0)
    same('within', run(*words, '--fail-above=500', 'few.quern', 'many.quern').status, 0)
    same('refused', run(*words, '--fail-above=x', 'few.quern', 'many.quern').status, 1)

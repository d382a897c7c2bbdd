"""Budgets, and quern check."""
import json
import os
import re
import shutil
import subprocess
from xml.etree import ElementTree

from suite import QUERN, ROOT, test
from support import build, judge_sarif, memcheck, run, same, validate_junit, validate_sarif


@test
def budgets():
    """Each is seen passing and failing."""
    program = build('mistakes')
    for option, fits in (('--max-peak=10', False), ('--max-peak=1M', True),
                         ('--max-leaked=39', False), ('--max-leaked=40', True),
                         ('--max-allocs=2', False), ('--max-allocs=3', True), ('--max-allocs=1000', True)):
        done = run(QUERN, '--tool=heap', '--heap-out-file=h', '--junit-file=b.xml',
                   '--error-exitcode=7', option, program)
        same(option, done.status, 0 if fits else 7)
        same(f'line of {option}', 'BUDGET: ' in done.err, not fits)
        suite = ElementTree.parse('b.xml').getroot().find('testsuite')
        same(f'JUnit of {option}', suite.get('failures'), '0' if fits else '1')
    # Code hosts refuse results that are nowhere.
    done = run(QUERN, '--tool=heap', '--heap-out-file=h', '--sarif-file=b.sarif', '--github',
               '--max-peak=10', program)
    with open('b.sarif') as file:
        result, = json.load(file)['runs'][0]['results']
    same('place', result['locations'][0]['physicalLocation'],
         {'artifactLocation': {'uri': './mistakes'}, 'region': {'startLine': 1}})
    assert re.search('^::error title=BUDGET%3A at the peak .* bytes%2C 10 allowed::', done.err, re.M)
    validate_sarif('b.sarif')
    judge_sarif('b.sarif')


@test
def budgets_of_other_tools():
    program = build('mistakes')
    for tool, option, fits in (
            ('massif', '--max-peak=10', False), ('massif', '--max-peak=1M', True),
            ('massif', '--max-leaked=39', False), ('massif', '--max-leaked=1M', True),
            ('massif', '--max-allocs=2', False), ('massif', '--max-allocs=1000', True),
            ('dhat', '--max-peak=10', False), ('dhat', '--max-peak=1M', True),
            ('dhat', '--max-leaked=39', False), ('dhat', '--max-leaked=1M', True),
            ('dhat', '--max-allocs=2', False), ('dhat', '--max-allocs=1000', True),
            ('memcheck', '--max-leaked=39', False), ('memcheck', '--max-leaked=1M', True),
            ('memcheck', '--max-allocs=2', False), ('memcheck', '--max-allocs=1000', True)):
        name = [] if tool == 'memcheck' else [f'--{tool}-out-file=out']
        done = run(QUERN, f'--tool={tool}', *name, '--json-file=b.json', option, program)
        same(f'{tool} {option}', done.status, 0 if fits else 1)
        same(f'line of {tool} {option}', 'BUDGET: ' in done.err, not fits)
        with open('b.json') as file:
            rules = [finding['rule'] for finding in json.load(file)['findings']]
        same(f'results of {tool} {option}', any(rule.startswith('Budget_') for rule in rules),
             not fits)


@test
def budgets_refused():
    """A limit that a run could not check is refused before it runs."""
    for words in (['--max-peak=1M'], ['--max-growth=1M/min'], ['--leak-check=no', '--max-leaked=0'],
                  ['--tool=dhat', '--max-growth=1M'], ['--tool=dhat', '--mode=ad-hoc', '--max-peak=1'],
                  ['--tool=massif', '--time-unit=i', '--max-growth=1M'], ['--tool=none', '--max-peak=1'],
                  ['--tool=heap', '--max-peak=1M/min'], ['--tool=heap', '--max-growth=1M/h']):
        done = run(QUERN, *words, 'sh', '-c', 'echo ran')
        same(f'status of {words}', (done.status, done.out), (1, ''))
        assert '--max-' in done.err, done.err


@test
def budget_of_a_killed_process():
    """Leaks of a process that was killed are not known, which is not as good as none."""
    done = run(QUERN, '--max-leaked=1M', 'sh', '-c', 'kill -9 $$')
    same('status', done.status, 1)
    assert '--max-leaked cannot be checked' in done.err, done.err


@test
def budget_growth():
    shutil.copy(os.path.join(ROOT, 'examples/diagnose/common.h'), '.')
    shutil.copy(os.path.join(ROOT, 'examples/diagnose/growing_cache.c'), '.')
    for flags, status in ((['-DFIXED'], 0), ([], 1)):
        subprocess.run(['cc', '-o', 'cache', *flags, 'growing_cache.c'], check=True)
        for tool in ('heap', 'massif'):
            done = run(QUERN, '-q', f'--tool={tool}', f'--{tool}-out-file={tool}', '--max-growth=64K/min',
                       './cache')
            same(f'{tool} with {flags}', (done.status, 'BUDGET: ' in done.err), (status, status == 1))
            done = run(QUERN, 'check', '--max-growth=64K', tool)
            same(f'file of {tool} with {flags}', done.status, 3 * status)


def made_files():
    """A file of each kind with the same program's heap."""
    program = build('mistakes')
    run(QUERN, '-q', '--tool=heap', '--heap-out-file=h.quern', program)
    for tool in ('massif', 'dhat', 'callgrind'):
        run(QUERN, '-q', f'--tool={tool}', f'--{tool}-out-file={tool}.out', program)
        run('valgrind', '-q', f'--tool={tool}', f'--{tool}-out-file={tool}.peer', program)
    for tool, name in ((QUERN, 'xml.out'), ('valgrind', 'xml.peer')):
        run(tool, '-q', '--leak-check=full', '--xml=yes', f'--xml-file={name}', program)


@test
def check_limits():
    made_files()
    for names, option, below, above in (
            (['h.quern', 'massif.out', 'massif.peer', 'dhat.out', 'dhat.peer'], 'max-peak', 39, 1000000),
            (['h.quern', 'massif.out', 'massif.peer', 'dhat.out', 'dhat.peer'], 'max-leaked', 39,
             1000000),
            (['xml.out', 'xml.peer'], 'max-leaked', 39, 1000000),
            (['h.quern', 'dhat.out', 'dhat.peer'], 'max-allocs', 2, 1000)):
        for name in names:
            # Errors in XML fail by themselves; here they are known.
            run(QUERN, 'check', '--json-file=k.json', name)
            run(QUERN, 'baseline', 'update', 'known.txt', 'k.json')
            words = [QUERN, 'check', '--baseline=known.txt']
            same(f'{name} --{option}={below}', run(*words, f'--{option}={below}', name).status, 3)
            done = run(*words, f'--{option}={above}', name)
            same(f'{name} --{option}={above} ({done.out})', done.status, 0)
    done = run(QUERN, 'check', '--max-peak=39', '--error-exitcode=7', 'h.quern')
    same('own status', done.status, 7)
    same('one line', [line for line in done.out.splitlines() if 'TOO MUCH' in line],
         [line for line in done.out.splitlines() if line.startswith('h.quern: TOO MUCH: at the peak')])


@test
def check_refused():
    made_files()
    for words, part in ((['--max-allocs=1', 'massif.out'], '--max-allocs cannot be checked'),
                        (['--max-growth=1', 'dhat.out'], '--max-growth cannot be checked'),
                        (['--max-peak=1', 'xml.out'], '--max-peak cannot be checked'),
                        (['callgrind.out'], 'it has neither heap numbers nor findings'), (['nothing'], 'No such file'),
                        (['--max-peak=x', 'h.quern'], "invalid value 'x' for --max-peak; give a size"), (['--nothing'], 'unknown option'),
                        (['--diagnose=x', 'h.quern'],
                         "invalid value 'x' for --diagnose; choose one of yes, no, error"), ([], 'usage')):
        done = run(QUERN, 'check', *words)
        same(f'status of {words}', done.status, 1)
        assert part in done.err, done.err


@test
def xml_has_leaks():
    """As with Valgrind, XML holds the leaks unasked."""
    program = build('mistakes')
    for tool in (QUERN, 'valgrind'):
        run(tool, '-q', '--xml=yes', '--xml-file=x.xml', program)
        same(f'leaks of {os.path.basename(tool)}', [error.findtext('kind') for error in ElementTree.parse(
            'x.xml').getroot().findall('error') if error.findtext('xwhat/leakedbytes') == '40'],
             ['Leak_DefinitelyLost'])


@test
def check_converts_xml():
    """Errors of Valgrind's XML become results with the stacks that the XML has."""
    made_files()
    for name in ('xml.out', 'xml.peer'):
        done = run(QUERN, 'check', '--json-file=f.json', f'--sarif-file={name}.sarif',
                   '--junit-file=f.xml', name)
        same(f'status of {name}', done.status, 3)
        with open('f.json') as file:
            found = json.load(file)['findings']
        same(f'rules of {name}', sorted(finding['rule'] for finding in found),
             ['InvalidWrite', 'Leak_DefinitelyLost', 'UninitCondition'])
        overrun = [finding for finding in found if finding['rule'] == 'InvalidWrite'][0]
        same(f'frames of {name}', [frame['function'] for frame in overrun['stacks'][0]['frames']],
             ['overrun', 'main'])
        same(f'making in {name}',
             [frame['function'] for frame in overrun['stacks'][1]['frames']][1:],
             ['make', 'overrun', 'main'])
        validate_junit('f.xml')
        # A run of quern itself finds what Valgrind's XML has made known.
        run(QUERN, 'baseline', 'update', 'known.txt', 'f.json')
        same(f'baseline of {name}',
             memcheck('--baseline=known.txt', '--error-exitcode=9', './mistakes').status, 0)
    validate_sarif('xml.out.sarif', 'xml.peer.sarif')

"""Fingerprints of findings, and baselines."""
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

from suite import QUERN, skip, test
from support import build, memcheck, run, same, validate_junit, validate_sarif


def findings(*words):
    """(status, findings) of a run with a file of findings."""
    done = memcheck('--json-file=f.json', *words)
    with open('f.json') as file:
        return done.status, json.load(file)['findings']


def places(found):
    """Rules, and lines of the program."""
    return sorted((finding['rule'], next(frame['line'] for frame in finding['stacks'][0]['frames']
                                         if (frame['file'] or '').endswith('/mistakes.c')))
                  for finding in found)


@test
def baseline():
    _, before = findings(build('first'))
    done = run(QUERN, 'baseline', 'update', 'known.txt', 'f.json')
    same('update', (done.status, done.out), (0, 'known.txt: 3 findings are known\n'))
    again = ['--baseline=known.txt', '--error-exitcode=9']
    status, after = findings(*again, build('moved', further_down=20))
    same('lines', places(after), [(rule, line + 20) for rule, line in places(before)])
    same('moved', (status, [finding['known'] for finding in after]), (0, [True] * 3))
    status, found = findings(*again, build('more', 'mistakes.c', '-DMORE', further_down=20))
    same('new ones', (status, [finding['stacks'][0]['frames'][0]['function'] for finding in found
                               if not finding['known']]), (9, ['use_after_free']))


# What moves addresses and inlines, and a second compiler.
COMPILED = (('cc', '-O1'), ('cc', '-O2'), ('cc', '-O3', '-no-pie'), ('cc', '-O2', '-fno-inline'),
            ('cc', '-O2', '-static'), ('cc', '-gdwarf-4', '-Wl,-Ttext-segment=0x10000000', '-no-pie'),
            ('clang', '-O0'), ('clang', '-O2'))


@test
def fingerprints():
    """They are made of functions, however those were compiled."""
    def marks(found):
        return sorted((finding['rule'], finding['fingerprint']) for finding in found)
    wanted = marks(findings(build('first', 'mistakes.c', '-DMORE'))[1])
    same('how many', len(set(wanted)), 4)
    inlined = set()
    for compiler, *flags in COMPILED:
        if not shutil.which(compiler):
            skip(f'{compiler} is not there')
        found = findings(build('other', 'mistakes.c', '-DMORE', *flags, compiler=compiler))[1]
        same(f'{compiler} {flags}', marks(found), wanted)
        inlined.add('<overrun>' not in run('objdump', '-d', '--disassemble=main', 'other').out)
    same('inlined and not', inlined, {True, False})


@test
def fingerprints_tell_apart():
    """Who calls counts, how deep a recursion is does not, nor what compilers append to names."""
    def leak(*flags):
        found = findings(build('other', 'mistakes.c', *flags))[1]
        return [finding['fingerprint'] for finding in found if finding['rule'] == 'Leak_DefinitelyLost']
    plain, deep, deeper = leak(), leak('-DDEPTH=2'), leak('-DDEPTH=5')
    same('one leak each', (len(plain), len(deep)), (1, 1))
    same('recursion', deep, deeper)
    assert plain != deep, 'another way to the leak'
    # Without debug information names are those of the symbols.
    build('bare', 'mistakes.c', '-g0')
    wanted = [finding['fingerprint'] for finding in findings('./bare')[1]]
    for suffix in ('.constprop.0', '.isra.0', '.part.3.cold', '.lto_priv.0', '.llvm.123'):
        subprocess.run(['objcopy', '--redefine-sym', f'overrun=overrun{suffix}', '--redefine-sym',
                        f'make=make{suffix}', 'bare', 'renamed'], check=True)
        same(suffix, [finding['fingerprint'] for finding in findings('./renamed')[1]], wanted)


@test
def known_findings_in_files():
    """What is in the baseline is skipped, unchanged, and no annotation."""
    memcheck('--json-file=found.json', build('first'))
    run(QUERN, 'baseline', 'update', 'known.txt', 'found.json')
    done = memcheck('--baseline=known.txt', '--junit-file=f.xml', '--sarif-file=f.sarif', '--github',
                    build('more', 'mistakes.c', '-DMORE'))
    suite = ElementTree.parse('f.xml').getroot().find('testsuite')
    same('JUnit', [suite.get(name) for name in ('tests', 'failures', 'skipped')], ['4', '1', '3'])
    same('cases', sorted(case[0].tag for case in suite.findall('testcase')),
         ['failure', 'skipped', 'skipped', 'skipped'])
    with open('f.sarif') as file:
        results = json.load(file)['runs'][0]['results']
    same('SARIF', sorted((result['baselineState'], 'use_after_free' in json.dumps(result))
                         for result in results),
         [('new', True)] + [('unchanged', False)] * 3)
    same('annotations', re.findall('^::error file=mistakes.c,line=[0-9]+,title=(.*?)::', done.err, re.M),
         ['Invalid write of size 4'])
    validate_junit('f.xml')
    validate_sarif('f.sarif')


@test
def baseline_counts():
    """A second finding of a fingerprint that is known once is new."""
    memcheck('--json-file=found.json', build('once'))
    twice = build('twice', 'mistakes.c', '-DTWICE')
    for files, status in ((['found.json'], 9), (['found.json', 'found.json'], 0)):
        run(QUERN, 'baseline', 'update', 'known.txt', *files)
        same(f'known {len(files)} times',
             memcheck('--baseline=known.txt', '--error-exitcode=9', twice).status, status)


@test
def baseline_refused():
    for text in ('', 'x', '# quern baseline 1\nxyz\n', '# quern baseline 1\n0123456789abcdef -1\n'):
        with open('known.txt', 'w') as file:
            file.write(text)
        done = run(QUERN, '--baseline=known.txt', '/bin/true')
        same(f'status of {text!r}', done.status, 1)
        assert 'cannot read the baseline' in done.err, done.err
    same('missing', run(QUERN, '--baseline=none.txt', '/bin/true').status, 1)
    with open('no.json', 'w') as file:
        file.write('{"format": "other", "findings": []}')
    same('no findings', run(QUERN, 'baseline', 'update', 'b.txt', 'no.json').status, 1)
    same('usage', run(QUERN, 'baseline').status, 1)

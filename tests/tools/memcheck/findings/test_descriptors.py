"""--track-fds and --modify-fds."""
import glob
import os
import re
import xml.etree.ElementTree as ElementTree

import suite
from script import HERE, plain
from suite import contains, equal, golden, run, test, write


def build_descriptors():
    return suite.build(os.path.join(HERE, 'targets/descriptors.c'), '-g', '-O0', '-w', '-D_GNU_SOURCE')


def track(*words, tool='memcheck', **more):
    return run([suite.QUERN, f'--tool={tool}', *words, build_descriptors()], close_fds=True, **more)


def reports(log):
    """What is said of descriptors, without frames of libraries."""
    log = plain(log).split('HEAP SUMMARY')[0]
    return '\n'.join(re.sub(r'0x[0-9A-F]+: ', '', line) for line in log.splitlines()
                     if re.match('Open|File|FILE', line) or 'descriptors.c' in line
                     or re.match(' (Previously|Originally|<)', line)) + '\n'


@test
def descriptors_are_tracked():
    status, _, log = track('--track-fds=yes', '--error-exitcode=9')
    equal(status, 9, 'exit status')
    contains(log, 'ERROR SUMMARY: 7 errors from 7 contexts')
    golden(reports(log))


@test
def misused_descriptors_only():
    log = reports(track('--track-fds=bad')[2])
    equal(re.findall(r'^(?!\s).+', log, re.M), ['File descriptor 3: /etc/passwd is already closed',
                                               'File descriptor 3 was closed already',
                                               'File descriptor 77 Invalid file descriptor'], 'reports')


@test
def inherited_descriptors_are_shown_on_request():
    log = reports(track('--track-fds=all')[2])
    contains(log, 'Open file descriptor 0: /dev/null\n <inherited from parent>\n')
    equal(log.count('<inherited from parent>'), 3, 'inherited descriptors')


@test
def tools_without_errors_report_descriptors_too():
    for tool in ('none', 'callgrind', 'lackey'):
        status, _, log = track('--track-fds=yes', '--error-exitcode=9', tool=tool, cwd=suite.FOLDER)
        equal(status, 9, f'exit status of {tool}')
        equal(reports(log).split('I   refs')[0].strip(), reports(track('--track-fds=yes')[2]).strip(), tool)


@test
def descriptors_are_suppressed():
    log = track('-q', '--track-fds=yes', '--gen-suppressions=all')[2]
    equal(sorted(set(re.findall(r'CoreError:(\w+)', log))), ['FdBadClose', 'FdBadUse', 'FdNotClosed'], 'kinds')
    every = write('fds.supp', '\n'.join(re.findall(r'^\{\n(?:   .*\n)+\}$', log, re.M)) + '\n')
    status, _, log = track('--track-fds=yes', '--error-exitcode=9', f'--suppressions={every}')
    equal(status, 0, 'exit status')
    contains(log, 'ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 7 from 7)')


@test
def descriptors_in_xml():
    track('-q', '--track-fds=yes', '--xml=yes', f'--xml-file={suite.FOLDER}/fds.%p.xml')
    path = max(glob.glob(f'{suite.FOLDER}/fds.*.xml'), key=os.path.getsize)  # the child has one, too
    first = next(ElementTree.parse(path).iter('error'))
    equal((first.findtext('kind'), first.findtext('fd'), first.findtext('path')),
          ('FdBadClose', '3', '/etc/passwd'), 'the first error')
    equal(len(first.findall('stack')), 3, 'stacks')


@test
def descriptors_get_high_numbers():
    source = write('numbers.c', '#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n'
                                'int main(void) { int pair[2], first = open("/dev/null", 0); pipe(pair); '
                                'close(0); int zero = open("/dev/null", 0); '
                                'printf("%d %d %d\\n", first > 500, pair[0] > 500 && pair[1] > 500, zero); '
                                'return 0; }\n')
    path = suite.build(source, '-w')
    for choice, wanted in (('no', '0 0 0\n'), ('yes', '1 1 0\n'), ('high', None)):
        out = run(['bash', '-c', f'ulimit -n 1024; exec "$@"', 'bash', suite.QUERN, '-q',
                   f'--modify-fds={choice}', path])[1]
        if wanted:
            equal(out, wanted, choice)
        else:
            equal((out[:4], int(out[4:]) > 500), ('1 1 ', True), choice)


@test
def native_runs_say_that_they_track_nothing():
    log = track('--track-fds=yes', tool='heap', cwd=suite.FOLDER)[2]
    contains(log, 'quern: --track-fds has no effect: heap runs the program natively\n')

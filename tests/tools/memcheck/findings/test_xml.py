"""The XML document."""
import os
import re
import socket
import subprocess
import threading
import xml.etree.ElementTree as ElementTree

from script import HERE, Target, play, say_path, stage
from suite import contains, equal, golden, run, test, write


def xml(target, *script, options=(), name='out.xml'):
    status, log = play(target, *script, options=['--xml=yes', f'--xml-file={name}', *options])
    with open(name) as file:
        return status, log, file.read()


@test
def xml_document():
    target = Target()
    status, log, text = xml(target, 'keep', '1', target.pc('make', 4), target.after('main', 'make'),
                            'block', '0x20001000', '40', 'live', '1', '0', 'stack',
                            target.pc('outer'), target.after('main', 'outer'), 'times', '3', 'read',
                            '0x20001028', '4', 'loss', '0', '1', '2', '1000', '234', '0', '0', '2',
                            '0', '0', '0', '0', '0', 'leaks', '1', '1', '0',
                            options=['--xml-user-comment=<b>hi</b>', '--gen-suppressions=all'])
    equal((status, log), (0, '\n'))
    # The script holds addresses that the compiler chose.
    text = re.sub(r'(/say) map .*(</line>)', r'\1 SCRIPT\2', text)
    text = re.sub(r'(/say</exe>\n)(?: *<arg>.*</arg>\n)+', r'\1    SCRIPT\n', text)
    golden(text.replace(HERE, 'SOURCES'))


@test
def xml_beside_valgrind():
    """The same elements in the same order and indentation as Valgrind's, for the same error."""
    target = Target()
    write('leak.c', '#include <stdlib.h>\nint main(void) {\n    char *p = malloc(40);\n'
                    '    p[40] = 1;\n    p = malloc(10);\n    return p[2] == 3;\n}\n')
    subprocess.run(['gcc', '-g', '-O0', '-o', 'leak', 'leak.c'], check=True)
    run(['valgrind', '--xml=yes', '--xml-file=theirs.xml', '--leak-check=full', './leak'])
    made = [target.pc('make', 4), target.after('main', 'make')]
    _, _, ours = xml(target, 'keep', '1', *made, 'block', '0x20001000', '40', 'live', '1', '0',
                     'stack', target.pc('main', 4), 'write', '0x20001028', '1', 'stack',
                     target.pc('main', 8), 'condition', '0', 'loss', '0', '1', '1', '10',
                     *'000000000', 'loss', '0', '1', '1', '40', *'000000000', 'leaks', '1', '1',
                     '0')
    with open('theirs.xml') as file:
        theirs = file.read()

    def shape(text):
        text = re.sub(r'<frame>.*?</frame>', '<frame/>', text, flags=re.S)
        text = re.sub(r'(\s*<frame/>)+', '\n    <frames/>', text)
        text = re.sub(r'(\s*<arg>[^<]*</arg>)+', '', text)
        lines = [re.sub(r'>[^<]+<', '>…<', line) for line in text.splitlines()]
        return lines
    for ours_line, theirs_line in zip(shape(ours), shape(theirs)):
        equal(ours_line, theirs_line, 'line')
    equal(len(shape(ours)), len(shape(theirs)), 'number of lines')


@test
def xml_escapes():
    _, _, text = xml(None, 'stack', '0x11', 'parameter', 'a<b>&"c]]>\x01', '0', '0', '0',
                     options=['--gen-suppressions=all'])
    root = ElementTree.fromstring(text)
    equal(root.findtext('error/what'),
          'Syscall param a<b>&"c]]>\\x01 contains uninitialised byte(s)')


@test
def xml_signals_and_kills():
    _, _, text = xml(None, 'stack', '0x11', 'condition', '0', 'finish', 'fatal', '11')
    root = ElementTree.fromstring(text)
    fatal = root.find('fatal_signal')
    equal([part.tag for part in fatal],
          ['tid', 'signo', 'signame', 'sicode', 'event', 'siaddr', 'stack'])
    equal([part.text for part in fatal][:6],
          ['1', '11', 'SIGSEGV', '1', 'Access not within mapped region', '0x10'])
    _, _, text = xml(None, 'stack', '0x11', 'times', '5', 'condition', '0', 'kill', '9')
    equal(ElementTree.fromstring(text).findtext('errorcounts/pair/count'), '5')


@test
def xml_of_several_processes():
    script = ['stack', '0x11', 'condition', '0', 'fork', 'stack', '0x12', 'condition', '0', 'exit',
              '0', 'joined', 'exit', '0']
    play(None, *script, options=['--xml=yes', '--xml-file=all.%p.xml'])
    documents = [name for name in sorted(os.listdir('.')) if name.startswith('all.')]
    equal(len(documents), 2, 'number of files')
    counts = sorted(len(ElementTree.parse(name).getroot().findall('errorcounts/pair'))
                    for name in documents)
    equal(counts, [1, 2])
    _, _, text = xml(None, *script)
    parts = text.split('<?xml')[1:]
    equal([len(ElementTree.fromstring('<?xml' + part).findall('error')) for part in parts], [1, 1])


@test
def xml_destinations():
    read, write_end = os.pipe()
    run([stage(), '--xml=yes', f'--xml-fd={write_end}', say_path(), 'stack', '0x11', 'condition',
         '0'], pass_fds=[write_end])
    os.close(write_end)
    with os.fdopen(read) as file:
        ElementTree.fromstring(file.read())
    server = socket.create_server(('127.0.0.1', 0))
    got = []

    def listen():
        connection = server.accept()[0]
        while True:
            data = connection.recv(65536)
            if not data:
                break
            got.append(data)
    thread = threading.Thread(target=listen)
    thread.start()
    run([stage(), '--xml=yes', f'--xml-socket=127.0.0.1:{server.getsockname()[1]}', say_path(),
         'stack', '0x11', 'condition', '0'])
    thread.join()
    ElementTree.fromstring(b''.join(got).decode())


@test
def xml_is_refused_where_it_makes_no_sense():
    for words, reason in ((['--xml=yes'], 'needs a place to write to'),
                          (['--xml=yes', '--xml-file=x', '--gen-suppressions=yes'],
                           'use --gen-suppressions=all')):
        status, _, err = run([stage(), *words, '/bin/true'])
        equal(status, 1)
        contains(err, reason)
    status, _, err = run([stage(), '--track-origins=yes', '--undef-value-errors=no', '/bin/true'])
    equal(status, 1)
    contains(err, '--track-origins=yes needs')

"""Recordings, and quern print on them."""
import os
import re
import signal
import struct
import subprocess
import time

import suite
from suite import QUERN, clean_environment, contains, equal, failed, run, test
from support import DATA, build, figure, record, record_and_listen, valgrind_massif


def shown(path, *options, status=0):
    got = run([QUERN, 'print', *options, path])
    equal(got[0], status, f'status of print (with {got[2]!r})')
    return got[1] if status == 0 else got[2]


@test
def heap_counts_as_the_program_does():
    path, log, said = record_and_listen(build('threads'), arguments=['4', '25000'])
    allocated, resized = map(int, said.split())
    kept = figure(log, r'at the end: ([\d,]+) bytes')
    # libc keeps a few hundred bytes for each thread.
    if not 40000 <= kept <= 40000 + 4 * 400:
        failed(f'{kept} bytes left')
    blocks = figure(log, r'bytes in ([\d,]+) blocks and')
    if not allocated <= blocks <= allocated + 2 * 4 + 10:
        failed(f'{blocks} blocks, the program says {allocated}')
    # realloc of an empty slot is an allocation.
    equal(figure(log, r'and ([\d,]+) resizes'), resized, 'resizes')


@test
def heap_log_and_print_agree():
    path, log = record(build('containers'))
    lines = [line.split('== ', 1)[1] for line in log.splitlines() if '== ' in line]
    start = next(i for i, line in enumerate(lines) if line.startswith('peak:'))
    end = next(i for i, line in enumerate(lines) if line.startswith('Most bytes held'))
    printed = shown(path, '--top=3').splitlines()
    # Times are recorded in steps of a millisecond.
    plain = [[re.sub(r'after \d+\.\d+', 'after', line) for line in some]
             for some in (printed[2:2 + end - start], lines[start:end])]
    equal(*plain, 'the totals')
    # A line for each function of the program; together they are the peak.
    rows = re.findall(r'^==\d+== +([\d,]+) bytes +[\d.]+ % +([\d,]+) blocks  (.*)$', log, re.M)
    if not 1 <= len(rows) <= 10 or not any('(containers.cc:' in row[2] for row in rows):
        failed(log)
    if sum(int(row[0].replace(',', '')) for row in rows) > figure(log, r'peak: +([\d,]+) bytes'):
        failed(f'functions hold more than the peak: {log}')
    contains(printed[0], 'command:    ')
    contains('\n'.join(printed), 'main (containers.cc:')


@test
def heap_peak_is_valgrinds():
    program = build('deep')
    path, log = record(program)
    equal(figure(log, r'peak: +([\d,]+) bytes'), 160000, 'peak')
    equal(figure(log, r'peak: .* in ([\d,]+) blocks'), 100, 'blocks at the peak')
    equal(figure(log, r'allocated: +([\d,]+) bytes'), 160000, 'allocated')
    contains(shown(path, '--peak-only'), '160,000')


@test
def heap_temporary_and_leaked():
    path, log = record(build('closes'), '--top=1', cwd=suite.FOLDER)
    temporary = figure(log, r'temporary: +([\d,]+) blocks')
    if not 100000 <= temporary <= 100010:
        failed(f'{temporary} temporary blocks')
    path, log = record(build('only_grows'), '--top=1')
    contains(log, 'main (only_grows.c:8)')
    equal(figure(shown(path), r'Most bytes not freed in the end:\n([\d,]+) bytes'), 320000,
          'bytes not freed')


@test
def recording_of_a_killed_program():
    path, log = record(build('killed'), arguments=['30000'], status=-signal.SIGKILL)
    text = shown(path)
    equal(figure(text, r'at the end: ([\d,]+) bytes'), 30000000, 'bytes')
    if 'cut off' in text or 'damaged' in text:
        failed(text[:300])


@test
def recording_agrees_with_the_count_of_the_killed():
    """At whatever moment the program is killed: what is recorded is what it had done, give or take
    the one call it was in."""
    program = build('churn')
    for round in range(50):
        path = os.path.join(suite.FOLDER, f'{round}.quern')
        count = os.path.join(suite.FOLDER, f'{round}.count')
        process = subprocess.Popen([QUERN, '-q', 'heap', f'--heap-out-file={path}', program, count],
                                   env=clean_environment())
        read = lambda: struct.unpack('qq', open(count, 'rb').read(16))
        suite.until(lambda: os.path.exists(count) and os.path.getsize(count) and read()[0],
                    what='the first count')
        time.sleep(0.0015 * round)
        os.kill(read()[0], signal.SIGKILL)
        equal(process.wait(timeout=300), -signal.SIGKILL, 'status')
        text = shown(path)
        recorded = figure(text, r'at the end: ([\d,]+) bytes')
        if abs(recorded - read()[1]) > 2000:
            failed(f'{recorded} bytes recorded, {read()[1]} counted (round {round})')
        if 'cut off' in text or 'damaged' in text:
            failed(text[:300])


@test
def recording_survives_the_supervisor():
    program = build('killed')
    path = os.path.join(suite.FOLDER, 'cut.quern')
    process = subprocess.Popen([QUERN, '-q', 'heap', f'--heap-out-file={path}', program, '30000',
                                'wait'], stdout=subprocess.PIPE, env=clean_environment())
    equal(process.stdout.readline(), b'ready\n', 'first line')
    # A chunk is written a second after its first event at the latest.
    suite.until(lambda: 'at the end: 30,000,000 bytes' in shown(path), what='the whole recording')
    process.kill()
    process.wait()
    process.stdout.close()
    text = shown(path)
    contains(text, 'cut off:')
    equal(figure(text, r'at the end: ([\d,]+) bytes'), 30000000, 'bytes')


def asked(path, sql):
    """The rows of a query, without the names of the columns."""
    status, out, err = run([QUERN, 'query', path, sql])
    equal((status, err), (0, ''), 'status and notices')
    return [tuple(line.split('\t')) for line in out.splitlines()[1:]]


@test
def regions_are_those_of_the_program():
    path, log = record(build('regions'))
    page = 4096
    contains(log, f'mapped:     {(100 + 200 + 2 + 3) * page:,} bytes in 4 regions by the program '
                  f'itself, {215 * page:,} at most')
    equal(asked(path, "SELECT kind, sum(iif(mapped, bytes, 0)) / 4096, "
                      "sum(iif(mapped, bytes, -bytes)) / 4096 FROM regions GROUP BY kind"),
          [('anonymous', '300', '210'), ('break', '3', '2'), ('file', '2', '0')], 'regions')
    contains(shown(path), 'Most bytes mapped by the program itself:')
    equal(asked(path, "SELECT function, sum(mapped_bytes) / 4096 FROM stacks JOIN frames USING "
                      "(stack) WHERE depth = 0 AND mapped_bytes > 0 GROUP BY function ORDER BY 2"),
          [('map', '102'), ('main', '203')], 'who mapped')


@test
def regions_of_another_allocator_are_its_own():
    seen = 0
    for library in ('libjemalloc.so.2', 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2.0'):
        path = os.path.join('/usr/lib/x86_64-linux-gnu', library)
        if not os.path.exists(path):
            continue
        seen += 1
        path, log = record(build('regions'), env={'LD_PRELOAD': path})
        contains(log, 'in 4 regions by the program itself')
    if not seen:
        suite.skip('no other allocator is installed')


@test
def threads_have_names():
    path, _ = record(build('regions'))
    equal(asked(path, 'SELECT name FROM threads ORDER BY name'),
          [('itself',), ('others',), ('regions',)], 'names')


@test
def samples_show_the_memory():
    # The program waits until there are a few samples of what it holds.
    program, path = build('regions'), os.path.join(suite.FOLDER, 'recording.quern')
    process = subprocess.Popen([QUERN, 'heap', f'--heap-out-file={path}', program, 'wait'],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=clean_environment())

    def count():
        out = run([QUERN, 'query', path, 'SELECT count(*) FROM samples WHERE resident > 10 << 20'])[1]
        return re.fullmatch(r'.*\n(\d+)\n', out)
    suite.until(lambda: count() and int(count()[1]) >= 3, what='three samples of all its memory')
    log = process.communicate(timeout=300)[1]
    equal(process.returncode, 0, 'status')
    resident = figure(log, r'in memory: +([\d,]+) bytes at most')
    if not 10 << 20 < resident < 40 << 20:
        failed(f'{resident} bytes resident')
    rows = asked(path, 'SELECT time, resident, minor_faults FROM samples ORDER BY rowid')
    if len(rows) < 3:
        failed(f'only {len(rows)} samples')
    faults = [int(row[2]) for row in rows]
    equal(faults, sorted(faults), 'faults in order')
    if faults[-1] < 2560:
        failed(f'{faults[-1]} page faults for 10 MiB')
    equal(int(asked(path, 'SELECT max(resident) FROM samples')[0][0]), resident, 'resident')


@test
def print_shows_what_ms_print_shows():
    for name in ('grow_shrink', 'deep', 'inlined', 'reuse', 'only_grows'):
        valgrind_massif(build(name), '--threshold=0.1')
        path = os.path.join(suite.FOLDER, 'valgrind.out')
        for options in ([], ['--threshold=10', '--x=20', '--y=5'], ['--threshold=0', '--x=1000']):
            theirs = run(['ms_print', *options, path])
            equal(shown(path, *options), theirs[1], f'{name} with {options}')


@test
def recordings_of_older_versions_are_read():
    """What a version before this one wrote about a program says what is recorded of it today."""
    text = shown(os.path.join(DATA, 'version3.quern'))
    path, _ = record(build('deep'))
    for pattern in (r'peak: +([\d,]+) bytes', r'peak: .* in ([\d,]+) blocks',
                    r'allocated: +([\d,]+) bytes', r'bytes in [\d,]+ blocks and ([\d,]+) resizes',
                    r'at the end: ([\d,]+) bytes'):
        equal(figure(text, pattern), figure(shown(path), pattern), pattern)
    equal(text.count('   at 0x'), shown(path).count('   at 0x'), 'stacks shown')
    contains(text, 'by 0x')


@test
def names_of_generated_code_in_version_5():
    """Version 5 has the names, and no anonymous memory in samples."""
    path = os.path.join(DATA, 'version5.quern')
    contains(shown(path), 'generated_allocate (in [generated code])')
    equal(asked(path, 'SELECT count(*), count(anonymous) FROM samples')[0][1], '0', 'anonymous')


@test
def shared_memory_is_no_allocator():
    """Memory that processes share grows, and the heap does not: that needs no explanation."""
    path, log = record(build('shared_memory'))
    resident, anonymous = asked(path, 'SELECT max(resident), max(anonymous) FROM samples')[0]
    if int(resident) < 64 << 20 or int(anonymous) > 16 << 20:
        failed(f'{anonymous} of {resident} bytes are anonymous')
    if 'note: ' in log:
        failed(f'it says {log!r}')


@test
def print_refuses_other_files():
    contains(shown('/bin/true', status=1), 'it is none of these')
    contains(shown('/no/such/file', status=1), 'No such file')
    path = os.path.join(suite.FOLDER, 'broken')
    with open(path, 'w') as file:
        file.write('desc: x\ncmd: y\ntime_unit: B\nsnapshot=zero\n')
    contains(shown(path, status=1), "line 4: expected snapshot=, got 'snapshot=zero'")


@test
def print_says_how_it_is_used():
    status, out, _ = run([QUERN, 'print', '--help'])
    equal(status, 0, 'status')
    contains(out, 'usage: quern print [options] FILE')
    status, out, err = run([QUERN, 'print', '--bogus', 'x'])
    equal((status, out), (1, ''), 'status and output')
    contains(err, "unknown option '--bogus'")
    contains(run([QUERN, 'print'])[2], 'usage: quern print')


FOLLOWS = re.compile(r'not\s+(?:==\d+== )?followed \(--trace-children=yes follows (?:it|them)\)')


def hints(tool, *words):
    status, _, log = run([QUERN, f'--tool={tool}', *words])
    equal(status, 0, f'status under {tool} (with {log[-300:]!r})')
    return len(FOLLOWS.findall(log))


@test
def a_shim_is_told_from_its_program():
    """A program that becomes another, or leaves the work to its children, gets one hint."""
    burn = "perl -e '1 while (times)[0] < 0.5'; true"
    for tool in ('heap', 'massif', 'memcheck'):
        equal(hints(tool, 'sh', '-c', 'exec sleep 0'), 1, f'hints of {tool} after an exec')
        equal(hints(tool, '--trace-children=yes', 'sh', '-c', 'exec sleep 0'), 0, f'hints of {tool} if followed')
    equal(hints('heap', 'sh', '-c', burn), 1, 'hints if a child does the work')
    equal(hints('heap', '--trace-children=yes', 'sh', '-c', 'sleep 0; true'), 0, 'hints if it is followed')
    equal(hints('heap', 'sh', '-c', 'sleep 0; true'), 0, 'hints if a child does next to nothing')
    equal(hints('heap', 'sh', '-c', 'exit 0'), 0, 'hints without any other program')

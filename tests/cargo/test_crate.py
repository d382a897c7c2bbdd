"""The crate quern-heap: its own tests, natively and under the tools."""
import os

from suite import QUERN, ROOT, contains, equal, run, test
from support import cargo, quern, works

CRATE = {'source': os.path.join(ROOT, 'rust/quern-heap'), 'folder': '.'}


@test
def crate_tests():
    """Natively; documentation included. Nothing that the compiler warns about."""
    out, err = works(cargo('test', '--', '--nocapture', **CRATE))
    equal(out.count('test result: ok.'), 4, f'results in {out!r}')
    contains(out, 'counted by nobody')
    assert 'warning' not in err, err


@test
def crate_counts_under_the_recorder():
    for tool in ('heap', 'massif'):
        out, _ = works(quern(tool, 'test', '--test', 'recorded', '--', '--nocapture', **CRATE))
        contains(out, 'counted by the recorder')
    works(quern('heap', 'test', '--test', 'counted', **CRATE))
    works(quern('test', '--test', 'counted', '--test', 'recorded', **CRATE))


def check_recording(path, words):
    _, out, err = run([QUERN, 'print', os.path.join('copy', path)])
    for word in words:
        contains(out + err, word)


PHASES = ('11 allocations of 10,240 bytes, 10,240 more held after it; at most 11 in one of 1 pass',
          '1 allocations of 5,000 bytes, 0 more held after it', ': load\n', ': work\n', ': begin\n',
          ': snapshot loaded\n')


@test
def crate_marks_and_scopes():
    out, _ = works(quern('--heap-out-file=phases.quern', 'heap', '--example', 'phases', **CRATE))
    contains(out, 'Recorder\n')
    check_recording('phases.quern', PHASES)
    # A statically linked program runs translated; requests reach the engine.
    out, err = works(quern('--heap-out-file=static.quern', 'heap', '--example', 'phases',
                           env={'RUSTFLAGS': '-Ctarget-feature=+crt-static'}, **CRATE))
    contains(err, 'statically linked')
    contains(out, 'Recorder\n')
    check_recording('static.quern', PHASES)


@test
def crate_allocators_of_the_programs_own():
    _, err = works(quern('run', '--example', 'phases', **CRATE))
    contains(err, 'ERROR SUMMARY: 0 errors')
    out, err = works(quern('run', '--example', 'phases', '--', 'wrong', **CRATE))
    contains(out, 'Checker\n')
    contains(err, 'Invalid read of size 1')
    contains(err, 'ERROR SUMMARY: 1 errors')

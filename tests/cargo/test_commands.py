"""cargo quern: what cargo builds and chooses, under quern. The packages of `workspace` have no dependencies."""
import glob
import os
import re
import shutil
import signal

import suite
from suite import BUILD, ROOT, contains, equal, run, skip, test, write
from support import HERE, cargo, commands, find_cargo, quern, works


# ---- what is run ----

@test
def run_passes_arguments_and_status():
    out, err = works(quern('run', '--', 'a', '--release', '-p'))
    contains(out, '["a", "--release", "-p"] in ' + os.path.join(suite.FOLDER, 'copy/app'))
    equal(commands(err), ['app'], 'programs')
    contains(err, 'ERROR SUMMARY: 0 errors')
    works(quern('run', '--', 'exit', '7'), 7)
    works(quern('run', '--', 'abort'), -signal.SIGABRT)


@test
def program_sees_the_environment_of_cargo_run():
    plain = works(cargo('run', '--', 'environment'))[0]
    equal(sorted(works(quern('none', '--', 'environment'))[0].splitlines()), sorted(plain.splitlines()),
          'environment')


@test
def targets_of_a_workspace():
    equal(works(quern('-q', 'run', '--bin', 'other'))[0], 'other 42\n', 'output')
    equal(works(quern('-q', 'none', '--bin=other', folder='.'))[0], 'other 42\n', 'output')
    equal(works(quern('-q', 'memcheck', '-p', 'app', '--example', 'show', folder='tally'))[0], 'example 6\n',
          'output')
    contains(works(quern('-q', 'run', '--features', 'loud'))[0], 'loud\n')


@test
def tests_of_a_workspace():
    out, err = works(quern('test', '--workspace', '--lib', '--bins', '--tests', folder='.'))
    equal(sorted(commands(err)), ['app', 'other', 'tally', 'whole'], 'programs')
    equal(out.count('test result: ok. 1 passed'), 2, f'results in {out!r}')


@test
def filters_of_tests():
    out, _ = works(quern('test', '-p', 'tally', '--lib', 'sums', folder='.'))
    contains(out, '1 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out')


@test
def an_error_fails_the_tests():
    result = quern('test', '-p', 'tally', '--lib', folder='.')
    works(result)
    result = quern('test', '-p', 'tally', '--lib', '--', '--ignored', folder='.')
    assert result[0] != 0, result
    contains(result[1], '1 passed')  # the test itself does not notice
    contains(result[2], 'Invalid read of size 1')
    contains(result[2], 'tally::tests::reads_behind_a_block (lib.rs:')


@test
def options_choose_tests_and_benchmarks():
    equal(commands(works(quern('none', '--test', 'whole'))[1]), ['whole'], 'programs')
    equal(commands(works(quern('none', 'test', '--test=whole'))[1]), ['whole'], 'programs')
    out, err = works(quern('none', '--bench', 'sums', '--', 'fast'))
    equal(commands(err), ['sums'], 'programs')
    contains(out, 'bench 9990000000 ["fast", "--bench"]')


# ---- tools ----

@test
def leaks_have_lines():
    """Also where the manifest strips the program, and in a profile without debug information."""
    for profile in ((), ('--release',), ('--profile', 'small')):
        _, err = works(quern('leaks', *profile, '--', 'lose'), 101)
        contains(err, '1,000 bytes in 1 blocks are definitely lost')
        contains(err, 'tally::lose (lib.rs:')
        contains(err, 'app::main (main.rs:9)')
        works(quern('leaks', *profile))


@test
def options_of_quern_stand_first():
    works(quern('--error-exitcode=9', 'leaks', '--', 'lose'), 9)
    works(quern('--leak-check=no', 'leaks', '--', 'lose'))
    contains(works(quern('--max-leaked=900', 'heap', '--', 'lose'), 1)[1], 'BUDGET: not freed 1,')


@test
def tools_write_their_files():
    for tool, name in (('heap', 'heap.*.quern'), ('massif', 'massif.out.*'), ('callgrind', 'callgrind.out.*'),
                       ('dhat', 'dhat.out.*'), ('cachegrind', 'cachegrind.out.*')):
        works(quern(tool, '--bin', 'other'))
        equal(len(glob.glob(os.path.join(suite.FOLDER, 'copy/app', name))), 1, f'files {name}')
    works(quern('bench', '--bench', 'sums'))
    equal(len(glob.glob(os.path.join(suite.FOLDER, 'copy/app/flame.*.svg'))), 1, 'flame graphs')


@test
def crates_of_a_registry():
    if not glob.glob('/usr/share/cargo/registry/itoa-1*'):
        skip('librust-hyper-dev is not installed')
    out, err = works(quern('leaks', '--release', folder='.', source=os.path.join(HERE, 'with-crates')))
    equal(out, '42\n', 'output')
    contains(err, 'ERROR SUMMARY: 0 errors')


# ---- the other way: quern as cargo's runner ----

@test
def documented_runner():
    with open(os.path.join(ROOT, 'docs/cargo.md')) as file:
        text = re.search('```toml\n(.*?)```', file.read(), re.S)[1]
    write('copy.toml', text)
    find_cargo()
    shutil.copytree(os.path.join(HERE, 'workspace'), 'copy')
    write('copy/.cargo/config.toml', text)
    _, err = works(cargo('run', '--', 'lose'))
    equal(commands(err), ['app'], 'programs')
    # A configured runner does not come in between.
    _, err = works(quern('leaks', '--', 'lose'), 101)
    equal(commands(err), ['app'], 'programs')
    out, err = works(cargo('test', '--test', 'whole'))
    equal(commands(err), ['whole'], 'programs')


# ---- messages ----

def fails(result, status, text):
    equal(result[:2], (status, ''), f'status and output (with {result[2]!r})')
    equal(result[2].count('\n'), 1, f'lines in {result[2]!r}')
    contains(result[2], text)


@test
def messages():
    program = os.path.join(BUILD, 'cargo-quern')
    fails(run([program]), 1, 'no command specified; choose one of run, test, bench, leaks')
    fails(run([program, 'quern', 'heep']), 1, "unknown command 'heep'")
    fails(run([program, '--max-peak=1G', 'view']), 1, "unknown command 'view'")
    fails(run([program, 'run'], env={'CARGO': '/no/cargo'}), 127, "cannot run '/no/cargo'")
    fails(run([program, '--as-runner', 'true'], env={'CARGO_QUERN_OPTIONS': 'nonsense\x1f'}), 127, 'nonsense')
    os.mkdir('a folder')
    shutil.copy(program, 'a folder')
    fails(run(['a folder/cargo-quern', 'run']), 1, 'a folder without spaces')
    os.rename('a folder', 'folder')
    fails(run(['folder/cargo-quern', '--as-runner', 'true']), 127, "/folder/quern'")


@test
def help_and_version():
    program = os.path.join(BUILD, 'cargo-quern')
    for words in (['--help'], ['quern', '-h'], ['quern', 'heap', '--help']):
        out, err = works(run([program, *words]))
        contains(out, 'usage: cargo quern [QUERN OPTIONS] COMMAND')
        equal(err, '', 'stderr')
        for tool in ('memcheck', 'heap', 'massif', 'callgrind', 'dhat', 'flame', 'helgrind'):
            contains(out, f' {tool} ')
        assert ' drd ' not in out, out
    assert re.fullmatch(r'cargo-quern-\d+\.\d+\.\d+\n', works(run([program, '--version']))[0])


"""Known differences from Valgrind's massif."""
import os
import re
import subprocess
import time

import suite
from suite import QUERN, contains, equal, failed, run, test
from support import build, comparable, massif, peak, snapshots, valgrind_massif, without_places


@test
def massif_reuse_differs_in_extra_only():
    """Valgrind's allocator leaves odd pieces with the block they were part of, and counts them as
    extra; so with sizes of all kinds the extra bytes differ a little, and with alignments a lot, and
    with them the times."""
    for name, flags, most in (('reuse', (), 3), ('kinds', (), 60), ('containers', (), 3),
                              ('containers', ('-O2',), 3)):
        program = build(name, *flags)
        ours = peak(massif(program, '--peak-inaccuracy=0', '--threshold=0')[0])
        theirs = peak(valgrind_massif(program, '--peak-inaccuracy=0', '--threshold=0'))
        equal(ours['mem_heap_B'], theirs['mem_heap_B'], 'useful bytes')
        equal(*([without_places(line) for line in one['tree']] for one in (ours, theirs)), 'tree')
        extra = theirs['mem_heap_extra_B'] / ours['mem_heap_extra_B']
        if not 1 <= extra <= most:
            failed(f"extra is {ours['mem_heap_extra_B']}, Valgrind's {extra} times that")


@test
def massif_end_is_a_peak():
    """A program that only grows has no peak under Valgrind; here its end is one."""
    program = build('only_grows')
    ours = comparable(massif(program)[0])
    theirs = comparable(valgrind_massif(program))
    equal(ours[:len(theirs)], theirs, 'all but the end')
    top = peak(massif(program)[0])
    equal(top['mem_heap_B'], 320000, 'bytes at the peak')
    contains(top['tree'][1], 'n0: 320000 0x')


@test
def failed_resize_keeps_the_block():
    program = build('resize')
    plain = comparable(massif(program)[0])
    equal(comparable(massif(program, arguments=['fail'])[0]), plain, 'with a failing realloc')


@test
def ignored_blocks_stay_ignored():
    text, _, _ = massif(build('wrappers'), '--alloc-fn=my_alloc', '--ignore-fn=unwanted',
                        '--peak-inaccuracy=0', arguments=['resize'])
    equal(peak(text)['mem_heap_B'], 200 * 320, 'bytes of wanted() alone')


@test
def massif_time_in_milliseconds():
    program = build('grow_shrink')
    path = os.path.join(suite.FOLDER, 'out')
    begin = time.monotonic()
    status, _, err = run([QUERN, 'massif', f'--massif-out-file={path}', program])
    took = time.monotonic() - begin
    equal(status, 0, 'status')
    contains(err, 'Time is in milliseconds')
    with open(path) as file:
        text = file.read()
    contains(text, 'time_unit: ms\n')
    equal(peak(text)['mem_heap_B'], 640000, 'bytes at the peak')
    if not snapshots(text)[-1]['time'] <= 1000 * took:
        failed(f'more than the {took} s of the whole run')


@test
def massif_file_name():
    program = build('only_grows')
    run([QUERN, 'massif', program], cwd=suite.FOLDER)
    names = [name for name in os.listdir(suite.FOLDER) if name.startswith('massif.out.')]
    equal(len(names), 1, 'files')
    if not names[0][11:].isdigit():
        failed(names[0])
    status, _, err = run([QUERN, '-q', 'massif', '--massif-out-file=/no/such/folder/x', program])
    equal(status, 1, 'status')
    contains(err, "cannot write '/no/such/folder/x': No such file or directory")


class Screen:
    """An X server without a screen, and what stands in the titles of its windows."""

    def __init__(self):
        ours, its = os.pipe()
        self.server = subprocess.Popen(['Xvfb', '-displayfd', str(its), '-noreset', '-screen', '0',
                                        '800x600x24'],
                                       pass_fds=[its], stderr=subprocess.DEVNULL)
        os.close(its)
        with os.fdopen(ours) as pipe:
            self.display = ':' + pipe.readline().strip()

    def environment(self):
        # Titles are translated.
        return {**os.environ, 'DISPLAY': self.display, 'QT_QPA_PLATFORM': 'xcb', 'LANG': 'C.UTF-8',
                'LANGUAGE': '', 'HOME': suite.FOLDER, 'XDG_RUNTIME_DIR': suite.FOLDER}

    def titles(self):
        return subprocess.run(['xwininfo', '-root', '-tree'], env=self.environment(),
                              capture_output=True, text=True).stdout

    def close(self):
        self.server.terminate()
        self.server.wait()


def title_with(screen, path):
    """The title of massif-visualizer's window once it has read a file, or has given up on it."""
    viewer = subprocess.Popen(['massif-visualizer', path], env=screen.environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1500):
            titles = screen.titles()
            # Its errors are shown inside the window.
            found = re.search(r'"(Evaluation of .*)": \("massif-vis', titles)
            if found or viewer.poll() is not None:
                return found[1] if found else f'it ended with status {viewer.returncode}'
            time.sleep(0.2)
        return 'no title within five minutes: ' + titles
    finally:
        viewer.kill()
        viewer.wait()


# Where it is installed (packages massif-visualizer, xvfb, x11-utils); the window tells that it has parsed.
@test
def massif_visualizer_reads_it():
    suite.need('massif-visualizer', 'Xvfb', 'xwininfo')
    screen = Screen()
    try:
        for number, (program, options) in enumerate(((build('grow_shrink'), []),
                                                     (build('only_grows'), ['--time-unit=ms']),
                                                     (build('containers'), ['--threshold=0']))):
            text, _, _ = massif(program, *options)
            path = os.path.join(suite.FOLDER, f'seen-{number}.out')
            with open(path, 'w') as file:
                file.write(text)
            contains(title_with(screen, path), f'(seen-{number}.out)')
    finally:
        screen.close()


@test
def ms_print_reads_it():
    program = build('containers')
    massif(program)
    status, out, err = run(['ms_print', 'quern.out'], cwd=suite.FOLDER)
    equal((status, err), (0, ''), 'ms_print')
    contains(out, 'Number of snapshots:')
    contains(out, '(peak)')

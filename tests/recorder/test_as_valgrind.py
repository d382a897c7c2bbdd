"""massif writes the same file as Valgrind's."""
from suite import test
from support import same_as_valgrind


@test
def massif_grow_shrink():
    same_as_valgrind('grow_shrink')


@test
def massif_resize():
    same_as_valgrind('resize')


@test
def massif_deep():
    same_as_valgrind('deep')


@test
def massif_inlined():
    same_as_valgrind('inlined')
    same_as_valgrind('inlined', '--read-inline-info=no')


@test
def massif_library():
    same_as_valgrind('library')


@test
def massif_snapshot_options():
    for options in (['--max-snapshots=10'], ['--max-snapshots=11', '--detailed-freq=1'],
                    ['--max-snapshots=1000', '--detailed-freq=3'], ['--detailed-freq=1000000'],
                    ['--peak-inaccuracy=0'], ['--peak-inaccuracy=20', '--max-snapshots=30']):
        same_as_valgrind('grow_shrink', *options)
        same_as_valgrind('deep', *options)


@test
def massif_tree_options():
    for options in (['--threshold=0'], ['--threshold=0.5', '--depth=5'], ['--threshold=100'],
                    ['--depth=1'], ['--depth=200', '--threshold=0'], ['--heap-admin=0'],
                    ['--heap-admin=1024'],
                    ['--show-below-main=yes', '--threshold=0', '--depth=3']):
        same_as_valgrind('deep', *options)
        same_as_valgrind('inlined', *options)


@test
def massif_function_options():
    for options in (['--alloc-fn=my_alloc'], ['--ignore-fn=unwanted'],
                    ['--alloc-fn=my_alloc', '--ignore-fn=unwanted', '--threshold=0'],
                    ['--alloc-fn=my_alloc', '--alloc-fn=wanted', '--alloc-fn=unwanted']):
        same_as_valgrind('wrappers', *options)

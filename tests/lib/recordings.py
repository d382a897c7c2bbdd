"""Programs whose stacks are those of the source, and recordings of them."""
import os

import suite
from suite import QUERN, source_of, succeed


def build_plain(source, *flags, name=''):
    """Compiles so that each allocation stays, and each call has its frame."""
    return suite.build(source, '-O1', '-fno-builtin', '-fno-optimize-sibling-calls', '-w', *flags,
                       '-lpthread', name=name)


def build_fixed(name, *flags, folders, program=''):
    """Compiles a target from one of these folders. Its addresses are the same in every run, and under
    Valgrind. Without -fno-builtin, the compiler removes allocations that are not used."""
    return suite.build(source_of(name, *folders), '-O1', '-no-pie', '-fno-pie', '-fno-builtin', '-w',
                       *flags, '-lpthread', '-ldl', name=program)


def recording(program, *arguments, name='run.quern', status=0):
    """Records a run with --tool=heap; (path of the recording, stdout of the program)."""
    path = os.path.join(suite.FOLDER, name)
    out, _ = succeed([QUERN, '--tool=heap', f'--heap-out-file={path}', program, *arguments], status)
    return path, out

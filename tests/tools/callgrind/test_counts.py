"""Counts and call graph of many programs, compared with Valgrind's."""
import os
import subprocess
import tempfile

from compose import Composer
from suite import QUERN, TESTS, equal, failed
from support import PLAIN_PROCESSOR, SOURCES, VARIANTS, compare, differences, mine, profile


for _name in SOURCES:
    for _level, _link in VARIANTS:
        def _compare(name=_name, level=_level, link=_link):
            compare(name, level, link)
        TESTS.append((f'as_valgrind_{_name}_O{_level}_{_link}', _compare))


for _number in range(8):
    def _composed(number=_number):
        """Programs that nobody has thought of; what they call of the C library included."""
        throws = number % 2 == 1
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, 'composed.cc' if throws else 'composed.c')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(Composer(number, throws).program())
            # How long a search for unwind tables takes depends on what libraries there are.
            subprocess.run(['g++' if throws else 'gcc', '-g', f'-O{number // 2}', source, '-o',
                            source + '.out', '-static' if throws else '-Wl,-z,now'], check=True)
            (ours, out), (theirs, wanted) = (profile([source + '.out'], runner=runner,
                                                     GLIBC_TUNABLES=PLAIN_PROCESSOR)
                                             for runner in (QUERN, 'valgrind'))
        equal(out.stdout, wanted.stdout, 'output')
        for what in ('own', 'calls', 'inclusive'):
            one, other = (mine(getattr(side, what), os.path.basename(source)) for side in (ours, theirs))
            equal(differences(one, other), {}, what)
        if len(mine(ours.calls, os.path.basename(source))) < 10:
            failed('hardly any calls')
    TESTS.append((f'composed_program_as_valgrind_{_number}', _composed))

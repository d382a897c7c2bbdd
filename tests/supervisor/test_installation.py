"""A broken installation."""
import os

import suite
from suite import contains, equal, run, test
from support import quern


@test
def missing_engine_is_explained():
    program = quern()
    os.unlink(os.path.join(suite.FOLDER, 'stage/quern-engine'))
    status, out, err = run([program, 'none', 'true'])
    equal(status, 1)
    contains(err, 'quern: quern-engine is missing; reinstall or rebuild Quern')


@test
def engine_that_cannot_start_is_explained():
    program = quern()
    with open(os.path.join(suite.FOLDER, 'stage/quern-engine'), 'w') as file:
        file.write('no program')
    status, out, err = run([program, '-q', 'none', 'true'])
    equal(status, 1)
    contains(err, 'cannot start the engine')

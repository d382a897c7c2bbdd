"""Loss records and summaries of leaks."""
import re

from script import LOSSES, Target, play
from suite import contains, equal, golden, test


@test
def losses():
    _, log = play(None, *LOSSES, 'leaks', '1', '1', '0', options=['--leak-check=full'])
    golden(log)


@test
def kinds_of_losses():
    def shown(*options):
        status, log = play(None, *LOSSES, 'leaks', '1', '1', '0',
                           options=['--leak-check=full', '--error-exitcode=1', *options])
        kinds = re.findall(r'blocks are (\w+) \w+ in', log)
        return status, kinds, re.search(r'ERROR SUMMARY: (\d+)', log)[1]
    equal(shown('--show-leak-kinds=all'),
          (1, ['definitely', 'indirectly', 'definitely', 'possibly', 'still'], '3'))
    equal(shown('--show-reachable=yes')[1],
          ['definitely', 'indirectly', 'definitely', 'possibly', 'still'])
    equal(shown('--show-possibly-lost=no')[1], ['definitely', 'definitely'])
    equal(shown('--show-leak-kinds=none', '--errors-for-leak-kinds=all'), (1, [], '5'))
    equal(shown('--show-leak-kinds=reachable', '--errors-for-leak-kinds=none'), (0, ['still'], '0'))
    _, log = play(None, *LOSSES, 'leaks', '0', '1', '0')
    contains(log, 'blocks\nRerun with --leak-check=full to see details of leaked memory\n\n')
    contains(log, 'ERROR SUMMARY: 0 errors from 0 contexts')


@test
def holders():
    target = Target()

    def held(kind, thread, address, pc, steps):
        _, log = play(target, 'keep', '1', '0x21', 'loss', '3', '1', '1', '9', '0', '0', '0', '0',
                      kind, thread, address, pc, steps, 'leaks', '1', '1', '0',
                      options=['--leak-check=full', '--show-leak-kinds=all'])
        return log.split('at 0x21: ???\n')[1].splitlines()[0]
    golden('\n'.join([held('1', '2', '3', '0', '1'),
                      held('2', '1', '0x5000', target.pc('main'), '3'),
                      held('3', '0', target.pc('keep'), '0', '2'),
                      held('3', '0', target.pc('table', 8), '0', '1'),
                      held('4', '0', '0x7000', '0', '1')]) + '\n')


@test
def searches_during_the_run():
    _, log = play(None, 'keep', '1', '0x21', 'loss', '0', '1', '2', '20', '0', '0', '0',
                  *'000000', 'leaks', '1', '0', '0', 'totals', 'loss', '0', '1', '3', '1030', '0',
                  '2', '20', *'000000', 'loss', '2', '1', '1', '5', '0', '0', '0', *'000000',
                  'leaks', '1', '0', '1', options=['--leak-check=full'])
    golden(log)

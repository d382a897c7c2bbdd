"""How findings are counted and limited, and which are ignored."""
import re

from script import errors_of, play, say_path, stage
from suite import contains, equal, golden, run, test


@test
def duplicates_are_counted_once_shown():
    _, log = play(None, 'stack', '0x11', '0x12', '0x13', '0x14', '0x15', 'times', '5', 'condition',
                  '0', 'stack', '0x11', '0x12', '0x13', '0x14', '0x16', 'condition', '0', 'stack',
                  '0x11', '0x12', '0x13', '0x99', 'condition', '0', 'read', '0', '4', 'write', '0',
                  '4', 'read', '0', '8')
    equal(errors_of(log).count('Conditional'), 2)
    equal(errors_of(log).count('Invalid'), 2)
    contains(log, 'ERROR SUMMARY: 10 errors from 4 contexts (suppressed: 0 from 0)')


@test
def less_detail_after_a_hundred():
    _, log = play(None, 'stack', '0x1000', 'many', '101', 'stack', '0x21', '0x22',
                  '0x23', 'condition', '0', 'stack', '0x21', '0x22', '0x24', 'condition', '0')
    contains(log, '\nMore than 100 errors detected.  Subsequent errors\n'
                  'will still be recorded, but in less detail than before.\n')
    contains(log, 'ERROR SUMMARY: 103 errors from 102 contexts')
    equal(log.split('More than 100')[0].count('Invalid read'), 100, 'errors before that is said')


@test
def forked_children_count_on():
    """What a child shows is limited together with what its parent has shown before."""
    status, _, err = run([stage(), say_path(), 'stack', '0x1000', 'many', '95', 'fork', 'stack', '0x90000',
                          'many', '10', 'exit', '0', 'joined', 'exit', '0'])
    equal(status, 0, 'status')
    told = re.findall(r'==(\d+)== More than 100 errors detected', err)
    sums = dict(re.findall(r'==(\d+)== ERROR SUMMARY: (\d+) errors', err))
    equal([sums[pid] for pid in told], ['105'], 'errors of those who have shown a hundred')
    equal(sorted(sums.values()), ['105', '95'], 'errors')


@test
def limit_of_different_errors():
    _, log = play(None, 'stack', '0x1000', 'many', '1005', 'times', '3', 'condition',
                  '0')
    equal(log.count('Invalid read'), 1000)
    contains(log, "More than 1000 different errors detected.  I'm not reporting any more.")
    contains(log, 'ERROR SUMMARY: 1000 errors from 1000 contexts')
    _, log = play(None, 'stack', '0x1000', 'many', '1005', options=['--error-limit=no'])
    equal(log.count('Invalid read'), 1005)
    contains(log, 'ERROR SUMMARY: 1005 errors from 1005 contexts')


@test
def limit_of_errors_in_all():
    _, log = play(None, 'stack', '0x1000', 'times', '10000003', 'condition', '0')
    contains(log, "More than 10000000 total errors detected.  I'm not reporting any more.")
    contains(log, 'ERROR SUMMARY: 10000000 errors from 1 contexts')


@test
def threads_at_once():
    _, log = play(None, 'stack', '0x11', 'together', '16', '20000')
    equal(errors_of(log).count('Conditional'), 1)
    contains(log, 'ERROR SUMMARY: 320000 errors from 1 contexts')


@test
def switched_off_and_counted():
    _, log = play(None, 'stack', '0x11', 'condition', '0', 'disable', '1', 'stack', '0x12',
                  'condition', '0', 'disable', '-1', 'times', '2', 'condition', '0', 'counted')
    contains(log, 'counted 3\n')
    contains(log, 'ERROR SUMMARY: 3 errors from 2 contexts')


@test
def list_of_errors():
    _, log = play(None, 'stack', '0x11', 'times', '3', 'condition', '0', 'thread', '2', 'stack',
                  '0x12', 'value', '8', '0', 'stack', '0x13', 'value', '4', '0', options=['-s'])
    golden(log)


@test
def ignored_accesses():
    def reported(*options):
        _, log = play(None, 'rsp', '0x8000', 'stack', '0x11', 'read', '0x7ff8', '1', 'stack',
                      '0x12', 'read', '0x7c00', '1', 'stack', '0x13', 'read', '0x7bff', '1',
                      'stack', '0x14', 'read', '0x100', '1', 'stack', '0x15', 'read', '0x20f', '1',
                      'stack', '0x16', 'read', '0xdead0010', '1', options=options)
        return re.findall('at 0x(1.):', errors_of(log))
    equal(reported(), ['11', '12', '13', '14', '15'])
    equal(reported('--workaround-gcc296-bugs=yes'), ['13', '14', '15'])
    equal(reported('--ignore-range-below-sp=1024-1000'), ['11', '13', '14', '15'])
    equal(reported('--ignore-ranges=0x100-0x1ff,0x20f-0x20f'), ['11', '12', '13'])

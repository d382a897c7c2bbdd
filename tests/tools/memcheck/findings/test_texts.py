"""The texts of findings: headlines, places of addresses, origins, threads."""
from script import Target, errors_of, play
from suite import contains, equal, golden, test


@test
def invalid_read_after_a_block():
    target = Target()
    main = target.after('main', 'make')
    status, log = play(target, 'keep', '1', target.pc('make', 4), main, 'block', '0x20001000', '40',
                       'live', '1', '0', 'stack', target.pc('outer'), target.after('main', 'outer'),
                       'read', '0x20001028', '4')
    equal(status, 0)
    golden(log)
    equal(log.splitlines()[1].split()[1].rstrip(':'), f"0x{int(target.pc('outer'), 16):X}")


@test
def the_sides_of_a_block():
    def described(address, state, made='1', freed='2', size='1234'):
        return errors_of(play(None, 'keep', '1', '0x11', 'keep', '2', '0x22', 'block', '0x20001000',
                              size, state, made, freed, 'stack', '0x33', 'write', address, '8')[1])
    golden('\n'.join([described('0x20000ff8', 'live'), described('0x20001400', 'freed'),
                      described('0x200014d3', 'freed', freed='0'),
                      described('0x20001000', 'live', size='0'), described('0x0', 'live')]))


@test
def every_headline():
    status, log = play(None, 'stack', '0x11', 'read', '0x0', '16', 'stack', '0x12', 'write', '0x0',
                       '2', 'stack', '0x13', 'condition', '0', 'value', '8', '0', 'jump', '0x77',
                       'parameter', 'exit_group(status)', '0', '0', '0', 'parameter', 'write(buf)',
                       '1', '0x5', '0', 'parameter', 'write(buf)', '2', '0x5', '0', 'client', '0x5',
                       '1', 'stack', '0x14', 'client', '0x5', '0', 'free', '0x9', 'mismatched',
                       '0x9', 'overlap', 'memcpy', '0x20', '0x1f', '7', '1', 'stack', '0x15',
                       'overlap', 'strcpy', '0x20', '0x1f', '0', '0', 'fishy', 'malloc', 'size',
                       '-3', 'pool', '0x9', 'core', 'A signal frame')
    golden(log)


@test
def places_of_addresses():
    target = Target()

    def described(address, *facts):
        log = play(target, *facts, 'stack', '0x33', 'read', address, '1')[1]
        return errors_of(log).replace(f'Address {target.pc("table", 9)} ', 'Address &table[9] ').replace(
            f'Address {target.pc("outer")} ', 'Address &outer ')

    text_segment = described(target.pc('outer'))
    contains(text_segment, f'   at {target.pc("outer").upper().replace("X", "x")}: inner (target.c:')
    on_stack = ['onstack', '0x30000000', '0x30002000']
    mapping = ['mapping', '0x50000000', '0x50001000']
    golden('\n'.join([
        described(target.pc('table', 9)), text_segment,
        described('0x30001010', *on_stack, '2', '1', target.pc('main'), '0'),
        described('0x30001010', *on_stack, '1', '-1', '0', '129'),
        # The red zone is in use.
        described('0x30001010', *on_stack, '1', '-1', '0', '128'),
        described('0x50000010', *mapping, '3', 'anonymous'),
        described('0x50000010', *mapping, '0', 'shared'),
        described('0x50000010', *mapping, '3', 'brk'),
        described('0x4fffffff', *mapping, '3', 'brk'),
        described('0x60000003', 'keep', '1', '0x11', 'named', '0x60000000', '10', 'pool header',
                  '1')]))


@test
def origins():
    made = 0x40000000
    _, log = play(None, 'keep', '1', '0x11', '0x12', 'stack', '0x33', 'condition', '1', 'value',
                  '8', str(made + 1), 'parameter', 'write(buf)', '2', '0x0', str(2 * made + 1))
    golden(log)


@test
def threads_are_named_when_they_change():
    _, log = play(None, 'stack', '0x11', 'condition', '0', 'thread', '3', 'stack', '0x12',
                  'condition', '0', 'stack', '0x13', 'condition', '0', 'thread', '1', 'stack',
                  '0x14', 'condition', '0')
    golden(log)


@test
def names_cannot_steer_a_terminal():
    _, log = play(None, 'stack', '0x11', 'parameter', 'ioctl(\x1b[31m)', '0', '0', '0')
    contains(log, 'Syscall param ioctl(\\x1B[31m) contains')

"""Suppressions: how they match, where they come from, how they are generated."""
import os
import re
import subprocess

from script import BIAS, Target, errors_of, play, stage
from suite import contains, equal, failed, golden, run, test, write


@test
def suppressed_errors():
    target = Target()
    write('s.supp', '# a comment\n\n{\n   one\n   Memcheck:Cond\n   fun:inn*\n   fun:outer\n}\n'
                    '{\n lost\n Memcheck:Leak\n match-leak-kinds: definite\n fun:make\n ...\n'
                    ' src:target.c:20\n}\n')
    _, log = play(target, 'stack', target.pc('outer'), target.after('main', 'outer'), 'times', '4',
                  'condition', '0', 'keep', '1', target.pc('make', 4), target.after('main', 'make'),
                  'loss', '0', '1', '2', '30', '12', *'00000000', 'loss', '2', '1', '1', '5',
                  *'000000000', 'leaks', '1', '1', '0',
                  options=['-s', '--leak-check=full', '--suppressions=s.supp'])
    golden(log)


@test
def matching():
    target = Target()
    stack = ['stack', target.pc('outer'), target.after('main', 'outer')]

    def hidden(lines, *error, kind='Cond'):
        write('m.supp', '{\nn\nMemcheck:%s\n%s\n}\n' % (kind, '\n'.join(lines)))
        _, log = play(target, *stack, *(error or ('condition', '0')),
                      options=['--suppressions=m.supp'])
        return 'ERROR SUMMARY: 0 ' in log
    for lines in (['fun:inner'], ['...', 'fun:main'], ['fun:inner', '...', 'fun:main'],
                  ['fun:i?ner', 'fun:*', 'fun:main'], ['obj:*/target'], ['src:target.c:8'],
                  ['src:targ*', 'src:target.c:12'], ['...', 'src:*.c:22'],
                  ['fun:inner', 'fun:outer', '...', 'fun:main', '...'],
                  ['...', 'fun:outer', '...', 'obj:*']):
        equal(hidden(lines), True, f'{lines}')
    for lines in (['fun:outer'], ['fun:inner', 'fun:main'], ['fun:inne'], ['src:target.c:9'],
                  ['fun:inner', 'fun:outer', 'fun:main', 'fun:more'], ['obj:*/targe'],
                  ['...', 'fun:other'], ['...', 'fun:main', 'fun:outer']):
        equal(hidden(lines), False, f'{lines}')
    equal(hidden(['fun:inner'], 'read', '0', '4', kind='Addr4'), True)
    equal(hidden(['fun:inner'], 'read', '0', '4', kind='Addr8'), False)
    equal(hidden(['fun:inner'], kind='Value0'), True)
    equal(hidden(['write(buf)', 'fun:inner'], 'parameter', 'write(buf)', '2', '0', '0',
                 kind='Param'), True)
    equal(hidden(['write(bu)', 'fun:inner'], 'parameter', 'write(buf)', '2', '0', '0',
                 kind='Param'), False)
    equal(hidden(['malloc(size)', '...', 'fun:main'], 'fishy', 'malloc', 'size', '-1',
                 kind='FishyValue'), True)


@test
def names_in_suppressions():
    """Mangled, demangled, without parameters, without versions: all of them match."""
    write('names.cc', 'namespace a { struct B { int f(int x); }; '
                      'int B::f(int x) { return x + 1; } }\n'
                      'int main() { a::B b; return b.f(2); }\n')
    write('names.rs', 'mod deep { pub struct T; impl T { #[inline(never)] '
                      'pub fn go(&self, n: u32) -> u32 { std::hint::black_box(n) + 1 } } }\n'
                      'fn main() { std::process::exit(deep::T.go(2) as i32); }\n')
    subprocess.run(['g++', '-g', '-O0', '-o', 'names', 'names.cc'], check=True)
    cases = [('names', 'main', '_ZN1a1B1fEi',
              ['_ZN1a1B1fEi', 'a::B::f(int)', 'a::B::f', '*1B1f*', 'a::*::f'])]
    write('versioned.c', 'int real(int x) { return x + 1; }\n'
                         '__asm__(".symver real, versioned@@V1, remove");\n')
    write('versions', 'V1 { global: versioned; local: *; };\n')
    subprocess.run(['gcc', '-shared', '-fPIC', '-Wl,--version-script=versions', '-o', 'versioned.so',
                    'versioned.c'], check=True)
    cases.append(('versioned.so', None, 'versioned@@V1', ['versioned', 'vers*ed']))
    for version in ('legacy', 'v0'):
        name = f'names-{version}'
        mangling = ['-C', 'symbol-mangling-version=v0'] if version == 'v0' else []
        subprocess.run(['rustc', '-g', *mangling, '-o', name, 'names.rs'], check=True)
        cases.append((name, None, None, ['*names*deep*T*go*', '*deep::T*::go']))
    for name, _, symbol, patterns in cases:
        listing = subprocess.run(['nm', name], capture_output=True, text=True).stdout
        lines = [line.split() for line in listing.splitlines()
                 if (symbol or 'deep') in line and (symbol or '2go' in line)]
        target = Target()
        target.path = os.path.abspath(name)
        headers = subprocess.run(['readelf', '-lW', name], capture_output=True, text=True).stdout
        maps = []
        for line in headers.splitlines():
            words = line.split()
            if words and words[0] == 'LOAD':
                low = int(words[2], 16) & ~0xfff
                maps += ['map', hex(low + BIAS), hex((int(words[2], 16) + int(words[5], 16) +
                                                      0xfff & ~0xfff) + BIAS),
                         hex(int(words[1], 16) & ~0xfff), target.path]
        target.maps = maps
        pc = hex(int(lines[0][0], 16) + BIAS)
        for pattern in [*patterns, lines[0][2]]:
            write('n.supp', '{\nn\nMemcheck:Cond\nfun:%s\n}\n' % pattern)
            _, log = play(target, 'stack', pc, 'condition', '0', options=['--suppressions=n.supp'])
            if 'ERROR SUMMARY: 0 ' not in log:
                failed(f'{name}: {pattern} does not match: {errors_of(log)}')


@test
def bad_suppression_files():
    def message(text):
        write('b.supp', text)
        status, out, err = run([stage(), '--suppressions=b.supp', '/bin/true'])
        equal((status, out), (1, ''))
        return f'{text}=> {err}'
    said = [message(text) for text in (
        '{\n x\n', '{\n x\n Memcheck:Foo\n fun:a\n}\n', '{\n x\n Memcheck:Cond\n fu:a\n}\n',
        '{\n x\n Memcheck:Cond\n ...\n}\n', '{\n x\n Memcheck:Param\n fun:a\n}\n',
        '{\n x\n Memcheck:Leak\n match-leak-kinds: some\n fun:a\n}\n', 'hello\n',
        '{\n x\n Memcheck:Cond\n fun:a\n', 'include b.supp\n', 'include gone.supp\n')]
    os.unlink('b.supp')
    status, _, err = run([stage(), '--suppressions=b.supp', '/bin/true'])
    equal(status, 1)
    golden('\n'.join([*said, err]))
    # Entries of other tools are passed over, whatever their kind.
    write('o.supp', '{\n x\n Helgrind:Race\n fun:a\n}\n{\ny\nHelgrind,Memcheck:Cond\nobj:*\n}\n')
    _, log = play(None, 'stack', '0x11', 'condition', '0', options=['--suppressions=o.supp'])
    contains(log, 'suppressed: 1 from 1')


@test
def included_suppressions():
    os.makedirs('sub')
    write('sub/a.supp', 'include deeper.supp\n')
    write('sub/deeper.supp', '{\n deep\n Memcheck:Cond\n obj:*\n}\n')
    _, log = play(None, 'stack', '0x11', 'condition', '0',
                  options=['-s', '--suppressions=sub/a.supp'])
    contains(log, 'used_suppression:      1 deep sub/deeper.supp:2')


@test
def generated_suppressions_match():
    target = Target()
    script = ['keep', '1', target.pc('make', 4), target.after('main', 'make'), 'stack',
              target.pc('outer'), target.after('main', 'outer'), 'condition', '0', 'parameter',
              'writev(vector[...])', '2', '0', '0', 'fishy', 'malloc', 'size', '-1', 'read', '0',
              '64', 'stack', '0x99', 'free', '0x5', 'overlap', 'strcpy', '1', '2', '0', '0',
              'loss', '0', '1', '2', '30', '12', *'00000000', 'loss', '2', '1', '1', '5',
              *'000000000', 'leaks', '1', '1', '0']
    _, log = play(target, *script, options=['--leak-check=full', '--gen-suppressions=all'])
    golden(log)
    write('g.supp', '\n'.join(re.findall(r'^\{\n.*?^\}$', log, re.M | re.S)) + '\n')
    _, log = play(target, *script, options=['--leak-check=full', '--suppressions=g.supp'])
    contains(log, 'ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 8 from 8)')


@test
def suppressions_on_request():
    script = ['stack', '0x11', 'condition', '0', 'stack', '0x12', 'condition', '0', 'stack', '0x13',
              'condition', '0', 'stack', '0x14', 'condition', '0']
    with open('answers', 'w') as file:
        file.write('n\ny\nc\n')
    with open('answers') as answers:
        _, log = play(None, *script, options=['-q', '--gen-suppressions=yes'], stdin=answers)
    golden(log)

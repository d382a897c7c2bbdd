"""The files that the suite shows: ours and the peers', of one small program with a hostile name."""
import os
import random
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
# A name that would run a script if it were taken for markup.
NAME = '<img src=x onerror=alert(1)>'


def make(folder, quern, more=False):
    """Makes all files in folder; {short name: path}. With more of them for pictures and the monkey."""
    program = os.path.join(folder, NAME)
    subprocess.run(['gcc', '-g', '-O1', '-fno-builtin', '-fno-optimize-sibling-calls', '-w',
                    '-I', os.path.join(HERE, '..', '..', 'include'),
                    os.path.join(HERE, 'target.c'), '-o', program, '-lpthread'], check=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('QUERN_OPTS', 'VALGRIND_OPTS')}
    environment['HOME'] = folder
    files = {}

    def run(name, words, option, *arguments, of=program):
        path = files[name] = os.path.join(folder, name)
        done = subprocess.run([*words, f'{option}={path}', of, *arguments], timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors='replace',
                              env=environment, cwd=folder)
        if not os.path.exists(path):
            raise RuntimeError(f'{name} was not written: {done.stderr[-500:]}')

    valgrind = [shutil.which('valgrind') or 'valgrind']
    run('heap.quern', [quern, '--tool=heap'], '--heap-out-file')
    run('massif.ours', [quern, '--tool=massif'], '--massif-out-file')
    run('massif.peer', [*valgrind, '--tool=massif'], '--massif-out-file')
    run('callgrind.ours', [quern, '--tool=callgrind'], '--callgrind-out-file')
    run('callgrind.peer', [*valgrind, '--tool=callgrind'], '--callgrind-out-file')
    with_code = ['--tool=callgrind', '--dump-instr=yes']
    run('instructions.ours', [quern, *with_code], '--callgrind-out-file')
    run('instructions.peer', [*valgrind, *with_code], '--callgrind-out-file')
    run('cachegrind.ours', [quern, '--tool=cachegrind'], '--cachegrind-out-file')
    run('cachegrind.peer', [*valgrind, '--tool=cachegrind'], '--cachegrind-out-file')
    run('dhat.ours', [quern, '--tool=dhat'], '--dhat-out-file')
    run('dhat.peer', [*valgrind, '--tool=dhat'], '--dhat-out-file')
    with open(files['dhat.peer'], 'rb') as whole:
        damage(files, folder, 'dhat.damaged', whole.read()[:-300])
    checked = ['--leak-check=full', '--xml=yes']
    run('memcheck.ours', [quern, *checked, '--show-leak-kinds=all'], '--xml-file', 'errors')
    run('memcheck.peer', [*valgrind, *checked, '--gen-suppressions=all'], '--xml-file', 'errors')
    with open(files['memcheck.peer'], 'rb') as whole:
        damage(files, folder, 'memcheck.cut', whole.read().split(b'</error>')[0] + b'</error><err')
    damage(files, folder, 'memcheck.damaged', b'<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b">]>\n'
           b'<valgrindoutput>&a;</valgrindoutput>\n')
    files['collapsed'] = os.path.join(folder, 'collapsed')
    subprocess.run([quern, 'export', files['heap.quern'], '--as=collapsed', '-o',
                    files['collapsed']], check=True)
    with open(files['heap.quern'], 'rb') as whole:
        content = whole.read()
    # The last chunk is cut in the middle; and one that is no recording beyond its first bytes.
    damage(files, folder, 'cut.quern', content[:-40])
    damage(files, folder, 'damaged.quern', content[:16] + b'\xff' * 200)
    damage(files, folder, 'nothing', b'\x7fELF\x00\x01\x02')
    damage(files, folder, 'massif.damaged', b'desc: x\ncmd: x\ntime_unit: ms\n#---\nsnapshot=0\nrubbish\n')
    if more:
        make_more(folder, quern, run)
    return files


def make_more(folder, quern, run):
    """Of a program with long names; and two recordings to compare."""
    program = os.path.join(folder, 'warehouse')
    subprocess.run(['g++', '-std=c++17', '-g', '-O1', os.path.join(HERE, 'names.cc'), '-o', program],
                   check=True)
    run('names.quern', [quern, '--tool=heap'], '--heap-out-file', of=program)
    run('names.massif', [quern, '--tool=massif'], '--massif-out-file', of=program)
    run('names.callgrind', [quern, '--tool=callgrind', '--dump-instr=yes', '--cache-sim=yes',
                            '--branch-sim=yes'], '--callgrind-out-file', of=program)
    run('names.cachegrind', [quern, '--tool=cachegrind', '--cache-sim=yes'], '--cachegrind-out-file',
        of=program)
    run('names.dhat', [quern, '--tool=dhat'], '--dhat-out-file', of=program)
    run('names.memcheck', [quern, '--leak-check=full', '--xml=yes', '--show-leak-kinds=all'],
        '--xml-file', of=program)
    run('again.quern', [quern, '--tool=heap'], '--heap-out-file', '9', of=program)
    run('flame.stacks', [quern, '--tool=flame', '--flame-out-file=' + os.path.join(folder, 'x.svg')],
        '--flame-stacks-file', '400', of=program)


def damage(files, folder, name, content):
    files[name] = os.path.join(folder, name)
    with open(files[name], 'wb') as file:
        file.write(content)


def large(path, count=200000):
    """A callgrind.out with so many functions. Costs flow from callees to their callers, exactly."""
    chance = random.Random(7)
    inclusive = [chance.randint(1, 1000) for _ in range(count)]
    own = inclusive[:]
    calls = [[] for _ in range(count)]
    for callee in range(count - 1, 0, -1):
        callers = {chance.randint(callee // 9, callee // 4) for _ in range(2)} if callee > 8 else {0}
        for caller in callers:
            part = inclusive[callee] // len(callers)
            calls[caller].append((callee, part))
            inclusive[caller] += part
    with open(path, 'w') as out:
        out.write('# callgrind format\nversion: 1\npositions: line\nevents: Ir\n\n')
        for i in range(count):
            out.write(f'ob=({i % 40 + 1}) lib{i % 40}.so\nfl=({i % 500 + 1}) file{i % 500}.c\n'
                      f'fn=({i + 1}) a_function_with_number_{i}(int, char const*)\n{i % 1000 + 1} {own[i]}\n')
            for callee, part in calls[i]:
                out.write(f'cob=({callee % 40 + 1}) lib{callee % 40}.so\n'
                          f'cfi=({callee % 500 + 1}) file{callee % 500}.c\n'
                          f'cfn=({callee + 1}) a_function_with_number_{callee}(int, char const*)\n'
                          f'calls=1 1\n{i % 1000 + 1} {part}\n')

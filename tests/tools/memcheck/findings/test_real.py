"""Real programs under the real engine, compared with Valgrind."""
import os
import re
import signal
import subprocess
import xml.etree.ElementTree as ElementTree

import suite
from lib.terminal import on_terminal
from script import HERE, LOSSES, plain, play
from suite import contains, equal, failed, run, test, write

SOURCES = os.path.join(HERE, 'targets')
COMPILERS = {'c': ['gcc', '-g', '-O0', '-pthread'], 'cc': ['g++', '-g', '-O0'], 'rs': ['rustc', '-g']}


def build(kind):
    path = os.path.join(suite.FOLDER, f'mistakes-{kind}')
    if not os.path.exists(path):
        subprocess.run([*COMPILERS[kind], '-o', path, os.path.join(SOURCES, f'mistakes.{kind}')],
                       check=True)
    return path


def memcheck(*words, **more):
    return run([suite.QUERN, *words], timeout=300, **more)


def own_part(log):
    """Errors as (headline, own frames), addresses left out."""
    errors = []
    for block in re.split(r'\n\n+', log):
        lines = block.splitlines()
        while lines and re.match(r'Thread \d', lines[0]):
            lines = lines[1:]
        frames_here = [re.sub(r'.*: (.*) \((.*)\)$', r'\1 \2', line) for line in lines
                       if 'mistakes' in line and re.match('   (at|by) ', line)]
        if lines and frames_here and re.match('[A-Z0-9]', lines[0]):
            head = re.sub(r' in loss record.*', '', re.sub('0x[0-9a-f]+', 'A', lines[0]))
            place = [re.sub('0x[0-9a-f]+', 'A', line) for line in lines if 'Address' in line]
            errors.append((head, *place, *frames_here))
    return sorted(errors)


@test
def same_findings_as_valgrind():
    for kind in ('c', 'cc', 'rs'):
        path = build(kind)
        ours = plain(memcheck('--leak-check=full', '--show-leak-kinds=all', path)[2])
        theirs = plain(run(['valgrind', '--leak-check=full', '--show-leak-kinds=all', path], timeout=300)[2])
        equal(own_part(ours), own_part(theirs), f'what was found in mistakes.{kind}')


@test
def variables_of_types_in_units_of_their_own():
    """Valgrind names them with plain debug information only."""
    source = os.path.join(suite.ROOT, 'tests/tools/memcheck/corpus/programs/variables.c')
    found = {}
    for flags in ('-gdwarf-4', '-gdwarf-4 -fdebug-types-section', '-gdwarf-5 -fdebug-types-section'):
        path = os.path.join(suite.FOLDER, 'variables')
        subprocess.run(['gcc', '-w', '-O0', *flags.split(), '-o', path, source], check=True)
        log = plain(memcheck('-q', '--read-var-info=yes', path)[2])
        found[flags] = re.findall(r'Location .* is .*|.*declared at .*', re.sub('0x[0-9a-f]+', 'A', log))
        if len(found[flags]) < 10:
            failed(f'only {len(found[flags])} lines with {flags}')
        equal(found[flags], found['-gdwarf-4'], f'variables with {flags}')


@test
def libraries_at_one_address_keep_their_names():
    """Loaded one after the other, the second would lie where the first has been."""
    for name in ('first', 'second'):
        source = write(f'{name}.c', f'#include <stdlib.h>\nvoid *{name}(void) {{ return malloc(10); }}\n')
        subprocess.run(['gcc', '-g', '-shared', '-fPIC', '-o', f'{suite.FOLDER}/{name}.so', source], check=True)
    source = write('plugins.c', """
        #include <dlfcn.h>
        #include <stdlib.h>
        #include <string.h>
        static int call(const char *folder, const char *name) {
            char path[4096];
            void *library = dlopen(strcat(strcat(strcat(strcpy(path, folder), "/"), name), ".so"), RTLD_NOW);
            if (!library)
                return 1;
            ((void *(*)(void))dlsym(library, name))();
            return dlclose(library);
        }
        int main(int argc, char **argv) {
            for (int i = 2; i < argc; i++)
                if (call(argv[1], argv[i]))
                    return 1;
            return 0;
        }""")
    path = os.path.join(suite.FOLDER, 'plugins')
    subprocess.run(['gcc', '-g', '-o', path, source], check=True)
    names = ['first', 'second', 'first', 'second', 'second']
    done = memcheck('-q', '--keep-debuginfo=yes', '--leak-check=full', path, suite.FOLDER, *names)
    equal(done[0], 0, 'status')
    found = re.findall(r' (\d+) blocks are .*\n.*malloc.*\n.*: (\w+) \(', plain(done[2]))
    equal(sorted(found), [('2', 'first'), ('3', 'second')], 'blocks that each library has lost')


@test
def memory_in_place_of_shadow_is_refused():
    source = write('fixed.c', '#include <errno.h>\n#include <stdio.h>\n#include <sys/mman.h>\n'
                              'int main(void) {\n    for (int i = 0; i < 2; i++) {\n'
                              '        mmap((void *)0x300000000000, 4096, PROT_READ, MAP_PRIVATE | '
                              'MAP_ANONYMOUS | MAP_FIXED, -1, 0);\n'
                              '        printf("%d\\n", errno == ENOMEM);\n    }\n    return 0;\n}\n')
    subprocess.run(['gcc', '-o', 'fixed', source], check=True)
    status, out, log = memcheck('./fixed')
    equal((status, out), (0, '1\n1\n'), 'status and output')
    equal(log.count('asks for memory at 0x300000000000-0x300000000fff, where Quern has its own'), 1)
    contains(log, 'ERROR SUMMARY: 0 errors')


@test
def sanitizers_are_refused_in_one_line():
    source = write('empty.c', 'int main(void) { return 0; }\n')
    for option, name in (('address', 'AddressSanitizer'), ('thread', 'ThreadSanitizer')):
        path = os.path.join(suite.FOLDER, option)
        subprocess.run(['gcc', f'-fsanitize={option}', '-o', path, source], check=True)
        status, _, log = memcheck('-q', path)
        equal(status, 1, 'status')
        equal(log, f'quern: {path} is built with {name}, which cannot run together with memcheck: '
                   f'use --tool=none, or build it without -fsanitize={option}\n', 'message')


@test
def generated_suppressions_silence_real_programs():
    for kind in ('c', 'cc', 'rs'):
        path = build(kind)
        options = ['--leak-check=full', '--show-leak-kinds=all', '--errors-for-leak-kinds=all']
        log = memcheck(*options, '--gen-suppressions=all', path)[2]
        count = int(re.search(r'ERROR SUMMARY: \d+ errors from (\d+)', log)[1])
        if count < 4:
            failed(f'mistakes.{kind} has only {count} errors')
        write('real.supp', '\n'.join(re.findall(r'^\{\n.*?^\}$', log, re.M | re.S)) + '\n')
        log = memcheck(*options, '--suppressions=real.supp', path)[2]
        contains(log, 'ERROR SUMMARY: 0 errors from 0 contexts')


@test
def xml_of_a_real_program():
    path = build('c')
    memcheck('--xml=yes', '--xml-file=ours.xml', path)
    run(['valgrind', '--xml=yes', '--xml-file=theirs.xml', path])

    def told(name):
        root = ElementTree.parse(name).getroot()
        errors = []
        for error in root.findall('error'):
            functions = [frame.findtext('fn') for frame in error.find('stack').findall('frame')
                         if 'mistakes' in (frame.findtext('file') or '')]
            if functions:
                parts = [part.tag for part in error
                         if not (part.text or '').startswith(('Held by', 'A cycle'))]
                errors.append((error.findtext('kind'), error.findtext('tid'), *parts, *functions))
        return sorted(errors), [part.tag for part in root if part.tag != 'error']
    equal(told('ours.xml'), told('theirs.xml'))


def trees(name):
    return suite.xtree(name, 'mistakes.')


@test
def leaks_as_a_tree():
    for kind in ('c', 'cc'):
        path = build(kind)
        log = plain(memcheck('--xtree-leak=yes', '--xtree-leak-file=ours.kcg', path)[2])
        run(['valgrind', '--xtree-leak=yes', '--xtree-leak-file=theirs.kcg', path], timeout=300)
        contains(log, f'xtree leak report: {os.getcwd()}/ours.kcg')
        contains(log, 'definitely lost:')
        if 'in loss record' in log:
            failed('losses are shown, too')
        events, ours = trees('ours.kcg')
        equal(len(events), 27)
        if len(ours) < 3:
            failed(f'only {len(ours)} stacks')
        equal((events, ours), trees('theirs.kcg'), f'trees of mistakes.{kind}')
    memcheck('--xtree-leak=yes', '--xtree-leak-file=plain.kcg', '--xtree-compress-strings=no', path)
    with open('plain.kcg') as file:
        contains(file.read(), '\nfn=main\n')
    write('all.supp', '{\n all\n Memcheck:Leak\n fun:*\n}\n')
    memcheck('--xtree-leak=yes', '--xtree-leak-file=none.kcg', '--suppressions=all.supp', path)
    equal(trees('none.kcg')[1], {'totals': [0] * 27})


@test
def origins_are_recommended_for_errors_that_are_shown():
    hint = 'Use --track-origins=yes to see where uninitialised values come from'
    contains(memcheck(build('c'))[2], hint)
    write('values.supp', ''.join(f'{{\n values\n Memcheck:{kind}\n fun:*\n}}\n'
                                 for kind in ('Cond', 'Value4', 'Value8', 'Param\n write(buf)')))
    log = memcheck('--suppressions=values.supp', build('c'))[2]
    if hint in log:
        failed('nothing about values is shown but the hint')


@test
def killed_real_program():
    process = subprocess.Popen([suite.QUERN, build('c'), 'wait'], stderr=subprocess.PIPE,
                               text=True, env=suite.clean_environment())
    seen = ''
    while 'values[2]' not in seen and "block of size 16 free'd" not in seen:
        seen += process.stderr.readline()
    os.kill(int(re.search(r'==(\d+)==', seen)[1]), signal.SIGKILL)
    log = plain(seen + process.communicate(timeout=300)[1])
    contains(log, 'The process was killed')
    totals = re.search(r'total heap usage: (\d+) allocs, (\d+) frees', log)
    if not totals or int(totals[1]) < 7:
        failed(f'totals: {log[-600:]}')
    if not re.search(r'ERROR SUMMARY: 8 errors from 6 contexts', log):
        failed(log[-300:])


@test
def interrupted_and_timed_out():
    program = build('c')
    status, _, err = memcheck('--duration=2', '--leak-check=full', '--error-exitcode=6', program,
                              'wait')
    equal(status, 6)
    contains(err, 'LEAK SUMMARY:')
    contains(err, 'signal 2 (SIGINT)')
    equal(memcheck('-q', '--error-exitcode=6', program, 'segv')[0], 6)
    equal(memcheck('-q', program, 'segv')[0], -signal.SIGSEGV)


@test
def a_long_search_is_waited_for():
    """Ending takes longer than --duration leaves a program that does not end."""
    for ending, pause, leaks in ((['ending'], '14000', True), ([], '60000', False)):
        _, log = play(None, 'deaf', *ending, *LOSSES, 'sleep', pause, 'leaks', '1', '1', '0',
                      options=['--leak-check=full', '--duration=1'])
        equal('definitely lost:' in log, leaks, 'leaks told')


@test
def forked_real_program():
    status, _, err = memcheck(build('c'), 'fork')
    sums = re.findall(r'==(\d+)== ERROR SUMMARY: (\d+) errors from (\d+)', err)
    equal(sorted((int(errors), int(contexts)) for _, errors, contexts in sums), [(8, 6), (9, 7)])


@test
def followed_programs_have_their_own_summary():
    program = build('c')
    _, _, err = memcheck('--trace-children=yes', 'sh', '-c', f'{program}; {program}; true')
    sums = re.findall(r'==(\d+)== ERROR SUMMARY: (\d+) errors from (\d+)', err)
    equal(sorted(int(errors) for _, errors, _ in sums), [0, 8, 8])
    equal(len({pid for pid, _, _ in sums}), 3, 'processes')
    equal(sums[-1][1], '0', "the last one, the shell's,")
    equal(len(re.findall('Command: ', err)), 3, 'banners')


@test
def thread_of_a_death_in_xml():
    write('die.c', '#include <pthread.h>\n#include <stdlib.h>\nvolatile char sink;\n'
                   'static void *die(void *block) {\n    sink = ((char *)block)[4];\n'
                   '    return *(void *volatile *)8;\n}\n'
                   'int main(void) {\n    pthread_t thread;\n    char *block = malloc(4);\n'
                   '    sink = block[5];\n    pthread_create(&thread, NULL, die, block);\n'
                   '    return pthread_join(thread, NULL);\n}\n')
    subprocess.run(['gcc', '-g', '-pthread', '-o', 'die', 'die.c'], check=True)
    memcheck('--xml=yes', '--xml-file=ours.xml', './die')
    run(['valgrind', '--xml=yes', '--xml-file=theirs.xml', './die'])
    ours, theirs = ([(part.tag, part.findtext('tid')) for part in ElementTree.parse(name).getroot()
                     if part.tag in ('error', 'fatal_signal')] for name in ('ours.xml', 'theirs.xml'))
    equal(ours, theirs, 'threads')
    equal([tid for tag, tid in ours if tag == 'fatal_signal'], ['2'], 'thread that died')


@test
def client_requests_in_xml():
    write('say.c', '#include <valgrind/valgrind.h>\nint main(void) {\n'
                   '    VALGRIND_PRINTF("one <%d>\\n", 1);\n'
                   '    VALGRIND_PRINTF_BACKTRACE("two\\n");\n    return 0;\n}\n')
    subprocess.run(['gcc', '-g', '-o', 'say-it', 'say.c'], check=True)
    memcheck('--xml=yes', '--xml-file=ours.xml', './say-it')
    run(['valgrind', '--xml=yes', '--xml-file=theirs.xml', './say-it'])

    def told(name):
        with open(name) as file:
            text = re.sub(r'<ip>.*</ip>', '', file.read())
        return re.findall(r'<clientmsg>.*?</clientmsg>\n', text, re.S)
    equal(told('ours.xml'), told('theirs.xml'))
    equal(len(told('ours.xml')), 2)


@test
def memory_that_rust_leaves():
    """std's own memory at exit is no error; without the suppressions it is, as under Valgrind."""
    suite.need('rustc')
    for flags in ([], ['-O']):
        subprocess.run(['rustc', '-g', *flags, '-o', 'left', os.path.join(SOURCES, 'left_by_std.rs')], check=True)
        for option, status in (('yes', 0), ('no', 9)):
            got, _, err = memcheck('--leak-check=full', '--error-exitcode=9', f'--default-suppressions={option}',
                                   './left')
            equal(got, status, f'status with suppressions={option}, {flags} ({err[-600:]!r})')


@test
def terminal_has_colours():
    """The text is the same on a terminal; NO_COLOR and pipes have no colours."""
    program = build('c')
    words = [suite.QUERN, '--leak-check=full', program]

    def without_addresses(log):
        # What memcheck says by itself on a terminal only comes last.
        return re.sub('0x[0-9A-Fa-f]+', 'A', plain(log)).split('Diagnosis:')[0]

    _, painted, _ = on_terminal(words, 'stderr')
    _, bare, _ = on_terminal(words, 'stderr', NO_COLOR='1')
    contains(painted, '\033[31mInvalid ')
    if not re.search(r'\033\[31mERROR SUMMARY: [1-9]', painted):
        failed('the number of errors has no colour')
    if '\033' in bare or '\033' in memcheck(*words[1:])[2]:
        failed('there are colours without a terminal, or with NO_COLOR')
    equal(without_addresses(re.sub(r'\033\[\d*m', '', painted)), without_addresses(bare), 'text')


@test
def probes_of_the_stack_are_no_errors():
    """Code that java and others make touches the stack far below its pointer. Accesses by other means
    there, and probes beyond the stack's end, are errors."""
    path = suite.build(write('probe.c', r'''
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static char *lower;
static void probe(void) {
    __asm__ volatile("movl %%eax, -0x4000(%%rsp); orq $0, -0x2008(%%rsp); testl %%eax, -0x1000(%%rsp)" ::: "memory", "cc");
}
static void by_pointer(void) {
    __asm__ volatile("leaq -0x3000(%%rsp), %%rcx\n movl %%eax, (%%rcx)" ::: "rcx", "memory");
}
static void with_index(void) {
    __asm__ volatile("movl $-0x3000, %%ecx\n movslq %%ecx, %%rcx\n movl %%eax, (%%rsp,%%rcx)" ::: "rcx", "memory");
}
static void on_another_stack(void) {
    __asm__ volatile("movq %%rsp, %%rbx\n movq %0, %%rsp\n movl %%eax, -0x1000(%%rsp)\n movq %%rbx, %%rsp"
                     :: "r"(lower) : "rbx", "memory");
}
static void *thread(void *unused) {
    probe();
    by_pointer();
    return unused;
}
int main(void) {
    pthread_t other;
    probe();
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    with_index();
    char *block = malloc(0x8000), *neighbour = malloc(0x8000);
    free(block);
    lower = block + 0x2000;
    on_another_stack();
    free(neighbour);
    return 0;
}
'''), '-O0', '-g', '-pthread')
    log = plain(memcheck('-q', path)[2])
    equal(re.findall(r'Invalid \w+ of size \d\n +at 0x\w+: (\w+)', log),
          ['by_pointer', 'with_index', 'on_another_stack'], 'functions with an error')


@test
def answers_of_userfaultfd_are_not_read():
    """The kernel fills the last word of these structures. What it reads before is checked."""
    path = suite.build(write('userfault.c', r'''
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
static void ask(unsigned long request, int words, int set) {
    unsigned long *block = malloc(8 * words);
    for (int i = 0; i < set; i++)
        block[i] = 0;
    ioctl(-1, request, block);
    free(block);
}
int main(void) {
    ask(UFFDIO_API, 3, 2);
    ask(UFFDIO_REGISTER, 4, 3);
    ask(UFFDIO_COPY, 5, 4);
    ask(UFFDIO_ZEROPAGE, 4, 3);
    ask(UFFDIO_WAKE, 2, 2);
    ask(UFFDIO_WAKE, 2, 1);      // line 18
    ask(UFFDIO_REGISTER, 4, 2);  // line 19
    ask(UFFDIO_COPY, 4, 4);      // line 20: too short for the answer
    return 0;
}
'''), '-O0', '-g')
    log = plain(memcheck('-q', path)[2])
    equal(re.findall(r'points to (\w+).*?main \(userfault.c:(\d+)\)', log, re.S),
          [('uninitialised', '18'), ('uninitialised', '19'), ('unaddressable', '20')], 'errors')

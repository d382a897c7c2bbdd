"""The corpus: small programs with known bugs, found and built.

Every line `// case NAME WORD...` at the head of a source in programs/ is one program. Words:

    gcc, clang        the compiler (gcc); `.cc` takes the C++ one, `.rs` takes rustc
    -FLAG             for the compiler
    --OPTION          for the tool, after the usual ones
    arg:TEXT          an argument of the program
    env:NAME=VALUE    in its environment
    needs:FLAG        of /proc/cpuinfo; skipped without
    clean             no report at all is expected, from either tool
    xml               reports are compared as XML
    plain             without the usual options
    alone             Valgrind cannot run it: marks in the source say what is expected
    unmarked          no stack leads to the line (a jump that leaves no trace of itself)
    roundtrip         generated suppressions, fed back, leave nothing

A line of the source that says `bug` or `leak` in a comment is where a report must point to. In the
sources of cases that run alone, `bug(NAME): HEADLINE` gives the report for that case.
"""
import glob
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILERS = {'.c': {'gcc': 'gcc', 'clang': 'clang'}, '.S': {'gcc': 'gcc', 'clang': 'clang'},
             '.cc': {'gcc': 'g++', 'clang': 'clang++'}}
KEYWORDS = ('clean', 'xml', 'plain', 'alone', 'unmarked', 'roundtrip')
USUAL = ['--leak-check=full', '--show-leak-kinds=all', '-s']


class Case:
    def __init__(self, name, source, words):
        self.name, self.source = name, source
        self.compiler, self.flags, self.options, self.arguments = 'gcc', [], [], []
        self.environment, self.needs, self.keywords = {}, [], set()
        for word in words:
            if word in ('gcc', 'clang'):
                self.compiler = word
            elif word in KEYWORDS:
                self.keywords.add(word)
            elif word.startswith('--'):
                self.options.append(word)
            elif word.startswith('-'):
                self.flags.append(word)
            elif word.startswith('arg:'):
                self.arguments.append(word[4:])
            elif word.startswith('env:'):
                key, value = word[4:].split('=', 1)
                self.environment[key] = value
            elif word.startswith('needs:'):
                self.needs.append(word[6:])
            else:
                raise ValueError(f'{source}: case {name}: what is {word!r}?')

    @property
    def language(self):
        return os.path.splitext(self.source)[1]

    def tool_options(self):
        return ([] if 'plain' in self.keywords else USUAL) + self.options

    def build_command(self, output):
        if self.language == '.rs':
            flags = self.flags or ['-Copt-level=0']
            return [find_rustc(), '--edition=2021', '-g', '-Cdwarf-version=4', '-Awarnings', *flags,
                    os.path.basename(self.source), '-o', output]
        level = [] if any(flag.startswith('-O') for flag in self.flags) else ['-O0']
        # Valgrind 3.19 cannot read what clang 14 writes by default.
        debug = '-gdwarf-4' if self.compiler == 'clang' else '-g'
        libraries = [flag for flag in self.flags if flag.startswith('-l')]
        flags = [flag for flag in self.flags if not flag.startswith('-l')]
        return [COMPILERS[self.language][self.compiler], '-w', debug, '-pthread', *level, *flags,
                os.path.basename(self.source), '-o', output, *libraries]


def find_rustc():
    return shutil.which('rustc') or os.path.expanduser('~/.cargo/bin/rustc')


def cases():
    found = {}
    for source in sorted(glob.glob(os.path.join(HERE, 'programs', '*'))):
        if not source.endswith(('.c', '.cc', '.rs', '.S')):
            continue
        with open(source) as file:
            for line in file:
                match = re.match(r'(?://|#) case (\S+)(.*)', line)
                if not match:
                    continue
                if match[1] in found:
                    raise ValueError(f'two cases are called {match[1]}')
                found[match[1]] = Case(match[1], source, shlex.split(match[2]))
    return found


def why_skipped(case):
    """A reason, or None."""
    if case.language == '.rs' and not os.path.exists(find_rustc()):
        return 'no rustc'
    if case.compiler == 'clang' and not shutil.which('clang'):
        return 'no clang'
    with open('/proc/cpuinfo') as file:
        has = set(re.search(r'^flags\s*:(.*)', file.read(), re.M)[1].split())
    missing = [flag for flag in case.needs if flag not in has]
    return f'this processor has no {missing[0]}' if missing else None


VERSIONS = {}
LOCKS = {}  # of programs


def version_of(compiler):
    if compiler not in VERSIONS:
        VERSIONS[compiler] = subprocess.run([compiler, '--version'], capture_output=True,
                                            text=True).stdout
    return VERSIONS[compiler]


def digest(*parts):
    state = hashlib.sha256()
    for part in parts:
        state.update(part if isinstance(part, bytes) else str(part).encode())
        state.update(b'\0')
    return state.hexdigest()


def headers():
    for path in sorted(glob.glob(os.path.join(HERE, 'programs', '*.h'))):
        with open(path, 'rb') as file:
            yield file.read()


def place_of(case, folder):
    """Where the program of a case is, which it may share with others. The name says what it is made
    from, so a program that is there is the right one."""
    command = case.build_command('')
    with open(case.source, 'rb') as file:
        key = digest(file.read(), *headers(), command, version_of(command[0]))
    stem = os.path.splitext(os.path.basename(case.source))[0]
    return os.path.join(folder, f'{stem}-{key[:16]}', stem)


def build(case, folder):
    """The program's path; built when it is not there already. Threads may ask at the same time."""
    output = place_of(case, folder)
    with LOCKS.setdefault(output, threading.Lock()):
        if os.path.exists(output):
            return output
        os.makedirs(os.path.dirname(output), exist_ok=True)
        done = subprocess.run(case.build_command(output + '.new'), capture_output=True, text=True,
                              timeout=300, cwd=os.path.dirname(case.source))
        if done.returncode:
            raise RuntimeError(f'it does not compile: {done.stderr.strip()[:500]}')
        os.rename(output + '.new', output)
        return output


def marked_lines(source):
    """Numbers of lines with a comment that says bug or leak."""
    with open(source) as file:
        return {number for number, line in enumerate(file, 1)
                if re.search(r'(//|/\*|#).*\b(bug|leak)\b', line)
                and not line.startswith(('// case', '# case'))}


def expected_reports(case):
    """[(line, headline)] of a case that runs alone, in the order of lines."""
    found = []
    with open(case.source) as file:
        for number, line in enumerate(file, 1):
            for name, headline in re.findall(r'bug\(([^)]*)\): ([^;*]*)', line):
                if case.name in name.split(','):
                    found.append((number, headline.strip()))
    return found

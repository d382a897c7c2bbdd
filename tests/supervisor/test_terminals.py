"""Terminals and job control."""
import os
import pty
import re
import signal
import sys
import threading
import time

import suite
from suite import contains, equal, failed, others, state, test, until
from support import both, child_of, quern, start_cat


def is_pending(pid, number):
    with open(f'/proc/{pid}/status') as file:
        text = file.read()
    return any(int(mask, 16) & 1 << number - 1
               for mask in re.findall(r'^(?:Sig|Shd)Pnd:\s*(\w+)', text, re.M))


def started(*words):
    """The pid of the test's process with this command line, once there is one."""
    wanted = '\0'.join(words) + '\0'
    mark = os.environ[suite.MARK]

    def look():
        for pid in others(mark):
            try:
                with open(f'/proc/{pid}/cmdline') as file:
                    if file.read() == wanted:
                        return pid
            except OSError:
                pass
        return None
    return until(look, what=f'{words}')


class Terminal:
    """A command as the foreground job of a shell (this process's child) on a terminal."""

    def __init__(self, words):
        self.text = ''
        result_out, result_in = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.close(result_out)
            self.be_a_shell(words, result_in)
        os.close(result_in)
        self.results = os.fdopen(result_out)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @staticmethod
    def be_a_shell(words, results):
        """Reports what the job does and continues it when told to by SIGUSR1."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpgrp())
            for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
            os.execvpe(words[0], words, suite.clean_environment())
        while True:
            status = os.waitpid(job, os.WUNTRACED)[1]
            if os.WIFSTOPPED(status):
                os.write(results, f'stopped {os.WSTOPSIG(status)}\n'.encode())
                signal.sigwait([signal.SIGUSR1])
                os.tcsetpgrp(0, job)
                os.killpg(job, signal.SIGCONT)
                continue
            code = (f'signal {os.WTERMSIG(status)}' if os.WIFSIGNALED(status)
                    else f'exit {os.WEXITSTATUS(status)}')
            os.write(results, (code + '\n').encode())
            os._exit(0)

    def read(self):
        while True:
            try:
                data = os.read(self.master, 4096)
            except OSError:
                return
            if not data:
                return
            self.text += data.decode(errors='replace')

    def type(self, keys):
        os.write(self.master, keys.encode())

    def job(self):
        """The process on the terminal: the child of its shell."""
        return child_of(self.pid)

    def interrupt(self, times):
        """Types the so-manieth Ctrl+C; returns when the job, which keeps SIGINT blocked, has taken it
        (two at once are one)."""
        self.type(CTRL_C)
        until(lambda: self.text.count('^C') >= times, what='the echo')
        until(lambda: not is_pending(self.job(), signal.SIGINT), what='the interrupt')

    def wait_for(self, text, seconds=300):
        try:
            until(lambda: text in self.text, seconds)
        except suite.Failed:
            failed(f'the terminal does not show {text!r}, but {self.text!r}')

    def result(self, seconds=300):
        box = []
        thread = threading.Thread(target=lambda: box.append(self.results.readline().strip()),
                                  daemon=True)
        thread.start()
        thread.join(seconds)
        if not box:
            failed(f'the job did not change within {seconds} s; the terminal shows {self.text!r}')
        return box[0]

    def go_on(self):
        """Continues the stopped job; returns when all of it is waiting again."""
        os.kill(self.pid, signal.SIGUSR1)
        job = self.job()
        until(lambda: state(job) == 'S' and state(child_of(job)) == 'S', what='the continued job')

    def close(self):
        os.waitpid(self.pid, 0)
        self.reader.join(2)
        os.close(self.master)


CTRL_C, CTRL_Z, CTRL_BACKSLASH = '\x03', '\x1a', '\x1c'


@both
def ctrl_c_ends_a_program(program):
    terminal = Terminal([program, 'none', 'sh', '-c', 'echo ready; exec sleep 100'])
    terminal.wait_for('ready\r')
    time.sleep(0.2)
    terminal.type(CTRL_C)
    equal(terminal.result(), f'signal {int(signal.SIGINT)}')
    terminal.close()
    text = re.sub(r'\033\[\d*m', '', terminal.text)  # without colours
    if not re.search(r'==\d+== Process (ended by|terminating with default action of) signal 2', text):
        failed(f'no report in {text!r}')


@both
def ctrl_c_is_handled_by_the_program(program):
    terminal = Terminal([program, '-q', 'none', 'bash', '-c',
                         'trap "echo caught; exit 4" INT; echo ready; while :; do sleep 0.05; done'])
    terminal.wait_for('ready\r')
    terminal.type(CTRL_C)
    equal(terminal.result(), 'exit 4')
    terminal.close()
    contains(terminal.text, 'caught')


@test
def second_ctrl_c_stops_at_once():
    terminal = Terminal([quern(), 'none', 'bash', '-c',
                         'trap "" INT; echo ready; while :; do sleep 0.05; done'])
    terminal.wait_for('ready\r')
    terminal.interrupt(1)
    terminal.type(CTRL_C)
    equal(terminal.result(), f'signal {int(signal.SIGTERM)}')
    terminal.close()
    contains(terminal.text, 'signal 15 (SIGTERM)')


@test
def second_ctrl_c_insists():
    terminal = Terminal([quern(), 'none', 'bash', '-c',
                         'trap "" INT TERM; echo ready; while :; do sleep 0.05; done'])
    terminal.wait_for('ready\r')
    terminal.interrupt(1)
    terminal.interrupt(2)
    begin = time.monotonic()
    terminal.type(CTRL_C)
    equal(terminal.result(), f'signal {int(signal.SIGKILL)}')
    took = time.monotonic() - begin
    terminal.close()
    # It would have come five seconds after the second one.
    if took > 4.9:
        failed('the third one waited')


@test
def ctrl_c_is_left_to_interactive_programs():
    text = ('import signal, sys, termios, time\n'
            'mode = termios.tcgetattr(0)\n'
            'mode[3] &= ~(termios.ICANON | termios.ECHO)\n'
            'termios.tcsetattr(0, termios.TCSANOW, mode)\n'
            'signal.signal(signal.SIGINT, lambda *_: print("caught", flush=True))\n'
            'print("ready", flush=True)\n'
            'while sys.stdin.read(1) != "q": pass\n'
            'sys.exit(8)\n')
    terminal = Terminal([quern(), '-q', 'none', sys.executable, '-c', text])
    terminal.wait_for('ready\r')
    for times in range(1, 5):
        terminal.type(CTRL_C)
        until(lambda: terminal.text.count('caught') >= times, what=f'{times} interrupts')
    terminal.type('q')
    equal(terminal.result(), 'exit 8')
    terminal.close()


@both
def ctrl_z_and_foreground(program):
    terminal = Terminal([program, '-q', 'none', 'sh', '-c', 'echo ready; read line; echo "got $line"'])
    terminal.wait_for('ready\r')
    time.sleep(0.2)
    for _ in range(3):
        terminal.type(CTRL_Z)
        equal(terminal.result(), f'stopped {int(signal.SIGTSTP)}')
        terminal.go_on()
    terminal.type('words\n')
    terminal.wait_for('got words')
    equal(terminal.result(), 'exit 0')
    terminal.close()


@test
def stop_of_the_target_stops_the_job():
    path = os.path.join(suite.FOLDER, 'pid')
    terminal = Terminal([quern(), '-q', 'none', 'sh', '-c',
                         f'echo $$ >{path}; kill -STOP $$; echo again; read line'])
    equal(terminal.result(), f'stopped {int(signal.SIGSTOP)}')
    terminal.go_on()
    terminal.wait_for('again')
    terminal.type('\n')
    equal(terminal.result(), 'exit 0')
    terminal.close()


@test
def continuing_the_target_continues_the_job():
    process, child = start_cat(quern(), '-q')
    os.kill(child, signal.SIGSTOP)
    until(lambda: state(process.pid) == 'T', what='the stop of the supervisor')
    os.kill(child, signal.SIGCONT)
    process.communicate(timeout=300)
    equal(process.returncode, 0)


@test
def continuing_the_supervisor_continues_the_target():
    process, child = start_cat(quern(), '-q')
    os.kill(child, signal.SIGSTOP)
    until(lambda: state(process.pid) == 'T', what='the stop of the supervisor')
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=300)
    equal(process.returncode, 0)


@both
def terminal_size_and_mode_are_seen(program):
    terminal = Terminal([program, '-q', 'none', 'sh', '-c', 'stty rows 33 cols 77; stty size; tty'])
    terminal.wait_for('33 77')
    terminal.wait_for('/dev/pts/')
    equal(terminal.result(), 'exit 0')
    terminal.close()


@both
def interactive_shell(program):
    terminal = Terminal([program, '-q', 'none', 'bash', '--norc', '-i'])
    terminal.wait_for('# ' if os.getuid() == 0 else '$ ')
    terminal.type('echo $((20+1)); sleep 100\n')
    terminal.wait_for('21\r')
    started('sleep', '100')
    terminal.type(CTRL_C)
    terminal.type('echo $((40+2))\n')
    terminal.wait_for('42\r')
    terminal.type('echo $((30+3)); sleep 50\n')
    terminal.wait_for('33\r')
    sleeper = started('sleep', '50')
    terminal.type(CTRL_Z)
    terminal.wait_for('Stopped')
    terminal.type('fg\n')
    until(lambda: state(sleeper) == 'S', what='the continued job')
    terminal.type(CTRL_C)
    terminal.type('exit 9\n')
    equal(terminal.result(), 'exit 9')
    terminal.close()


@test
def ctrl_backslash_ends_a_program():
    terminal = Terminal([quern(), '-q', 'none', 'sh', '-c', 'echo ready; exec sleep 100'])
    terminal.wait_for('ready\r')
    time.sleep(0.2)
    terminal.type(CTRL_BACKSLASH)
    equal(terminal.result(), f'signal {int(signal.SIGQUIT)}')
    terminal.close()

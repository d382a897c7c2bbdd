"""Runs a command on a terminal of its own."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

import suite


def on_terminal(words, stream='stdout', columns=100, **environment):
    """(status, text that came on the terminal, bytes of the other stream).

    `stream` is the one that is a terminal of this width: stdout or stderr.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 40, columns, 0, 0))
    env = suite.clean_environment(TERM='xterm-256color', LC_ALL='C.UTF-8')
    env.pop('NO_COLOR', None)
    env.update(environment)
    other = 'stderr' if stream == 'stdout' else 'stdout'
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=env,
                               **{stream: follower, other: subprocess.PIPE})
    os.close(follower)
    chunks = []
    try:
        while chunk := os.read(leader, 65536):
            chunks.append(chunk)
    except OSError:
        pass  # A read fails when no process has the terminal open any more.
    os.close(leader)
    said = getattr(process, other).read()
    return process.wait(), b''.join(chunks).decode().replace('\r\n', '\n'), said

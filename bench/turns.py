"""What sampling takes from a program, seen while it runs.

Sampling is switched off and on again a few times a second (`quern ctl`), and the CPU time that the
program takes for a piece of its work is compared between a turn and the two beside it. Whatever else
the machine does lasts longer than a turn, or meets turns of both kinds: what differs is the samples, and
what they leave in caches. While it is off nothing is left of sampling but news of mappings and
processes, and, by timers, a signal in 50 ms. Where memory happens to lie makes a run's difference larger
or smaller for all of its turns, so several runs are put together.
"""

import collections
import os
import re
import shlex
import socket
import statistics
import subprocess
import time

from measure import DATA, QUERN, Failure, fill, redis_command, start_redis

TURN = 0.25    # seconds
SETTLE = 0.06  # after switching: by timers a thread takes up to 50 ms to notice
MOST_WAIT = 30
ENDLESS = 10 ** 10  # of a size

Turn = collections.namedtuple("Turn", "on begin end")
Difference = collections.namedtuple("Difference", "share low high count")


def control(pid, wish):
    subprocess.run([QUERN, "ctl", str(pid), wish], check=True, stdout=subprocess.DEVNULL, timeout=60)


def switch(pid, seconds, probe=time.monotonic):
    """Turns of a run, in order, each with what `probe` said at its begin and end."""
    turns = []
    end = time.monotonic() + seconds
    on = True
    while time.monotonic() < end:
        on = not on
        control(pid, "on" if on else "off")
        time.sleep(SETTLE)
        begin = probe()
        time.sleep(TURN)
        turns.append(Turn(on, begin, probe()))
    return turns


def differences(turns, costs):
    """How much more a piece of work costs in turns that are on, beside the turns around."""
    shares = []
    for i in range(1, len(turns) - 1):
        beside = costs[i - 1], costs[i + 1]
        if costs[i] and all(beside):
            ratio = costs[i] / statistics.mean(beside)
            shares.append((ratio if turns[i].on else 1 / ratio) - 1)
    return shares


def middle_of(runs):
    """Of what several runs have said: the median, and bounds within which it lies 95 times out of
    100."""
    shares = sorted(share for run in runs for share in run)
    if len(shares) < 20:
        raise Failure(f"{len(shares)} turns are too few")
    middle, reach = len(shares) // 2, int(len(shares) ** 0.5)
    return Difference(statistics.median(shares), shares[middle - reach], shares[middle + reach],
                      len(shares))


def read_pace(path):
    """The number of the program, and (time, CPU time) of each piece of work that it has done."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.endswith("\n")]
    return (int(lines[0][0]) if lines else None), [tuple(map(float, line)) for line in lines[1:]]


def cost_of(turn, pieces):
    """CPU seconds for a piece of work that lies within the turn; None: there is none."""
    within = [cpu for when, cpu in pieces if turn.begin <= when <= turn.end]
    return (within[-1] - within[0]) / (len(within) - 1) if len(within) > 1 else None


def of_program(workload, prefix, seconds):
    """Of a program that writes into the file PACE its number, and whenever it has done a piece of work
    the time and its CPU time."""
    path = os.path.join(DATA, "pace")
    with open(path, "w", encoding="utf-8"):
        pass
    command = fill(workload["command"], {**workload, "size": ENDLESS})
    running = subprocess.Popen([*prefix, *shlex.split(command)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env={**os.environ, "PACE": path})
    before = time.monotonic()
    while not (pid := read_pace(path)[0]):
        if running.poll() is not None or time.monotonic() - before > MOST_WAIT:
            running.kill()
            raise Failure("does not begin")
        time.sleep(0.02)
    time.sleep(1)
    turns = switch(pid, seconds)
    control(pid, "stop")
    running.wait()
    pieces = read_pace(path)[1]
    return differences(turns, [cost_of(turn, pieces) for turn in turns])


def of_redis(workload, prefix, seconds):
    """Of the server's first thread, for each request that redis-benchmark sends it."""
    server, path, client = start_redis(prefix)
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)

    def ask(name):
        link.sendall(b"INFO everything\r\n")
        text = b""
        while not text.endswith(b"\r\n") or b"# Keyspace" not in text:
            text += link.recv(65536)
        return int(re.search(rb"%b:(\d+)" % name, text)[1])
    pid = ask(b"process_id")

    def probe():
        with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
            taken = int(file.read().split()[0])
        return taken, ask(b"total_commands_processed")
    # Requests of one kind: those of another would cost more or less from one turn to the next.
    load = subprocess.Popen([*redis_command(path, {**workload, "tests": "set"}), "-l"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    time.sleep(1)
    turns = switch(pid, seconds, probe)
    load.kill()
    load.wait()
    link.close()
    subprocess.call([*client, "shutdown", "nosave"], stdout=subprocess.DEVNULL)
    server.wait()
    return differences(turns, [(turn.end[0] - turn.begin[0]) / (turn.end[1] - turn.begin[1])
                               if turn.end[1] > turn.begin[1] else None for turn in turns])

"""Runs of workloads: their time, their peak memory, their output.

A sample is one run: CPU seconds (user and system, children included), wall seconds, and the peak
resident memory in bytes of the largest process. A workload's kind says which of them counts.
"""

import collections
import glob
import hashlib
import os
import shlex
import signal
import statistics
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(HERE, "..", "build")))
QUERN = os.environ.get("QUERN", os.path.join(BUILD, "quern"))
DATA = os.path.join(BUILD, "bench")
PROGRAMS = os.path.join(HERE, "programs")
MOST_SECONDS = 900  # for one run
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# Columns whose tool writes to the program's standard output: it cannot be compared.
TALKATIVE = ("heaptrack",)
REDIS_TESTS = "set,get,incr,lpush,hset,zadd,lrange_100"

Sample = collections.namedtuple("Sample", "cpu wall peak")


class Failure(Exception):
    """A run that did not do its work; it is shown in the table instead of a time."""


def fill(text, workload=None):
    text = text.replace("{data}", DATA).replace("{programs}", PROGRAMS)
    if workload:
        text = text.replace("{size}", str(workload.get("size", "")))
        text = text.replace("{name}", workload["name"])
    return text


def wait(process, start):
    """The sample of a process, and its exit status."""
    timer = threading.Timer(MOST_SECONDS, lambda: os.kill(process.pid, signal.SIGKILL))
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    return Sample(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024), process.returncode


def measure(argv, stdin=None, stdout=None):
    """(sample, exit status) of one run."""
    start = time.monotonic()
    try:
        process = subprocess.Popen(argv, stdin=stdin or subprocess.DEVNULL,
                                   stdout=stdout or subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError as missing:
        raise Failure(f"no {os.path.basename(argv[0])}") from missing
    return wait(process, start)


def run_program(workload, prefix):
    """(sample, digest of stdout)"""
    argv = prefix + shlex.split(fill(workload["command"], workload))
    out_path = os.path.join(DATA, "stdout")
    with open(fill(workload["stdin"]) if "stdin" in workload else os.devnull, "rb") as stdin, \
            open(out_path, "wb") as out:
        sample, status = measure(argv, stdin, out)
    if status != 0:
        raise Failure(f"status {status}")
    with open(out_path, "rb") as out:
        return sample, hashlib.file_digest(out, "sha256").hexdigest()


def start_redis(prefix, arguments=""):
    """A server that answers: its process, its socket and the command that asks it."""
    socket = os.path.join(DATA, "redis.sock")
    if os.path.exists(socket):
        os.unlink(socket)
    client = ["redis-cli", "-s", socket]
    start = time.monotonic()
    server = subprocess.Popen(
        prefix + ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", DATA,
                  *shlex.split(arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while subprocess.call(client + ["ping"], **QUIET) != 0:
        if server.poll() is not None or time.monotonic() - start > 30:
            server.kill()
            server.wait()
            raise Failure("does not answer")
        time.sleep(0.02)
    return server, socket, client


def redis_command(socket, workload):
    return ["redis-benchmark", "-s", socket, "-q", "-n", str(workload["size"]), "-c", "20",
            "-r", str(workload.get("keys", 10000)), "-P", str(workload.get("pipeline", 1)),
            "-t", workload.get("tests", REDIS_TESTS)]


def run_redis(workload, prefix):
    """The server's CPU time while redis-benchmark sends it a fixed number of requests; the wall
    time is that of redis-benchmark."""
    start = time.monotonic()
    server, socket, client = start_redis(prefix, workload.get("arguments", ""))
    begin = time.monotonic()
    subprocess.call(redis_command(socket, workload), **QUIET)
    wall = time.monotonic() - begin
    subprocess.call(client + ["shutdown", "nosave"], **QUIET)
    sample, status = wait(server, start)
    if status != 0:
        raise Failure(f"status {status}")
    return sample._replace(wall=wall), ""


def run_search(workload, prefix):
    """What a leak search adds to a run without one."""
    samples = []
    for option in ("--leak-check=no", "--leak-check=summary"):
        sample, digest = run_program(workload, [*prefix, option])
        samples.append(sample)
    return Sample(*(b - a for a, b in zip(*samples))), digest


RUNNERS = {"redis": run_redis, "rate": run_redis, "search": run_search}


def make_once(text):
    """Runs a generator once; a stamp holds the text that made what is there."""
    stamp = os.path.join(DATA, "made-" + hashlib.md5(text.encode()).hexdigest())
    if text and not os.path.exists(stamp):
        subprocess.run(["sh", "-ec", text], cwd=DATA, check=True)
        with open(stamp, "w", encoding="utf-8") as f:
            f.write(text + "\n")


def make(workload, column="native"):
    make_once(fill(workload.get("asan" if column == "asan" else "make", "")))


def find_file(pattern):
    """The newest file of that name in DATA, or None."""
    found = glob.glob(os.path.join(DATA, pattern))
    return max(found, key=os.path.getmtime) if found else None


def measure_file(pattern, printer):
    """(bytes of what a run left behind, CPU seconds to print it), or None."""
    path = find_file(pattern)
    if not path:
        return None
    sample, status = measure([*printer, path])
    size = os.path.getsize(path)
    os.unlink(path)
    return (size, sample.cpu) if status == 0 else None


def for_column(workload, column):
    """The workload as the column runs it: ASan needs a build of its own, NAME-asan."""
    if column != "asan":
        return workload
    name, _, rest = workload["command"].partition(" ")
    return {**workload, "command": f"{name}-asan {rest}"}


def measure_workload(workload, prefixes, runs, files):
    """column -> sample of medians or Failure, from interleaved runs; under "files" what
    measure_file says of the last of them."""
    run = RUNNERS.get(workload.get("kind"), run_program)
    samples = {column: [] for column in prefixes}
    digests = {}
    sizes = {}
    result = {"files": sizes}
    for _ in range(runs):
        for column, prefix in prefixes.items():
            if column in result:
                continue
            try:
                sample, digest = run(for_column(workload, column), prefix)
                if digest != digests.setdefault("native", digest) and column not in TALKATIVE:
                    raise Failure("wrong output")
                samples[column].append(sample)
                if column in files:
                    sizes[column] = measure_file(*files[column])
            except Failure as failure:
                result[column] = failure
    for column, values in samples.items():
        if column not in result:
            result[column] = Sample(*(statistics.median(v) for v in zip(*values)))
    return result

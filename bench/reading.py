"""bench/run read: how long a long recording and a large call graph take to open, and how much memory.

Each program is recorded once by Quern, and once with fewer events by Quern and heaptrack. Then
  first view  `quern view` is started and asked what the page asks at first: what the file is, and
              the heaviest functions. Seconds of the clock until all is answered, CPU seconds, and
              the most memory the server has had
  replayed    CPU seconds of `quern print` for the file without its index, as one that was cut off
  both print  CPU seconds of `quern print` and heaptrack_print for the same program
Of a callgrind.out with 200,000 functions the first view is the flame graph.
  in Chromium seconds of the clock from starting `quern view` until the page shows the first view. What
              it takes (chromium, and playwright-core in the build folder) is installed as tests/view
              does; where that cannot be, a line below the table says why
  busy        milliseconds of the longest task of the page while the flame graph is zoomed
Times are medians.
"""

import glob
import http.client
import json
import os
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import time

from measure import DATA, HERE, PROGRAMS, QUERN, measure

sys.path.append(os.path.join(HERE, "..", "tests", "view"))
import browser
import files as view_files

MIB = 1 << 20
LIMIT = 5.0  # seconds to the first view
BUSY = 200  # milliseconds that a task may take while somebody zooms
# name, program, arguments; {events} are allocations and releases, {pairs} of each of 2 or 200 threads
PROGRAMS_READ = [
    ("pairs, 2 threads", "pairs", "2 {pairs2} 5"),
    ("pairs, 200 threads", "pairs", "200 {pairs200} 20"),
    ("churn, 8 threads", "churn", "8 {events}"),
]


def command(program, arguments, events):
    words = arguments.format(events=events, pairs2=events // 4, pairs200=events // 400)
    return [os.path.join(DATA, program), *shlex.split(words)]


def build(program):
    path = os.path.join(DATA, program)
    subprocess.run(["cc", "-O2", "-g", "-pthread", "-o", path,
                    os.path.join(PROGRAMS, program + ".c")], check=True)


def record(argv, path):
    subprocess.run([QUERN, "--tool=heap", "-q", f"--heap-out-file={path}", *argv], check=True,
                   stdout=subprocess.DEVNULL)


def without_index(path, to):
    """A copy that ends where the index begins."""
    shutil.copyfile(path, to)
    with open(to, "r+b") as file:
        file.seek(-16, os.SEEK_END)
        position, magic = struct.unpack("<Q8s", file.read(16))
        if magic == b"QUERNIDX":
            file.truncate(position)


def used_by(pid):
    """CPU seconds, and the most bytes of memory so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        most = [line for line in file if line.startswith("VmHWM:")][0].split()[1]
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(most) * 1024


RECORDING = ("", "ask/files", "ask/overview?file=0", "ask/functions?file=0&count=8&sort=self")
GRAPH = ("", "ask/files", "ask/overview?file=0", "ask/tree?file=0&width=1250")


def first_view(path, questions):
    """(seconds, CPU seconds, bytes of memory, answers)"""
    start = time.monotonic()
    server = subprocess.Popen([QUERN, "view", "--no-browser", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        address = server.stdout.readline().strip()
        port, token = address.split(":")[2].split("/")[:2]
        answers = []
        for question in questions:
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=600)
            connection.request("GET", f"/{token}/{question}")
            answers.append(connection.getresponse().read())
            connection.close()
        seconds = time.monotonic() - start
        cpu, memory = used_by(server.pid)
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    return seconds, cpu, memory, [json.loads(answer) for answer in answers[1:]]


def events_of(view):
    """Of a recording, by its first view."""
    facts = {fact["label"]: fact["value"] for fact in view[3][1]["facts"]}
    if not view[3][2]["rows"]:
        raise RuntimeError("no functions in the recording")
    return 2 * facts["allocations"] - facts["blocks not freed"] + facts["resizes"]


class Page:
    """The page in Chromium, or why it is not measured."""

    def __init__(self):
        self.missing = None
        try:
            self.chromium = browser.chromium()
            self.folder = browser.packages(os.path.dirname(QUERN))
        except (browser.Missing, OSError, subprocess.SubprocessError) as reason:
            self.missing = str(reason)

    def first_view(self, path, view, selector, runs):
        """(seconds, milliseconds of the longest task while zooming), or None."""
        if self.missing:
            return None
        words = ["node", os.path.join(HERE, "first_view.mjs"), self.folder, self.chromium, QUERN, path,
                 view, selector]
        seen = [json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=300).stdout)
                for _ in range(runs)]
        return tuple(statistics.median(one[name] for one in seen) for name in ("seconds", "busy"))


def tell(name, number, size, views, in_chromium):
    """The row up to what only recordings have; the seconds and milliseconds that count."""
    seconds, cpu, memory = (statistics.median(view[i] for view in views) for i in range(3))
    shown = ("-", "-")
    if in_chromium:
        shown = f"{in_chromium[0]:.2f} s", f"{in_chromium[1]:.0f} ms" if in_chromium[1] else "< 50 ms"
    print(f"  {name:<20} {number:>12,} {size / MIB:>6.0f} {seconds:>9.2f} s {cpu:>6.2f} s "
          f"{memory / MIB:>5.0f} MiB {shown[0]:>12} {shown[1]:>8}", end="", flush=True)
    return (max(seconds, in_chromium[0]), in_chromium[1]) if in_chromium else (seconds, 0)


def graph(page, runs):
    path = os.path.join(DATA, "graph.callgrind")
    view_files.large(path)
    views = [first_view(path, GRAPH) for _ in range(runs)]
    if not views[0][3][2]["nodes"]:
        raise RuntimeError("no flame graph")
    shown = page.first_view(path, "flame", ".flame canvas", runs)
    worst = tell("call graph", 200_000, os.path.getsize(path), views, shown)
    print()
    os.unlink(path)
    return worst


def printing(argv, runs):
    return statistics.median(measure(argv)[0].cpu for _ in range(runs))


def peer_prints(argv, runs):
    """CPU seconds of both printers for the same program; the second may be None."""
    ours, theirs = os.path.join(DATA, "small.quern"), os.path.join(DATA, "small.heaptrack")
    record(argv, ours)
    own = printing([QUERN, "print", ours], runs)
    os.unlink(ours)
    if not shutil.which("heaptrack"):
        return own, None
    subprocess.run(["heaptrack", "-o", theirs, *argv], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    path = glob.glob(theirs + ".*")[0]
    peer = printing(["heaptrack_print", path], min(runs, 2))
    os.unlink(path)
    return own, peer


def bench(args):
    events = 5_000_000 if args.quick else 100_000_000
    compared = 500_000 if args.quick else 10_000_000
    path, bare = os.path.join(DATA, "read.quern"), os.path.join(DATA, "bare.quern")
    print(f"read: medians of {args.n} runs; both print {compared:,} events")
    print(f"  {'':<20} {'events':>12} {'MiB':>6} {'first view':>11} {'CPU':>8} {'server':>9} "
          f"{'in Chromium':>12} {'busy':>8} {'replayed':>9} {'print':>8} {'heaptrack_print':>16}")
    slower = 0
    page = Page()
    worst = [graph(page, args.n)]
    for name, program, arguments in PROGRAMS_READ:
        build(program)
        record(command(program, arguments, events), path)
        views = [first_view(path, RECORDING) for _ in range(args.n)]
        shown = page.first_view(path, "overview", ".top li", args.n)
        worst.append(tell(name, events_of(views[0]), os.path.getsize(path), views, shown))
        without_index(path, bare)
        replayed = printing([QUERN, "print", bare], 1)
        os.unlink(path)
        os.unlink(bare)
        own, peer = peer_prints(command(program, arguments, compared), args.n)
        slower += peer is not None and own >= peer
        print(f" {replayed:>7.2f} s {own:>6.2f} s {'-' if peer is None else f'{peer:.2f} s':>16}", flush=True)
    if page.missing:
        print(f"  in Chromium: not measured: {page.missing}")
    seconds, busy = (max(one[i] for one in worst) for i in range(2))
    print(f"{'holds' if seconds <= LIMIT else 'FAILS'}  first view within {LIMIT:.0f} s: {seconds:.2f} s at most")
    if not page.missing:
        print(f"{'holds' if busy < BUSY else 'FAILS'}  zooming keeps the page busy for less than {BUSY} ms")
    print(f"{'FAILS' if slower else 'holds'}  quern print faster than heaptrack_print")

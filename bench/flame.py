"""bench/run flame: what sampling costs, whether stacks are complete, and whether it is true.

For each program: the CPU time that samples take from it, and what Quern takes itself, names and files
included, in a run of about ten seconds; the share of complete stacks; and, beside the exact
instruction counts of --tool=callgrind and the samples of `perf record`, each in a run of its own,
the inclusive shares of all named functions that have 5 % or more of main's instructions
(agreement.py). Time in the kernel is left out of these, which callgrind does not count either.

Whatever else a machine does makes whole runs longer by 5 to 20 %, for seconds at a time. What samples
take is therefore measured within a run (turns.py), where it is known to a percent. Whole runs beside
native ones are shown as well, as a check that nothing else is slowed down: short ones that take turns,
of each kind the first quartile; how far that can be trusted is shown by the native runs themselves,
the quartile of every other one beside that of the rest.

Shares of time and of instructions differ where some instructions take longer than others, most of
all where data is not in the caches. What is compared is the profiler, not the processor: these runs
have few words and keys, so that the data stays in the caches, and requests come many at a time. A second
Rust program, whose loops are alike, shows what is left then.
"""

import fnmatch
import os
import re
import shutil
import statistics
import subprocess

import agreement
import turns
from measure import DATA, PROGRAMS, QUERN, run_program, run_redis

LOG = os.path.join(DATA, "flame.log")
FLAME = [QUERN, "--tool=flame", "-v", f"--log-file={LOG}", f"--flame-out-file={DATA}/flame.svg",
         f"--flame-stacks-file={DATA}/flame.stacks"]
WAYS = {"native": [], "perf": [*FLAME, "--sampler=perf"], "timers": [*FLAME, "--sampler=timers"]}
ROUNDS = 4  # short runs of each kind for each of -n
SECONDS = 12  # of turns, in each of -n runs
# "size" is about ten seconds, "part" half a second or, for a server, more: how it is best sampled is
# found out as it runs. A workload is run with each of "compared" over it for the comparison.
WORKLOADS = [
    {"name": "perl", "command": f"perl {PROGRAMS}/work.pl {{size}} {{words}}", "size": 45000000,
     "part": 2000000, "words": 3000, "compared": {"perl": {"size": 2500000, "words": 200}}},
    {"name": "redis", "run": run_redis, "size": 180000, "part": 20000,
     "compared": {"redis": {"size": 30000, "keys": 100, "pipeline": 32}}},
    {"name": "rust", "command": f"{DATA}/words {{size}} {{words}}", "size": 1200, "part": 55,
     "words": 20011, "compared": {
         "rust": {"size": 100, "words": 200},
         "lines": {"command": f"{DATA}/lines {{size}}", "size": 3000000}}},
]
RUST = ("words", "lines")


def build():
    """What is missing; names of workloads that cannot be run."""
    missing = {name for name in ("perl",) if not shutil.which(name)}
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        missing.add("redis")
    for name in RUST:
        program, source = os.path.join(DATA, name), os.path.join(PROGRAMS, name + ".rs")
        if shutil.which("rustc") and (not os.path.exists(program)
                                      or os.path.getmtime(program) < os.path.getmtime(source)):
            subprocess.run(["rustc", "-O", "-g", source, "-o", program], check=True)
        if not os.path.exists(program):
            missing.add("rust")
    return missing


def prepared(workload):
    """The workload with its words filled in."""
    if "command" not in workload:
        return workload
    return {**workload, "command": workload["command"].replace("{words}", str(workload.get("words")))}


def run(workload, prefix):
    return workload.get("run", run_program)(prepared(workload), prefix)[0]


def sampled():
    """(percent of complete stacks, Quern's own seconds until the end, and after it) of the latest."""
    with open(LOG, encoding="utf-8") as file:
        log = file.read()
    complete = re.search(r"([\d.]+) % of the stacks are complete", log)
    own = re.search(r"own CPU time: ([\d.]+) s until the program ended, ([\d.]+) s after", log)
    return float(complete[1]), float(own[1]), float(own[2])


def compare(workload):
    """What agreement.compare says of the workload, in runs of their own."""
    path = os.path.join(DATA, "flame.callgrind")
    run(workload, [QUERN, "--tool=callgrind", "-q", "--cache-sim=yes",
                   f"--callgrind-out-file={path}"])
    run(workload, [*FLAME, "--kernel-time=no", "--freq=4999", "--read-inline-info=no"])
    witness = {}
    if shutil.which("perf"):
        run(workload, agreement.PERF)
        witness = agreement.witness_shares()
    return agreement.compare(path, agreement.sampled_shares(f"{DATA}/flame.stacks"), witness)


def measure(workload, rounds):
    """CPU times of short runs, natively and of the program alone while it is sampled by perf and by
    timers; and what sampled() says of these two in a long run, with that run's CPU time. Each round
    begins with another of them, so that none is always the first."""
    times = {name: [] for name in WAYS}
    said = {}
    part = {**workload, "size": workload["part"]}
    for turn in range(rounds):
        names = list(WAYS)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            took = run(part, WAYS[name]).cpu
            times[name].append(took - (sum(sampled()[1:]) if WAYS[name] else 0))
    for name in list(WAYS)[1:]:
        took = run(workload, WAYS[name]).cpu
        said[name] = (*sampled(), took)
    return times, said


def quartile(values):
    return sorted(values)[len(values) // 4]


def means(rows):
    """Mean differences of shares: to instructions, to estimated cycles, to perf's (None: no perf)."""
    if not rows:
        return 1, 1, None
    witnessed = [abs(row[2] - row[5]) for row in rows if row[5] is not None]
    return statistics.mean(row[0] for row in rows), \
        statistics.mean(abs(row[2] - row[4]) for row in rows), \
        statistics.mean(witnessed) if witnessed else None


def percent(share, digits=1):
    return "-" if share is None else f"{share * 100:.{digits}f} %"


class Row:
    """What was measured of a workload."""

    def __init__(self, workload, runs, rounds):
        self.name = workload["name"]
        within = turns.of_program if "command" in workload else turns.of_redis
        said = {way: [] for way, prefix in WAYS.items() if prefix}
        for way in runs * list(said):
            said[way].append(within(prepared(workload), WAYS[way], SECONDS))
        self.taken = {way: turns.middle_of(shares) for way, shares in said.items()}
        times, said = measure(workload, rounds)
        native = times.pop("native")
        self.noise = abs(quartile(native[::2]) / quartile(native[1::2]) - 1)
        self.complete = min(one[0] for one in said.values())
        self.own = {way: sum(one[1:3]) for way, one in said.items()}
        self.long = max(one[3] - sum(one[1:3]) for one in said.values())
        self.slowed = {way: quartile(under) / quartile(native) - 1 for way, under in times.items()}
        self.own_share = {way: self.own[way] / (one[3] - self.own[way]) for way, one in said.items()}
        # By program: rows, and what is left out.
        self.compared = {name: compare({**workload, **over})
                         for name, over in workload["compared"].items()}

    def show(self):
        cells = [f"{self.name:<6} {self.long:6.1f} s {percent(self.noise):>6}"]
        for way, slowed in self.slowed.items():
            cells.append(f"{self.taken[way].share * 100:+6.1f} % {self.own[way]:7.3f} s "
                         f"{slowed * 100:+6.1f} %")
        cells.append(f"{self.complete:7.1f} %")
        begin = "  " + "  ".join(cells)
        for name, (rows, _) in self.compared.items():
            by_ir, by_cycles, by_perf = means(rows)
            print(f"{begin}  {len(rows):>9}  {percent(by_ir):>6}  {percent(by_cycles):>6}"
                  f"  {percent(by_perf):>6}  {name if name != self.name else ''}", flush=True)
            begin = " " * len(begin)

    def explain(self):
        """The largest differences, and what is left out."""
        for program, (rows, left_out) in self.compared.items():
            for _, name, mine, share, cycles, perf in rows[:3]:
                print(f"  {program}: {name[:50]}: {percent(mine)} sampled, {percent(share)} of the "
                      f"instructions, {percent(cycles)} of the cycles, {percent(perf)} by perf")
            for name, share, reason in left_out:
                print(f"  {program}: {name}, {percent(share)} of the instructions, is left out: {reason}")


def bench(args):
    missing = build()
    if subprocess.run([*WAYS["perf"], "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        print("flame: perf_event_open is not permitted here; timers only")
        del WAYS["perf"]
    rows = []
    rounds = 2 if args.quick else args.n * ROUNDS
    runs = 1 if args.quick else args.n
    print(f"flame at 997 Hz: CPU time of a long run; how far every other native run is from the rest; by perf "
          f"and by timers, what\nsamples take in {runs} runs of turns on and off, Quern's own in the long run, "
          f"and first quartiles of {rounds} whole runs without it;\nmean differences of inclusive shares to "
          "callgrind's, by instructions and by estimated cycles, and to perf record's")
    ways = "".join(f"  {way:>8} {'own':>9} {'runs':>8}" for way in list(WAYS)[1:])
    print(f"  {'':<6} {'long':>8} {'':>6}{ways}  {'complete':>9}  {'functions':>9}  {'Ir':>6}  {'cycles':>6}  "
          f"{'perf':>6}")
    for workload in WORKLOADS:
        if not any(fnmatch.fnmatch(workload["name"], pattern) for pattern in args.patterns):
            continue
        if workload["name"] in missing:
            print(f"  {workload['name']:<8} not installed")
            continue
        if args.quick:
            workload["size"] = workload["part"]
        rows.append(Row(workload, runs, rounds))
        rows[-1].show()
    for row in rows:
        row.explain()
    judge(rows)


def judge(rows):
    def say(text, holds):
        print(f"{'holds' if holds else 'FAILS'}  {text}")
    for row in rows:
        for way, taken in row.taken.items():
            own = row.own_share[way]
            say(f"{row.name}: less than 5 % of CPU time added by {way}: {percent(taken.share + own)} "
                f"(samples {percent(taken.share)}, in {taken.count} turns, {percent(taken.low)} to "
                f"{percent(taken.high)}; Quern {percent(own)}; whole runs {percent(row.slowed[way] + own)}, "
                f"where native ones differ by {percent(row.noise)})", taken.share + own < 0.05)
        say(f"{row.name}: over 95 % complete stacks ({row.complete:.1f} %)", row.complete > 95)
        for name, (compared, _) in row.compared.items():
            by_ir, by_cycles, _ = means(compared)
            say(f"{name}: shares of {len(compared)} functions within 5 % in the mean, by "
                f"instructions ({percent(by_ir)}) or by cycles ({percent(by_cycles)})",
                min(by_ir, by_cycles) < 0.05)

"""bench/run flame: what sampling costs, whether stacks are complete, and whether it is true.

For each program: CPU time beside native (medians of interleaved runs of some seconds, all that Quern
takes included, and by itself: what its supervisor took until the program ended, and after that for
names and files); the share of complete stacks; and, beside the exact instruction counts of
--tool=callgrind in a run of its own, the inclusive shares of all named functions that have 5 % or
more of main's there. Time in the kernel is left out of these, which callgrind does not count either.

Shares of time and of instructions differ where some instructions take longer than others, most of
all where data is not in the caches. What is compared is the profiler, not the processor: these runs
have few words and keys, so that the data stays in the caches, and requests come many at a time.
"""

import fnmatch
import os
import re
import shutil
import statistics
import subprocess

from measure import DATA, PROGRAMS, QUERN, run_program, run_redis

LOG = os.path.join(DATA, "flame.log")
FLAME = [QUERN, "--tool=flame", "-v", f"--log-file={LOG}", f"--flame-out-file={DATA}/flame.svg",
         f"--flame-stacks-file={DATA}/flame.stacks"]
LEAST_SHARE = 0.05
# A workload is run with "compared" over it for the comparison.
WORKLOADS = [
    {"name": "perl", "command": f"perl {PROGRAMS}/work.pl {{size}} {{words}}", "size": 15000000,
     "quick": 400000, "words": 3000, "compared": {"size": 2500000, "words": 200}},
    {"name": "redis", "run": run_redis, "size": 60000, "quick": 10000,
     "compared": {"size": 30000, "keys": 100, "pipeline": 32}},
    {"name": "rust", "command": f"{DATA}/words {{size}} {{words}}", "size": 450, "quick": 20,
     "words": 20011, "compared": {"size": 100, "words": 200}},
]


def build():
    """What is missing; names of workloads that cannot be run."""
    program = os.path.join(DATA, "words")
    source = os.path.join(PROGRAMS, "words.rs")
    if shutil.which("rustc") and (not os.path.exists(program)
                                  or os.path.getmtime(program) < os.path.getmtime(source)):
        subprocess.run(["rustc", "-O", "-g", source, "-o", program], check=True)
    missing = set() if os.path.exists(program) else {"rust"}
    return missing | {name for name in ("perl",) if not shutil.which(name)} | \
        (set() if shutil.which("redis-server") and shutil.which("redis-benchmark") else {"redis"})


def run(workload, prefix):
    if "command" in workload:
        command = workload["command"].replace("{words}", str(workload["words"]))
        workload = {**workload, "command": command}
    return workload.get("run", run_program)(workload, prefix)[0]


def sampled():
    """(percent of complete stacks, Quern's own seconds until the end, and after it) of the latest."""
    with open(LOG, encoding="utf-8") as file:
        log = file.read()
    complete = re.search(r"([\d.]+) % of the stacks are complete", log)
    own = re.search(r"own CPU time: ([\d.]+) s until the program ended, ([\d.]+) s after", log)
    return float(complete[1]), float(own[1]), float(own[2])


def sampled_shares():
    """function -> inclusive share of the latest profile."""
    text = subprocess.run([QUERN, "export", f"{DATA}/flame.stacks", "--as=collapsed"], check=True,
                          capture_output=True, text=True).stdout
    sums, total = {}, 0
    for line in text.splitlines():
        stack, value = line.rsplit(" ", 1)
        total += int(value)
        for name in set(stack.split(";")):
            sums[name] = sums.get(name, 0) + int(value)
    return {name: value / total for name, value in sums.items()}


EVENTS = ["Ir", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw"]


def exact_shares(path):
    """function -> (inclusive share by instructions, by cycles as KCachegrind estimates them: ten for
    a miss, a hundred for one of the last level), below main. A function that recurs has its outer
    level's; callgrind shows the levels within it as functions of their own, NAME'2."""
    text = subprocess.run([QUERN, "annotate", "--inclusive=yes", "--threshold=99", "--show-percs=no",
                           "--show=" + ",".join(EVENTS), path], check=True, capture_output=True,
                          text=True).stdout
    costs = {}
    for numbers, name in re.findall(r"^ *((?:[\d,.]+ +){7})[^\n]*?:([^\n]+?) \[[^]\n]*\]$", text,
                                    re.M):
        ir, *misses = (0 if n == "." else int(n.replace(",", "")) for n in numbers.split())
        costs.setdefault(name, (ir, ir + 10 * sum(misses[:3]) + 100 * sum(misses[3:])))
    whole = costs["main"]
    return {name: (ir / whole[0], cycles / whole[1]) for name, (ir, cycles) in costs.items()
            if ir < whole[0] and not re.match(r"\(below main\)|0x|.*'\d+$", name)}


def compare(workload):
    """[(difference, function, sampled, by instructions, by cycles)] of the functions that matter,
    the largest difference to instructions first."""
    path = os.path.join(DATA, "flame.callgrind")
    workload = {**workload, **workload["compared"]}
    run(workload, [QUERN, "--tool=callgrind", "-q", "--cache-sim=yes",
                   f"--callgrind-out-file={path}"])
    exact = exact_shares(path)
    run(workload, [*FLAME, "--kernel-time=no", "--freq=4999", "--read-inline-info=no"])
    found = sampled_shares()
    whole = found["main"]
    rows = []
    for name, (share, cycles) in exact.items():
        if share >= LEAST_SHARE:
            mine = found.get(name, 0) / whole
            rows.append((abs(mine - share), name, mine, share, cycles))
    return sorted(rows, reverse=True)


def measure(workload, runs):
    """CPU times: natively, sampled by perf, by timers; and what sampled() says of these two."""
    native, perf, timers, said = [], [], [], []
    for _ in range(runs):
        native.append(run(workload, []).cpu)
        timers.append(run(workload, [*FLAME, "--sampler=timers"]).cpu)
        said.append(sampled())
        perf.append(run(workload, [*FLAME]).cpu)
        said.append(sampled())
    return native, perf, timers, said


def added(under, native):
    """The median share of CPU time that is added."""
    return statistics.median(u / n for u, n in zip(under, native, strict=True)) - 1


def means(differences):
    """Mean differences of shares: to instructions, to estimated cycles."""
    if not differences:
        return 1, 1
    return statistics.mean(d[0] for d in differences), \
        statistics.mean(abs(d[2] - d[4]) for d in differences)


def print_row(name, native, perf, timers, own, complete, differences):
    by_ir, by_cycles = means(differences)
    worst = differences[0] if differences else (0, "-", 0, 0, 0)
    print(f"  {name:<6} {native:6.2f} s  {perf * 100:+6.1f} %  {timers * 100:+6.1f} %"
          f"  {own[0]:6.3f} s  {own[1]:6.3f} s  {complete:7.1f} %"
          f"  {len(differences):>9}  {by_ir * 100:4.1f} %  {by_cycles * 100:5.1f} %  {worst[1][:30]}: "
          f"{worst[2] * 100:.1f} % sampled, {worst[3] * 100:.1f} % Ir, {worst[4] * 100:.1f} % cycles",
          flush=True)


def bench(args):
    missing = build()
    rows = []
    print(f"flame: {'medians of ' + str(args.n) + ' runs' if args.n > 1 else 'one run'}, 997 Hz; CPU "
          "time added by perf and by timers; of it Quern's own\nuntil the program ended, and after; "
          "differences of inclusive shares to callgrind's, by instructions\nand by estimated cycles")
    print(f"  {'':<6} {'native':>8}  {'perf':>8}  {'timers':>8}  {'until':>8}  {'after':>8}  "
          f"{'complete':>9}  {'functions':>9}  {'Ir':>6}  {'cycles':>7}  largest difference")
    for workload in WORKLOADS:
        if not any(fnmatch.fnmatch(workload["name"], pattern) for pattern in args.patterns):
            continue
        if workload["name"] in missing:
            print(f"  {workload['name']:<8} not installed")
            continue
        if args.quick:
            workload["size"] = workload["quick"]
        native, perf, timers, said = measure(workload, args.n)
        differences = compare(workload)
        complete = min(one[0] for one in said)
        own = [statistics.median(one[i] for one in said) for i in (1, 2)]
        rows.append((workload["name"], statistics.median(native), added(perf, native),
                     added(timers, native), own, complete, differences))
        print_row(*rows[-1])
    judge(rows)


def judge(rows):
    def say(text, holds):
        print(f"{'holds' if holds else 'FAILS'}  {text}")
    for name, _, perf, timers, _, complete, differences in rows:
        say(f"{name}: less than 5 % of CPU time added by perf ({perf * 100:.1f} %)", perf < 0.05)
        say(f"{name}: less than 5 % of CPU time added by timers ({timers * 100:.1f} %)",
            timers < 0.05)
        say(f"{name}: over 95 % complete stacks ({complete:.1f} %)", complete > 95)
        by_ir, by_cycles = means(differences)
        say(f"{name}: shares of {len(differences)} functions within 5 % in the mean, by instructions "
            f"({by_ir * 100:.1f} %) or by cycles ({by_cycles * 100:.1f} %)",
            min(by_ir, by_cycles) < 0.05)

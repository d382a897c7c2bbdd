"""bench/run flame: what sampling costs, whether stacks are complete, and whether it is true.

For each program: CPU time beside native (medians of interleaved runs, Quern's own included); the
share of complete stacks; and, beside the exact instruction counts of --tool=callgrind in a run of
its own, the inclusive shares of all named functions that have 5 % or more of main's there, sampled
more often, and without time in the kernel, which callgrind does not count either. Shares of time and of instructions differ where
some instructions take longer than others: what is compared is whether the functions, their callers
and their order are found, not the processor.
"""

import os
import re
import shutil
import statistics
import subprocess

from measure import DATA, PROGRAMS, QUERN, run_program, run_redis

FILES = f"--flame-out-file={DATA}/flame.svg --flame-stacks-file={DATA}/flame.stacks"
LEAST_SHARE = 0.05
WORKLOADS = [
    {"name": "perl", "command": f"perl {PROGRAMS}/work.pl {{size}}", "size": 8000000,
     "quick": 400000, "compared": 2000000},
    {"name": "redis", "run": run_redis, "size": 50000, "quick": 10000, "compared": 15000},
    {"name": "rust", "command": f"{DATA}/words {{size}}", "size": 150, "quick": 20, "compared": 40},
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


def run(workload, prefix, size):
    sized = {**workload, "size": size}
    return workload.get("run", run_program)(sized, prefix)[0]


def sampled():
    """(samples, percent of complete stacks) of the latest profile."""
    with open(os.path.join(DATA, "flame.stacks"), encoding="utf-8") as file:
        found = re.search(r"(\d+) samples .* ([\d.]+) % of the stacks complete", file.read())
    return int(found[1]), float(found[2])


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


def exact_shares(path):
    """function -> inclusive share by instructions, below main. A function that recurs has its outer
    level's."""
    text = subprocess.run([QUERN, "annotate", "--inclusive=yes", "--threshold=99", path], check=True,
                          capture_output=True, text=True).stdout
    costs = {}
    for cost, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\)  [^\n]*?:([^\n]+?) \[[^]\n]*\]$", text,
                                 re.M):
        costs.setdefault(name, int(cost.replace(",", "")))
    whole = costs["main"]
    return {name: cost / whole for name, cost in costs.items()
            if cost < whole and not name.startswith(("(below main)", "0x"))}


def compare(workload):
    """[(difference, function, sampled, exact)] of the functions that matter, the largest first."""
    path = os.path.join(DATA, "flame.callgrind")
    run(workload, [QUERN, "--tool=callgrind", "-q", f"--callgrind-out-file={path}"],
        workload["compared"])
    exact = exact_shares(path)
    options = ["--kernel-time=no", "--freq=4999", "--read-inline-info=no", *FILES.split()]
    run(workload, [QUERN, "--tool=flame", "-q", *options], workload["compared"])
    found = sampled_shares()
    whole = found["main"]
    rows = []
    for name, share in exact.items():
        if share >= LEAST_SHARE:
            mine = found.get(name, 0) / whole
            rows.append((abs(mine - share), name, mine, share))
    return sorted(rows, reverse=True)


def measure(workload, runs):
    prefix = [QUERN, "--tool=flame", "-q", *FILES.split()]
    native, under, shares = [], [], []
    for _ in range(runs):
        native.append(run(workload, [], workload["size"]).cpu)
        under.append(run(workload, prefix, workload["size"]).cpu)
        shares.append(sampled())
    return native, under, shares


def bench(args):
    missing = build()
    rows = []
    for workload in WORKLOADS:
        if workload["name"] in missing:
            print(f"{workload['name']}: not installed")
            continue
        if args.quick:
            workload["size"] = workload["quick"]
        native, under, shares = measure(workload, args.n)
        differences = compare(workload)
        cost = statistics.median(u / n for u, n in zip(under, native, strict=True)) - 1
        complete = min(share for _, share in shares)
        rows.append((workload["name"], statistics.median(native), cost, complete, differences))
    print(f"flame: medians of {args.n} runs, 997 Hz" if args.n > 1 else "flame: one run, 997 Hz")
    print(f"  {'':<8} {'native':>8}  {'CPU time':>9}  {'complete':>9}  {'functions':>9}  "
          f"{'mean':>7}  {'largest difference to callgrind'}")
    for name, native, cost, complete, differences in rows:
        mean = statistics.mean(d[0] for d in differences) if differences else 0
        worst = differences[0] if differences else (0, "-", 0, 0)
        print(f"  {name:<8} {native:6.2f} s  {cost * 100:+7.1f} %  {complete:7.1f} %  "
              f"{len(differences):>9}  {mean * 100:5.1f} %  {worst[0] * 100:.1f} %: {worst[1][:40]} "
              f"has {worst[2] * 100:.1f} % sampled, {worst[3] * 100:.1f} % by instructions")
    judge(rows)


def judge(rows):
    def say(text, holds):
        print(f"{'holds' if holds else 'FAILS'}  {text}")
    for name, _, cost, complete, differences in rows:
        say(f"{name}: less than 5 % of CPU time added ({cost * 100:.1f} %)", cost < 0.05)
        say(f"{name}: over 95 % complete stacks ({complete:.1f} %)", complete > 95)
        mean = statistics.mean(d[0] for d in differences) if differences else 1
        say(f"{name}: shares of {len(differences)} functions within 5 % in the mean "
            f"({mean * 100:.1f} %)", mean < 0.05)

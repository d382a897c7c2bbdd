"""Inclusive shares of functions: sampled, exact by --tool=callgrind, and sampled by perf.

Shares of time and of instructions differ where some instructions take longer than others. What
`perf record` has sampled in a run of its own tells that from a profiler that names the wrong
functions: it knows nothing of Quern and walks the stacks by itself.

Functions that are called by a pointer and end by jumping to another cannot be compared; they are left
out, and listed. Such a function is on no stack, whoever samples: no return address leads into it, and
the call does not name it.
"""

import os
import re
import shutil
import subprocess

from measure import DATA, QUERN

EVENTS = ["Ir", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw"]
LEAST_SHARE = 0.05
PERF_DATA = os.path.join(DATA, "flame.perf")
PERF = ["perf", "record", "-q", "-F", "1999", "-e", "task-clock:u", "--call-graph", "dwarf,16384",
        "-o", PERF_DATA]


def inclusive(stacks):
    """function -> share of main's, of [(outer to inner functions, weight)]."""
    sums = {}
    for stack, weight in stacks:
        for name in set(stack):
            sums[name] = sums.get(name, 0) + weight
    return {name: value / sums["main"] for name, value in sums.items()} if "main" in sums else {}


def sampled_shares(path):
    text = subprocess.run([QUERN, "export", path, "--as=collapsed"], check=True,
                          capture_output=True, text=True).stdout
    lines = (line.rsplit(" ", 1) for line in text.splitlines())
    return inclusive((stack.split(";"), int(value)) for stack, value in lines)


def witness_shares():
    """As perf has them, after a run by PERF."""
    text = subprocess.run(["perf", "script", "-i", PERF_DATA, "-F", "comm,ip,sym", "--no-inline"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout
    os.unlink(PERF_DATA)
    stacks = []
    for block in text.split("\n\n"):
        names = re.findall(r"^\s+[0-9a-f]+ (.+?)(?:@[^ ]*)?$", block, re.M)
        if "main" in names:
            stacks.append((names[:names.index("main") + 1], 1))
    return inclusive(stacks)


def exact_shares(path):
    """function -> (inclusive share by instructions, by cycles as KCachegrind estimates them: ten for
    a miss, a hundred for one of the last level; its file), below main. A function that recurs has its
    outer level's; callgrind shows the levels within it as functions of their own, NAME'2."""
    text = subprocess.run([QUERN, "annotate", "--inclusive=yes", "--threshold=99", "--show-percs=no",
                           "--show=" + ",".join(EVENTS), path], check=True, capture_output=True,
                          text=True).stdout
    costs = {}
    for numbers, name, file in re.findall(
            r"^ *((?:[\d,.]+ +){7})[^\n]*?:([^\n]+?) \[([^]\n]*)\]$", text, re.M):
        ir, *misses = (0 if n == "." else int(n.replace(",", "")) for n in numbers.split())
        costs.setdefault(name, (ir, ir + 10 * sum(misses[:3]) + 100 * sum(misses[3:]), file))
    whole = costs["main"]
    return {name: (ir / whole[0], cycles / whole[1], file)
            for name, (ir, cycles, file) in costs.items()
            if ir < whole[0] and not re.match(r"\(below main\)|0x|.*'\d+$", name)}


def callers(path):
    """function -> those that call it."""
    text = subprocess.run([QUERN, "annotate", "--tree=caller", "--inclusive=yes", "--threshold=99",
                           "--show=Ir", "--show-percs=no", path], check=True, capture_output=True,
                          text=True).stdout
    found, above = {}, set()
    for mark, name in re.findall(r"^ *[\d,]+ +([<*]) [^\n]*?:([^\n]+?) \[[^]\n]*\]", text, re.M):
        if mark == "<":
            above.add(name)
        else:
            found.setdefault(name, above)
            above = set()
    return found


def disassemble(file):
    """function -> its instructions, as objdump prints them."""
    if not shutil.which("objdump"):
        return {}
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", file], check=False,
                          capture_output=True, text=True).stdout
    return dict(re.findall(r"^[0-9a-f]+ <([^>@]+)(?:@[^>]*)?>:\n((?: .*\n)+)", text, re.M))


def left_out(name, exact, called, code):
    """Why a function that is hardly sampled cannot be compared, or None."""
    share = exact[name][0]
    for target in re.findall(r"jmp +[0-9a-f]+ <([^>@+]+)(?:@[^>]*)?>", code.get(name, "")):
        if target != name and exact.get(target, (0,))[0] > 0.9 * share and not any(
                caller not in code or re.search(rf"<{re.escape(name)}(?:@[^>+]*)?>", code[caller])
                for caller in called.get(name, ())):
            return f"it is called by a pointer and left by a jump to {target}"
    return None


def compare(path, found, witness):
    """([(difference, function, sampled, by instructions, by cycles, by perf or None)], the largest
    difference to instructions first; [(function, by instructions, why it is left out)])."""
    exact, called = exact_shares(path), callers(path)
    rows, others, code = [], [], {}
    for name, (share, cycles, file) in exact.items():
        if share < LEAST_SHARE:
            continue
        mine = found.get(name, 0)
        if mine < share / 10:
            if file not in code:
                code[file] = disassemble(file)
            reason = left_out(name, exact, called, code[file])
            if reason:
                others.append((name, share, reason))
                continue
        rows.append((abs(mine - share), name, mine, share, cycles, witness.get(name)))
    return sorted(rows, reverse=True), others

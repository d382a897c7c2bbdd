"""What the modes promise, and whether it holds: (promise, measured, holds) for each; holds is None
where it was not measured. Rows are pairs of a workload and what measure_workload said of it."""

import math

MIB = 1 << 20


def pick(workload, sample):
    """What counts for this workload."""
    kind = workload.get("kind")
    return sample.peak if kind == "memory" else sample.wall if kind in ("wall", "rate") else sample.cpu


def ratio(workload, result, column):
    """A column over native, or None."""
    native, value = result.get("native"), result.get(column)
    if not isinstance(native, tuple) or not isinstance(value, tuple):
        return None
    return pick(workload, value) / max(pick(workload, native), 1e-6)


def mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def show(value, width, digits=2):
    return f"{value:{width}.{digits}f}" if value else "-".rjust(width)


def judge(text, value, limit, digits=2, least=False):
    if value is None:
        return text, "not measured", None
    return text, f"{value:.{digits}f}", value >= limit if least else value <= limit


def mean_core(rows, column):
    return mean(ratio(w, r, column) for w, r in rows if w["group"] in ("CPU-bound", "interpreter"))


def quotient(a, b):
    return a / b if a and b else None


def judge_speed(rows, most, faster):
    quern, valgrind = mean_core(rows, "quern"), mean_core(rows, "valgrind")
    yield judge(f"mean over CPU-bound and interpreter at most {most}", quern, most)
    yield judge(f"at least {faster} times faster than Valgrind there", quotient(valgrind, quern),
                faster, least=True)
    worst = [(ratio(w, r, "valgrind") / ratio(w, r, "quern"), w["name"]) for w, r in rows
             if w["group"] != "memory" and ratio(w, r, "valgrind") and ratio(w, r, "quern")]
    if worst:
        yield (f"none worse than Valgrind (least: {min(worst)[1]})", f"{min(worst)[0]:.2f}",
               min(worst)[0] >= 1)


def wall_of_two(rows, column):
    """Wall time of two threads that do twice the work, over that of one."""
    by_name = {w["name"]: r for w, r in rows}
    one, two = (by_name.get(n, {}).get(column) for n in ("1 thread", "2 threads"))
    return two.wall / one.wall if isinstance(one, tuple) and isinstance(two, tuple) else None


def judge_start(rows, most):
    result = {w["name"]: r for w, r in rows}.get("true", {})
    extra = None
    if isinstance(result.get("quern"), tuple) and isinstance(result.get("native"), tuple):
        extra = (result["quern"].wall - result["native"].wall) * 1000
    yield judge(f"/bin/true takes at most {most} ms more", extra, most, 1)


def verdicts_none(rows):
    yield from judge_speed(rows, 1.5, 4)
    yield judge("wall time of two threads over one at most 1.1 "
                f"(native here: {show(wall_of_two(rows, 'native'), 1)})",
                wall_of_two(rows, "quern"), 1.1)
    yield from judge_start(rows, 25)


def judge_memory(rows):
    """Peaks of programs above 100 MB."""
    over = []
    largest = None
    for workload, result in rows:
        native, quern = result.get("native"), result.get("quern")
        if workload.get("kind") != "memory" or not isinstance(quern, tuple):
            continue
        if native.peak < 100e6:
            continue
        share = quern.peak / (2.3 * native.peak + 60e6)
        largest = max(largest or 0, share)
        if share > 1:
            over.append(workload["name"])
    text = "memory at most 2.3 times native plus 60 MB, as a share of that"
    yield judge(text + (f" (above: {', '.join(over)})" if over else ""), largest, 1)


def judge_undefined(rows):
    """Programs that carry undefined data."""
    rows = [(w, r) for w, r in rows if w["group"] == "undefined" and ratio(w, r, "quern")]
    yield judge("undefined data: mean at most 6", mean(ratio(w, r, "quern") for w, r in rows), 6)
    yield judge("undefined data: worst at most 10",
                max((ratio(w, r, "quern") for w, r in rows), default=None), 10)
    yield judge("undefined data: at least 5 times faster than Valgrind in each row",
                min((quotient(ratio(w, r, "valgrind"), ratio(w, r, "quern")) for w, r in rows
                     if ratio(w, r, "valgrind")), default=None), 5, least=True)


def verdicts_memcheck(rows):
    yield from judge_speed(rows, 4.5, 6)
    yield from judge_undefined(rows)
    both = [(w, r) for w, r in rows if ratio(w, r, "origins") and ratio(w, r, "quern")]
    origins = mean(ratio(w, r, "origins") / ratio(w, r, "quern") for w, r in both)
    yield judge("--track-origins=yes takes at most 1.15 times as long", origins, 1.15)
    two, native = (wall_of_two(rows, c) for c in ("quern", "native"))
    yield judge("throughput of two threads over one at least 1.8 "
                f"(native here: {show(quotient(2, native), 1)})", quotient(2, two), 1.8, least=True)
    rate = next((r for w, r in rows if w.get("kind") == "rate"), {})
    values = [rate.get(c) for c in ("valgrind", "quern")]
    yield judge("redis answers at least 5 times as many requests as under Valgrind",
                values[0].wall / values[1].wall if all(isinstance(v, tuple) for v in values) else None,
                5, least=True)
    yield from judge_memory(rows)
    yield from judge_start(rows, 60)


def verdicts_leaks(rows):
    values = [r["quern"].cpu for _, r in rows if isinstance(r.get("quern"), tuple)]
    yield judge("seconds for any shape: at most 10", max(values, default=None), 10, 1)


def verdicts_heap(rows):
    micro = [(w, r) for w, r in rows if w["group"] in ("allocation", "allocating")]
    real = [(w, r) for w, r in rows if w["group"] not in ("allocation", "allocating", "start-up")]
    quern = mean(ratio(w, r, "quern") for w, r in real)
    if quern:
        yield "mean over all but allocation and start-up at most 1.2", f"{quern:.2f}", quern <= 1.2
    for workload, result in micro:
        ours, theirs = (ratio(workload, result, c) for c in ("quern", "heaptrack"))
        if ours and theirs:
            yield (f"at least 3 times faster than heaptrack: {workload['name']}",
                   f"{theirs / ours:.2f}", theirs / ours >= 3)
    for what, index, form in (("recording", 0, "{:,}"), ("printing", 1, "{:.3f} s")):
        pairs = [(r["files"]["quern"][index], r["files"]["heaptrack"][index], w["name"])
                 for w, r in rows if r["files"].get("quern") and r["files"].get("heaptrack")]
        worse = [f"{n} ({form.format(a)} to {form.format(b)})" for a, b, n in pairs if a > b]
        if pairs:
            yield (f"{what} takes no more than heaptrack's, {len(pairs)} compared",
                   "all" if not worse else "not " + ", ".join(worse), not worse)


def verdicts_callgrind(rows):
    """The same for exact counts, without and with simulated caches."""
    real = [(w, r) for w, r in rows if w["group"] in ("CPU-bound", "interpreter", "branchy")]
    means = {column: mean(ratio(w, r, column) for w, r in real)
             for column in ("quern", "valgrind", "caches", "vg caches")}
    yield judge("mean over CPU-bound, interpreter and branchy at most 4", means["quern"], 4)
    yield judge("at least 8 times faster than Valgrind there",
                quotient(means["valgrind"], means["quern"]), 8, least=True)
    yield judge("with caches at least 4 times faster than Valgrind",
                quotient(means["vg caches"], means["caches"]), 4, least=True)
    yield judge("wall time of two threads over one at most 1.2 "
                f"(native here: {show(wall_of_two(rows, 'native'), 1)})",
                wall_of_two(rows, "quern"), 1.2)


def judge_micro(rows, tool, column, peer, most):
    """One kind of work each: the mean, the worst row, and rows that gain little over Valgrind."""
    own = [(ratio(w, r, column), w["name"]) for w, r in rows if ratio(w, r, column)]
    gains = [(ratio(w, r, peer) / ratio(w, r, column), w["name"], ratio(w, r, column))
             for w, r in rows if ratio(w, r, peer) and ratio(w, r, column)]
    yield judge(f"{tool}: mean at most {most}", mean(v for v, _ in own), most)
    if own:
        yield judge(f"{tool}: worst row at most 15 ({max(own)[1]})", max(own)[0], 15)
    yield judge(f"{tool}: at least 6 times faster than Valgrind in the mean",
                mean(g for g, _, _ in gains), 6, least=True)
    slower = ", ".join(n for g, n, _ in gains if g < 1)
    little = ", ".join(n for g, n, v in gains if 1 <= g < 3 and v > 2)
    if gains:
        yield f"{tool}: no row slower than under Valgrind", slower or "none is", not slower
        yield f"{tool}: 3 times faster in each row above 2", f"not {little}" if little else "all", \
            not little and not slower


def verdicts_micro(rows):
    yield from judge_micro(rows, "memcheck", "quern", "valgrind", 3.5)
    yield from judge_micro(rows, "callgrind", "callgrind", "vg callgrind", 5)


def verdicts_dhat(rows):
    both = [(w, r) for w, r in rows if w["group"] != "start-up" and ratio(w, r, "quern")
            and ratio(w, r, "valgrind")]
    faster = mean(ratio(w, r, "valgrind") / ratio(w, r, "quern") for w, r in both)
    yield judge("at least 6 times faster than Valgrind", faster, 6, least=True)
    two, native = (wall_of_two(rows, c) for c in ("quern", "native"))
    yield judge("throughput of two threads over one at least 1.8 "
                f"(native here: {show(quotient(2, native), 1)})", quotient(2, two), 1.8, least=True)


VERDICTS = {"none": verdicts_none, "callgrind": verdicts_callgrind, "memcheck": verdicts_memcheck, "leaks": verdicts_leaks,
            "heap": verdicts_heap, "dhat": verdicts_dhat, "micro": verdicts_micro}

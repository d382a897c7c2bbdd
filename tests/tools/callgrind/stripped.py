"""Programs without symbols, but for what they export: what a profile says of them, with the names that
they had before."""
import os
import re
import subprocess

# What the compiler adds to every program; Valgrind has no names for sections other than .text.
ADDED = {'_init', '_fini', '_start', '__do_global_dtors_aux', 'deregister_tm_clones',
         'register_tm_clones', 'frame_dummy', '(below main)', '_DYNAMIC'}


def strip(path):
    """Strips the file; (object, address) -> name as it was."""
    symbols = subprocess.run(['nm', path], capture_output=True, text=True, check=True).stdout
    names = {(path, int(found[1], 16)): found[2]
             for found in re.finditer(r'^([0-9a-f]+) [tT] (\S+)$', symbols, re.M)}
    subprocess.run(['strip', path], check=True)
    return names


def of_objects(profile, names, wanted=None):
    """(own, calls, inclusive) of all functions of the objects that `names` is about, by name; of those
    that match `wanted` only, if that is given. What had no name keeps its address."""
    objects = {path for path, _ in names}

    def one(path, text):
        found = re.fullmatch('0x[0-9a-f]+', text)
        return names.get((path, int(text, 16)), text) if found else text

    def name(function):
        path, _, text = function
        if path not in objects:
            return None
        text = "'".join(one(path, part) for part in text.split("'"))
        if text.split("'")[0] in ADDED or (wanted and not re.match(wanted, text)):
            return None
        text = re.sub(r"^main'.*", 'main', text) # by whom, is the C library's business
        return f'{os.path.basename(path)}:{text}'

    results = []
    for counter in (profile.own, profile.calls, profile.inclusive):
        got = {}
        for key, count in counter.items():
            key = (name(key),) if isinstance(key[1], str) else (name(key[0]), name(key[1]))
            if None not in key:
                got[key] = got.get(key, 0) + count
        results.append(got)
    return results


def unbalanced(profile):
    """Functions whose calls cost more or less than what they spend, themselves and in what they call;
    those that nobody calls aside."""
    incoming, outgoing = {}, {}
    for (caller, callee), cost in profile.inclusive.items():
        outgoing[caller] = outgoing.get(caller, 0) + cost
        incoming[callee] = incoming.get(callee, 0) + cost
    return {function: (cost, profile.own[function] + outgoing.get(function, 0))
            for function, cost in incoming.items()
            if cost != profile.own[function] + outgoing.get(function, 0)}

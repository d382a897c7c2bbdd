# Threads whose stacks go through all ways from Python to Python: calls, C functions that call
# back, generators, methods, recursion, comprehensions. Each spins on one line. faulthandler notes
# all stacks again and again.
import faulthandler
import functools
import sys
import threading
import time

TURNS = int(sys.argv[2])


def spin():
    for turn in range(TURNS): turn * turn


def deep(depth):
    if depth:
        return deep(depth - 1)
    spin()


def by_callback():
    return sorted([1, 2], key=lambda value: spin() or value)


class Naïve:
    def method(self):
        return list(self.generator())

    def generator(self):
        yield from self.inner()

    def inner(self):
        spin()
        yield 1

    def __eq__(self, other):
        return by_callback()


def compare():
    return Naïve() in [Naïve()]


def comprehension():
    return [deep(3) for _ in range(1)]


def main():
    starts = [functools.partial(deep, 40), Naïve().method, compare, comprehension]
    threads = [threading.Thread(target=start) for start in starts]
    for thread in threads:
        thread.start()
    with open(sys.argv[1], 'w') as file:
        while any(thread.is_alive() for thread in threads):
            faulthandler.dump_traceback(file, all_threads=True)
            time.sleep(0.005)


main()

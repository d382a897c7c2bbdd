# Threads that allocate at the ends of all ways from Python to Python: calls, C functions that call
# back, generators, methods, recursion, comprehensions. faulthandler notes each stack on the line that
# allocates.
import faulthandler
import functools
import sys
import threading

FILE = open(sys.argv[1], 'w')
KEPT = []


def take():
    KEPT.append((faulthandler.dump_traceback(FILE, all_threads=False), bytearray(1000000)))


def deep(depth):
    if depth:
        return deep(depth - 1)
    take()


def by_callback():
    return sorted([1, 2], key=lambda value: take() or value)


class Naïve:
    def method(self):
        return list(self.generator())

    def generator(self):
        yield from self.inner()

    def inner(self):
        take()
        yield 1

    def __eq__(self, other):
        return by_callback()

    def __del__(self):
        take()


def compare():
    return Naïve() in [Naïve()]


def comprehension():
    return [deep(3) for _ in range(1)]


def raises():
    try:
        raise ValueError
    except ValueError:
        take()


def main():
    for start in [functools.partial(deep, 40), Naïve().method, compare, comprehension, raises]:
        threads = [threading.Thread(target=start) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


main()

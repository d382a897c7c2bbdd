#!/usr/bin/env python3
"""Writes the given number of bytes of text with the statistics of prose, always the same."""

import random
import sys

size = int(sys.argv[1])
random.seed(5)
letters = "etaoinshrdlucmfwypvbgkjqxz"
words = ["".join(random.choice(letters[:random.randrange(6, 26)])
                 for _ in range(random.randrange(1, 11))) for _ in range(4000)]
done = 0
while done < size:
    line = " ".join(words[min(int(random.paretovariate(0.6)), 3999)] for _ in range(12)) + "\n"
    sys.stdout.write(line[:size - done])
    done += len(line)

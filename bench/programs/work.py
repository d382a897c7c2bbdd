import json, math, sys
n = int(sys.argv[1])
bodies = [[math.sin(i), math.cos(i), i * 0.5, 0.0, 0.0, 0.0, 1.0 / (i + 1)] for i in range(5)]
for _ in range(n):
    for i, a in enumerate(bodies):
        for b in bodies[i + 1:]:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            m = 0.001 / (dx * dx + dy * dy + dz * dz + 0.01) ** 1.5
            a[3] -= dx * b[6] * m; a[4] -= dy * b[6] * m; a[5] -= dz * b[6] * m
            b[3] += dx * a[6] * m; b[4] += dy * a[6] * m; b[5] += dz * a[6] * m
    for a in bodies:
        a[0] += 0.001 * a[3]; a[1] += 0.001 * a[4]; a[2] += 0.001 * a[5]
print("%.9f" % bodies[0][0])
words = {}
s = 7
for i in range(n * 20):
    s = (s * 1103515245 + 12345) % 2147483648
    words.setdefault("k%d" % (s % 4000), []).append(i)
text = json.dumps(words, sort_keys=True)
print(len(text), sum(len(v) for v in json.loads(text).values()))

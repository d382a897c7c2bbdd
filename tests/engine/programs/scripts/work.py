"""Threads, processes, pipes, signals, subprocesses and the usual modules."""
import collections, hashlib, json, multiprocessing, os, queue, re, signal, sqlite3, struct
import subprocess, sys, threading, zlib

jobs, results = queue.Queue(), []
lock = threading.Lock()


def worker():
    while (n := jobs.get()) is not None:
        digest = hashlib.sha256(str(n).encode() * 100).hexdigest()
        with lock:
            results.append((n, digest[:8]))


threads = [threading.Thread(target=worker) for _ in range(8)]
for t in threads:
    t.start()
for n in range(400):
    jobs.put(n)
for _ in threads:
    jobs.put(None)
for t in threads:
    t.join()
print(hashlib.md5(repr(sorted(results)).encode()).hexdigest())

print(subprocess.run(["sort", "-r"], input="b\na\nc\n", capture_output=True, text=True).stdout.split())
print(subprocess.run("exit 9", shell=True).returncode)
try:
    subprocess.run(["/nonexistent/program"])
except FileNotFoundError as error:
    print(error.strerror)
p = subprocess.Popen(["sleep", "100"])
p.send_signal(signal.SIGTERM)
print(p.wait())


def square(n):
    return n * n


if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print(sum(pool.map(square, range(200))))
    hits = []
    signal.signal(signal.SIGALRM, lambda s, f: hits.append(s))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    total = 0
    while len(hits) < 20:
        total = sum(range(1000))
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(total)
    words = collections.Counter(re.findall(r"\w+", open("text.txt").read()))
    print(words.most_common(5))
    packed = zlib.compress(json.dumps(words, sort_keys=True).encode(), 9)
    print(len(packed), zlib.crc32(packed))
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a, b)")
    db.executemany("insert into t values (?, ?)", ((i, i * i % 97) for i in range(2000)))
    print(db.execute("select b, count(*), sum(a) from t group by b order by 3 desc limit 3").fetchall())
    print(struct.pack("<dif", 3.25, 7, 1.5).hex())
    pid = os.fork()
    if pid == 0:
        os._exit(33)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    sys.exit(3)

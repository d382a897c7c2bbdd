// See symbols_twin.c: the twins stand on the same lines in both files.
extern volatile int sink;


static inline __attribute__((always_inline)) int work(int n) {
    for (int i = 0; i < n; i++)
        sink -= 3 * i;
    return n - 1;
}

static __attribute__((noinline)) int rest(int n) {
    sink -= n;
    return n & sink;
}

__attribute__((noinline)) int other(int n) {
    return work(n) + rest(n);
}

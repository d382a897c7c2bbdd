// With symbols_twin_other.c: two static functions of one name in one program, inlined and not.
int other(int n);
volatile int sink;

static inline __attribute__((always_inline)) int work(int n) {
    for (int i = 0; i < n; i++)
        sink += i;
    return n + 1;
}

static __attribute__((noinline)) int rest(int n) {
    sink += n;
    return n ^ sink;
}

__attribute__((noinline)) int first(int n) {
    return work(n) + rest(n);
}

int main(int argc, char **argv) {
    return first(argc) + other(argc);
}

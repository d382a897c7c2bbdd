// No C library: _start, the initial stack as the kernel lays it out, bare system calls.
typedef unsigned long word;

static long call(long n, word a, word b, word c) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static void put(const char *text) {
    word n = 0;
    while (text[n])
        n++;
    call(1, 1, (word)text, n);
}

static void put_number(long value) {
    char digits[24], *p = digits + 23;
    *p = 0;
    do
        *--p = (char)('0' + value % 10);
    while (value /= 10);
    put(p);
    put("\n");
}

__attribute__((used)) static void begin(word *stack) {
    word arguments = stack[0];
    char **argv = (char **)(stack + 1);
    put("arguments ");
    put_number((long)arguments);
    for (word i = 1; i < arguments; i++) {
        put(argv[i]);
        put("\n");
    }
    put((word)stack % 16 == 0 ? "aligned\n" : "not aligned\n");
    word *p = stack + 1 + arguments + 1;
    while (*p)
        p++;
    p++;
    long seen = 0, page = 0;
    for (; p[0]; p += 2) {
        seen |= p[0] < 60 ? 1l << p[0] : 0;
        if (p[0] == 6)
            page = (long)p[1];
    }
    put("page size ");
    put_number(page);
    // AT_PHDR, AT_PHENT, AT_PHNUM, AT_ENTRY, AT_UID, AT_RANDOM, AT_EXECFN
    put_number(seen & (1l << 3 | 1l << 4 | 1l << 5 | 1l << 9 | 1l << 11 | 1l << 25 | 1l << 31));
    long sum = 0;
    for (long i = 0; i < 1000000; i++)
        sum += i ^ (sum >> 3);
    put_number(sum & 0xffffff);
    word old = (word)call(12, 0, 0, 0), new = (word)call(12, old + 10000, 0, 0);
    put_number((long)(new - old));
    *(char *)old = 1;
    call(231, 55, 0, 0);
    __builtin_unreachable();
}

__asm__(".globl _start\n_start: mov %rsp, %rdi; xor %ebp, %ebp; call begin\n");

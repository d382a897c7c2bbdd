// micro WORK SIZE: one kind of work, SIZE small portions of it. `bench/run micro` runs each
// kind under memcheck and callgrind, beside Valgrind: a kind that is dear shows by itself, where a
// real program hides it. Prints a number that depends on all of the work.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#define KEEP(value) __asm__ volatile("" : "+g"(value) : : "memory")
#define TIMES(count) for (long turn = 0, turns = (count); turn < turns; turn++)
#define APART __attribute__((noinline))

static uint64_t seed = 1;

static unsigned draw()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33);
}

// ---- calls and jumps ----

static APART long fibonacci(long n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static long recursion(long size)
{
    long sum = 0;
    TIMES(size) sum += fibonacci(20);
    return sum;
}

struct shape {
    long width = 1;
    virtual ~shape() = default;
    virtual long area() const { return width; }
};
struct square : shape {
    long area() const override { return width * width; }
};
struct twice : shape {
    long area() const override { return width * 2; }
};

static long virtual_calls(long size)
{
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 0; i < 100; i++)
        shapes.emplace_back(i % 3 == 0 ? new shape : i % 3 == 1 ? (shape *)new square : new twice);
    long sum = 0;
    TIMES(size * 100) for (auto &one : shapes) sum += one->area();
    return sum;
}

static long function_objects(long size)
{
    long sum = 0;
    std::vector<std::function<long(long)>> functions;
    for (long i = 0; i < 8; i++)
        functions.emplace_back([i, &sum](long value) { return value + i + (sum & 1); });
    TIMES(size * 10000) sum = functions[turn % 8](sum);
    return sum;
}

static long branches(long size)
{
    long sum = 0;
    TIMES(size * 10000)
    {
        unsigned value = draw();
        if (value & 1)
            sum += value & 7;
        if (value & 16)
            sum ^= turn;
        if ((value & 96) == 32)
            sum--;
    }
    return sum;
}

static long dispatch(long size)
{
    std::vector<uint8_t> code(1000);
    for (uint8_t &one : code)
        one = draw() % 8;
    long a = 1, b = 2;
    TIMES(size * 10) for (uint8_t one : code) switch (one) {
        case 0: a += b; break;
        case 1: b ^= a; break;
        case 2: a = a << 1 | b >> 63; break;
        case 3: b -= 7; break;
        case 4: a = ~a; break;
        case 5: b *= 3; break;
        case 6: a -= b; break;
        default: b = a >> 3; break;
    }
    return a + b;
}

static long exceptions(long size)
{
    long sum = 0;
    TIMES(size * 500)
    {
        try {
            throw (int)turn;
        } catch (int value) {
            sum += value & 3;
        }
    }
    return sum;
}

static jmp_buf place;

static APART void jump_back()
{
    longjmp(place, 1);
}

static long long_jumps(long size)
{
    volatile long sum = 0;
    for (volatile long i = 0; i < size * 10000; i = i + 1) {
        if (!setjmp(place))
            jump_back();
        sum = sum + 1;
    }
    return sum;
}

// ---- computing ----

static long integers(long size)
{
    uint64_t a = 1, b = 3;
    TIMES(size * 20000)
    {
        a = a * 6364136223846793005u + b;
        b ^= a >> 29;
        b = b << 7 | b >> 57;
    }
    return (long)(a ^ b);
}

static long floats(long size)
{
    static double a[48][48], b[48][48], c[48][48];
    for (int i = 0; i < 48; i++)
        for (int j = 0; j < 48; j++)
            a[i][j] = i + j, b[i][j] = i - j;
    TIMES(size * 10) for (int i = 0; i < 48; i++) for (int j = 0; j < 48; j++)
    {
        double sum = 0;
        for (int k = 0; k < 48; k++)
            sum += a[i][k] * b[k][j];
        c[i][j] += sum;
    }
    return (long)c[5][7];
}

static long vectors(long size)
{
    typedef int lanes __attribute__((vector_size(32)));
    static lanes values[512];
    lanes sum = {};
    for (int i = 0; i < 512; i++)
        values[i] += i;
    TIMES(size * 100) for (lanes &one : values)
    {
        sum += one * 3;
        sum ^= one;
    }
    return sum[0] + sum[7];
}

static long histogram(long size)
{
    std::vector<uint8_t> text(10000);
    unsigned counts[256] = {};
    for (uint8_t &one : text)
        one = (uint8_t)draw();
    TIMES(size * 5) for (uint8_t one : text) counts[one]++;
    return counts[7];
}

static long sorting(long size)
{
    std::vector<unsigned> values(5000);
    unsigned sum = 0;
    TIMES(size)
    {
        for (unsigned &one : values)
            one = draw();
        std::sort(values.begin(), values.end());
        sum += values[100];
    }
    return sum;
}

// ---- memory ----

static long large_copies(long size)
{
    const size_t bytes = 16 << 20;
    std::vector<char> from(bytes), to(bytes);
    TIMES(size)
    {
        memset(from.data(), (int)turn, bytes);
        memcpy(to.data(), from.data(), bytes);
        KEEP(turns);
    }
    return to[bytes / 2];
}

static long small_copies(long size)
{
    char from[256] = "some text", to[256] = "";
    TIMES(size * 10000)
    {
        size_t bytes = 8 + (size_t)turn % 90;
        KEEP(bytes);
        memcpy(to, from + turn % 16, bytes);
        to[0]++;
    }
    return to[0];
}

static long strings(long size)
{
    const char *texts[] = {"a", "some words", "a somewhat longer line of text, as in a file",
                           "/usr/lib/x86_64-linux-gnu/libc.so.6"};
    char text[64];
    long sum = 0;
    TIMES(size * 2000)
    {
        const char *from = texts[turn % 4];
        KEEP(from);
        sum += (long)strlen(from) + (strchr(from, 'x') != NULL);
        strcpy(text, from);
        sum += strcmp(text, texts[(turn + 1) % 4]) > 0;
    }
    return sum;
}

static long formatting(long size)
{
    char text[128];
    long sum = 0;
    TIMES(size * 1000) sum += snprintf(text, sizeof text, "%ld %s %.3f %x", turn, "word", turn * 0.1, 77);
    return sum;
}

struct node {
    node *next;
    long value;
};

static long pointers(long size)
{
    std::vector<node> nodes(100000);
    std::vector<unsigned> order(nodes.size());
    for (unsigned i = 0; i < order.size(); i++)
        order[i] = i;
    for (size_t i = order.size() - 1; i > 0; i--)
        std::swap(order[i], order[draw() % i]);
    for (size_t i = 0; i < order.size(); i++)
        nodes[order[i]] = {&nodes[order[(i + 1) % order.size()]], (long)i};
    const node *at = &nodes[0];
    long sum = 0;
    TIMES(size * 2000)
    {
        sum += at->value;
        at = at->next;
    }
    return sum;
}

static long hash_table(long size)
{
    std::unordered_map<unsigned, long> map;
    for (unsigned i = 0; i < 10000; i++)
        map[i * 7] = i;
    long sum = 0;
    TIMES(size * 3000)
    {
        auto found = map.find(draw() % 70000);
        sum += found == map.end() ? 0 : found->second;
    }
    return sum;
}

// ---- allocating ----

static long pairs(long size)
{
    long sum = 0;
    TIMES(size * 10000)
    {
        char *block = (char *)malloc(40);
        KEEP(block);
        block[0] = (char)turn;
        sum += block[0];
        free(block);
    }
    return sum;
}

static long random_sizes(long size)
{
    std::vector<char *> held(500);
    long sum = 0;
    TIMES(size * 5000)
    {
        char *&slot = held[draw() % held.size()];
        free(slot);
        size_t bytes = 1 + draw() % 1000;
        slot = (char *)malloc(bytes);
        slot[bytes - 1] = 1;
        sum += (long)bytes;
    }
    for (char *one : held)
        free(one);
    return sum;
}

static long reallocs(long size)
{
    long sum = 0;
    TIMES(size)
    {
        char *text = NULL;
        for (size_t length = 0; length < 20000; length += 10) {
            text = (char *)realloc(text, length + 10);
            memset(text + length, 'x', 10);
        }
        sum += text[19999];
        free(text);
    }
    return sum;
}

static long growing(long size)
{
    long sum = 0;
    TIMES(size * 10)
    {
        std::vector<long> numbers;
        for (long i = 0; i < 10000; i++)
            numbers.push_back(i);
        sum += numbers[77];
    }
    return sum;
}

static long untouched(long size)
{
    long sum = 0;
    TIMES(size * 100)
    {
        char *block = (char *)calloc(1, 65536);
        block[turn % 65536] = 1;
        KEEP(block);
        sum += block[7];
        free(block);
    }
    return sum;
}

// ---- undefined bits ----

struct flags {
    unsigned a : 3, b : 5, c : 9;
};

static long bit_fields(long size)
{
    long sum = 0;
    TIMES(size * 100)
    {
        flags *block = (flags *)malloc(100 * sizeof *block);
        KEEP(block);
        for (int i = 0; i < 100; i++) {
            block[i].a = i & 7;
            block[i].b = i & 31;
            block[i].c = (unsigned)i;
        }
        for (int i = 0; i < 100; i++)
            sum += block[i].a + block[i].c;
        free(block);
    }
    return sum;
}

struct record {
    char kind;
    long value;
    char text[40];
};

static long half_filled(long size)
{
    long sum = 0;
    TIMES(size * 100)
    {
        record from[20], to[20];
        for (int i = 0; i < 20; i++) {
            from[i].kind = (char)i;
            from[i].value = turn;
            from[i].text[0] = 0;
        }
        KEEP(turns);
        for (int i = 0; i < 20; i++)
            to[i] = from[19 - i];
        sum += to[3].kind + to[5].value;
    }
    return sum;
}

static APART long use_frame(long value)
{
    char room[500];
    char *at = room;
    KEEP(at);
    at[value & 255] = 1;
    return at[value & 255];
}

static long frames(long size)
{
    long sum = 0;
    TIMES(size * 10000) sum += use_frame(turn);
    return sum;
}

// ---- the system ----

static long system_calls(long size)
{
    long sum = 0;
    TIMES(size * 2000) sum += getppid() > 0;
    return sum;
}

static long pipes(long size)
{
    int ends[2];
    char text[512] = "";
    long sum = 0;
    if (pipe(ends) != 0)
        return -1;
    TIMES(size * 300)
    {
        sum += write(ends[1], text, sizeof text);
        sum += read(ends[0], text, sizeof text);
    }
    return sum;
}

static long clocks(long size)
{
    long sum = 0;
    struct timespec time;
    TIMES(size * 5000) sum += clock_gettime(CLOCK_MONOTONIC, &time) == 0;
    return sum;
}

static long mappings(long size)
{
    long sum = 0;
    TIMES(size * 100)
    {
        char *memory = (char *)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory[0] = memory[8192] = 1;
        sum += memory[8192];
        munmap(memory, 65536);
    }
    return sum;
}

static volatile long handled;

static void on_signal(int)
{
    handled = handled + 1;
}

static long signals(long size)
{
    signal(SIGUSR1, on_signal);
    TIMES(size * 300) raise(SIGUSR1);
    return handled;
}

static long forks(long size)
{
    long sum = 0;
    TIMES(size * 4)
    {
        pid_t child = fork();
        int status;
        if (child == 0)
            _exit(3);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    return sum;
}

// ---- threads ----

static long thread_starts(long size)
{
    std::atomic<long> sum{0};
    TIMES(size * 20)
    {
        std::thread other([&] { sum++; });
        other.join();
    }
    return sum;
}

static long locks(long size)
{
    std::mutex lock;
    long sum = 0;
    TIMES(size * 10000)
    {
        std::lock_guard<std::mutex> guard(lock);
        sum++;
        KEEP(sum);
    }
    return sum;
}

static long counters(long size)
{
    std::atomic<long> sum{0};
    TIMES(size * 20000) sum.fetch_add(turn & 1);
    return sum;
}

// ---- the whole ----

static const struct {
    const char *name;
    long (*run)(long size);
} works[] = {
    {"recursion", recursion}, {"virtual", virtual_calls}, {"function", function_objects},
    {"branches", branches}, {"dispatch", dispatch}, {"exceptions", exceptions},
    {"longjmp", long_jumps}, {"integers", integers}, {"floats", floats}, {"vectors", vectors},
    {"histogram", histogram}, {"sort", sorting}, {"large-copies", large_copies},
    {"small-copies", small_copies}, {"strings", strings}, {"snprintf", formatting},
    {"pointers", pointers}, {"hash", hash_table}, {"pairs", pairs}, {"sizes", random_sizes},
    {"realloc", reallocs}, {"growing", growing}, {"calloc", untouched}, {"bit-fields", bit_fields},
    {"half-filled", half_filled}, {"frames", frames}, {"getppid", system_calls}, {"pipe", pipes},
    {"clock", clocks}, {"mmap", mappings}, {"signals", signals}, {"fork", forks},
    {"threads", thread_starts}, {"locks", locks}, {"atomics", counters},
};

int main(int argc, char **argv)
{
    for (const auto &work : works)
        if (argc > 2 && strcmp(argv[1], work.name) == 0) {
            printf("%ld\n", work.run(atol(argv[2])));
            return 0;
        }
    for (const auto &work : works)
        printf("%s\n", work.name);
    return 2;
}

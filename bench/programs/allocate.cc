// allocate WORK SIZE: programs that allocate as real ones do, SIZE thousand blocks in all.
//   sizes     random sizes up to 2,000 bytes; one of 1,000 live blocks is replaced each time
//   stacks    the same with 10,000 call stacks: four calls deep, ten ways at each level
//   map       a std::map of strings: insertions and removals at random places
//   exchange  eight threads; each frees blocks that its neighbour allocated
//   own       eight threads that replace their own blocks
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

enum { LIVE = 1000, THREADS = 8, BATCH = 64, WAYS = 10 };

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static unsigned char *take(size_t size)
{
    unsigned char *block = (unsigned char *)malloc(size);
    block[0] = (unsigned char)size;
    block[size - 1] = 1;
    return block;
}

static uint64_t give(unsigned char *block)
{
    uint64_t sum = block ? block[0] : 0;
    free(block);
    return sum;
}

static uint64_t replace_blocks(long count, uint64_t seed)
{
    std::vector<unsigned char *> held(LIVE);
    uint64_t sum = 0;
    for (long i = 0; i < count; i++) {
        unsigned char *&slot = held[next(&seed) % LIVE];
        sum += give(slot);
        slot = take(1 + next(&seed) % 2000);
    }
    for (unsigned char *block : held)
        sum += give(block);
    return sum;
}

// ---- stacks ----

template <int LEVEL, int WAY> __attribute__((noinline)) unsigned char *walk(unsigned path, size_t size);

template <int LEVEL> static unsigned char *choose(unsigned path, size_t size)
{
    switch (path % WAYS) {
#define WAY(n)                                                                                     \
    case n:                                                                                        \
        return walk<LEVEL, n>(path / WAYS, size);
        WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7) WAY(8) WAY(9)
    }
    return NULL;
}

template <int LEVEL, int WAY> unsigned char *walk(unsigned path, size_t size)
{
    unsigned char *block;
    if constexpr (LEVEL == 0)
        block = take(size);
    else
        block = choose<LEVEL - 1>(path, size);
    __asm__ volatile("" : "+r"(block) : "i"(WAY) : "memory");
    return block;
}

static uint64_t many_stacks(long count)
{
    std::vector<unsigned char *> held(LIVE);
    uint64_t sum = 0, seed = 1;
    for (long i = 0; i < count; i++) {
        unsigned char *&slot = held[next(&seed) % LIVE];
        sum += give(slot);
        slot = choose<3>((unsigned)(next(&seed) % (WAYS * WAYS * WAYS * WAYS)), 1 + next(&seed) % 200);
    }
    for (unsigned char *block : held)
        sum += give(block);
    return sum;
}

// ---- map ----

static uint64_t churn_map(long count)
{
    std::map<std::string, std::string> map;
    uint64_t seed = 1, sum = 0;
    for (long i = 0; i < count / 2; i++) {
        std::string key = "a key that is too long to stand in place " + std::to_string(next(&seed) % 20000);
        auto found = map.find(key);
        if (found == map.end()) {
            map[key] = std::string(20 + next(&seed) % 60, 'x');
        } else {
            sum += found->second.size();
            map.erase(found);
        }
    }
    return sum + map.size();
}

// ---- threads ----

struct mailbox {
    std::mutex lock;
    std::vector<unsigned char *> blocks;
};

static mailbox mailboxes[THREADS];

static void pass_on(int number, long count, uint64_t *sum)
{
    uint64_t seed = (uint64_t)number + 1;
    mailbox &own = mailboxes[number], &other = mailboxes[(number + 1) % THREADS];
    std::vector<unsigned char *> batch, received;
    for (long i = 0; i < count; i++) {
        batch.push_back(take(1 + next(&seed) % 500));
        if (batch.size() < BATCH)
            continue;
        {
            std::lock_guard<std::mutex> guard(other.lock);
            other.blocks.insert(other.blocks.end(), batch.begin(), batch.end());
        }
        batch.clear();
        {
            std::lock_guard<std::mutex> guard(own.lock);
            received.swap(own.blocks);
        }
        for (unsigned char *block : received)
            *sum += give(block);
        received.clear();
    }
    for (unsigned char *block : batch)
        *sum += give(block);
}

static uint64_t run_threads(long count, bool is_exchange)
{
    std::vector<std::thread> threads;
    std::vector<uint64_t> sums(THREADS * 16);
    uint64_t sum = 0;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([=, &sums] {
            if (is_exchange)
                pass_on(i, count / THREADS, &sums[i * 16]);
            else
                sums[i * 16] = replace_blocks(count / THREADS, (uint64_t)i + 1);
        });
    for (int i = 0; i < THREADS; i++) {
        threads[i].join();
        sum += sums[i * 16];
    }
    for (mailbox &box : mailboxes)
        for (unsigned char *block : box.blocks)
            sum += give(block);
    return sum;
}

int main(int argc, char **argv)
{
    const char *work = argc > 2 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) * 1000 : 0;
    uint64_t sum;
    if (!strcmp(work, "sizes"))
        sum = replace_blocks(count, 1);
    else if (!strcmp(work, "stacks"))
        sum = many_stacks(count);
    else if (!strcmp(work, "map"))
        sum = churn_map(count);
    else if (!strcmp(work, "exchange") || !strcmp(work, "own"))
        sum = run_threads(count, work[0] == 'e');
    else
        return 2;
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}

// As cases.c, for the C++ library.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

static int shared;
static std::mutex mutex;
static std::condition_variable condition;
static std::shared_mutex shared_mutex;
static std::once_flag once;
static std::atomic<bool> flag{false};
static std::atomic<int> counter{0};
static std::atomic<int *> pointer{nullptr};
static bool ready;

template <class A, class B> static void run(A a, B b) {
    std::thread first(a), second(b);
    first.join();
    second.join();
}

static void counter_race() {
    auto add = [] { shared++; };
    run(add, add);
}
static void mutex_clean() {
    auto add = [] {
        for (int i = 0; i < 100; i++) {
            std::lock_guard<std::mutex> lock(mutex);
            shared++;
        }
    };
    run(add, add);
}
static void condition_clean() {
    run(
        [] {
            shared = 42;
            std::lock_guard<std::mutex> lock(mutex);
            ready = true;
            condition.notify_one();
        },
        [] {
            std::unique_lock<std::mutex> lock(mutex);
            condition.wait(lock, [] { return ready; });
            shared++;
        });
}
static void shared_mutex_clean() {
    auto read = [] {
        for (int i = 0; i < 50; i++) {
            std::shared_lock<std::shared_mutex> lock(shared_mutex);
            if (shared < 0)
                std::puts("never");
        }
    };
    run(read, [] {
        for (int i = 0; i < 50; i++) {
            std::unique_lock<std::shared_mutex> lock(shared_mutex);
            shared++;
        }
    });
}
static void shared_mutex_race() {
    auto add = [] {
        std::shared_lock<std::shared_mutex> lock(shared_mutex);
        shared++;
    };
    run(add, add);
}
static void call_once_clean() {
    auto read = [] {
        std::call_once(once, [] { shared = 42; });
        if (shared != 42)
            std::puts("never");
    };
    run(read, read);
}
static std::string &single() {
    static std::string text("a text that does not fit into the object");
    return text;
}
static void static_clean() {
    auto read = [] {
        if (single().size() == 3)
            std::puts("never");
    };
    run(read, read);
}
static void future_clean() {
    auto future = std::async(std::launch::async, [] {
        shared = 42;
        return std::string("a text that does not fit into the object");
    });
    if (future.get().empty())
        std::puts("never");
    shared++;
}
static void promise_clean() {
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread thread([&] {
        shared = 42;
        promise.set_value(1);
    });
    shared += future.get();
    thread.join();
}
static void packaged_task_clean() {
    std::packaged_task<int()> task([] { return ++shared; });
    auto future = task.get_future();
    std::thread thread(std::move(task));
    shared += future.get();
    thread.join();
}
static void publish_clean() {
    run(
        [] {
            shared = 42;
            flag.store(true, std::memory_order_release);
        },
        [] {
            while (!flag.load(std::memory_order_acquire))
                std::this_thread::yield();
            shared++;
        });
}
static void operators_clean() {
    run(
        [] {
            shared = 42;
            flag = true;
        },
        [] {
            while (!flag)
                ;
            shared++;
        });
}
static void pointer_clean() {
    run(
        [] {
            int *made = new int(42);
            pointer.store(made, std::memory_order_release);
        },
        [] {
            int *got;
            while (!(got = pointer.load(std::memory_order_acquire)))
                std::this_thread::yield();
            ++*got;
            delete got;
        });
}
static void relaxed_clean() {
    auto add = [] {
        for (int i = 0; i < 100; i++)
            counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    };
    run(add, add);
}
static void first_load_clean() {
    run(
        [] {
            if (flag.load(std::memory_order_relaxed))
                std::puts("early");
        },
        [] { flag.exchange(true); });
}
static void fence_clean() {
    run(
        [] {
            shared = 42;
            std::atomic_thread_fence(std::memory_order_release);
            flag.store(true, std::memory_order_relaxed);
        },
        [] {
            while (!flag.load(std::memory_order_relaxed))
                std::this_thread::yield();
            std::atomic_thread_fence(std::memory_order_acquire);
            shared++;
        });
}
static void wait_clean() {
    run(
        [] {
            shared = 42;
            counter.store(1);
            counter.notify_all();
        },
        [] {
            counter.wait(0);
            shared++;
        });
}
static void shared_ptr_clean() {
    auto text = std::make_shared<std::string>("a text that does not fit into the object");
    auto use = [text] {
        for (int i = 0; i < 50; i++) {
            auto copy = text;
            if (copy->empty())
                std::puts("never");
        }
    };
    text.reset();
    run(use, use);
}
static void latch_clean() {
    std::latch latch(1);
    run(
        [&] {
            shared = 42;
            latch.count_down();
        },
        [&] {
            latch.wait();
            shared++;
        });
}
static void barrier_clean() {
    std::barrier barrier(2);
    run(
        [&] {
            for (int i = 0; i < 20; i++) {
                shared++;
                barrier.arrive_and_wait();
                barrier.arrive_and_wait();
            }
        },
        [&] {
            for (int i = 0; i < 20; i++) {
                barrier.arrive_and_wait();
                shared++;
                barrier.arrive_and_wait();
            }
        });
}
static void semaphore_clean() {
    static std::binary_semaphore semaphore(0);
    run(
        [] {
            shared = 42;
            semaphore.release();
        },
        [] {
            semaphore.acquire();
            shared++;
        });
}
static void map_race() {
    // The tree stays as it is: two threads that change it may crash.
    static std::map<int, int> map{{1, 0}};
    run([] { map[1] = 1; }, [] { map[1] = 2; });
}
static void map_clean() {
    static std::map<int, int> map;
    auto add = [] {
        for (int i = 0; i < 50; i++) {
            std::lock_guard<std::mutex> lock(mutex);
            map[i]++;
        }
    };
    run(add, add);
}
static void vector_race() {
    std::vector<int> values(100);
    run([&] { values[50] = 1; }, [&] { values[50] = 2; });
}
static void vector_clean() {
    std::vector<int> values(100);
    run([&] { values[50] = 1; }, [&] { values[51] = 2; });
}
struct object {
    int value = 1;
    virtual ~object() {}
    virtual int get() { return value; }
};
static void object_clean() {
    auto made = std::make_unique<object>();
    object *raw = made.get();
    run([raw] { raw->get(); }, [raw] { raw->get(); });
}
static void exception_clean() {
    auto work = [] {
        for (int i = 0; i < 20; i++) {
            try {
                std::lock_guard<std::mutex> lock(mutex);
                shared++;
                throw std::string("a text that does not fit into the object");
            } catch (const std::string &text) {
                if (text.empty())
                    std::puts("never");
            }
        }
    };
    run(work, work);
}
static void thread_local_clean() {
    static thread_local std::string own;
    auto work = [] {
        for (int i = 0; i < 100; i++)
            own += "x";
    };
    run(work, work);
}
static void spin_lock_clean() {
    static std::atomic_flag lock = ATOMIC_FLAG_INIT;
    auto add = [] {
        for (int i = 0; i < 50; i++) {
            while (lock.test_and_set(std::memory_order_acquire))
                std::this_thread::yield();
            shared++;
            lock.clear(std::memory_order_release);
        }
    };
    run(add, add);
}
static void beside_atomic_race() {
    auto add = [] {
        shared++;
        counter++;
    };
    run([] { shared++; }, add);
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)();
} cases[] = {
    CASE(counter_race), CASE(mutex_clean), CASE(condition_clean), CASE(shared_mutex_clean),
    CASE(shared_mutex_race), CASE(call_once_clean), CASE(static_clean), CASE(future_clean),
    CASE(promise_clean), CASE(packaged_task_clean), CASE(publish_clean), CASE(operators_clean),
    CASE(pointer_clean), CASE(relaxed_clean), CASE(first_load_clean), CASE(fence_clean),
    CASE(wait_clean), CASE(shared_ptr_clean), CASE(latch_clean), CASE(barrier_clean),
    CASE(semaphore_clean), CASE(map_race), CASE(map_clean), CASE(vector_race), CASE(vector_clean),
    CASE(object_clean), CASE(exception_clean), CASE(thread_local_clean), CASE(spin_lock_clean),
    CASE(beside_atomic_race),
};

int main(int argc, char **argv) {
    for (const auto &it : cases) {
        if (argc < 2)
            std::puts(it.name);
        else if (std::strcmp(it.name, argv[1]) == 0)
            it.run();
    }
    return 0;
}

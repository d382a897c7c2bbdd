// The server of twelve.c with the containers of C++.
#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define APART __attribute__((noinline))

static std::mutex lock;
static unsigned long count;

// ---- what grows ----

static std::unordered_map<unsigned long, std::string> cache;
APART static void grow_cache()
{
    cache.emplace(count, std::string(500, 'a')); // grows: cache
}

struct Handler {
    std::string data;
    int operator()() const { return data[0]; }
};
static std::vector<std::function<int()>> listeners;
APART static void subscribe()
{
    Handler handler;
    handler.data.assign(400, 'l');           // grows: listeners
    listeners.push_back(std::move(handler)); // grows: listeners
}

struct Node {
    std::shared_ptr<Node> other;
    char data[400];
};
APART static void make_cycle()
{
    auto a = std::make_shared<Node>(); // grows: cycles
    auto b = std::make_shared<Node>(); // grows: cycles
    a->other = b;
    b->other = a;
}

static std::string text;
APART static void append()
{
    text.append(400, 'b'); // grows: buffers
    asm volatile("");      // else the call would be a jump, and this function on no stack
}

// Threads of this server end with their connections; what they keep does not.
static thread_local auto *seen = new std::vector<std::string>;
APART static void note_on_thread()
{
    seen->emplace_back(450, 'c'); // grows: threads
}

static std::deque<std::string> channel;
APART static void send_to_channel()
{
    channel.emplace_back(480, 'd'); // grows: channel
}

struct Task {
    std::function<void()> run;
    char state[300];
};
static std::vector<std::unique_ptr<Task>> tasks;
APART static void spawn()
{
    tasks.push_back(std::make_unique<Task>()); // grows: tasks
}

APART static void forget_box()
{
    *(char *volatile *)std::make_unique<char[]>(512).release() = nullptr; // grows: boxes
}

// ---- what does not ----

static std::unordered_map<unsigned long, std::string> bounded;
APART static void keep_bounded()
{
    bounded.emplace(count, std::string(500, 'e'));
    bounded.erase(count - 200);
}

static std::vector<std::unique_ptr<char[]>> pool;
APART static void use_pool()
{
    std::unique_ptr<char[]> buffer;
    if (pool.empty()) {
        buffer = std::make_unique<char[]>(16384);
    } else {
        buffer = std::move(pool.back());
        pool.pop_back();
    }
    memset(buffer.get(), 9, 1000);
    pool.push_back(std::move(buffer));
}

static std::vector<std::string> table;
APART static void warm_up()
{
    for (int i = 0; i < 2000 && table.size() < 2000; i++)
        table.push_back(std::string(60, 'f'));
    std::string copy = table[count % 2000] + table[0];
    *(const char *volatile *)&table[0][0];
}

static std::vector<std::string> sessions;
APART static void open_session()
{
    sessions.emplace_back(700, 'g');
}
APART static void stop()
{
    std::vector<std::string>().swap(sessions);
}

// ---- serving ----

static const std::unordered_map<std::string, void (*)()> endpoints = {
    {"cache", grow_cache},   {"listeners", subscribe},    {"cycles", make_cycle},
    {"buffers", append},     {"threads", note_on_thread}, {"channel", send_to_channel},
    {"tasks", spawn},        {"boxes", forget_box},       {"bounded", keep_bounded},
    {"pool", use_pool},      {"warmup", warm_up},         {"load", open_session},
    {"stop", stop},
};

static void serve(int fd)
{
    FILE *in = fdopen(fd, "r");
    char line[1000], path[100] = "";
    while (fgets(line, sizeof line, in)) {
        sscanf(line, "GET /%99s", path);
        if (strcmp(line, "\r\n") != 0)
            continue;
        std::string name = path, body = std::string(100, 'x') + name + "\n";
        {
            std::lock_guard<std::mutex> guard(lock);
            count++;
            auto endpoint = endpoints.find(name);
            if (endpoint != endpoints.end())
                endpoint->second();
        }
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(fd, out.data(), out.size()) < 0)
            break;
    }
    fclose(in);
}

int main()
{
    sockaddr_in address = {};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    signal(SIGINT, [](int) { exit(0); });
    signal(SIGPIPE, SIG_IGN);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(server, (sockaddr *)&address, length) < 0 || listen(server, 64) < 0)
        return 1;
    getsockname(server, (sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (int fd; (fd = accept(server, nullptr, nullptr)) >= 0;)
        std::thread(serve, fd).detach();
}

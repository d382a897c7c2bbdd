// Every connection subscribes to a signal and never unsubscribes. Fixed: it does when it closes.
#include <functional>
#include <list>
#include <string>

extern "C" {
#include "common.h"
}

struct Signal {
    using Handler = std::function<void(int)>;
    std::list<Handler> handlers;

    std::list<Handler>::iterator subscribe(Handler handler) {
        return handlers.insert(handlers.end(), std::move(handler));
    }
    void unsubscribe(std::list<Handler>::iterator it) { handlers.erase(it); }
};

static Signal changed;

struct Connection {
    std::string name;
    int seen = 0;
    std::list<Signal::Handler>::iterator subscription;

    explicit Connection(int number) : name("connection number " + std::to_string(number)) {
        std::string label = name + " wants to know about every change that there is";
        subscription = changed.subscribe([label](int) { (void)label.size(); });
    }
    ~Connection() {
        if (IS_FIXED)
            changed.unsubscribe(subscription);
    }
};

int main() {
    for (int i = 0; still_within(1200); i++) {
        Connection connection(i);
        rest(150);
    }
    return 0;
}

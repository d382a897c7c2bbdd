// Loses objects of a class, a list, and keeps a table in a global variable. Prints "ready" and waits
// for the end of stdin.
#include <stdlib.h>
#include <unistd.h>

struct Session {
    virtual ~Session() {}
    virtual void close() {}
    char text[100];
};

struct Node {
    Node *next;
    long payload[20];
};

void *table_of_things[100];

__attribute__((noinline)) static void lose() {
    for (int i = 0; i < 7; i++)
        new Session;
    Node *first = nullptr;
    for (int i = 0; i < 10; i++)
        first = new Node{first, {}};
    first->payload[0] = 1;
}

__attribute__((noinline)) static void wipe() {
    volatile char room[50000];
    for (unsigned i = 0; i < sizeof room; i++)
        room[i] = 0;
}

int main() {
    for (auto &thing : table_of_things)
        thing = calloc(1, 5000);
    lose();
    wipe();
    char byte;
    if (write(1, "ready\n", 6) < 0)
        return 1;
    return read(0, &byte, 1) < 0;
}

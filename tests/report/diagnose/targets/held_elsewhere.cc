// Blocks that one function makes and another keeps in a vector.
#include <cstdlib>
#include <ctime>
#include <vector>
static std::vector<char *> kept;
__attribute__((noinline)) static char *make_answer() {
    return new char[4000];
}
__attribute__((noinline)) static void remember(char *answer) {
    kept.push_back(answer);
}
int main() {
    for (int step = 0; step < 3000; step++) {
        void *volatile block = malloc(100);
        free(block);
        remember(make_answer());
        timespec time = {0, 300000};
        nanosleep(&time, nullptr);
    }
    quick_exit(0);
}

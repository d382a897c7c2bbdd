// The words of patterns stand in the arguments of functions only, which say what these work on.
#include <stdlib.h>
#include <time.h>
#include <vector>
struct CallbackInfo { char text[400]; };
template <typename Kept> void keep_answer(std::vector<Kept *> &kept, const CallbackInfo *) {
    kept.push_back(new Kept());
}
template void keep_answer(std::vector<CallbackInfo *> &, const CallbackInfo *);
int main() {
    std::vector<CallbackInfo *> kept;
    for (int step = 0; step < 3000; step++) {
        void *volatile shortly = malloc(100);
        free(shortly);
        keep_answer(kept, nullptr);
        timespec time = {0, 300000};
        nanosleep(&time, nullptr);
    }
    quick_exit(0);
}

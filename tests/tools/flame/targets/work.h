// Work of a known size. The pieces are small and of changing length, so that they cannot fall into
// step with the sampling, and all of it is one loop: copies of a loop differ in speed.
static __thread volatile unsigned long sink;

static __attribute__((noinline)) void turn(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        sink += i;
}

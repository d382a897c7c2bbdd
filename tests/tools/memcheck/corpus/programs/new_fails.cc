// C++ allocations that fail: std::bad_alloc is thrown, which Valgrind cannot do.
//
// case new_fails alone
// case new_fails_O2 alone -O2
#include <new>
#include <vector>

volatile long least = -1, large = 0x6000000000000000;
char *volatile kept;
static int tries;

static void give_up()
{
    if (++tries == 2)
        throw std::bad_alloc();
}

template <typename Function> static int throws(Function function)
{
    try {
        function();
    } catch (std::bad_alloc &) {
        return 1;
    }
    return 0;
}

int main()
{
    struct alignas(64) wide { char bytes[64]; };
    int thrown = throws([] {
        kept = new char[least]; // bug(new_fails,new_fails_O2): Argument 'size' of function __builtin_vec_new has a fishy (possibly negative) value: -1
    });
    thrown += throws([] { kept = new char[large]; });
    thrown += throws([] { kept = (char *)operator new(large); });
    thrown += throws([] { kept = (char *)new wide[large >> 6]; });
    thrown += throws([] { std::vector<char>().reserve(large); });
    std::set_new_handler(give_up);
    thrown += throws([] { kept = new char[large]; });
    kept = new char[10];
    kept[10] = 1; // bug(new_fails,new_fails_O2): Invalid write of size 1
    delete[] kept;
    return thrown == 6 && tries == 2 ? 0 : 1;
}

// Runs calls of kernels that it reads from standard input, each buffer in memory of its own size: for sanitizers.
//
// The input is words of 64 bits, for one recipe after the other: the number of buffers, and of each its size in bytes and
// its bytes, filled up to words; then the number of calls, and of each: the length of the name, the name, blocks, the number of arguments, and of each the number of
// its words, and of each word 0 and the word, or a buffer's number from 1 on and the offset.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int shim_launch(const char* name, unsigned blocks, unsigned threads, void** args);

static bool word(uint64_t& out) { return fread(&out, 8, 1, stdin) == 1; }
static uint64_t need() {
    uint64_t out;
    if (!word(out)) exit(3);
    return out;
}
static void bytes(void* to, uint64_t count) {
    char rest[8];
    if (count && fread(to, 1, count, stdin) != count) exit(3);
    if (count % 8 && fread(rest, 1, 8 - count % 8, stdin) != 8 - count % 8) exit(3);
}

int main() {
    uint64_t count;
    while (word(count)) {
        std::vector<char*> buffers;
        for (uint64_t left = count; left > 0; left--) {
            const uint64_t size = need();
            // Not even one byte more than it has.
            buffers.push_back(static_cast<char*>(malloc(size)));
            bytes(buffers.back(), size);
        }
        for (uint64_t calls = need(); calls > 0; calls--) {
            std::string name(need(), ' ');
            bytes(&name[0], name.size());
            const uint64_t blocks = need();
            std::vector<std::vector<uint64_t>> args(need());
            std::vector<void*> pointers;
            for (auto& arg : args) {
                for (uint64_t left = need(); left > 0; left--) {
                    const uint64_t buffer = need(), value = need();
                    arg.push_back(buffer ? reinterpret_cast<uint64_t>(buffers[buffer - 1]) + value : value);
                }
                pointers.push_back(arg.data());
            }
            if (shim_launch(name.c_str(), static_cast<unsigned>(blocks), 256, pointers.data())) {
                fprintf(stderr, "no kernel %s\n", name.c_str());
                return 3;
            }
        }
        for (char* buffer : buffers) free(buffer);
    }
    return 0;
}

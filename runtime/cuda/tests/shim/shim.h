// Lets a C++ compiler take CUDA kernels as they are, and a processor run them, one block after the other.
//
// The threads of a block are fibers that change at barriers, or, with SHIM_THREADS, threads of the system, so that the
// sanitizers of the compiler see what they share. A barrier that not every thread of the block reaches ends the process.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <math.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define OUT_OF_LINE __attribute__((noinline))
// Blocks run one after the other.
#define __shared__ static

namespace shim {
struct Dims {
    unsigned x, y, z;
};

void wait_for_block();
void wait_for_warp();
// Room for one value of each thread of a warp.
uint64_t* of_warp();
unsigned lane();
void lock();
void unlock();

using Call = std::function<void(void**)>;
// With the words of each argument.
void add(const char* name, Call call, std::vector<unsigned> words);

template <class... A, size_t... I>
void apply(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(args[I])...);
}

struct Registered {
    template <class... A>
    Registered(const char* name, void (*kernel)(A...)) {
        add(name, [kernel](void** args) { apply(kernel, args, std::index_sequence_for<A...>()); },
            {static_cast<unsigned>((sizeof(A) + 7) / 8)...});
    }
};

template <class T>
T exchange(T value, unsigned from) {
    static_assert(sizeof(T) <= 8, "a word at a time");
    memcpy(&of_warp()[lane()], &value, sizeof(T));
    wait_for_warp();
    T other;
    memcpy(&other, &of_warp()[from], sizeof(T));
    wait_for_warp();
    return other;
}
}  // namespace shim

#define EXPORT(name) static shim::Registered registered_##name(#name, &name);

extern __thread shim::Dims threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() { shim::wait_for_block(); }
inline void __syncwarp(unsigned = ~0u) { shim::wait_for_warp(); }
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned by) {
    unsigned from = shim::lane() + by;
    return shim::exchange(value, from < 32 ? from : shim::lane());
}
template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned by) {
    return shim::exchange(value, shim::lane() ^ by);
}
template <class T>
T atomicAdd(T* at, T value) {
    shim::lock();
    T before = *at;
    *at = before + value;
    shim::unlock();
    return before;
}
template <class T>
T atomicCAS(T* at, T expected, T value) {
    shim::lock();
    T before = *at;
    if (before == expected) *at = value;
    shim::unlock();
    return before;
}
template <class T>
T atomicOr(T* at, T value) {
    shim::lock();
    T before = *at;
    *at = before | value;
    shim::unlock();
    return before;
}
template <class T>
T atomicMax(T* at, T value) {
    shim::lock();
    T before = *at;
    if (before < value) *at = value;
    shim::unlock();
    return before;
}
inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline int __float_as_int(float value) {
    int bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// What the libraries for the driver of fake.cpp share.
#pragma once
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>

#define API extern "C" __attribute__((visibility("default")))

// Of the driver.
API void fakecuda_push(void* stream, void (*work)(const void*), const void* data, size_t bytes);
API int fakecuda_is_device(uint64_t at, size_t bytes);

// What elements are, by the names of cuBLAS.
enum Element { F32 = 0, F16 = 2, BF16 = 14 };

inline int64_t width(int element) { return element == F32 ? 4 : 2; }

// The nearest number of so many bits, which is a multiple of 2^least.
inline float nearest(float x, int bits, int least) {
    if (!std::isfinite(x) || x == 0) return x;
    int exponent;
    std::frexp(x, &exponent);
    const int last = exponent - bits > least ? exponent - bits : least;
    return std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
}
inline float round_tf32(float x) { return nearest(x, 11, -136); }
inline float round_bf16(float x) { return nearest(x, 8, -133); }
inline float round_f16(float x) {
    x = nearest(x, 11, -24);
    return std::fabs(x) > 65504 ? std::copysign(INFINITY, x) : x;
}

inline float load(const void* at, int64_t index, int element) {
    if (element == F32) return ((const float*)at)[index];
    const uint32_t bits = ((const uint16_t*)at)[index];
    float x;
    if (element == BF16) {
        const uint32_t all = bits << 16;
        memcpy(&x, &all, 4);
        return x;
    }
    const int exponent = (int)(bits >> 10 & 31), rest = (int)(bits & 1023);
    if (exponent == 31) x = rest ? NAN : INFINITY;
    else x = exponent ? std::ldexp((float)(1024 + rest), exponent - 25) : std::ldexp((float)rest, -24);
    return bits >> 15 ? -x : x;
}
inline void store(void* at, int64_t index, int element, float x) {
    if (element == F32) {
        ((float*)at)[index] = x;
        return;
    }
    uint32_t bits;
    const float rounded = element == BF16 ? round_bf16(x) : round_f16(x);
    memcpy(&bits, &rounded, 4);
    uint16_t& out = ((uint16_t*)at)[index];
    if (element == BF16) {
        out = (uint16_t)(bits >> 16);
        return;
    }
    const float size = std::fabs(rounded);
    int exponent;
    std::frexp(size, &exponent);
    if (!std::isfinite(size)) out = size != size ? 0x7e00 : 0x7c00;
    else if (exponent < -13 || size == 0) out = (uint16_t)std::ldexp(size, 24);
    else out = (uint16_t)(((exponent + 14) << 10) + (int)std::ldexp(size, 11 - exponent) - 1024);
    out = (uint16_t)(out | (bits >> 31 << 15));
}

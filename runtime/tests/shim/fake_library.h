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

// The nearest number of 11 bits.
inline float round_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (std::isfinite(x)) bits = (bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff;
    memcpy(&x, &bits, 4);
    return x;
}

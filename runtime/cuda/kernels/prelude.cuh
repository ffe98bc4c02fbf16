// What all kernels share. It stands before each of them, compiled by NVRTC or, through a shim, by a C++ compiler.
//
// Every index is an i64: tensors may have more than 2^31 elements. A kernel's number of blocks decides nothing but who
// computes what: every sum has one order.

typedef float f32;
typedef double f64;
typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
static_assert(sizeof(i64) == 8 && sizeof(u64) == 8 && sizeof(i32) == 4 && sizeof(u16) == 2, "types are as wide as named");

// Threads of every block.
#define BLOCK 256
#define KERNEL extern "C" __global__ void __launch_bounds__(BLOCK)
#ifndef OUT_OF_LINE
#define OUT_OF_LINE __noinline__
#endif
// The shim keeps a list of kernels.
#ifndef EXPORT
#define EXPORT(name)
#endif

// Kernels for what is rare are a module of their own, so that most programs need not compile them: those of other element
// types than f32 above all.
#ifdef EVERYTHING
#define NARROW(...) __VA_ARGS__
#define WIDE(...) __VA_ARGS__
#elif defined(RARE)
#define NARROW(...)
#define WIDE(...) __VA_ARGS__
#else
#define NARROW(...) __VA_ARGS__
#define WIDE(...)
#endif

// Kernels that are fused take the functions of others, not these.
#ifdef FUSED
#define ALONE(...)
#else
#define ALONE(...) __VA_ARGS__
#endif

// The most dimensions that do not merge.
#define RANK 8

// Each index below n, distributed over the threads of the grid.
#define EACH(i, n) for (i64 i = first_of_mine(); i < (n); i += threads_of_all())

__device__ inline i64 block_index() { return (i64)blockIdx.x; }
__device__ inline i64 first_of_mine() { return block_index() * BLOCK + (i64)threadIdx.x; }
__device__ inline i64 threads_of_all() { return (i64)gridDim.x * BLOCK; }

// It is long code, for long numbers only.
OUT_OF_LINE __device__ i64 divide_long(i64 i, i64 d) { return i / d; }

// i / d and what is left; short numbers are divided in less time.
__device__ inline i64 divide(i64 i, i64 d, i64& rest) {
    if ((((u64)i | (u64)d) >> 32) == 0) {
        u32 q = (u32)i / (u32)d;
        rest = (i64)((u32)i - q * (u32)d);
        return (i64)q;
    }
    i64 q = divide_long(i, d);
    rest = i - q * d;
    return q;
}

// A box of indices in row-major order, and strides along its dimensions in each of K tensors.
template <int K>
struct Spread {
    i64 n, rank, dims[RANK], strides[K][RANK];

    // Where the i-th index lies in each of the tensors.
    __device__ void find(i64 i, i64 (&at)[K]) const {
        for (int k = 0; k < K; k++) at[k] = 0;
        for (i64 d = rank - 1; d > 0; d--) {
            i64 rest;
            i = divide(i, dims[d], rest);
            for (int k = 0; k < K; k++) at[k] += rest * strides[k][d];
        }
        if (rank > 0)
            for (int k = 0; k < K; k++) at[k] += i * strides[k][0];
    }
};

// Numbers that an operator takes from its attributes.
struct Parameters {
    f64 v[3];
};

// Threads of a block that fold values together: `lanes` of them, a power of two, for each output.
struct Team {
    i64 lanes, teams, lane, team;

    // Neighbouring threads belong to neighbouring teams where `across` is set, else to one team.
    __device__ Team(i64 lanes, i64 across) : lanes(lanes), teams(BLOCK / lanes) {
        i64 thread = (i64)threadIdx.x;
        lane = across ? thread / teams : thread % lanes;
        team = across ? thread % teams : thread / lanes;
    }

    // The first output of this block, and how far it is to its next one.
    __device__ i64 first() const { return block_index() * teams; }
    __device__ i64 step() const { return (i64)gridDim.x * teams; }

    // The values of a team's lanes, folded in an order that depends on nothing but their number. Every thread of the
    // block must call it.
    template <class A, class Merge>
    __device__ A fold(A value, Merge merge) const {
        __shared__ A values[BLOCK];
        i64 place = team + lane * teams;
        __syncthreads();
        values[place] = value;
        __syncthreads();
        for (i64 half = lanes / 2; half > 0; half /= 2) {
            if (lane < half) values[place] = merge(values[place], values[place + half * teams]);
            __syncthreads();
        }
        return values[team];
    }

    __device__ f64 sum(f64 value) const {
        return fold(value, [](f64 a, f64 b) { return a + b; });
    }
};

// Two sums that belong together.
struct Pair {
    f64 a, b;
};
__device__ inline Pair both(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }

// Four numbers that are the same for all elements of a channel.
struct alignas(16) Coefficients {
    f32 v[4];
};

// A divisor that is known before: what indices below 2^31 are multiplied by, in the low 32 bits of `by`, and how far the
// product is shifted then, in the high ones. With 0, indices may be longer.
struct Divisor {
    i64 extent;
    u64 by;
};
__device__ inline i64 short_quotient(i64 i, const Divisor& d) {
    return (i64)(((u64)(u32)i * (u32)d.by) >> (d.by >> 32));
}
// Which channel an element is of, where each has `inner` neighbours.
struct Across {
    Divisor inner, axis;
};
__device__ inline i64 short_channel(const Across& a, i64 i) {
    const i64 row = short_quotient(i, a.inner);
    return row - short_quotient(row, a.axis) * a.axis.extent;
}
__device__ inline i64 long_channel(const Across& a, i64 i) {
    i64 rest, channel;
    divide(divide(i, a.inner.extent, rest), a.axis.extent, channel);
    return channel;
}

// W neighbouring elements, which one thread takes together.
template <int W> struct Pack {
    f32 v[W];
};
struct alignas(16) Quad {
    f32 v[4];
};
// Four are read and written as one where they begin at a multiple of their bytes, which `whole` says.
template <int W, bool whole> __device__ inline Pack<W> loaded(const f32* at) {
    Pack<W> x;
    if (whole) {
        const Quad q = *(const Quad*)at;
        for (int w = 0; w < W; w++) x.v[w] = q.v[w];
    } else {
        for (int w = 0; w < W; w++) x.v[w] = at[w];
    }
    return x;
}
template <int W, bool whole> __device__ inline void stored(f32* at, const Pack<W>& x) {
    if (whole) {
        Quad q;
        for (int w = 0; w < W; w++) q.v[w] = x.v[w];
        *(Quad*)at = q;
    } else {
        for (int w = 0; w < W; w++) at[w] = x.v[w];
    }
}
template <int W> __device__ inline Pack<W> all_of(f32 x) {
    Pack<W> all;
    for (int w = 0; w < W; w++) all.v[w] = x;
    return all;
}
__device__ inline bool is_aligned(const void* a) { return ((u64)a & 15) == 0; }

// How many loads of a thread are under way at a time, of each operand.
#define FLIGHT 4

// Channels of `outer` samples, each of `inner` neighbours in memory. A channel's elements are taken four or one at a time, and
// cut in `slices` of so many packs: which element belongs to which sum follows from the extents alone.
struct Channels {
    i64 outer, axis, inner, slices, length;

    __device__ i64 width() const { return inner % 4 == 0 ? 4 : 1; }
    __device__ i64 packs() const { return outer * inner / width(); }
    __device__ i64 begin(i64 slice) const { return slice * length; }
    __device__ i64 end(i64 slice) const {
        const i64 end = begin(slice) + length, all = packs();
        return end < all ? end : all;
    }
    // Elements of a slice.
    __device__ i64 elements(i64 slice) const { return (end(slice) - begin(slice)) * width(); }
    // Where a pack of a channel begins.
    template <int W> __device__ i64 place(i64 channel, i64 pack) const {
        i64 at, sample = divide(pack, inner / W, at);
        return (sample * axis + channel) * inner + at * W;
    }
};

// Gives `take` the places of FLIGHT of a thread's packs at a time, until the slice is done; a place is negative where there
// is none. There is no division in the loop.
template <int W, class Take>
__device__ inline void over_slice(const Channels& c, i64 channel, i64 slice, const Take& take) {
    const i64 inner = c.inner / W, end = c.end(slice);
    i64 k = c.begin(slice) + (i64)threadIdx.x, at, more;
    const i64 sample = divide(k, inner, at), samples = divide(BLOCK, inner, more);
    const i64 hop = samples * c.axis * c.inner + more * W, wrap = (c.axis - 1) * c.inner;
    i64 place = (sample * c.axis + channel) * c.inner + at * W;
    for (; k < end; k += FLIGHT * BLOCK) {
        i64 places[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            places[j] = k + j * BLOCK < end ? place : -1;
            place += hop;
            at += more;
            if (at >= inner) at -= inner, place += wrap;
        }
        take(places);
    }
}

// Rows whose columns are summed: a block takes a tile of columns, each of its ROW_LANES threads every ROW_LANES-th row of a
// slice of `length` rows.
#define ROW_LANES 8
struct ColumnSums {
    i64 rows, columns, slices, length;

    __device__ i64 width() const { return columns % 4 == 0 ? 4 : 1; }
    // ColumnSums of a tile.
    __device__ i64 across() const { return BLOCK / ROW_LANES * width(); }
    __device__ i64 tiles() const { return (columns + across() - 1) / across(); }
    // The first of this thread's columns, or one behind all.
    template <int W> __device__ i64 column(i64 tile) const {
        return (tile * (BLOCK / ROW_LANES) + (i64)threadIdx.x % (BLOCK / ROW_LANES)) * W;
    }
};
// Gives `take` FLIGHT of a thread's rows at a time, until the slice is done; a row is negative where there is none.
template <int W, class Take>
__device__ inline void over_rows(const ColumnSums& c, i64 column, i64 slice, const Take& take) {
    const i64 begin = slice * c.length, end = begin + c.length < c.rows ? begin + c.length : c.rows;
    if (column >= c.columns) return;
    for (i64 first = begin + (i64)threadIdx.x / (BLOCK / ROW_LANES); first < end; first += FLIGHT * ROW_LANES) {
        i64 rows[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) rows[j] = first + j * ROW_LANES < end ? first + j * ROW_LANES : -1;
        take(rows);
    }
}

// Partial results of channels or columns: those of one are `apart` apart, and those of the next begin `next` on. Each is of `length`
// elements, the last of the rest.
struct Partial {
    i64 outputs, elements, slices, length, next, apart;

    __device__ i64 count(i64 slice) const {
        const i64 left = elements - slice * length;
        return left < length ? left : length;
    }
    template <class T> __device__ const T& of(const T* parts, i64 output, i64 slice) const {
        return parts[output * next + slice * apart];
    }
};

// Calls a function template by the width of packs, and whether operands lie where a pack is one access.
#define BY_PACKS(width, aligned, function, ...)          \
    if ((width) != 4) function<1, false>(__VA_ARGS__);   \
    else if (aligned) function<4, true>(__VA_ARGS__);    \
    else function<4, false>(__VA_ARGS__)

__device__ inline f32 infinity() { return __int_as_float(0x7f800000); }

__device__ inline bool is_nan(f32 x) { return x != x; }
__device__ inline bool is_nan(f64 x) { return x != x; }
__device__ inline bool is_nan(i64) { return false; }
__device__ inline bool is_nan(i32) { return false; }
__device__ inline bool is_nan(i8) { return false; }
__device__ inline bool is_nan(u8) { return false; }

// The larger one, or NaN if one is.
template <class T> __device__ inline T larger(T a, T b) { return a >= b || is_nan(a) ? a : b; }
template <class T> __device__ inline T smaller(T a, T b) { return a <= b || is_nan(a) ? a : b; }

// Integers wrap.
template <class T> __device__ inline T plus(T a, T b) { return (T)((u64)a + (u64)b); }
template <> __device__ inline f32 plus(f32 a, f32 b) { return a + b; }
template <> __device__ inline f64 plus(f64 a, f64 b) { return a + b; }
template <class T> __device__ inline T minus(T a, T b) { return (T)((u64)a - (u64)b); }
template <> __device__ inline f32 minus(f32 a, f32 b) { return a - b; }
template <> __device__ inline f64 minus(f64 a, f64 b) { return a - b; }
template <class T> __device__ inline T times(T a, T b) { return (T)((u64)a * (u64)b); }
template <> __device__ inline f32 times(f32 a, f32 b) { return a * b; }
template <> __device__ inline f64 times(f64 a, f64 b) { return a * b; }
// What ONNX leaves open, an integer divided by 0, is 0.
template <class T> __device__ inline T over(T a, T b) {
    if (b == T(0)) return T(0);
    return T(-1) < T(0) && b == T(-1) ? minus(T(0), a) : T(a / b);
}
template <> __device__ inline f32 over(f32 a, f32 b) { return a / b; }
template <> __device__ inline f64 over(f64 a, f64 b) { return a / b; }

// To a number of another type: integers are the nearest towards 0 that there is, and NaN is 0.
template <class T> __device__ inline T of_f64(f64 x) {
    const bool has_sign = T(-1) < T(0);
    const f64 span = has_sign ? ldexp(1.0, 8 * (int)sizeof(T) - 1) : ldexp(1.0, 8 * (int)sizeof(T));
    const T most = has_sign ? (T)(((u64)1 << (8 * sizeof(T) - 1)) - 1) : (T)~(u64)0;
    if (is_nan(x)) return T(0);
    if (x >= span) return most;
    if (x <= (has_sign ? -span : 0.0)) return has_sign ? (T)(-most - 1) : T(0);
    return (T)x;
}
template <> __device__ inline f32 of_f64(f64 x) { return (f32)x; }
template <> __device__ inline f64 of_f64(f64 x) { return x; }

// Short floats: they are stored, and computed with as f32.
struct f16 {
    u16 bits;
    __device__ explicit operator f64() const;
};
struct bf16 {
    u16 bits;
    __device__ explicit operator f64() const;
};
static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2, "short floats have 16 bits");

__device__ inline f32 wide(bf16 x) { return __int_as_float((int)((u32)x.bits << 16)); }
__device__ inline f32 wide(f16 x) {
#ifdef __CUDACC_RTC__
    f32 all;
    asm("cvt.f32.f16 %0, %1;" : "=f"(all) : "h"(x.bits));
    return all;
#else
    const u32 sign = (u32)(x.bits & 0x8000) << 16, size = x.bits & 0x7fff;
    // What has no exponent is a multiple of 2^-24.
    const u32 small = (u32)__float_as_int((f32)size * __int_as_float(0x33800000));
    const u32 rest = size < 0x400 ? small : (size << 13) + (size < 0x7c00 ? 0x38000000u : 0x70000000u);
    return __int_as_float((int)(sign | rest));
#endif
}
__device__ inline f16::operator f64() const { return (f64)wide(*this); }
__device__ inline bf16::operator f64() const { return (f64)wide(*this); }

// The nearest one, of two the even one.
template <class T> __device__ inline T narrow(f32 x);
template <> __device__ inline bf16 narrow(f32 x) {
    const u32 bits = (u32)__float_as_int(x);
    if (is_nan(x)) return {(u16)(bits >> 16 | 0x40)};
    return {(u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
template <> __device__ inline f16 narrow(f32 x) {
#ifdef __CUDACC_RTC__
    f16 nearest;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(nearest.bits) : "f"(x));
    return nearest;
#else
    const u32 bits = (u32)__float_as_int(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (is_nan(x)) return {(u16)(sign | 0x7e00)};
    // From halfway between the largest one and the next power of two on.
    if (size >= 0x477ff000) return {(u16)(sign | 0x7c00)};
    // Multiples of 2^-24, which a sum with 2^-1 rounds to.
    if (size < 0x38800000)
        return {(u16)(sign | ((u32)__float_as_int(__int_as_float((int)size) + 0.5f) - 0x3f000000))};
    return {(u16)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13))};
#endif
}

// What rounds to the same short float as x itself does: cut off, with the last bit set if anything was.
__device__ inline f32 odd(f64 x) {
    f32 near = (f32)x;
    if ((f64)near == x || is_nan(near)) return near;
    int bits = __float_as_int(near);
    const bool is_beyond = x < 0 ? (f64)near < x : (f64)near > x;
    return __int_as_float((bits - (is_beyond ? 1 : 0)) | 1);
}
template <> __device__ inline f16 of_f64(f64 x) { return narrow<f16>(odd(x)); }
template <> __device__ inline bf16 of_f64(f64 x) { return narrow<bf16>(odd(x)); }

// Functions by one name for both widths.
#define BOTH(name, narrow, wide)                                      \
    __device__ inline f32 name(f32 x) { return narrow(x); }           \
    __device__ inline f64 name(f64 x) { return wide(x); }
BOTH(exp_of, expf, exp)
BOTH(ln_of, logf, log)
BOTH(tanh_of, tanhf, tanh)
BOTH(erf_of, erff, erf)
BOTH(root_of, sqrtf, sqrt)
BOTH(floor_of, floorf, floor)
BOTH(ceil_of, ceilf, ceil)
BOTH(even_of, rintf, rint)
BOTH(sin_of, sinf, sin)
BOTH(cos_of, cosf, cos)
BOTH(tan_of, tanf, tan)
BOTH(asin_of, asinf, asin)
BOTH(acos_of, acosf, acos)
BOTH(atan_of, atanf, atan)
BOTH(sinh_of, sinhf, sinh)
BOTH(cosh_of, coshf, cosh)
BOTH(asinh_of, asinhf, asinh)
BOTH(acosh_of, acoshf, acosh)
BOTH(atanh_of, atanhf, atanh)
BOTH(size_of, fabsf, fabs)
template <class T> __device__ inline T size_of(T x) { return T(-1) < T(0) && x < T(1) ? minus(T(0), x) : x; }

__device__ inline f32 raised(f32 x, f64 y) { return powf(x, (f32)y); }
__device__ inline f64 raised(f64 x, f64 y) { return pow(x, y); }
// Integers wrap where the exponent is one.
template <class T> __device__ inline T raised(T x, f64 y) {
    if (!(y >= 0.0 && y == floor(y) && y <= 4294967295.0)) return of_f64<T>(pow((f64)x, y));
    T all = T(1);
    for (u64 left = (u64)y; left > 0; left >>= 1, x = times(x, x))
        if (left & 1) all = times(all, x);
    return all;
}

template <class T> __device__ inline T sigmoid(T x) { return T(1) / (T(1) + exp_of(-x)); }

// An index that may count from the end, or -1 if it is out of range.
template <class I> __device__ inline i64 place_of(I index, i64 extent) {
    i64 at = (i64)index < 0 ? (i64)index + extent : (i64)index;
    return at >= 0 && at < extent ? at : -1;
}

// The number of the step and the seed of the run; and the first launch of the run that has met indices or labels out of range.
struct Step {
    u64 number, seed;
    // 0 if there is no such launch, else its step and its command.
    u64 first;
    // A bit for each dimension in which an index was out of range, and the greatest of those indices, with its sign bit inverted.
    u64 dims, greatest[RANK];

    // All launches of a step run one after the other, so the first one is the same on every run. So is the greatest index.
    OUT_OF_LINE __device__ void note(u64 command, i64 dim, i64 index) {
        const u64 own = number << 24 | command, before = atomicCAS(&first, (u64)0, own);
        if (before != 0 && before != own) return;
        atomicOr(&dims, (u64)1 << dim);
        atomicMax(&greatest[dim], (u64)index ^ (u64)1 << 63);
    }
};
// As place_of, and notes an index that is out of range.
template <class I> __device__ inline i64 noted_place(I index, i64 extent, Step* step, u64 command, i64 dim = 0) {
    const i64 at = place_of(index, extent);
    if (at < 0) step->note(command, dim, (i64)index);
    return at;
}

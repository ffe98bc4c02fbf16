// Elementwise operators and their gradients.

// A function of an element of one, two or three operands: x, y and z of type M. Its kernel takes operands that are
// broadcast; a result may lie over an operand of its size.
#define ONE(T, O, name, ...)                                                          \
    __device__ inline O each_##name##_##T(const Parameters& p, T a) {                 \
        typedef T M;                                                                  \
        M x = a;                                                                      \
        return (O)(__VA_ARGS__);                                                      \
    }                                                                                 \
    ALONE(KERNEL name##_##T(Spread<1> s, Parameters p, const T* a, O* out) {          \
        EACH(i, s.n) {                                                                \
            i64 at[1];                                                                \
            s.find(i, at);                                                            \
            out[i] = each_##name##_##T(p, a[at[0]]);                                  \
        }                                                                             \
    }                                                                                 \
    EXPORT(name##_##T))

#define TWO(T, O, name, ...)                                                          \
    __device__ inline O each_##name##_##T(const Parameters& p, T a, T b) {            \
        typedef T M;                                                                  \
        M x = a, y = b;                                                               \
        return (O)(__VA_ARGS__);                                                      \
    }                                                                                 \
    ALONE(KERNEL name##_##T(Spread<2> s, Parameters p, const T* a, const T* b, O* out) { \
        EACH(i, s.n) {                                                                \
            i64 at[2];                                                                \
            s.find(i, at);                                                            \
            out[i] = each_##name##_##T(p, a[at[0]], b[at[1]]);                        \
        }                                                                             \
    }                                                                                 \
    EXPORT(name##_##T))

#define THREE(T, O, name, ...)                                                        \
    __device__ inline O each_##name##_##T(const Parameters& p, T a, T b, T c) {       \
        typedef T M;                                                                  \
        M x = a, y = b, z = c;                                                        \
        return (O)(__VA_ARGS__);                                                      \
    }                                                                                 \
    ALONE(KERNEL name##_##T(Spread<3> s, Parameters p, const T* a, const T* b, const T* c, O* out) { \
        EACH(i, s.n) {                                                                \
            i64 at[3];                                                                \
            s.find(i, at);                                                            \
            out[i] = each_##name##_##T(p, a[at[0]], b[at[1]], c[at[2]]);              \
        }                                                                             \
    }                                                                                 \
    EXPORT(name##_##T))

#define FLOAT1(name, ...) NARROW(ONE(f32, f32, name, __VA_ARGS__)) WIDE(ONE(f64, f64, name, __VA_ARGS__))
#define FLOAT2(name, ...) NARROW(TWO(f32, f32, name, __VA_ARGS__)) WIDE(TWO(f64, f64, name, __VA_ARGS__))
#define FLOAT3(name, ...) NARROW(THREE(f32, f32, name, __VA_ARGS__)) WIDE(THREE(f64, f64, name, __VA_ARGS__))
#define NUMBER1(name, ...)                                                            \
    FLOAT1(name, __VA_ARGS__)                                                         \
    WIDE(ONE(i64, i64, name, __VA_ARGS__) ONE(i32, i32, name, __VA_ARGS__)            \
         ONE(i8, i8, name, __VA_ARGS__) ONE(u8, u8, name, __VA_ARGS__))
#define NUMBER2(name, ...)                                                            \
    FLOAT2(name, __VA_ARGS__)                                                         \
    WIDE(TWO(i64, i64, name, __VA_ARGS__) TWO(i32, i32, name, __VA_ARGS__)            \
         TWO(i8, i8, name, __VA_ARGS__) TWO(u8, u8, name, __VA_ARGS__))
#define TRUTH2(name, ...)                                                             \
    NARROW(TWO(f32, u8, name, __VA_ARGS__))                                           \
    WIDE(TWO(f64, u8, name, __VA_ARGS__) TWO(i64, u8, name, __VA_ARGS__)              \
         TWO(i32, u8, name, __VA_ARGS__) TWO(i8, u8, name, __VA_ARGS__) TWO(u8, u8, name, __VA_ARGS__))

template <class T> __device__ inline T density(T x) { return T(0.3989422804014327) * exp_of(x * x * T(-0.5)); }
template <class T> __device__ inline T normal(T x) { return T(0.5) * (T(1) + erf_of(x * T(0.7071067811865476))); }
template <class T> __device__ inline T gelu_of(T x) { return x * normal(x); }
template <class T> __device__ inline T gelu_slope(T x) { return normal(x) + x * density(x); }

#define ROOT_2_OVER_PI 0.7978845608028654
#define CUBIC 0.044715
template <class T> __device__ inline T fast_gelu_of(T x) {
    T inner = T(ROOT_2_OVER_PI) * (x + T(CUBIC) * x * x * x);
    return T(0.5) * x * (T(1) + tanh_of(inner));
}
template <class T> __device__ inline T fast_gelu_slope(T x) {
    T t = tanh_of(T(ROOT_2_OVER_PI) * (x + T(CUBIC) * x * x * x));
    T slope = T(ROOT_2_OVER_PI) * (T(1) + T(3 * CUBIC) * x * x);
    return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope;
}
template <class T> __device__ inline T quick_gelu_slope(T x, T by) {
    T s = sigmoid(by * x);
    return s + by * x * s * (T(1) - s);
}
// ln(1 + e^x), without overflow.
template <class T> __device__ inline T softplus_at(T x) { return larger(x, T(0)) + ln_of(T(1) + exp_of(-size_of(x))); }

template <class T> __device__ inline T power_by(T x, f64 by) {
    if (by == 2.0) return times(x, x);
    if (by == 1.0) return x;
    if (by == 3.0) return times(times(x, x), x);
    return raised(x, by);
}
template <class T> __device__ inline T power(T x, T y) { return power_by(x, (f64)y); }
template <class T> __device__ inline T clipped(T x, f64 low, f64 high) {
    if (low != -(f64)infinity()) x = larger(x, of_f64<T>(low));
    return high == (f64)infinity() ? x : smaller(x, of_f64<T>(high));
}
// What is left of a division that rounds towards 0, and 0 with the sign of b.
template <class T> __device__ inline T rest_of(T a, T b) {
    return b == T(0) || (T(-1) < T(0) && b == T(-1)) ? T(0) : T(a % b);
}
template <> __device__ inline f32 rest_of(f32 a, f32 b) { return (f32)fmod((f64)a, (f64)b); }
template <> __device__ inline f64 rest_of(f64 a, f64 b) { return fmod(a, b); }
template <class T> __device__ inline T nothing_as(T) { return T(0); }
template <> __device__ inline f32 nothing_as(f32 b) { return b < 0 ? -0.0f : 0.0f; }
template <> __device__ inline f64 nothing_as(f64 b) { return b < 0 ? -0.0 : 0.0; }
// The remainder with the sign of the divisor, or of the dividend.
template <class T> __device__ inline T modulo(T a, T b, bool of_dividend) {
    T rest = rest_of(a, b);
    if (of_dividend) return rest;
    if (rest == T(0)) return nothing_as(b);
    return (rest < T(0)) != (b < T(0)) ? plus(rest, b) : rest;
}

NUMBER1(abs, size_of(x))
NUMBER1(neg, minus(M(0), x))
NUMBER1(relu, larger(x, M(0)))
NUMBER1(sign, x > M(0) ? M(1) : x != M(0) && !is_nan(x) ? minus(M(0), M(1)) : x)
NUMBER1(pow_by, power_by(x, p.v[0]))
NUMBER1(clip, clipped(x, p.v[0], p.v[1]))
FLOAT1(exp, exp_of(x))
FLOAT1(ln, ln_of(x))
FLOAT1(root, root_of(x))
FLOAT1(reciprocal, M(1) / x)
FLOAT1(sigmoid, sigmoid(x))
FLOAT1(tanh, tanh_of(x))
FLOAT1(erf, erf_of(x))
FLOAT1(floor, floor_of(x))
FLOAT1(ceil, ceil_of(x))
FLOAT1(round, even_of(x))
FLOAT1(sin, sin_of(x))
FLOAT1(cos, cos_of(x))
FLOAT1(tan, tan_of(x))
FLOAT1(asin, asin_of(x))
FLOAT1(acos, acos_of(x))
FLOAT1(atan, atan_of(x))
FLOAT1(sinh, sinh_of(x))
FLOAT1(cosh, cosh_of(x))
FLOAT1(asinh, asinh_of(x))
FLOAT1(acosh, acosh_of(x))
FLOAT1(atanh, atanh_of(x))
FLOAT1(softplus, softplus_at(x))
FLOAT1(softsign, x / (M(1) + size_of(x)))
FLOAT1(mish, x * tanh_of(softplus_at(x)))
FLOAT1(swish, x * sigmoid(M(p.v[0]) * x))
FLOAT1(hard_swish, x * smaller(larger(x * M(1.0 / 6.0) + M(0.5), M(0)), M(1)))
FLOAT1(hard_sigmoid, smaller(larger(M(p.v[0]) * x + M(p.v[1]), M(0)), M(1)))
FLOAT1(elu, x > M(0) ? x : M(p.v[0]) * (exp_of(x) - M(1)))
FLOAT1(celu, larger(x, M(0)) + smaller(M(p.v[0]) * (exp_of(x / M(p.v[0])) - M(1)), M(0)))
FLOAT1(selu, M(p.v[1]) * (x > M(0) ? x : M(p.v[0]) * (exp_of(x) - M(1))))
FLOAT1(leaky_relu, x >= M(0) ? x : M(p.v[0]) * x)
FLOAT1(thresholded_relu, x > M(p.v[0]) ? x : M(0))
FLOAT1(gelu, gelu_of(x))
FLOAT1(fast_gelu, fast_gelu_of(x))
NARROW(ONE(f32, u8, is_nan, is_nan(x))) WIDE(ONE(f64, u8, is_nan, is_nan(x)))
#define IS_INF (p.v[0] != 0 && x == M(infinity())) || (p.v[1] != 0 && x == M(-infinity()))
NARROW(ONE(f32, u8, is_inf, IS_INF)) WIDE(ONE(f64, u8, is_inf, IS_INF))
NARROW(ONE(u8, u8, not, x == 0))

NUMBER2(add, plus(x, y))
NUMBER2(sub, minus(x, y))
NUMBER2(mul, times(x, y))
NUMBER2(div, over(x, y))
NUMBER2(pow, power(x, y))
NUMBER2(mod, modulo(x, y, p.v[0] != 0))
FLOAT2(prelu, x >= M(0) ? x : y * x)
FLOAT2(bias_gelu, gelu_of(x + y))
FLOAT2(bias_fast_gelu, fast_gelu_of(x + y))
TRUTH2(equal, x == y)
TRUTH2(greater, x > y)
TRUTH2(greater_or_equal, x >= y)
TRUTH2(less, x < y)
TRUTH2(less_or_equal, x <= y)
NARROW(TWO(u8, u8, and, (x != 0) & (y != 0)))
NARROW(TWO(u8, u8, or, (x != 0) | (y != 0)))
NARROW(TWO(u8, u8, xor, (x != 0) ^ (y != 0)))
NARROW(TWO(u8, u8, same, (x != 0) == (y != 0)))

// Gradients: of dY and the operand or the result of the forward operator.
NUMBER2(relu_grad, y > M(0) ? x : M(0))
FLOAT2(leaky_relu_grad, y >= M(0) ? x : M(p.v[0]) * x)
FLOAT2(sigmoid_grad, x * y * (M(1) - y))
FLOAT2(tanh_grad, x * (M(1) - y * y))
FLOAT2(sin_grad, x * cos_of(y))
FLOAT2(gelu_grad, x * gelu_slope(y))
FLOAT2(fast_gelu_grad, x * fast_gelu_slope(y))
FLOAT2(quick_gelu_grad, x * quick_gelu_slope(y, M(p.v[0])))
FLOAT3(bias_gelu_grad, x * gelu_slope(y + z))
FLOAT3(bias_fast_gelu_grad, x * fast_gelu_slope(y + z))

#define WHERE(T)                                                                      \
    __device__ inline T each_where_##T(const Parameters&, u8 choice, T x, T y) { return choice ? x : y; } \
    ALONE(KERNEL where_##T(Spread<3> s, const u8* choice, const T* a, const T* b, T* out) { \
        EACH(i, s.n) {                                                                \
            i64 at[3];                                                                \
            s.find(i, at);                                                            \
            out[i] = choice[at[0]] ? a[at[1]] : b[at[2]];                             \
        }                                                                             \
    }                                                                                 \
    EXPORT(where_##T))
NARROW(WHERE(u32)) WIDE(WHERE(u8) WHERE(u16) WHERE(u64))

// Batch normalization and its gradient, of what belongs to the element's channel. Neighbours are taken together.
__device__ inline f32 each_batch_apply_f32(const Parameters&, f32 x, f32 mean, f32 inverse, f32 scale, f32 bias) {
    const f32 factor = inverse * scale;
    return x * factor + (bias - mean * factor);
}
__device__ inline f32 each_batch_grad_f32(const Parameters&, f32 dy, f32 x, Coefficients c) {
    return c.v[0] * dy + (c.v[1] * (x - c.v[2]) + c.v[3]);
}
struct BatchApply {
    const f32 *x, *mean, *inverse, *scale, *bias;
    template <int W> struct Taken {
        Pack<W> x;
        f32 mean, inverse, scale, bias;
        __device__ f32 result(i64 w) const {
            return each_batch_apply_f32(Parameters{}, x.v[w], mean, inverse, scale, bias);
        }
    };
    __device__ bool aligned() const { return is_aligned(x); }
    template <int W, bool whole> __device__ Taken<W> load(i64 at, i64 c) const {
        return {loaded<W, whole>(x + at), mean[c], inverse[c], scale[c], bias[c]};
    }
};
struct BatchGrad {
    const f32 *dy, *x;
    const Coefficients* of;
    template <int W> struct Taken {
        Pack<W> dy, x;
        Coefficients c;
        __device__ f32 result(i64 w) const { return each_batch_grad_f32(Parameters{}, dy.v[w], x.v[w], c); }
    };
    __device__ bool aligned() const { return is_aligned(dy) && is_aligned(x); }
    template <int W, bool whole> __device__ Taken<W> load(i64 at, i64 c) const {
        return {loaded<W, whole>(dy + at), loaded<W, whole>(x + at), of[c]};
    }
};
// `n` packs, of channels by pack; operands may lie where the result does.
template <int W, bool whole, bool is_short, class Op>
__device__ inline void packs_by_channel(i64 n, const Across& a, const Op& op, f32* out) {
    const i64 step = threads_of_all();
    for (i64 first = first_of_mine(); first < n; first += FLIGHT * step) {
        typename Op::template Taken<W> taken[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const i64 i = first + j * step;
            if (i < n) taken[j] = op.template load<W, whole>(i * W, is_short ? short_channel(a, i) : long_channel(a, i));
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const i64 i = first + j * step;
            if (i >= n) continue;
            Pack<W> y;
            for (int w = 0; w < W; w++) y.v[w] = taken[j].result(w);
            stored<W, whole>(out + i * W, y);
        }
    }
}
template <int W, bool whole, class Op>
__device__ inline void by_channel(i64 n, const Across& a, const Op& op, f32* out) {
    if (a.inner.by != 0) packs_by_channel<W, whole, true>(n, a, op, out);
    else packs_by_channel<W, false, false>(n, a, op, out);
}
ALONE(KERNEL batch_apply_f32(i64 n, i64 width, Across a, const f32* x, const f32* mean, const f32* inverse, const f32* scale,
                             const f32* bias, f32* out) {
    const BatchApply op = {x, mean, inverse, scale, bias};
    BY_PACKS(width, op.aligned() && is_aligned(out), by_channel, n, a, op, out);
}
EXPORT(batch_apply_f32))
ALONE(KERNEL batch_grad_f32(i64 n, i64 width, Across a, const f32* dy, const f32* x, const Coefficients* of, f32* out) {
    const BatchGrad op = {dy, x, of};
    BY_PACKS(width, op.aligned() && is_aligned(out), by_channel, n, a, op, out);
}
EXPORT(batch_grad_f32))

// Any number of operands up to MANY that are broadcast, or up to MOST of the result's shape, folded in order.
#define MANY 16
#define MOST 256
template <int most, class T>
struct Several {
    const T* of[most];
};
#define FOLD(T, name, with, ...)                                                      \
    __device__ inline T fold_##name##_##T(i64 count, T sum) { return __VA_ARGS__; }   \
    template <class... R>                                                             \
    __device__ inline T fold_##name##_##T(i64 count, T sum, T x, R... rest) {         \
        return fold_##name##_##T(count, with(sum, x), rest...);                       \
    }                                                                                 \
    template <class... R>                                                             \
    __device__ inline T each_##name##_##T(const Parameters&, R... x) {                \
        return fold_##name##_##T((i64)sizeof...(R), x...);                            \
    }                                                                                 \
    template <class... R>                                                             \
    __device__ inline T each_##name##_whole_##T(const Parameters& p, R... x) {        \
        return each_##name##_##T(p, x...);                                            \
    }                                                                                 \
    ALONE(KERNEL name##_##T(Spread<MANY> s, i64 count, Several<MANY, T> x, T* out) {  \
        EACH(i, s.n) {                                                                \
            i64 at[MANY];                                                             \
            s.find(i, at);                                                            \
            T sum = x.of[0][at[0]];                                                   \
            for (i64 k = 1; k < count; k++) sum = with(sum, x.of[k][at[k]]);          \
            out[i] = fold_##name##_##T(count, sum);                                   \
        }                                                                             \
    }                                                                                 \
    EXPORT(name##_##T))                                                               \
    ALONE(KERNEL name##_whole_##T(i64 n, i64 count, Several<MOST, T> x, T* out) {     \
        for (i64 first = first_of_mine(); first < n; first += FLIGHT * threads_of_all()) { \
            T sum[FLIGHT];                                                            \
            _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) {                      \
                const i64 i = first + j * threads_of_all();                           \
                sum[j] = i < n ? x.of[0][i] : T(0);                                   \
            }                                                                         \
            for (i64 k = 1; k < count; k++) {                                         \
                T y[FLIGHT];                                                          \
                _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) {                  \
                    const i64 i = first + j * threads_of_all();                       \
                    y[j] = i < n ? x.of[k][i] : T(0);                                 \
                }                                                                     \
                _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) sum[j] = with(sum[j], y[j]); \
            }                                                                         \
            _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) {                      \
                const i64 i = first + j * threads_of_all();                           \
                if (i < n) out[i] = fold_##name##_##T(count, sum[j]);                 \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    EXPORT(name##_whole_##T))
#define FOLDS(T) FOLD(T, sum_all, plus, sum) FOLD(T, max_all, larger, sum) FOLD(T, min_all, smaller, sum)
NARROW(FOLDS(f32)) WIDE(FOLDS(f64) FOLDS(i64) FOLDS(i32) FOLDS(i8) FOLDS(u8))
NARROW(FOLD(f32, mean_all, plus, sum / (f32)count)) WIDE(FOLD(f64, mean_all, plus, sum / (f64)count))

// Times a number of some type, or divided by it.
#define SCALE(S)                                                                      \
    __device__ inline f32 each_scale_##S(const Parameters& p, f32 x, S by) {          \
        return p.v[0] != 0 ? x / (f32)by : x * (f32)by;                               \
    }                                                                                 \
    ALONE(KERNEL scale_##S(Parameters p, i64 n, const f32* x, const S* by, f32* out) { \
        EACH(i, n) out[i] = each_scale_##S(p, x[i], by[0]);                           \
    }                                                                                 \
    EXPORT(scale_##S))
NARROW(SCALE(f32) SCALE(f64) SCALE(i64) SCALE(i32))

template <class T> struct Is { static const bool real = false; };
template <> struct Is<f32> { static const bool real = true; };
template <> struct Is<f64> { static const bool real = true; };
template <> struct Is<f16> { static const bool real = true; };
template <> struct Is<bf16> { static const bool real = true; };
// Between integers the low bits stay.
template <bool> struct Between {
    template <class A, class B> static __device__ B cast(A x) { return of_f64<B>((f64)x); }
};
template <> struct Between<false> {
    template <class A, class B> static __device__ B cast(A x) { return (B)(i64)x; }
};
template <> template <> __device__ inline f16 Between<true>::cast(f32 x) { return narrow<f16>(x); }
template <> template <> __device__ inline bf16 Between<true>::cast(f32 x) { return narrow<bf16>(x); }
#define CAST(A, B)                                                                    \
    __device__ inline B each_cast_##A##_##B(const Parameters&, A x) {                 \
        return Between<Is<A>::real || Is<B>::real>::cast<A, B>(x);           \
    }                                                                                 \
    ALONE(KERNEL cast_##A##_##B(i64 n, const A* x, B* out) {                          \
        EACH(i, n) out[i] = each_cast_##A##_##B(Parameters{}, x[i]);                  \
    }                                                                                 \
    EXPORT(cast_##A##_##B))
#define TRUTH(A)                                                                      \
    __device__ inline u8 each_truth_##A(const Parameters&, A x) { return x != A{}; } \
    ALONE(KERNEL truth_##A(i64 n, const A* x, u8* out) { EACH(i, n) out[i] = each_truth_##A(Parameters{}, x[i]); } \
    EXPORT(truth_##A))
__device__ inline bool operator!=(f16 x, f16 y) { return wide(x) != wide(y); }
__device__ inline bool operator!=(bf16 x, bf16 y) { return wide(x) != wide(y); }
WIDE(TRUTH(f32) TRUTH(f64) TRUTH(i64) TRUTH(i32) TRUTH(i8) TRUTH(u8) TRUTH(f16) TRUTH(bf16))
WIDE(CAST(f32, f64) CAST(f32, i64) CAST(f32, i32) CAST(f32, i8) CAST(f32, u8))
WIDE(CAST(f64, f32) CAST(f64, i64) CAST(f64, i32) CAST(f64, i8) CAST(f64, u8))
WIDE(CAST(i64, f32) CAST(i64, f64) CAST(i64, i32) CAST(i64, i8) CAST(i64, u8))
WIDE(CAST(i32, f32) CAST(i32, f64) CAST(i32, i64) CAST(i32, i8) CAST(i32, u8))
WIDE(CAST(i8, f32) CAST(i8, f64) CAST(i8, i64) CAST(i8, i32) CAST(i8, u8))
// Truth values are bytes, too.
WIDE(CAST(u8, f32) CAST(u8, f64) CAST(u8, i64) CAST(u8, i32) CAST(u8, i8) CAST(u8, u8))
#define CAST_SHORT(S)                                                                 \
    CAST(S, f32) CAST(S, f64) CAST(S, i64) CAST(S, i32) CAST(S, i8) CAST(S, u8)       \
    CAST(f32, S) CAST(f64, S) CAST(i64, S) CAST(i32, S) CAST(i8, S) CAST(u8, S)
WIDE(CAST_SHORT(f16) CAST_SHORT(bf16) CAST(f16, bf16) CAST(bf16, f16))

// Reductions. Floats are folded in double precision, integers as they are.

// The operand, apart by what stays and what comes together.
struct Reduction {
    i64 outputs, reduced, lanes, across;
    Spread<1> kept, folded;
};


#define REDUCE(T, A, name, start, take, merged, finish)                                        \
    KERNEL name##_##T(Reduction r, const T* x, T* out) {                                       \
        Team team(r.lanes, r.across);                                                          \
        const i64 n = r.reduced;                                                               \
        for (i64 base = team.first(); base < r.outputs; base += team.step()) {                 \
            const i64 output = base + team.team;                                               \
            A sum = start;                                                                     \
            if (output < r.outputs) {                                                          \
                i64 from[1], at[1];                                                            \
                r.kept.find(output, from);                                                     \
                for (i64 k = team.lane; k < n; k += r.lanes) {                                 \
                    r.folded.find(k, at);                                                      \
                    A value = (A)x[from[0] + at[0]];                                           \
                    sum = take;                                                                \
                }                                                                              \
            }                                                                                  \
            sum = team.fold(sum, [](A sum, A value) { return merged; });                       \
            if (output < r.outputs && team.lane == 0) out[output] = of_f64_or_same<T>(finish); \
        }                                                                                      \
    }                                                                                          \
    EXPORT(name##_##T)

template <class T, class A> struct Same {
    __device__ static T of(A x) { return of_f64<T>((f64)x); }
};
template <class T> struct Same<T, T> {
    __device__ static T of(T x) { return x; }
};
template <class T, class A> __device__ inline T of_f64_or_same(A x) { return Same<T, A>::of(x); }

// The least and the largest value of a type.
template <class A> __device__ inline A least() { return of_f64<A>(-(f64)infinity()); }
template <class A> __device__ inline A largest() { return of_f64<A>((f64)infinity()); }

#define ANY(T, A)                                                                              \
    REDUCE(T, A, reduce_sum, A(0), plus(sum, value), plus(sum, value), sum)                    \
    REDUCE(T, A, reduce_max, least<A>(), larger(sum, value), larger(sum, value), sum)          \
    REDUCE(T, A, reduce_min, largest<A>(), smaller(sum, value), smaller(sum, value), sum)      \
    REDUCE(T, A, reduce_product, A(1), times(sum, value), times(sum, value), sum)              \
    REDUCE(T, A, reduce_mean, A(0), plus(sum, value), plus(sum, value), over(sum, A(n)))
#define REAL(T)                                                                                \
    REDUCE(T, f64, reduce_l1, 0.0, sum + fabs(value), sum + value, sum)                        \
    REDUCE(T, f64, reduce_l2, 0.0, sum + value * value, sum + value, sqrt(sum))                \
    REDUCE(T, f64, reduce_sum_square, 0.0, sum + value * value, sum + value, sum)              \
    REDUCE(T, f64, reduce_log_sum, 0.0, sum + value, sum + value, log(sum))
NARROW(ANY(f32, f64) REAL(f32)) WIDE(ANY(f64, f64) ANY(i64, i64) ANY(i32, i32) REAL(f64))

#if !defined(RARE) || defined(EVERYTHING)
KERNEL reduce_log_sum_exp_f32(Reduction r, const f32* x, f32* out) {
    Team team(r.lanes, r.across);
    for (i64 base = team.first(); base < r.outputs; base += team.step()) {
        const i64 output = base + team.team;
        const bool mine = output < r.outputs;
        i64 from[1] = {0}, at[1];
        if (mine) r.kept.find(output, from);
        f32 most = -infinity();
        for (i64 k = team.lane; mine && k < r.reduced; k += r.lanes) {
            r.folded.find(k, at);
            most = larger(most, x[from[0] + at[0]]);
        }
        most = team.fold(most, [](f32 a, f32 b) { return larger(a, b); });
        // By the largest element, so that nothing overflows.
        f64 shift = most < infinity() && most > -infinity() ? (f64)most : 0.0, sum = 0.0;
        for (i64 k = team.lane; mine && k < r.reduced; k += r.lanes) {
            r.folded.find(k, at);
            sum += exp((f64)x[from[0] + at[0]] - shift);
        }
        sum = team.sum(sum);
        if (mine && team.lane == 0) out[output] = (f32)(log(sum) + shift);
    }
}
EXPORT(reduce_log_sum_exp_f32)
#endif

// A tensor cut at one axis.
struct Rows {
    i64 outer, axis, inner;
};

// The first index of the largest or smallest element, or the last one.
#define ARG(T)                                                                                 \
    KERNEL arg_##T(Rows r, i64 largest, i64 last, const T* x, i64* out) {                      \
        EACH(i, r.outer * r.inner) {                                                           \
            i64 rest, outer = divide(i, r.inner, rest), best = 0;                              \
            const T* row = x + outer * r.axis * r.inner + rest;                                \
            T old = row[0];                                                                    \
            for (i64 k = 1; k < r.axis; k++) {                                                 \
                T now = row[k * r.inner];                                                      \
                if ((largest ? now > old : now < old) || (last && now == old)) best = k, old = now; \
            }                                                                                  \
            out[i] = best;                                                                     \
        }                                                                                      \
    }                                                                                          \
    EXPORT(arg_##T)
// Sums of all elements up to each one.
#define CUMULATE(T)                                                                            \
    KERNEL cumulate_##T(Rows r, i64 exclusive, i64 reverse, const T* x, T* out) {              \
        EACH(i, r.outer * r.inner) {                                                           \
            i64 rest, outer = divide(i, r.inner, rest), base = outer * r.axis * r.inner + rest; \
            T sum = T(0);                                                                      \
            for (i64 k = 0; k < r.axis; k++) {                                                 \
                i64 at = base + (reverse ? r.axis - 1 - k : k) * r.inner;                      \
                T before = sum;                                                                \
                sum = plus(sum, x[at]);                                                        \
                out[at] = exclusive ? before : sum;                                            \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    EXPORT(cumulate_##T)
#define LINES(T) ARG(T) CUMULATE(T)
NARROW(LINES(f32)) WIDE(LINES(f64) LINES(i64) LINES(i32) LINES(i8) LINES(u8))

// Gradients of both operands of a quotient, summed where the operand was repeated.
// What stays and what comes together, as places in dY, in the operand itself and in the other operand.
struct Quotient {
    i64 outputs, reduced, lanes, across;
    Spread<2> kept, folded;
};
#define QUOTIENT(name, term)                                                                   \
    KERNEL name(Quotient q, const f32* dy, const f32* own, const f32* other, f32* out) {       \
        Team team(q.lanes, q.across);                                                          \
        for (i64 base = team.first(); base < q.outputs; base += team.step()) {                 \
            const i64 output = base + team.team;                                               \
            f64 sum = 0.0;                                                                     \
            if (output < q.outputs) {                                                          \
                i64 from[2], at[2];                                                            \
                q.kept.find(output, from);                                                     \
                for (i64 k = team.lane; k < q.reduced; k += q.lanes) {                         \
                    q.folded.find(k, at);                                                      \
                    const f32 d = dy[from[0] + at[0]], y = other[from[1] + at[1]];            \
                    sum += (f64)(term);                                                        \
                }                                                                              \
            }                                                                                  \
            sum = team.sum(sum);                                                               \
            if (output < q.outputs && team.lane == 0) out[output] = (f32)sum;                  \
        }                                                                                      \
    }                                                                                          \
    EXPORT(name)
NARROW(QUOTIENT(div_grad_above, d / y))
NARROW(QUOTIENT(div_grad_below, -(d * y / (own[output] * own[output]))))

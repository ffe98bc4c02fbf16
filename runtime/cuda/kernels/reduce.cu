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

#if !defined(RARE) || defined(EVERYTHING)
// The sum of each slice of each channel, or, of channels of one slice, the sum times a factor.
template <int W, bool whole>
__device__ inline void channel_of_sums(const Channels& c, i64 channel, i64 slice, f64 factor, const f32* x, f64* part, f32* out) {
    f64 sum = 0;
    over_slice<W>(c, channel, slice, [&](const i64 (&places)[FLIGHT]) {
        Pack<W> v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) v[j] = places[j] < 0 ? all_of<W>(0) : loaded<W, whole>(x + places[j]);
        f32 some = 0;
#pragma unroll
        for (int j = 0; j < FLIGHT; j++)
#pragma unroll
            for (int w = 0; w < W; w++) some += v[j].v[w];
        sum += (f64)some;
    });
    sum = Team(BLOCK, 0).sum(sum);
    if ((i64)threadIdx.x != 0) return;
    if (part) *part = sum;
    else *out = (f32)(sum * factor);
}
KERNEL channel_sums(Channels c, f64 factor, const f32* x, f64* parts, f32* out) {
    for (i64 b = block_index(); b < c.axis * c.slices; b += (i64)gridDim.x) {
        i64 slice, channel = divide(b, c.slices, slice);
        f64* part = parts ? parts + b : nullptr;
        BY_PACKS(c.width(), is_aligned(x), channel_of_sums, c, channel, slice, factor, x, part, out + channel);
    }
}
EXPORT(channel_sums)

// Sums over a slice of rows, by column, or, where there is but one slice, the sums times a factor.
template <int W, bool whole>
__device__ inline void column_of_sums(const ColumnSums& c, i64 tile, i64 slice, f64 factor, const f32* x, f64* parts, f32* out) {
    f64 sums[W] = {};
    const i64 column = c.column<W>(tile);
    over_rows<W>(c, column, slice, [&](const i64 (&rows)[FLIGHT]) {
        Pack<W> v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++)
            v[j] = rows[j] < 0 ? all_of<W>(0) : loaded<W, whole>(x + rows[j] * c.columns + column);
#pragma unroll
        for (int w = 0; w < W; w++) {
            f32 some = 0;
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) some += v[j].v[w];
            sums[w] += (f64)some;
        }
    });
    const Team team(ROW_LANES, 1);
    for (int w = 0; w < W; w++) {
        const f64 all = team.sum(sums[w]);
        if (team.lane != 0 || column >= c.columns) continue;
        if (parts) parts[slice * c.columns + column + w] = all;
        else out[column + w] = (f32)(all * factor);
    }
}
KERNEL column_sums(ColumnSums c, f64 factor, const f32* x, f64* parts, f32* out) {
    for (i64 b = block_index(); b < c.tiles() * c.slices; b += (i64)gridDim.x) {
        i64 tile, slice = divide(b, c.tiles(), tile);
        BY_PACKS(c.width(), is_aligned(x), column_of_sums, c, tile, slice, factor, x, parts, out);
    }
}
EXPORT(column_sums)

// Sums of the parts of outputs, times a factor. An output's parts are `apart` elements apart, and those of the next one
// begin `next` elements on.
KERNEL part_sums(i64 outputs, i64 count, i64 next, i64 apart, i64 lanes, f64 factor, const f64* parts, f32* out) {
    Team team(lanes, next == 1);
    for (i64 base = team.first(); base < outputs; base += team.step()) {
        const i64 output = base + team.team;
        f64 sum = 0;
        for (i64 k = team.lane; output < outputs && k < count; k += lanes) sum += parts[output * next + k * apart];
        sum = team.sum(sum);
        if (output < outputs && team.lane == 0) out[output] = (f32)(sum * factor);
    }
}
EXPORT(part_sums)
#endif

// A tensor cut at one axis.
struct Rows {
    i64 outer, axis, inner;
};

// The first index of the largest or smallest element, or the last one. NaN is both.
#define ARG(T)                                                                                 \
    KERNEL arg_##T(Rows r, i64 largest, i64 last, const T* x, i64* out) {                      \
        EACH(i, r.outer * r.inner) {                                                           \
            i64 rest, outer = divide(i, r.inner, rest), best = 0;                              \
            const T* row = x + outer * r.axis * r.inner + rest;                                \
            T old = row[0];                                                                    \
            for (i64 k = 1; k < r.axis; k++) {                                                 \
                T now = row[k * r.inner];                                                      \
                bool better = (largest ? now > old : now < old) || (now != now && old == old); \
                if (better || (last && (now == old || now != now))) best = k, old = now;       \
            }                                                                                  \
            out[i] = best;                                                                     \
        }                                                                                      \
    }                                                                                          \
    EXPORT(arg_##T)
// The largest or smallest elements in order, equal ones by index. What is no number counts as larger than all numbers. Each is the
// best one behind the one before.
template <class T> __device__ inline bool is_before(T a, T b, i64 largest) {
    const bool a_is = a == a, b_is = b == b;
    if (!a_is || !b_is) return a_is != b_is && (largest ? b_is : a_is);
    return largest ? a > b : a < b;
}
#define TOP(T)                                                                                 \
    KERNEL top_##T(Rows r, i64 count, i64 largest, const T* x, T* values, i64* indices) {      \
        EACH(i, r.outer * r.inner) {                                                           \
            i64 rest, outer = divide(i, r.inner, rest), last = -1;                             \
            const T* row = x + outer * r.axis * r.inner + rest;                                \
            T bound = T(0);                                                                    \
            for (i64 rank = 0; rank < count; rank++) {                                         \
                i64 best = -1;                                                                 \
                T found = T(0);                                                                \
                for (i64 k = 0; k < r.axis; k++) {                                             \
                    T now = row[k * r.inner];                                                  \
                    if (last >= 0 && !is_before(bound, now, largest)                           \
                        && (k <= last || is_before(now, bound, largest))) continue;            \
                    if (best < 0 || is_before(now, found, largest)) best = k, found = now;     \
                }                                                                              \
                const i64 to = (outer * count + rank) * r.inner + rest;                        \
                if (values) values[to] = found;                                                \
                if (indices) indices[to] = best;                                               \
                last = best, bound = found;                                                    \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    EXPORT(top_##T)
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
#define LINES(T) ARG(T) TOP(T) CUMULATE(T)
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

// Gathering and scattering by indices that are data. Updates of one element are applied in their order, so sums need no atomics.
// An index that is out of range is noted, and nothing is read or written for it.

struct Rows {
    i64 outer, axis, inner;
};

#define GATHER(T, I)                                                                           \
    KERNEL gather_##T##_##I(Rows r, i64 picks, Step* step, u64 command, const T* x, const I* indices, T* out) { \
        EACH(i, r.outer * picks * r.inner) {                                                   \
            i64 column, pick, outer = divide(divide(i, r.inner, column), picks, pick);         \
            i64 at = noted_place(indices[pick], r.axis, step, command);                        \
            out[i] = at < 0 ? T(0) : x[(outer * r.axis + at) * r.inner + column];              \
        }                                                                                      \
    }                                                                                          \
    EXPORT(gather_##T##_##I)                                                                   \
    KERNEL gather_elements_##T##_##I(Spread<1> s, i64 axis, i64 stride, Step* step, u64 command, const T* x, \
                                     const I* indices, T* out) {                               \
        EACH(i, s.n) {                                                                         \
            i64 from[1], at = noted_place(indices[i], axis, step, command);                    \
            s.find(i, from);                                                                   \
            out[i] = at < 0 ? T(0) : x[from[0] + at * stride];                                 \
        }                                                                                      \
    }                                                                                          \
    EXPORT(gather_elements_##T##_##I)                                                          \
    KERNEL one_hot_##T##_##I(Rows r, const I* indices, const T* values, T* out) {              \
        EACH(i, r.outer * r.axis * r.inner) {                                                  \
            i64 column, at, outer = divide(divide(i, r.inner, column), r.axis, at);            \
            out[i] = values[place_of(indices[outer * r.inner + column], r.axis) == at ? 1 : 0]; \
        }                                                                                      \
    }                                                                                          \
    EXPORT(one_hot_##T##_##I)

// What a tuple of indices names.
struct Tuples {
    i64 width, each, part, inner;
    i64 extents[RANK], strides[RANK];
};
template <class I>
__device__ inline i64 tuple_at(const Tuples& t, Step* step, u64 command, const I* indices, i64 i) {
    i64 rest, at = divide(i, t.each, rest) * t.part;
    for (i64 d = 0; d < t.width; d++) {
        i64 place = noted_place(indices[i * t.width + d], t.extents[d], step, command, d);
        if (place < 0) return -1;
        at += place * t.strides[d];
    }
    return at;
}
#define TUPLES(T, I)                                                                           \
    KERNEL gather_nd_##T##_##I(Tuples t, i64 count, Step* step, u64 command, const T* x, const I* indices, T* out) { \
        EACH(i, count * t.inner) {                                                             \
            i64 column, at = tuple_at(t, step, command, indices, divide(i, t.inner, column));  \
            out[i] = at < 0 ? T(0) : x[at + column];                                           \
        }                                                                                      \
    }                                                                                          \
    EXPORT(gather_nd_##T##_##I)
#define MOVING(T) GATHER(T, i64) GATHER(T, i32) TUPLES(T, i64) TUPLES(T, i32)
NARROW(MOVING(u32)) WIDE(MOVING(u8) MOVING(u16) MOVING(u64))

// What comes takes the place of what was there.
template <class T> __device__ inline T newer(T, T y) { return y; }

// Where each update goes, or -1.
#define PLACES(I)                                                                              \
    KERNEL tuple_places_##I(Tuples t, i64 count, Step* step, u64 command, const I* indices, i64* places) { \
        EACH(i, count) places[i] = tuple_at(t, step, command, indices, i);                     \
    }                                                                                          \
    EXPORT(tuple_places_##I)                                                                   \
    KERNEL row_places_##I(Rows r, i64 picks, Step* step, u64 command, const I* indices, i64* places) { \
        EACH(i, r.outer * picks) {                                                             \
            i64 pick, outer = divide(i, picks, pick);                                          \
            i64 at = noted_place(indices[pick], r.axis, step, command);                        \
            places[i] = at < 0 ? -1 : (outer * r.axis + at) * r.inner;                         \
        }                                                                                      \
    }                                                                                          \
    EXPORT(row_places_##I)
NARROW(PLACES(i64) PLACES(i32))

#if !defined(RARE) || defined(EVERYTHING)
// Updates in the order of their places, those of one place in their own: runs of BLOCK are sorted, and then merged two by two.
KERNEL sort_runs(i64 count, const i64* places, i64* sorted, i64* order) {
    __shared__ i64 run[BLOCK];
    const i64 thread = (i64)threadIdx.x;
    for (i64 base = block_index() * BLOCK; base < count; base += threads_of_all()) {
        const i64 length = count - base < BLOCK ? count - base : BLOCK;
        const i64 own = thread < length ? places[base + thread] : 0;
        __syncthreads();
        run[thread] = own;
        __syncthreads();
        if (thread >= length) continue;
        i64 rank = 0;
        for (i64 k = 0; k < length; k++) rank += run[k] < own || (run[k] == own && k < thread);
        sorted[base + rank] = own;
        order[base + rank] = base + thread;
    }
}
EXPORT(sort_runs)

KERNEL merge_runs(i64 count, i64 length, const i64* sorted, const i64* order, i64* merged, i64* merged_order) {
    EACH(i, count) {
        i64 at, run = divide(i, length, at);
        const bool is_left = run % 2 == 0;
        const i64 own = sorted[i], begin = i - at, other = is_left ? begin + length : begin - length;
        const i64 end = other + length < count ? other + length : count;
        // How many of the other run go before: of equal ones, those of the left run.
        i64 low = other, high = end > other ? end : other;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (is_left ? sorted[middle] < own : sorted[middle] <= own) low = middle + 1;
            else high = middle;
        }
        const i64 to = (is_left ? begin : other) + at + (low - other);
        merged[to] = own;
        merged_order[to] = order[i];
    }
}
EXPORT(merge_runs)

// How many updates come to the place of this one, if it is the first of them; else 0.
KERNEL segments(i64 count, const i64* sorted, i64* lengths) {
    EACH(i, count) {
        const i64 own = sorted[i];
        i64 low = i + 1, high = i + 1;
        if (own < 0 || (i > 0 && sorted[i - 1] == own)) {
            lengths[i] = 0;
            continue;
        }
        for (i64 step = 1; high < count && sorted[high] == own; step *= 2) {
            low = high + 1;
            high = low + step;
        }
        if (high > count) high = count;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (sorted[middle] == own) low = middle + 1;
            else high = middle;
        }
        lengths[i] = low - i;
    }
}
EXPORT(segments)
#endif

// Sorted updates come to their places one after the other: `out` holds what was there.
#define APPLY(T, name, ...)                                                                    \
    KERNEL apply_##name##_##T(i64 count, i64 inner, const i64* places, const i64* order, const i64* lengths, \
                              const T* updates, T* out) {                                      \
        EACH(i, count * inner) {                                                               \
            i64 column, at = divide(i, inner, column);                                         \
            const i64 length = lengths[at];                                                    \
            if (length == 0) continue;                                                         \
            T* target = out + places[at] + column;                                             \
            T x = *target;                                                                     \
            for (i64 k = 0; k < length; k += FLIGHT) {                                         \
                T next[FLIGHT];                                                                \
                _Pragma("unroll") for (int j = 0; j < FLIGHT; j++)                             \
                    next[j] = k + j < length ? updates[order[at + k + j] * inner + column] : T(0); \
                _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) {                           \
                    const T y = next[j];                                                       \
                    if (k + j < length) x = __VA_ARGS__;                                       \
                }                                                                              \
            }                                                                                  \
            *target = x;                                                                       \
        }                                                                                      \
    }                                                                                          \
    EXPORT(apply_##name##_##T)

// Elements that an index along an axis names: each line along the axis is one thread's. Dimensions are those of the
// indices without the axis; strides are those of the indices and of what is indexed.
struct Lines {
    i64 count, own, extent, stride;
    Spread<2> lines;
};
#define SCATTER(T, I, name, ...)                                                               \
    KERNEL scatter_##name##_##T##_##I(Lines l, Step* step, u64 command, const I* indices, const T* updates, T* out) { \
        EACH(i, l.lines.n) {                                                                   \
            i64 at[2];                                                                         \
            l.lines.find(i, at);                                                               \
            for (i64 k = 0; k < l.count; k++) {                                                \
                const i64 from = at[0] + k * l.own;                                            \
                const i64 place = noted_place(indices[from], l.extent, step, command);         \
                if (place < 0) continue;                                                       \
                T* target = out + at[1] + place * l.stride;                                    \
                T x = *target, y = updates[from];                                              \
                *target = __VA_ARGS__;                                                         \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    EXPORT(scatter_##name##_##T##_##I)
#define WITH(T, name, ...) APPLY(T, name, __VA_ARGS__) SCATTER(T, i64, name, __VA_ARGS__) SCATTER(T, i32, name, __VA_ARGS__)
NARROW(WITH(u32, none, newer(x, y))) WIDE(WITH(u8, none, newer(x, y)) WITH(u16, none, newer(x, y)) WITH(u64, none, newer(x, y)))
#define NUMBERS(T) WITH(T, add, plus(x, y)) WITH(T, mul, times(x, y)) WITH(T, max, larger(x, y)) WITH(T, min, smaller(x, y))
NARROW(NUMBERS(f32)) WIDE(NUMBERS(f64) NUMBERS(i64) NUMBERS(i32) NUMBERS(i8) NUMBERS(u8))

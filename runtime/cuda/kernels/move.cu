// Elements that move, by their width.

// Elements from `from` on go to `to` on, each tensor with its own strides.
struct Move {
    i64 from, to;
    Spread<2> box;
};
// Which element of the operand each index of the result along each dimension is: lists, one behind the other. The box has
// the result's dimensions and the operand's strides.
struct Map {
    i64 first[RANK];
    Spread<1> box;
};

#define MOVES(T)                                                                               \
    KERNEL move_##T(Move m, const T* x, T* out) {                                              \
        EACH(i, m.box.n) {                                                                     \
            i64 at[2];                                                                         \
            m.box.find(i, at);                                                                 \
            out[m.to + at[1]] = x[m.from + at[0]];                                             \
        }                                                                                      \
    }                                                                                          \
    EXPORT(move_##T)                                                                           \
    KERNEL map_##T(Map m, const i64* lists, const T* x, T* out) {                              \
        EACH(i, m.box.n) {                                                                     \
            i64 left = i, at = 0;                                                              \
            for (i64 d = m.box.rank - 1; d >= 0; d--) {                                        \
                i64 rest;                                                                      \
                left = divide(left, m.box.dims[d], rest);                                      \
                at += lists[m.first[d] + rest] * m.box.strides[0][d];                          \
            }                                                                                  \
            out[i] = x[at];                                                                    \
        }                                                                                      \
    }                                                                                          \
    EXPORT(map_##T)                                                                            \
    KERNEL fill_##T(i64 n, u64 value, T* out) { EACH(i, n) out[i] = (T)value; }                \
    EXPORT(fill_##T)                                                                           \
    KERNEL fill_from_##T(i64 n, const T* value, T* out) { EACH(i, n) out[i] = value[0]; }      \
    EXPORT(fill_from_##T)                                                                      \
    KERNEL triangle_##T(i64 n, i64 rows, i64 columns, i64 upper, i64 k, const T* x, T* out) {  \
        EACH(i, n) {                                                                           \
            i64 column, row, row_of_all = divide(i, columns, column);                          \
            divide(row_of_all, rows, row);                                                     \
            bool kept = upper ? column - row >= k : column - row <= k;                         \
            out[i] = kept ? x[i] : T(0);                                                       \
        }                                                                                      \
    }                                                                                          \
    EXPORT(triangle_##T)
MOVES(u8) MOVES(u16) MOVES(u32) MOVES(u64)

// So many bytes, sixteen at a time where both begin at a multiple of that.
struct alignas(16) Sixteen {
    u64 low, high;
};
KERNEL copy(i64 bytes, const u8* x, u8* out) {
    i64 done = 0;
    if ((((u64)x | (u64)out) & 15) == 0) {
        const i64 wide = bytes / 16;
        EACH(i, wide) ((Sixteen*)out)[i] = ((const Sixteen*)x)[i];
        done = wide * 16;
    }
    EACH(i, bytes - done) out[done + i] = x[done + i];
}
EXPORT(copy)

// start, start + delta, ...
#define RANGE(T)                                                                               \
    KERNEL range_##T(i64 n, const T* start, const T* delta, T* out) {                          \
        EACH(i, n) out[i] = plus(start[0], times(of_f64<T>((f64)i), delta[0]));                \
    }                                                                                          \
    EXPORT(range_##T)
RANGE(f32) RANGE(f64) RANGE(i64) RANGE(i32) RANGE(i8) RANGE(u8)

// The axes along which gradients are summed where shapes a and b were broadcast, last first; of a, or of b.
KERNEL broadcast_axes(i64 own_rank, i64 other_rank, i64 n, const i64* own, const i64* other, i64* out) {
    if (first_of_mine() != 0) return;
    i64 rank = own_rank > other_rank ? own_rank : other_rank, found = 0;
    for (i64 d = rank - 1; d >= 0 && found < n; d--) {
        i64 here = d + own_rank < rank ? 1 : own[d + own_rank - rank];
        i64 there = d + other_rank < rank ? 1 : other[d + other_rank - rank];
        if (here == 1 && (there != 1 || d + own_rank < rank)) out[found++] = d;
    }
}
EXPORT(broadcast_axes)

// The step that runs is the next one: its number is what random operators draw from.
KERNEL next_step(u64* step) {
    if (first_of_mine() == 0) step[0] += 1;
}
EXPORT(next_step)

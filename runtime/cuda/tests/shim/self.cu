// What the shim itself is tested with.

KERNEL count_all(i64 n, i64* total) {
    EACH(i, n) atomicAdd(total, (i64)1);
}
EXPORT(count_all)

// The sum of each warp, by exchanges within it.
KERNEL warp_sums(const f32* x, f32* out) {
    f32 sum = x[first_of_mine()];
    for (u32 by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
    __syncwarp();
    if (threadIdx.x % 32 == 0) out[first_of_mine() / 32] = sum;
}
EXPORT(warp_sums)

// Elements of a block, turned around through shared memory. The race: there is no barrier in between.
#define TURN(name, barrier)                                      \
    KERNEL name(const f32* x, f32* out) {                        \
        __shared__ f32 room[BLOCK];                              \
        room[threadIdx.x] = x[first_of_mine()];                  \
        barrier;                                                 \
        out[first_of_mine()] = room[BLOCK - 1 - threadIdx.x];    \
    }                                                            \
    EXPORT(name)
TURN(turn_around, __syncthreads())
TURN(turn_around_racing, (void)0)

// Reads one element too many.
KERNEL overrun(i64 n, const f32* x, f32* out) {
    if (first_of_mine() == 0)
        for (i64 i = 0; i <= n; i++) out[0] += x[i];
}
EXPORT(overrun)

// Both ways to divide.
KERNEL divided(i64 i, i64 d, i64* out) {
    if (first_of_mine() == 0) out[0] = divide(i, d, out[1]);
}
EXPORT(divided)

// Random operators. What a node draws depends on its seed, the run's and the step (Salmon, Moraes, Dror, Shaw, Parallel
// Random Numbers: As Easy as 1, 2, 3, SC 2011: Philox4x32-10).

struct Words {
    u32 v[4];
};

// `step` holds the number of the step and the seed of the run.
struct Source {
    u32 key[2];
    u64 step;

    __device__ Source(u64 node, const u64* step_and_seed) : step(step_and_seed[0]) {
        u64 z = node ^ (step_and_seed[1] * 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        key[0] = (u32)z;
        key[1] = (u32)(z >> 32);
    }

    __device__ Words block(u64 index) const {
        Words c = {{(u32)index, (u32)(index >> 32), (u32)step, (u32)(step >> 32)}};
        u32 low = key[0], high = key[1];
        for (int round = 0; round < 10; round++) {
            u64 a = (u64)c.v[0] * 0xd2511f53u, b = (u64)c.v[2] * 0xcd9e8d57u;
            c = Words{{(u32)(b >> 32) ^ c.v[1] ^ low, (u32)b, (u32)(a >> 32) ^ c.v[3] ^ high, (u32)a}};
            low += 0x9e3779b9u;
            high += 0xbb67ae85u;
        }
        return c;
    }
};

// A number in [0, 1) of 24 bits.
__device__ inline f32 unit(u32 word) { return (f32)(word >> 8) / 16777216.0f; }

// Four elements a thread: the element's index is i, and u its number.
#define UNIFORM(n, ...)                                                \
    Source source(node, step);                                         \
    EACH(four, ((n) + 3) / 4) {                                        \
        Words words = source.block((u64)four);                         \
        for (i64 k = 0; k < 4 && 4 * four + k < (n); k++) {            \
            const i64 i = 4 * four + k;                                \
            const f32 u = unit(words.v[k]);                            \
            __VA_ARGS__;                                               \
        }                                                              \
    }

KERNEL dropout(i64 n, u64 node, const u64* step, const f32* x, const f32* ratio, const u8* training, f32* y, u8* mask) {
    const f32 share = ratio ? ratio[0] : 0.5f;
    const bool drops = training && training[0] && share != 0;
    const f32 scale = 1 / (1 - share);
    if (!drops) {
        EACH(i, n) {
            if (y) y[i] = x[i];
            if (mask) mask[i] = 1;
        }
        return;
    }
    UNIFORM(n, {
        if (y) y[i] = u >= share ? x[i] * scale : 0;
        if (mask) mask[i] = u >= share;
    })
}
EXPORT(dropout)

// A ratio of 0 lets everything through, whatever the mask is.
KERNEL dropout_grad(i64 n, const f32* dy, const u8* mask, const f32* ratio, f32* dx) {
    const f32 share = ratio ? ratio[0] : 0.5f, scale = 1 / (1 - share);
    EACH(i, n) dx[i] = share == 0 ? dy[i] : mask[i] ? dy[i] * scale : 0;
}
EXPORT(dropout_grad)

KERNEL uniform(i64 n, u64 node, f64 low, f64 high, const u64* step, f32* out) {
    UNIFORM(n, out[i] = (f32)low + ((f32)high - (f32)low) * u)
}
EXPORT(uniform)

KERNEL bernoulli(i64 n, u64 node, const u64* step, const f32* p, f32* out) { UNIFORM(n, out[i] = u < p[i] ? 1 : 0) }
EXPORT(bernoulli)

// Pairs (Box, Muller, A Note on the Generation of Random Normal Deviates, 1958).
KERNEL gaussian(i64 n, u64 node, f64 mean, f64 scale, const u64* step, f32* out) {
    Source source(node, step);
    EACH(pair, (n + 1) / 2) {
        Words words = source.block((u64)pair / 2);
        u32 a = words.v[pair % 2 * 2], b = words.v[pair % 2 * 2 + 1];
        f64 radius = sqrt(-2.0 * log((f64)(1 - unit(a)))), angle = 6.283185307179586 * (f64)unit(b);
        out[2 * pair] = (f32)(mean + scale * (radius * cos(angle)));
        if (2 * pair + 1 < n) out[2 * pair + 1] = (f32)(mean + scale * (radius * sin(angle)));
    }
}
EXPORT(gaussian)

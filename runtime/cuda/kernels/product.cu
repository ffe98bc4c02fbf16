// Products of matrices and convolutions: tiles of 64 × 64 of a result, summed 16 products at a time.
//
// A convolution is a product whose operand is read from the image where it would be one column a position.

#define TILE 64
#define DEEP 16
// So many products are summed before they are added to the total.
#define RUN 256

// One of many products: which tile of which product, and which part of its sum.
struct Work {
    i64 row, column, part, product;

    __device__ Work(i64 m, i64 n, i64 parts) {
        i64 rest = block_index();
        rest = divide(rest, (n + TILE - 1) / TILE, column);
        rest = divide(rest, (m + TILE - 1) / TILE, row);
        product = divide(rest, parts, part);
        row *= TILE;
        column *= TILE;
    }
};

// The tile at work's row and column: the sum over k from k0 to k1 of left(row, k) · right(k, column), given to write.
// `by_sum` says of an operand whether neighbours along the sum are neighbours in memory.
template <class Left, class Right, class Write>
__device__ inline void tile(const Work& work, i64 m, i64 n, i64 k0, i64 k1, const Left& left, const Right& right,
                            const Write& write) {
    __shared__ f32 a[DEEP][TILE + 1];
    __shared__ f32 b[DEEP][TILE + 1];
    const i64 thread = (i64)threadIdx.x, x = thread % 16, y = thread / 16;
    f32 total[4][4], sum[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) total[i][j] = sum[i][j] = 0;
    for (i64 k = k0; k < k1; k += DEEP) {
        for (i64 e = thread; e < TILE * DEEP; e += BLOCK) {
            i64 lane = left.by_sum() ? e / DEEP : e % TILE, deep = left.by_sum() ? e % DEEP : e / TILE;
            a[deep][lane] = work.row + lane < m && k + deep < k1 ? left(work.row + lane, k + deep) : 0;
            lane = right.by_sum() ? e / DEEP : e % TILE, deep = right.by_sum() ? e % DEEP : e / TILE;
            b[deep][lane] = work.column + lane < n && k + deep < k1 ? right(k + deep, work.column + lane) : 0;
        }
        __syncthreads();
        for (int deep = 0; deep < DEEP; deep++) {
            f32 p[4], q[4];
            for (int i = 0; i < 4; i++) {
                p[i] = a[deep][y + 16 * i];
                q[i] = b[deep][x + 16 * i];
            }
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += p[i] * q[j];
        }
        __syncthreads();
        if ((k - k0) % RUN == RUN - DEEP)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) {
                    total[i][j] += sum[i][j];
                    sum[i][j] = 0;
                }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            i64 row = work.row + y + 16 * i, column = work.column + x + 16 * j;
            if (row < m && column < n) write(row, column, total[i][j] + sum[i][j]);
        }
}

struct Matrix {
    i64 row, column;
    const f32* data;
    bool is_right;
    __device__ f32 operator()(i64 i, i64 j) const { return data[i * row + j * column]; }
    __device__ bool by_sum() const { return is_right ? row == 1 && column != 1 : column == 1; }
};

// Products of matrices `size` apart in what they come to; the sum of each is cut in `parts` of `length`.
struct Products {
    i64 m, n, k, left_row, left_column, right_row, right_column, parts, length, row, size, add;
    f64 alpha;
};

// `offsets`: by product, where its matrices begin. Sums in parts go to `out` as they are, one part behind the other.
KERNEL product(Products p, const i64* offsets, const f32* a, const f32* b, f32* out) {
    Work work(p.m, p.n, p.parts);
    const i64 left_at = offsets ? offsets[2 * work.product] : 0, right_at = offsets ? offsets[2 * work.product + 1] : 0;
    Matrix left = {p.left_row, p.left_column, a + left_at, false};
    Matrix right = {p.right_row, p.right_column, b + right_at, true};
    const i64 k0 = work.part * p.length, k1 = k0 + p.length < p.k ? k0 + p.length : p.k;
    if (p.parts > 1) {
        f32* part = out + (work.product * p.parts + work.part) * p.m * p.n;
        tile(work, p.m, p.n, k0, k1, left, right, [&](i64 i, i64 j, f32 sum) { part[i * p.n + j] = sum; });
    } else {
        f32* into = out + work.product * p.size;
        tile(work, p.m, p.n, k0, k1, left, right, [&](i64 i, i64 j, f32 sum) {
            f32* at = into + i * p.row + j;
            *at = (p.add ? *at : 0) + (f32)p.alpha * sum;
        });
    }
}
EXPORT(product)

// Adds up the parts of sums.
KERNEL add_parts(Products p, i64 products, const f32* parts, f32* out) {
    EACH(e, products * p.m * p.n) {
        i64 column, row, rest = divide(e, p.n, column), which = divide(rest, p.m, row);
        const f32* part = parts + which * p.parts * p.m * p.n + row * p.n + column;
        f64 sum = 0;
        for (i64 i = 0; i < p.parts; i++) sum += (f64)part[i * p.m * p.n];
        f32* at = out + which * p.size + row * p.row + column;
        *at = (p.add ? *at : 0) + (f32)(p.alpha * sum);
    }
}
EXPORT(add_parts)

// beta · C, broadcast.
KERNEL addend(Spread<1> s, f64 beta, const f32* c, f32* out) {
    EACH(i, s.n) {
        i64 at[1];
        s.find(i, at);
        out[i] = (f32)beta * c[at[0]];
    }
}
EXPORT(addend)

// A window that slides over an image; positions and image have `inner` and `outer` channels a group.
struct Convolution {
    i64 batch, groups, inner, outer, parts, length, last;
    i64 image[3], positions[3], kernel[3], stride[3], dilation[3], before[3];

    __device__ i64 pixels() const { return image[0] * image[1] * image[2]; }
    __device__ i64 places() const { return positions[0] * positions[1] * positions[2]; }
    __device__ i64 taps() const { return kernel[0] * kernel[1] * kernel[2]; }

    // Where an element of an image, or of positions, is: `each` channels a group, first or last, of `places` elements.
    __device__ i64 index(i64 sample, i64 group, i64 each, i64 channel, i64 places, i64 place) const {
        const i64 all = groups * each, of = group * each + channel;
        return last ? (sample * places + place) * all + of : (sample * all + of) * places + place;
    }
};

__device__ inline void place_in(i64 index, const i64 (&dims)[3], i64 (&at)[3]) {
    at[0] = divide(divide(index, dims[2], at[2]), dims[1], at[1]);
}

// The pixel of a channel of the image, of a whole group, that a tap meets at a position; -1 outside.
__device__ inline i64 pixel(const Convolution& c, i64 tap, i64 place) {
    i64 taps[3], at[3], index = 0;
    place_in(tap, c.kernel, taps);
    place_in(place, c.positions, at);
    for (int d = 0; d < 3; d++) {
        i64 here = at[d] * c.stride[d] + taps[d] * c.dilation[d] - c.before[d];
        if (here < 0 || here >= c.image[d]) return -1;
        index = index * c.image[d] + here;
    }
    return index;
}

// The position at which a tap meets a pixel; -1 where there is none.
__device__ inline i64 position(const Convolution& c, i64 tap, i64 at) {
    i64 taps[3], pixels[3], index = 0;
    place_in(tap, c.kernel, taps);
    place_in(at, c.image, pixels);
    for (int d = 0; d < 3; d++) {
        i64 reach = pixels[d] + c.before[d] - taps[d] * c.dilation[d], rest;
        if (reach < 0) return -1;
        i64 here = divide(reach, c.stride[d], rest);
        if (rest || here >= c.positions[d]) return -1;
        index = index * c.positions[d] + here;
    }
    return index;
}

// The image as one column a sample and position: rows are channels and taps.
struct Columns {
    const Convolution* c;
    const f32* image;
    i64 group;
    __device__ f32 operator()(i64 k, i64 column) const {
        i64 tap, place, channel = divide(k, c->taps(), tap), sample = divide(column, c->places(), place);
        i64 at = pixel(*c, tap, place);
        return at < 0 ? 0 : image[c->index(sample, group, c->inner, channel, c->pixels(), at)];
    }
    __device__ bool by_sum() const { return false; }
};

// Positions that meet a pixel, as one column a sample and pixel: rows are channels of the positions and taps.
struct Meeting {
    const Convolution* c;
    const f32* data;
    i64 group;
    __device__ f32 operator()(i64 k, i64 column) const {
        i64 tap, at, channel = divide(k, c->taps(), tap), sample = divide(column, c->pixels(), at);
        i64 place = position(*c, tap, at);
        return place < 0 ? 0 : data[c->index(sample, group, c->outer, channel, c->places(), place)];
    }
    __device__ bool by_sum() const { return false; }
};

// Weights by channel of the image: the sum runs over channels of the positions and taps.
struct Turned {
    const Convolution* c;
    const f32* weights;
    __device__ f32 operator()(i64 channel, i64 k) const {
        i64 tap, outer = divide(k, c->taps(), tap);
        return weights[(outer * c->inner + channel) * c->taps() + tap];
    }
    __device__ bool by_sum() const { return true; }
};

// Positions by channel: the sum runs over samples and places.
struct Places {
    const Convolution* c;
    const f32* data;
    i64 group;
    __device__ f32 operator()(i64 channel, i64 k) const {
        i64 place, sample = divide(k, c->places(), place);
        return data[c->index(sample, group, c->outer, channel, c->places(), place)];
    }
    __device__ bool by_sum() const { return true; }
};

// The transpose of Columns.
struct Taps {
    Columns columns;
    __device__ f32 operator()(i64 k, i64 column) const { return columns(column, k); }
    __device__ bool by_sum() const { return true; }
};

// positions = weights ∗ image + bias
KERNEL convolve(Convolution c, const f32* image, const f32* weights, const f32* bias, f32* out) {
    const i64 places = c.places(), m = c.outer, n = c.batch * places, k = c.inner * c.taps();
    Work work(m, n, 1);
    const i64 group = work.product;
    Matrix left = {k, 1, weights + group * c.outer * k, false};
    tile(work, m, n, 0, k, left, Columns{&c, image, group}, [&](i64 i, i64 j, f32 sum) {
        i64 place, sample = divide(j, places, place);
        out[c.index(sample, group, c.outer, i, places, place)] = sum + (bias ? bias[group * c.outer + i] : 0);
    });
}
EXPORT(convolve)

// image = weights ∗ᵀ positions + bias
KERNEL convolve_back(Convolution c, const f32* positions, const f32* weights, const f32* bias, f32* out) {
    const i64 pixels = c.pixels(), m = c.inner, n = c.batch * pixels, k = c.outer * c.taps();
    Work work(m, n, 1);
    const i64 group = work.product;
    Turned left = {&c, weights + group * c.outer * c.inner * c.taps()};
    tile(work, m, n, 0, k, left, Meeting{&c, positions, group}, [&](i64 i, i64 j, f32 sum) {
        i64 at, sample = divide(j, pixels, at);
        out[c.index(sample, group, c.inner, i, pixels, at)] = sum + (bias ? bias[group * c.inner + i] : 0);
    });
}
EXPORT(convolve_back)

// Adds to each channel its bias.
KERNEL add_bias(i64 samples, i64 channels, i64 places, const f32* bias, f32* out) {
    EACH(e, samples * channels * places) {
        i64 place, channel, which = divide(e, places, place);
        divide(which, channels, channel);
        out[e] += bias[channel];
    }
}
EXPORT(add_bias)

// The gradient of the weights: each part of the sum behind the other.
KERNEL convolve_weights(Convolution c, const f32* positions, const f32* image, f32* out) {
    const i64 m = c.outer, n = c.inner * c.taps(), k = c.batch * c.places();
    Work work(m, n, c.parts);
    const i64 group = work.product, k0 = work.part * c.length, k1 = k0 + c.length < k ? k0 + c.length : k;
    f32* part = out + (group * c.parts + work.part) * m * n;
    tile(work, m, n, k0, k1, Places{&c, positions, group}, Taps{{&c, image, group}},
         [&](i64 i, i64 j, f32 sum) { part[i * n + j] = sum; });
}
EXPORT(convolve_weights)

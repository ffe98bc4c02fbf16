// Normalizations, softmax and losses over classes, with their gradients. Statistics are summed in double precision.

struct Rows {
    i64 outer, axis, inner;
};

// Mean of a slice's elements, and the sum of their squared distances from it.
struct Moments {
    f64 mean, about;
};

// The moments of each slice of each channel, in one pass: sums of distances from the slice's first element, of up to sixteen
// in single precision, and of these in double.
template <int W, bool whole>
__device__ inline void moments_of(const Channels& c, i64 channel, i64 slice, const f32* x, Moments* out) {
    const f32 from = x[c.place<W>(channel, c.begin(slice))];
    Pair sums = {0, 0};
    over_slice<W>(c, channel, slice, [&](const i64 (&places)[FLIGHT]) {
        Pack<W> v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) v[j] = places[j] < 0 ? all_of<W>(from) : loaded<W, whole>(x + places[j]);
        f32 sum = 0, squares = 0;
#pragma unroll
        for (int j = 0; j < FLIGHT; j++)
#pragma unroll
            for (int w = 0; w < W; w++) {
                const f32 off = v[j].v[w] - from;
                sum += off;
                squares += off * off;
            }
        sums.a += (f64)sum;
        sums.b += (f64)squares;
    });
    sums = Team(BLOCK, 0).fold(sums, both);
    if ((i64)threadIdx.x != 0) return;
    const f64 n = (f64)c.elements(slice), off = sums.a / n, about = sums.b - sums.a * off;
    *out = {(f64)from + off, about > 0 || is_nan(about) ? about : 0};
}
KERNEL batch_moments(Channels c, const f32* x, Moments* out) {
    for (i64 b = block_index(); b < c.axis * c.slices; b += (i64)gridDim.x) {
        i64 slice, channel = divide(b, c.slices, slice);
        BY_PACKS(c.width(), is_aligned(x), moments_of, c, channel, slice, x, out + b);
    }
}
EXPORT(batch_moments)

// The same of each slice of rows of each column: channels that are neighbours in memory.
template <int W, bool whole>
__device__ inline void column_moments_of(const ColumnSums& c, i64 tile, i64 slice, const f32* x, Moments* out) {
    Pair sums[W] = {};
    const i64 column = c.column<W>(tile), begin = slice * c.length;
    Pack<W> from = all_of<W>(0);
    if (column < c.columns) from = loaded<W, whole>(x + begin * c.columns + column);
    over_rows<W>(c, column, slice, [&](const i64 (&rows)[FLIGHT]) {
        Pack<W> v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) v[j] = rows[j] < 0 ? from : loaded<W, whole>(x + rows[j] * c.columns + column);
#pragma unroll
        for (int w = 0; w < W; w++) {
            f32 sum = 0, squares = 0;
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const f32 off = v[j].v[w] - from.v[w];
                sum += off;
                squares += off * off;
            }
            sums[w] = both(sums[w], {(f64)sum, (f64)squares});
        }
    });
    const Team team(ROW_LANES, 1);
    const f64 n = (f64)(c.rows - begin < c.length ? c.rows - begin : c.length);
    for (int w = 0; w < W; w++) {
        const Pair all = team.fold(sums[w], both);
        if (team.lane != 0 || column >= c.columns) continue;
        const f64 off = all.a / n, about = all.b - all.a * off;
        out[slice * c.columns + column + w] = {(f64)from.v[w] + off, about > 0 || is_nan(about) ? about : 0};
    }
}
KERNEL batch_column_moments(ColumnSums c, const f32* x, Moments* out) {
    for (i64 b = block_index(); b < c.tiles() * c.slices; b += (i64)gridDim.x) {
        i64 tile, slice = divide(b, c.tiles(), tile);
        BY_PACKS(c.width(), is_aligned(x), column_moments_of, c, tile, slice, x, out);
    }
}
EXPORT(batch_column_moments)

struct Batch {
    Partial parts;
    i64 lanes, training;
    f64 epsilon, momentum;
};

// Mean and 1/σ of each channel, of the batch's moments or as they run on; and what runs on. In training, where nothing runs
// on, `mean` and `variance` may be missing: a node that runs again has neither.
KERNEL batch_statistics(Batch b, const Moments* parts, const f32* mean, const f32* variance, f32* new_mean, f32* new_variance,
                        f32* saved_mean, f32* saved_inverse) {
    const Partial p = b.parts;
    const f64 n = (f64)p.elements;
    Team team(b.lanes, p.next == 1);
    for (i64 base = team.first(); base < p.outputs; base += team.step()) {
        const i64 c = base + team.team;
        const bool mine = b.training && c < p.outputs;
        f64 sum = 0, squares = 0;
        for (i64 s = team.lane; mine && s < p.slices; s += b.lanes) sum += p.of(parts, c, s).mean * (f64)p.count(s);
        const f64 about = team.sum(sum) / n;
        for (i64 s = team.lane; mine && s < p.slices; s += b.lanes) {
            const Moments& of = p.of(parts, c, s);
            const f64 off = of.mean - about;
            squares += of.about + off * off * (f64)p.count(s);
        }
        const f64 spread = team.sum(squares) / n;
        if (c >= p.outputs || team.lane != 0) continue;
        const f64 m = b.training ? about : (f64)mean[c], v = b.training ? spread : (f64)variance[c];
        if (new_mean) new_mean[c] = b.training ? (f32)(b.momentum * mean[c] + (1 - b.momentum) * (f32)m) : mean[c];
        if (new_variance)
            new_variance[c] = b.training ? (f32)(b.momentum * variance[c] + (1 - b.momentum) * (f32)v) : variance[c];
        saved_mean[c] = (f32)m;
        saved_inverse[c] = (f32)(1.0 / sqrt(v + b.epsilon));
    }
}
EXPORT(batch_statistics)

// Σ dY and Σ dY · (X - mean) of each slice of each channel.
template <int W, bool whole>
__device__ inline void products_of(const Channels& c, i64 channel, i64 slice, const f32* dy, const f32* x, const f32* means,
                                   Pair* out) {
    const f32 mean = means[channel];
    Pair sums = {0, 0};
    over_slice<W>(c, channel, slice, [&](const i64 (&places)[FLIGHT]) {
        Pack<W> d[FLIGHT], v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            d[j] = places[j] < 0 ? all_of<W>(0) : loaded<W, whole>(dy + places[j]);
            v[j] = places[j] < 0 ? all_of<W>(mean) : loaded<W, whole>(x + places[j]);
        }
        f32 total = 0, product = 0;
#pragma unroll
        for (int j = 0; j < FLIGHT; j++)
#pragma unroll
            for (int w = 0; w < W; w++) {
                total += d[j].v[w];
                product += d[j].v[w] * (v[j].v[w] - mean);
            }
        sums.a += (f64)total;
        sums.b += (f64)product;
    });
    sums = Team(BLOCK, 0).fold(sums, both);
    if ((i64)threadIdx.x == 0) *out = sums;
}
KERNEL batch_products(Channels c, const f32* dy, const f32* x, const f32* mean, Pair* out) {
    for (i64 b = block_index(); b < c.axis * c.slices; b += (i64)gridDim.x) {
        i64 slice, channel = divide(b, c.slices, slice);
        BY_PACKS(c.width(), is_aligned(dy) && is_aligned(x), products_of, c, channel, slice, dy, x, mean, out + b);
    }
}
EXPORT(batch_products)

// The same of each slice of rows of each column.
template <int W, bool whole>
__device__ inline void column_products_of(const ColumnSums& c, i64 tile, i64 slice, const f32* dy, const f32* x, const f32* means,
                                          Pair* out) {
    Pair sums[W] = {};
    const i64 column = c.column<W>(tile);
    Pack<W> mean = all_of<W>(0);
    for (int w = 0; w < W && column < c.columns; w++) mean.v[w] = means[column + w];
    over_rows<W>(c, column, slice, [&](const i64 (&rows)[FLIGHT]) {
        Pack<W> d[FLIGHT], v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const i64 at = rows[j] * c.columns + column;
            d[j] = rows[j] < 0 ? all_of<W>(0) : loaded<W, whole>(dy + at);
            v[j] = rows[j] < 0 ? mean : loaded<W, whole>(x + at);
        }
#pragma unroll
        for (int w = 0; w < W; w++) {
            f32 total = 0, product = 0;
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                total += d[j].v[w];
                product += d[j].v[w] * (v[j].v[w] - mean.v[w]);
            }
            sums[w] = both(sums[w], {(f64)total, (f64)product});
        }
    });
    const Team team(ROW_LANES, 1);
    for (int w = 0; w < W; w++) {
        const Pair all = team.fold(sums[w], both);
        if (team.lane == 0 && column < c.columns) out[slice * c.columns + column + w] = all;
    }
}
KERNEL batch_column_products(ColumnSums c, const f32* dy, const f32* x, const f32* mean, Pair* out) {
    for (i64 b = block_index(); b < c.tiles() * c.slices; b += (i64)gridDim.x) {
        i64 tile, slice = divide(b, c.tiles(), tile);
        BY_PACKS(c.width(), is_aligned(dy) && is_aligned(x), column_products_of, c, tile, slice, dy, x, mean, out);
    }
}
EXPORT(batch_column_products)

// Σ dY · x̂ and Σ dY of each channel, and the coefficients of dX.
KERNEL batch_sums(Partial p, i64 lanes, const Pair* parts, const f32* scale, const f32* mean, const f32* inverse,
                  Coefficients* out, f32* dscale, f32* dbias) {
    const i64 n = p.elements;
    Team team(lanes, p.next == 1);
    for (i64 base = team.first(); base < p.outputs; base += team.step()) {
        const i64 c = base + team.team;
        Pair sums = {0, 0};
        for (i64 s = team.lane; c < p.outputs && s < p.slices; s += lanes) sums = both(sums, p.of(parts, c, s));
        sums = team.fold(sums, both);
        if (c >= p.outputs || team.lane != 0) continue;
        // dX = scale/σ · (dY - mean(dY) - x̂ · mean(dY · x̂)), written as a · dY + (b · (X - mean) + d).
        const f64 s = (f64)inverse[c], a = (f64)scale[c] * s, of_scale = sums.b * s;
        const f32 by_x = (f32)(-a * s * of_scale / (f64)n), d = (f32)(-a * sums.a / (f64)n);
        out[c] = Coefficients{{scale[c] * inverse[c], by_x, mean[c], d}};
        if (dscale) dscale[c] = (f32)of_scale;
        if (dbias) dbias[c] = (f32)sums.a;
    }
}
EXPORT(batch_sums)

// Rows, each by its own statistics. Scale and bias belong to elements of a row; a simplified one has no mean.
KERNEL layer(Rows r, i64 lanes, i64 simplified, f64 epsilon, const f32* x, const f32* scale, const f32* bias, f32* y,
             f32* means, f32* inverses) {
    const i64 n = r.axis;
    Team team(lanes, 0);
    for (i64 base = team.first(); base < r.outer; base += team.step()) {
        const i64 row = base + team.team;
        const bool mine = row < r.outer;
        const f32* of = x + row * n;
        f64 sum = 0, squares = 0;
        for (i64 k = team.lane; mine && !simplified && k < n; k += lanes) sum += (f64)of[k];
        const f64 about = team.sum(sum) / (f64)n;
        for (i64 k = team.lane; mine && k < n; k += lanes) {
            f64 off = (f64)of[k] - about;
            squares += off * off;
        }
        const f64 variance = team.sum(squares) / (f64)n;
        const f32 mean = (f32)about, inverse = (f32)(1.0 / sqrt(variance + epsilon));
        for (i64 k = team.lane; mine && k < n; k += lanes)
            y[row * n + k] = (of[k] - mean) * inverse * scale[k] + (bias ? bias[k] : 0);
        if (mine && team.lane == 0 && means) means[row] = mean;
        if (mine && team.lane == 0 && inverses) inverses[row] = inverse;
    }
}
EXPORT(layer)

KERNEL layer_grad(Rows r, i64 lanes, const f32* dy, const f32* x, const f32* scale, const f32* means,
                  const f32* inverses, f32* dx) {
    const i64 n = r.axis;
    Team team(lanes, 0);
    for (i64 base = team.first(); base < r.outer; base += team.step()) {
        const i64 row = base + team.team;
        const bool mine = row < r.outer;
        const f32 mean = mine && means ? means[row] : 0, inverse = mine ? inverses[row] : 0;
        f64 about = 0, level = 0;
        for (i64 k = team.lane; mine && k < n; k += lanes) {
            f32 g = dy[row * n + k] * scale[k];
            about += (f64)(g * ((x[row * n + k] - mean) * inverse));
            level += (f64)g;
        }
        const f32 a = (f32)(team.sum(about) / (f64)n), all = (f32)(team.sum(level) / (f64)n), l = means ? all : 0;
        for (i64 k = team.lane; mine && k < n; k += lanes) {
            i64 at = row * n + k;
            dx[at] = (dy[at] * scale[k] - l - (x[at] - mean) * inverse * a) * inverse;
        }
    }
}
EXPORT(layer_grad)

// Sums over a slice of rows, by column, of dY · x̂ and of dY.
template <int W, bool whole>
__device__ inline void layer_columns_of(const ColumnSums& c, i64 tile, i64 slice, const f32* dy, const f32* x, const f32* means,
                                        const f32* inverses, Pair* out) {
    Pair sums[W] = {};
    const i64 column = c.column<W>(tile);
    over_rows<W>(c, column, slice, [&](const i64 (&rows)[FLIGHT]) {
        Pack<W> d[FLIGHT], v[FLIGHT];
        f32 mean[FLIGHT], inverse[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const i64 row = rows[j], at = row * c.columns + column;
            d[j] = row < 0 ? all_of<W>(0) : loaded<W, whole>(dy + at);
            v[j] = row < 0 ? all_of<W>(0) : loaded<W, whole>(x + at);
            mean[j] = row >= 0 && means ? means[row] : 0;
            inverse[j] = row < 0 ? 0 : inverses[row];
        }
#pragma unroll
        for (int w = 0; w < W; w++) {
            f32 of_scale = 0, of_bias = 0;
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                of_scale += d[j].v[w] * ((v[j].v[w] - mean[j]) * inverse[j]);
                of_bias += d[j].v[w];
            }
            sums[w] = both(sums[w], {(f64)of_scale, (f64)of_bias});
        }
    });
    const Team team(ROW_LANES, 1);
    for (int w = 0; w < W; w++) {
        const Pair all = team.fold(sums[w], both);
        if (team.lane == 0 && column < c.columns) out[slice * c.columns + column + w] = all;
    }
}
KERNEL layer_columns(ColumnSums c, const f32* dy, const f32* x, const f32* means, const f32* inverses, Pair* out) {
    for (i64 b = block_index(); b < c.tiles() * c.slices; b += (i64)gridDim.x) {
        i64 tile, slice = divide(b, c.tiles(), tile);
        BY_PACKS(c.width(), is_aligned(dy) && is_aligned(x), layer_columns_of, c, tile, slice, dy, x, means, inverses, out);
    }
}
EXPORT(layer_columns)

KERNEL layer_sums(ColumnSums c, i64 lanes, const Pair* parts, f32* dscale, f32* dbias) {
    Team team(lanes, 1);
    for (i64 base = team.first(); base < c.columns; base += team.step()) {
        const i64 column = base + team.team;
        Pair sums = {0, 0};
        for (i64 s = team.lane; column < c.columns && s < c.slices; s += lanes)
            sums = both(sums, parts[s * c.columns + column]);
        sums = team.fold(sums, both);
        if (column >= c.columns || team.lane != 0) continue;
        if (dscale) dscale[column] = (f32)sums.a;
        if (dbias) dbias[column] = (f32)sums.b;
    }
}
EXPORT(layer_sums)

// Groups of channels: `size` elements each, `groups` of them in a sample; `per` channels share a factor.
struct Groups {
    i64 count, groups, size, inner, per, lanes;
    f64 epsilon;
};
KERNEL grouped(Groups g, const f32* x, const f32* scale, const f32* bias, f32* y) {
    Team team(g.lanes, 0);
    for (i64 base = team.first(); base < g.count; base += team.step()) {
        const i64 group = base + team.team;
        const bool mine = group < g.count;
        const f32* of = x + group * g.size;
        f64 sum = 0, squares = 0;
        for (i64 k = team.lane; mine && k < g.size; k += g.lanes) sum += (f64)of[k];
        const f64 about = team.sum(sum) / (f64)g.size;
        for (i64 k = team.lane; mine && k < g.size; k += g.lanes) {
            f64 off = (f64)of[k] - about;
            squares += off * off;
        }
        const f64 variance = team.sum(squares) / (f64)g.size;
        const f32 mean = (f32)about, inverse = (f32)(1.0 / sqrt(variance + g.epsilon));
        const i64 first = group % g.groups * (g.size / g.inner);
        for (i64 k = team.lane; mine && k < g.size; k += g.lanes) {
            i64 at = (first + k / g.inner) / g.per;
            y[group * g.size + k] = (of[k] - mean) * (inverse * scale[at]) + bias[at];
        }
    }
}
EXPORT(grouped)

// The k-th element of a row along the axis.
__device__ inline i64 of_row(const Rows& r, i64 row, i64 k) {
    i64 column, outer = divide(row, r.inner, column);
    return (outer * r.axis + k) * r.inner + column;
}

KERNEL softmax(Rows r, i64 lanes, i64 across, i64 log_of, const f32* x, f32* y) {
    Team team(lanes, across);
    for (i64 base = team.first(); base < r.outer * r.inner; base += team.step()) {
        const i64 row = base + team.team;
        const bool mine = row < r.outer * r.inner;
        const i64 first = mine ? of_row(r, row, 0) : 0;
        f32 most = -infinity();
        for (i64 k = team.lane; mine && k < r.axis; k += lanes) most = larger(most, x[first + k * r.inner]);
        most = team.fold(most, [](f32 a, f32 b) { return larger(a, b); });
        f64 sum = 0;
        for (i64 k = team.lane; mine && k < r.axis; k += lanes) sum += (f64)expf(x[first + k * r.inner] - most);
        sum = team.sum(sum);
        const f32 scale = (f32)(1.0 / sum), shift = (f32)log(sum);
        for (i64 k = team.lane; mine && k < r.axis; k += lanes) {
            f32 off = x[first + k * r.inner] - most;
            y[first + k * r.inner] = log_of ? off - shift : expf(off) * scale;
        }
    }
}
EXPORT(softmax)

KERNEL softmax_grad(Rows r, i64 lanes, i64 across, i64 log_of, const f32* dy, const f32* y, f32* dx) {
    Team team(lanes, across);
    for (i64 base = team.first(); base < r.outer * r.inner; base += team.step()) {
        const i64 row = base + team.team;
        const bool mine = row < r.outer * r.inner;
        const i64 first = mine ? of_row(r, row, 0) : 0;
        f64 sum = 0;
        for (i64 k = team.lane; mine && k < r.axis; k += lanes) {
            i64 at = first + k * r.inner;
            sum += (f64)(log_of ? dy[at] : dy[at] * y[at]);
        }
        const f32 total = (f32)team.sum(sum);
        for (i64 k = team.lane; mine && k < r.axis; k += lanes) {
            i64 at = first + k * r.inner;
            dx[at] = log_of ? dy[at] - expf(y[at]) * total : (dy[at] - total) * y[at];
        }
    }
}
EXPORT(softmax_grad)

// Scores of batch, classes and positions, and what becomes of the losses: nothing (0), their sum (1), their mean (2).
struct Loss {
    Rows rows;
    i64 total, has_ignored, ignored;
};
// A row's class, or -1 where it does not count. A label that is no class, and is not the ignored one, is noted.
template <class I> __device__ inline i64 class_of(const Loss& l, Step* step, u64 command, const I* labels, i64 row) {
    i64 label = (i64)labels[row];
    if (l.has_ignored && label == l.ignored) return -1;
    if (label >= 0 && label < l.rows.axis) return label;
    step->note(command, 0, label);
    return -1;
}

// One block: the loss of all slices, and the weights.
KERNEL loss_total(i64 slices, i64 total, const Pair* parts, f32* out, f64* weight_out) {
    Team team(BLOCK, 0);
    Pair sums = {0, 0};
    for (i64 s = team.lane; s < slices; s += BLOCK) sums = both(sums, parts[s]);
    sums = team.fold(sums, both);
    if (team.lane != 0) return;
    if (out) out[0] = (f32)(total == 2 ? sums.a / sums.b : sums.a);
    if (weight_out) weight_out[0] = sums.b;
}
EXPORT(loss_total)

#define LOSS(I)                                                                                    \
    KERNEL loss_each_##I(Loss l, Step* step, u64 command, const f32* log_of, const I* labels, const f32* weights, \
                         f32* out) {                                                               \
        EACH(row, l.rows.outer * l.rows.inner) {                                                   \
            i64 c = class_of(l, step, command, labels, row);                                       \
            out[row] = c < 0 ? 0 : -log_of[of_row(l.rows, row, c)] * (weights ? weights[c] : 1);   \
        }                                                                                          \
    }                                                                                              \
    EXPORT(loss_each_##I)                                                                          \
    /* Of each slice of so many labels their loss, and the weights of those that count. */         \
    KERNEL loss_slices_##I(Loss l, i64 length, Step* step, u64 command, const f32* log_of, const I* labels, \
                           const f32* weights, Pair* out) {                                        \
        const i64 rows = l.rows.outer * l.rows.inner, begin = block_index() * length;              \
        const i64 end = begin + length < rows ? begin + length : rows;                             \
        Pair sums = {0, 0};                                                                        \
        for (i64 first = begin + (i64)threadIdx.x; first < end; first += FLIGHT * BLOCK) {         \
            i64 of[FLIGHT];                                                                        \
            f32 w[FLIGHT], loss[FLIGHT];                                                           \
            _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) {                                   \
                const i64 row = first + j * BLOCK;                                                 \
                of[j] = row < end ? class_of(l, step, command, labels, row) : -1;                  \
            }                                                                                      \
            _Pragma("unroll") for (int j = 0; j < FLIGHT; j++) {                                   \
                const i64 row = first + j * BLOCK;                                                 \
                w[j] = of[j] < 0 ? 0 : weights ? weights[of[j]] : 1;                               \
                loss[j] = of[j] >= 0 && log_of ? log_of[of_row(l.rows, row, of[j])] : 0;           \
            }                                                                                      \
            _Pragma("unroll") for (int j = 0; j < FLIGHT; j++)                                     \
                if (of[j] >= 0) sums = both(sums, {(f64)(-loss[j] * w[j]), (f64)w[j]});            \
        }                                                                                          \
        sums = Team(BLOCK, 0).fold(sums, both);                                                    \
        if ((i64)threadIdx.x == 0) out[block_index()] = sums;                                           \
    }                                                                                              \
    EXPORT(loss_slices_##I)                                                                        \
    KERNEL loss_grad_##I(Loss l, Step* step, u64 command, const f32* dloss, const f32* log_of, const I* labels, \
                         const f32* weights, const f64* weight, f32* out) {                        \
        EACH(i, l.rows.outer * l.rows.axis * l.rows.inner) {                                       \
            i64 p, c, n = divide(divide(i, l.rows.inner, p), l.rows.axis, c), row = n * l.rows.inner + p; \
            i64 of = class_of(l, step, command, labels, row);                                      \
            f32 divisor = l.total == 2 ? (f32)weight[0] : 1;                                       \
            f32 d = of < 0 || divisor == 0 ? 0 : (l.total == 0 ? dloss[row] : dloss[0]) * (weights ? weights[of] : 1) / divisor; \
            out[i] = of < 0 ? 0 : expf(log_of[i]) * d - (c == of ? d : 0);                         \
        }                                                                                          \
    }                                                                                              \
    EXPORT(loss_grad_##I)
LOSS(i64) LOSS(i32)

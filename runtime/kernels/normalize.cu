// Normalizations, softmax and losses over classes, with their gradients. Statistics are summed in double precision.

struct Rows {
    i64 outer, axis, inner;
};

// Statistics and what follows from them, by channel.
struct Coefficients {
    f32 v[4];
};

// The k-th element of a channel.
__device__ inline i64 of_channel(const Rows& r, i64 channel, i64 k) {
    i64 at, sample = divide(k, r.inner, at);
    return (sample * r.axis + channel) * r.inner + at;
}

struct Batch {
    Rows rows;
    i64 lanes, training;
    f64 epsilon, momentum;
};

// Mean, variance and 1/σ of each channel, of the batch or as they run on; and what runs on.
KERNEL batch_statistics(Batch b, const f32* x, const f32* mean, const f32* variance, Coefficients* out, f32* new_mean,
                        f32* new_variance, f32* saved_mean, f32* saved_inverse) {
    const Rows r = b.rows;
    const i64 n = r.outer * r.inner;
    Team team(b.lanes, 0);
    for (i64 base = team.first(); base < r.axis; base += team.step()) {
        const i64 c = base + team.team;
        f64 sum = 0, squares = 0;
        for (i64 k = team.lane; b.training && c < r.axis && k < n; k += b.lanes) sum += (f64)x[of_channel(r, c, k)];
        const f64 about = team.sum(sum) / (f64)n;
        for (i64 k = team.lane; b.training && c < r.axis && k < n; k += b.lanes) {
            f64 off = (f64)x[of_channel(r, c, k)] - about;
            squares += off * off;
        }
        const f64 spread = team.sum(squares) / (f64)n;
        if (c >= r.axis || team.lane != 0) continue;
        const f64 m = b.training ? about : (f64)mean[c], v = b.training ? spread : (f64)variance[c];
        const f32 inverse = (f32)(1.0 / sqrt(v + b.epsilon));
        out[c] = Coefficients{{(f32)m, (f32)v, inverse, 0}};
        const f32 old_mean = mean[c], old_variance = variance[c];
        if (new_mean) new_mean[c] = b.training ? (f32)(b.momentum * old_mean + (1 - b.momentum) * (f32)m) : old_mean;
        if (new_variance)
            new_variance[c] = b.training ? (f32)(b.momentum * old_variance + (1 - b.momentum) * (f32)v) : old_variance;
        if (saved_mean) saved_mean[c] = (f32)m;
        if (saved_inverse) saved_inverse[c] = inverse;
    }
}
EXPORT(batch_statistics)

KERNEL batch_apply(Rows r, const f32* x, const f32* scale, const f32* bias, const Coefficients* of, f32* y) {
    EACH(i, r.outer * r.axis * r.inner) {
        i64 rest, c;
        divide(divide(i, r.inner, rest), r.axis, c);
        f32 factor = of[c].v[2] * scale[c];
        y[i] = x[i] * factor + (bias[c] - of[c].v[0] * factor);
    }
}
EXPORT(batch_apply)

// Σ dY · x̂ and Σ dY of each channel, and the coefficients of dX.
KERNEL batch_sums(Rows r, i64 lanes, const f32* dy, const f32* x, const f32* scale, const f32* mean, const f32* inverse,
                  Coefficients* out, f32* dscale, f32* dbias) {
    const i64 n = r.outer * r.inner;
    Team team(lanes, 0);
    for (i64 base = team.first(); base < r.axis; base += team.step()) {
        const i64 c = base + team.team;
        f64 total = 0, product = 0;
        for (i64 k = team.lane; c < r.axis && k < n; k += lanes) {
            i64 at = of_channel(r, c, k);
            total += (f64)dy[at];
            product += (f64)(dy[at] * (x[at] - mean[c]));
        }
        total = team.sum(total);
        product = team.sum(product);
        if (c >= r.axis || team.lane != 0) continue;
        // dX = scale/σ · (dY - mean(dY) - x̂ · mean(dY · x̂)), written as a · dY + b · X + d.
        const f64 s = (f64)inverse[c], a = (f64)scale[c] * s, of_scale = product * s;
        out[c] = Coefficients{{(f32)of_scale, (f32)total, (f32)(-a * s * of_scale / (f64)n), (f32)(-a * total / (f64)n)}};
        if (dscale) dscale[c] = (f32)of_scale;
        if (dbias) dbias[c] = (f32)total;
    }
}
EXPORT(batch_sums)

KERNEL batch_grad(Rows r, const f32* dy, const f32* x, const f32* scale, const f32* mean, const f32* inverse,
                  const Coefficients* of, f32* dx) {
    EACH(i, r.outer * r.axis * r.inner) {
        i64 rest, c;
        divide(divide(i, r.inner, rest), r.axis, c);
        dx[i] = (scale[c] * inverse[c] * dy[i] + of[c].v[3]) + of[c].v[2] * (x[i] - mean[c]);
    }
}
EXPORT(batch_grad)

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

// Sums over rows, by column.
KERNEL layer_sums(Rows r, i64 lanes, const f32* dy, const f32* x, const f32* means, const f32* inverses, f32* dscale,
                  f32* dbias) {
    Team team(lanes, 1);
    for (i64 base = team.first(); base < r.axis; base += team.step()) {
        const i64 column = base + team.team;
        f64 of_scale = 0, of_bias = 0;
        for (i64 row = team.lane; column < r.axis && row < r.outer; row += lanes) {
            i64 at = row * r.axis + column;
            of_scale += (f64)(dy[at] * ((x[at] - (means ? means[row] : 0)) * inverses[row]));
            of_bias += (f64)dy[at];
        }
        of_scale = team.sum(of_scale);
        of_bias = team.sum(of_bias);
        if (column >= r.axis || team.lane != 0) continue;
        if (dscale) dscale[column] = (f32)of_scale;
        if (dbias) dbias[column] = (f32)of_bias;
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
// A row's class, or -1 where it does not count.
template <class I> __device__ inline i64 class_of(const Loss& l, const I* labels, i64 row) {
    i64 label = (i64)labels[row];
    return label < 0 || label >= l.rows.axis || (l.has_ignored && label == l.ignored) ? -1 : label;
}

#define LOSS(I)                                                                                    \
    KERNEL loss_each_##I(Loss l, const f32* log_of, const I* labels, const f32* weights, f32* out) { \
        EACH(row, l.rows.outer * l.rows.inner) {                                                   \
            i64 c = class_of(l, labels, row);                                                      \
            out[row] = c < 0 ? 0 : -log_of[of_row(l.rows, row, c)] * (weights ? weights[c] : 1);   \
        }                                                                                          \
    }                                                                                              \
    EXPORT(loss_each_##I)                                                                          \
    /* One block: the loss of all labels, and the weights of those that count. */                  \
    KERNEL loss_total_##I(Loss l, const f32* log_of, const I* labels, const f32* weights, f32* out, f64* weight_out) { \
        Team team(BLOCK, 0);                                                                       \
        f64 sum = 0, weight = 0;                                                                   \
        for (i64 row = team.lane; row < l.rows.outer * l.rows.inner; row += BLOCK) {               \
            i64 c = class_of(l, labels, row);                                                      \
            if (c < 0) continue;                                                                   \
            f32 w = weights ? weights[c] : 1;                                                      \
            weight += (f64)w;                                                                      \
            if (log_of) sum += (f64)(-log_of[of_row(l.rows, row, c)] * w);                         \
        }                                                                                          \
        sum = team.sum(sum);                                                                       \
        weight = team.sum(weight);                                                                 \
        if (team.lane != 0) return;                                                                \
        if (out) out[0] = (f32)(l.total == 2 ? sum / weight : sum);                                \
        if (weight_out) weight_out[0] = weight;                                                    \
    }                                                                                              \
    EXPORT(loss_total_##I)                                                                         \
    KERNEL loss_grad_##I(Loss l, const f32* dloss, const f32* log_of, const I* labels, const f32* weights, \
                         const f64* weight, f32* out) {                                            \
        EACH(i, l.rows.outer * l.rows.axis * l.rows.inner) {                                       \
            i64 p, c, n = divide(divide(i, l.rows.inner, p), l.rows.axis, c), row = n * l.rows.inner + p; \
            i64 of = class_of(l, labels, row);                                                     \
            f32 divisor = l.total == 2 ? (f32)weight[0] : 1;                                       \
            f32 d = of < 0 || divisor == 0 ? 0 : (l.total == 0 ? dloss[row] : dloss[0]) * (weights ? weights[of] : 1) / divisor; \
            out[i] = of < 0 ? 0 : expf(log_of[i]) * d - (c == of ? d : 0);                         \
        }                                                                                          \
    }                                                                                              \
    EXPORT(loss_grad_##I)
LOSS(i64) LOSS(i32)

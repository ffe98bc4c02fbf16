// Optimizers and gradient accumulators: `float` state, overwritten where it lies.

struct Adam {
    i64 n, corrects, decays_first;
    f64 alpha, beta, epsilon, decay;
};

// 1 - base^step, where it is asked for.
__device__ inline f64 correction(f64 base, i64 step, i64 corrects) { return corrects ? 1.0 - pow(base, (f64)step) : 1.0; }

// The moments behind a gradient.
__device__ inline void moments(f32 alpha, f32 beta, f32 g, f32& m, f32& v) {
    m = alpha * m + (1 - alpha) * g;
    v = beta * v + (1 - beta) * g * g;
}

// What a step of AdamW is before it meets an element.
struct AdamW {
    f32 alpha, beta, epsilon, decay, by, rate_first, root, corrected;
    bool decays_first;
};
__device__ inline AdamW made_adamw(const Adam& a, f32 by, i64 step) {
    const f64 first = correction(a.alpha, step, a.corrects), second = correction(a.beta, step, a.corrects);
    const f32 corrected = (f32)((f64)by * sqrt(second) / first);
    return {(f32)a.alpha, (f32)a.beta, (f32)a.epsilon, (f32)a.decay, by, (f32)((f64)by / first), (f32)sqrt(second), corrected,
            a.decays_first != 0};
}
__device__ inline void each_adamw(const AdamW& a, f32 g, f32 x, f32 p, f32 q, f32& w, f32& m, f32& v) {
    moments(a.alpha, a.beta, g, p, q);
    if (a.decays_first) {
        x *= 1 - a.by * a.decay;
        x -= a.rate_first * (p / (sqrtf(q) / a.root + a.epsilon));
    } else {
        x -= a.corrected * (p / (sqrtf(q) + a.epsilon));
        x -= a.by * a.decay * x;
    }
    w = x, m = p, v = q;
}
ALONE(KERNEL adamw(Adam a, const f32* rate, const i64* step, const f32* g, const f32* w0, const f32* m0, const f32* v0,
                   f32* w, f32* m, f32* v) {
    const AdamW made = made_adamw(a, rate[0], step[0]);
    EACH(i, a.n) each_adamw(made, g[i], w0[i], m0[i], v0[i], w[i], m[i], v[i]);
}
EXPORT(adamw))

// Of com.microsoft: `decays_first` is 0 where the decay is part of the step. The step that it reads was counted on.
ALONE(KERNEL adam(Adam a, const f32* rate, const i64* step, const f32* g, const f32* w0, const f32* m0, const f32* v0, f32* w,
            f32* m, f32* v) {
    const f32 alpha = (f32)a.alpha, beta = (f32)a.beta, epsilon = (f32)a.epsilon, decay = (f32)a.decay, by = rate[0];
    const f32 first = (f32)correction(a.alpha, step[0], a.corrects), second = (f32)correction(a.beta, step[0], a.corrects);
    EACH(i, a.n) {
        f32 x = w0[i], p = m0[i], q = v0[i];
        moments(alpha, beta, g[i], p, q);
        f32 move = (p / first) / (sqrtf(q / second) + epsilon);
        if (a.decays_first) {
            x -= by * (move + decay * x);
        } else {
            x -= by * move;
            x -= by * decay * x;
        }
        w[i] = x;
        m[i] = p;
        v[i] = q;
    }
}
EXPORT(adam))

ALONE(KERNEL count_on(const i64* step, i64* out) {
    if (first_of_mine() == 0) out[0] = step[0] + 1;
}
EXPORT(count_on))

__device__ inline f32 each_sgd(const Parameters&, f32 rate, f32 w, f32 g) { return w - rate * g; }
ALONE(KERNEL sgd(i64 n, const f32* rate, const f32* w0, const f32* g, f32* w) {
    EACH(i, n) w[i] = each_sgd(Parameters{}, rate[0], w0[i], g[i]);
}
EXPORT(sgd))

// The buffer and what is added to it, or replaces it where `overwrite` says so.
__device__ inline f32 each_accumulate(const Parameters&, f32 buffer, f32 x, u8 overwrite = 0) {
    return overwrite != 0 ? x : buffer + x;
}
ALONE(KERNEL accumulate(i64 n, const f32* buffer, const f32* x, const u8* overwrite, f32* out) {
    const u8 replaces = overwrite ? overwrite[0] : 0;
    EACH(i, n) out[i] = each_accumulate(Parameters{}, buffer[i], x[i], replaces);
}
EXPORT(accumulate))

// ONNX's own optimizers.
struct Preview {
    i64 n, nesterov;
    f64 alpha, beta, epsilon, norm, decay, after;
};
ALONE(KERNEL preview_adagrad(Preview p, const f32* rate, const i64* count, const f32* g, const f32* x0, const f32* h0, f32* x, f32* h) {
    const f32 by = rate[0] / (1 + (f32)count[0] * (f32)p.decay), norm = (f32)p.norm, epsilon = (f32)p.epsilon;
    EACH(i, p.n) {
        f32 w = x0[i], d = g[i] + norm * w, s = h0[i] + d * d;
        h[i] = s;
        x[i] = w - by * d / (sqrtf(s) + epsilon);
    }
}
EXPORT(preview_adagrad))
ALONE(KERNEL preview_momentum(Preview p, const f32* rate, const i64* count, const f32* g, const f32* x0, const f32* v0, f32* x, f32* v) {
    const f32 alpha = (f32)p.alpha, beta = count[0] > 0 ? (f32)p.beta : 1, norm = (f32)p.norm;
    EACH(i, p.n) {
        f32 w = x0[i], d = g[i] + norm * w, s = alpha * v0[i] + beta * d;
        v[i] = s;
        x[i] = w - rate[0] * (p.nesterov ? d + alpha * s : s);
    }
}
EXPORT(preview_momentum))
ALONE(KERNEL preview_adam(Preview p, const f32* rate, const i64* count, const f32* g, const f32* x0, const f32* v0, const f32* h0,
                    f32* x, f32* v, f32* h) {
    const f32 alpha = (f32)p.alpha, beta = (f32)p.beta, norm = (f32)p.norm, epsilon = (f32)p.epsilon, after = (f32)p.after;
    const f64 first = correction(p.alpha, count[0], 1), second = correction(p.beta, count[0], 1);
    const f32 by = count[0] > 0 ? (f32)((f64)rate[0] * sqrt(second) / first) : rate[0];
    EACH(i, p.n) {
        f32 w = x0[i], m = v0[i], q = h0[i];
        moments(alpha, beta, g[i] + norm * w, m, q);
        w -= by * m / (sqrtf(q) + epsilon);
        x[i] = w * (1 - after);
        v[i] = m;
        h[i] = q;
    }
}
EXPORT(preview_adam))

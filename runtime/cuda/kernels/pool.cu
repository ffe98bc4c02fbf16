// Pooling and its gradients, and resizing.

// Where a plane of `size` elements begins. With channels last, whose number is given, its elements are that far apart; with channels
// first, for which the number is 0, they are neighbours.
__device__ inline i64 begin(i64 plane, i64 size, i64 channels) {
    if (!channels) return plane * size;
    i64 channel, sample = divide(plane, channels, channel);
    return sample * size * channels + channel;
}

struct Window {
    i64 planes, channels;
    i64 image[3], positions[3], kernel[3], stride[3], dilation[3], before[3], after[3];

    __device__ i64 pixels() const { return image[0] * image[1] * image[2]; }
    __device__ i64 places() const { return positions[0] * positions[1] * positions[2]; }
    __device__ i64 step() const { return channels ? channels : 1; }

    // The plane of the element at an index in memory, where planes have `size` elements, and its place in the plane.
    __device__ i64 plane(i64 index, i64 size, i64& place) const {
        if (!channels) return divide(index, size, place);
        i64 channel, sample = divide(divide(index, channels, channel), size, place);
        return sample * channels + channel;
    }
};

// What the window meets along one dimension: the first index, and how many that are a dilation apart.
struct Met {
    i64 first, count;
    __device__ Met() {}
    __device__ Met(const Window& w, int d, i64 at) {
        i64 start = at * w.stride[d] - w.before[d], step = w.dilation[d];
        i64 skipped = start >= 0 ? 0 : (-start + step - 1) / step;
        first = start + skipped * step;
        i64 room = w.image[d] - first;
        count = room <= 0 ? 0 : (room + step - 1) / step;
        i64 left = w.kernel[d] - skipped;
        if (left < count) count = left;
        if (count < 0) count = 0;
        if (first < 0) first = 0;
    }
};

__device__ inline void place_in(i64 index, const i64 (&dims)[3], i64 (&at)[3]) {
    at[0] = divide(divide(index, dims[2], at[2]), dims[1], at[1]);
}

// How many taps lie within the image and its padding along one dimension.
__device__ inline i64 counted(const Window& w, int d, i64 at) {
    i64 start = at * w.stride[d] - w.before[d], end = w.image[d] + w.after[d], count = 0;
    for (i64 tap = 0; tap < w.kernel[d]; tap++) count += start + tap * w.dilation[d] < end;
    return count;
}

// How many elements the average at a position counts.
__device__ inline f32 divisor(const Window& w, bool with_padding, const i64 (&at)[3]) {
    i64 count = 1;
    for (int d = 0; d < 3; d++) count *= with_padding ? counted(w, d, at[d]) : Met(w, d, at[d]).count;
    return (f32)count;
}

KERNEL max_pool(Window w, const f32* x, f32* out, i64* indices) {
    const i64 places = w.places(), pixels = w.pixels();
    EACH(i, w.planes * places) {
        i64 place, at[3], plane = w.plane(i, places, place), best = 0;
        place_in(place, w.positions, at);
        Met z(w, 0, at[0]), y(w, 1, at[1]), c(w, 2, at[2]);
        const f32* of = x + begin(plane, pixels, w.channels);
        f32 most = -infinity();
        bool found = false;
        for (i64 a = 0; a < z.count; a++)
            for (i64 b = 0; b < y.count; b++)
                for (i64 e = 0; e < c.count; e++) {
                    i64 row = (z.first + a * w.dilation[0]) * w.image[1] + y.first + b * w.dilation[1];
                    i64 index = row * w.image[2] + c.first + e * w.dilation[2];
                    f32 value = of[index * w.step()];
                    if (!found || value > most || (is_nan(value) && !is_nan(most))) {
                        most = value;
                        best = index;
                        found = true;
                    }
                }
        out[i] = most;
        if (indices) indices[i] = plane * pixels + best;
    }
}
EXPORT(max_pool)

// dY where the largest elements were. Each pixel asks the positions that met it, where the window is known.
KERNEL max_pool_grad(Window w, const f32* dy, const i64* indices, f32* dx) {
    const i64 places = w.places(), pixels = w.pixels();
    EACH(i, w.planes * pixels) {
        i64 index, at[3], plane = w.plane(i, pixels, index), low[3], high[3];
        const i64 first = begin(plane, places, w.channels);
        place_in(index, w.image, at);
        for (int d = 0; d < 3; d++) {
            i64 reach = at[d] + w.before[d], back = reach - (w.kernel[d] - 1) * w.dilation[d];
            low[d] = back <= 0 ? 0 : (back + w.stride[d] - 1) / w.stride[d];
            high[d] = reach / w.stride[d] < w.positions[d] - 1 ? reach / w.stride[d] : w.positions[d] - 1;
        }
        f32 sum = 0;
        for (i64 z = low[0]; z <= high[0]; z++)
            for (i64 y = low[1]; y <= high[1]; y++)
                for (i64 c = low[2]; c <= high[2]; c++) {
                    i64 place = first + ((z * w.positions[1] + y) * w.positions[2] + c) * w.step();
                    if (indices[place] == plane * pixels + index) sum += dy[place];
                }
        dx[i] = sum;
    }
}
EXPORT(max_pool_grad)

// The same without the window: a plane is one thread's.
KERNEL max_pool_grad_by_plane(i64 planes, i64 channels, i64 places, i64 pixels, const f32* dy, const i64* indices, f32* dx) {
    EACH(plane, planes) {
        const i64 step = channels ? channels : 1, from = begin(plane, places, channels);
        f32* to = dx + begin(plane, pixels, channels);
        for (i64 i = 0; i < pixels; i++) to[i * step] = 0;
        for (i64 i = 0; i < places; i++) {
            i64 at = indices[from + i * step] - plane * pixels;
            if (at >= 0 && at < pixels) to[at * step] += dy[from + i * step];
        }
    }
}
EXPORT(max_pool_grad_by_plane)

KERNEL average_pool(Window w, i64 with_padding, const f32* x, f32* out) {
    const i64 places = w.places(), pixels = w.pixels();
    EACH(i, w.planes * places) {
        i64 place, at[3], plane = w.plane(i, places, place);
        const f32* of = x + begin(plane, pixels, w.channels);
        place_in(place, w.positions, at);
        Met z(w, 0, at[0]), y(w, 1, at[1]), c(w, 2, at[2]);
        f32 sum = 0;
        for (i64 a = 0; a < z.count; a++)
            for (i64 b = 0; b < y.count; b++)
                for (i64 e = 0; e < c.count; e++) {
                    i64 row = (z.first + a * w.dilation[0]) * w.image[1] + y.first + b * w.dilation[1];
                    sum += of[(row * w.image[2] + c.first + e * w.dilation[2]) * w.step()];
                }
        out[i] = sum / divisor(w, with_padding != 0, at);
    }
}
EXPORT(average_pool)

KERNEL average_pool_grad(Window w, i64 with_padding, const f32* dy, f32* dx) {
    const i64 places = w.places(), pixels = w.pixels();
    EACH(i, w.planes * pixels) {
        i64 index, at[3], from[3], plane = w.plane(i, pixels, index), low[3], high[3];
        const f32* of = dy + begin(plane, places, w.channels);
        place_in(index, w.image, at);
        for (int d = 0; d < 3; d++) {
            i64 reach = at[d] + w.before[d], back = reach - (w.kernel[d] - 1) * w.dilation[d];
            low[d] = back <= 0 ? 0 : (back + w.stride[d] - 1) / w.stride[d];
            high[d] = reach / w.stride[d] < w.positions[d] - 1 ? reach / w.stride[d] : w.positions[d] - 1;
        }
        f32 sum = 0;
        for (from[0] = low[0]; from[0] <= high[0]; from[0]++)
            for (from[1] = low[1]; from[1] <= high[1]; from[1]++)
                for (from[2] = low[2]; from[2] <= high[2]; from[2]++) {
                    bool meets = true;
                    for (int d = 0; d < 3; d++)
                        meets = meets && (at[d] + w.before[d] - from[d] * w.stride[d]) % w.dilation[d] == 0;
                    i64 place = (from[0] * w.positions[1] + from[1]) * w.positions[2] + from[2];
                    if (meets) sum += of[place * w.step()] / divisor(w, with_padding != 0, from);
                }
        dx[i] = sum;
    }
}
EXPORT(average_pool_grad)

// The mean, or the largest element, of each plane.
KERNEL global_pool(i64 lanes, i64 planes, i64 pixels, i64 largest, const f32* x, f32* out) {
    Team team(lanes, 0);
    for (i64 base = team.first(); base < planes; base += team.step()) {
        const i64 plane = base + team.team;
        f64 sum = 0;
        f32 most = -infinity();
        for (i64 k = team.lane; plane < planes && k < pixels; k += lanes) {
            f32 value = x[plane * pixels + k];
            sum += (f64)value;
            most = larger(most, value);
        }
        sum = team.sum(sum);
        most = team.fold(most, [](f32 a, f32 b) { return larger(a, b); });
        if (plane < planes && team.lane == 0) out[plane] = largest ? most : (f32)(sum / (f64)pixels);
    }
}
EXPORT(global_pool)

// Along each dimension, what an element is made of: lists of (index, weight) in rows of `taps`, or of the other way round
// in rows of any length, which `first` bounds.
struct Resized {
    i64 n, rank, out[RANK], taps[RANK], lists[RANK], strides[RANK], sizes[2];
};
struct Tap {
    i64 index;
    f64 weight;
};

// The sum of all products of taps of the dimensions.
KERNEL resize(Resized r, const Tap* taps, const f32* x, f32* out) {
    EACH(i, r.n) {
        i64 rest, part = divide(i, r.sizes[1], rest), at[RANK], count = 1;
        for (i64 d = r.rank - 1; d >= 0; d--) rest = divide(rest, r.out[d], at[d]);
        for (i64 d = 0; d < r.rank; d++) count *= r.taps[d];
        f32 sum = 0;
        for (i64 t = 0; t < count; t++) {
            i64 left = t, from = part * r.sizes[0];
            f32 weights[RANK], weight = 1;
            for (i64 d = r.rank - 1; d >= 0; d--) {
                i64 tap;
                left = divide(left, r.taps[d], tap);
                const Tap& one = taps[r.lists[d] + at[d] * r.taps[d] + tap];
                from += one.index * r.strides[d];
                weights[d] = (f32)one.weight;
            }
            for (i64 d = 0; d < r.rank; d++) weight *= weights[d];
            sum += x[from] * weight;
        }
        out[i] = sum;
    }
}
EXPORT(resize)

// The adjoint: taps by index of the operand of the forward operator; `first` has where each one's list begins and ends.
KERNEL resize_grad(Resized r, const i64* first, const Tap* taps, const f32* dy, f32* dx) {
    EACH(i, r.n) {
        i64 rest, part = divide(i, r.sizes[1], rest), at[RANK], count = 1, begin[RANK], length[RANK];
        for (i64 d = r.rank - 1; d >= 0; d--) rest = divide(rest, r.out[d], at[d]);
        for (i64 d = 0; d < r.rank; d++) {
            begin[d] = first[r.lists[d] + at[d]];
            length[d] = first[r.lists[d] + at[d] + 1] - begin[d];
            count *= length[d];
        }
        f32 sum = 0;
        for (i64 t = 0; t < count; t++) {
            i64 left = t, from = part * r.sizes[0];
            f32 weights[RANK], weight = 1;
            for (i64 d = r.rank - 1; d >= 0; d--) {
                i64 tap;
                left = divide(left, length[d], tap);
                const Tap& one = taps[begin[d] + tap];
                from += one.index * r.strides[d];
                weights[d] = (f32)one.weight;
            }
            for (i64 d = 0; d < r.rank; d++) weight *= weights[d];
            sum += dy[from] * weight;
        }
        dx[i] = sum;
    }
}
EXPORT(resize_grad)

// Attention by tiles of 32 queries and 32 keys: scores are never in memory as a whole.
//
// A block adds up what it writes over tiles in order, and nothing else writes there: there is one order of every sum.

#define SIDE 32
#define SHARE (SIDE * SIDE / BLOCK)

// Neighbouring heads share the keys of a group. Strides of the mask are those along batch, heads, rows and keys.
struct Heads {
    i64 heads, groups, rows, keys, width, value_width, is_causal, mask[4];
    f64 scale;

    __device__ i64 sharing() const { return heads / groups; }
};

struct Operands {
    const f32 *dy, *q, *k, *v, *y, *maxima, *sums, *added;
    const u8* counts;
};

// What a block keeps: two factors of a product, the weights and gradients of a tile, and numbers of its rows.
struct Room {
    f32 a[SIDE][SIDE + 1], b[SIDE][SIDE + 1], weights[SIDE][SIDE + 1], slopes[SIDE][SIDE + 1];
    f64 parts[SIDE][BLOCK / SIDE], totals[SIDE];
    f32 most[SIDE], factors[SIDE], means[SIDE];
};

// A thread has the column `x` of rows `y`, `y + 8`, … of a tile.
struct Lane {
    i64 x, y;
    __device__ Lane() : x((i64)threadIdx.x % SIDE), y((i64)threadIdx.x / SIDE) {}
    __device__ i64 row(i64 i) const { return y + i * (BLOCK / SIDE); }
};

// A tile of rows of a matrix, `count` of which are there.
struct Part {
    const f32* at;
    i64 count, width;

    __device__ Part(const f32* data, i64 first, i64 end, i64 width)
        : at(data + first * width), count(end - first < SIDE ? end - first : SIDE), width(width) {}
    __device__ void load(f32 (&out)[SIDE][SIDE + 1], i64 column) const {
        Lane lane;
        for (int i = 0; i < SHARE; i++) {
            const i64 row = lane.row(i);
            out[row][lane.x] = row < count && column + lane.x < width ? at[row * width + column + lane.x] : 0;
        }
    }
};

// The products of all rows of the left with all rows of the right.
__device__ inline void multiply(Room& room, const Part& left, const Part& right, f32 (&sum)[SHARE]) {
    Lane lane;
    for (int i = 0; i < SHARE; i++) sum[i] = 0;
    for (i64 k = 0; k < left.width; k += SIDE) {
        __syncthreads();
        left.load(room.a, k);
        right.load(room.b, k);
        __syncthreads();
        for (int j = 0; j < SIDE; j++)
            for (int i = 0; i < SHARE; i++) sum[i] += room.a[lane.row(i)][j] * room.b[lane.x][j];
    }
}

// Gives `write` the product of a tile of weights with the rows on the right, by row and column; `turned` exchanges the rows and
// columns of the weights.
template <class Write>
__device__ inline void spread_rows(Room& room, const f32 (&weights)[SIDE][SIDE + 1], bool turned, const Part& right,
                                   const Write& write) {
    Lane lane;
    for (i64 column = 0; column < right.width; column += SIDE) {
        __syncthreads();
        right.load(room.b, column);
        __syncthreads();
        f32 sum[SHARE];
        for (int i = 0; i < SHARE; i++) sum[i] = 0;
        for (int j = 0; j < SIDE; j++)
            for (int i = 0; i < SHARE; i++)
                sum[i] += (turned ? weights[j][lane.row(i)] : weights[lane.row(i)][j]) * room.b[j][lane.x];
        if (column + lane.x < right.width)
            for (int i = 0; i < SHARE; i++) write(lane.row(i), column + lane.x, sum[i]);
    }
}

// Which head of which sample, and which tile of its rows or keys.
struct Place {
    i64 head, first;

    __device__ Place(i64 extent) {
        i64 tile;
        head = divide(block_index(), (extent + SIDE - 1) / SIDE, tile);
        first = tile * SIDE;
    }
};

// Writes the scores of a tile to the weights: -∞ where a key does not count, or is not there.
__device__ inline void scores(Room& room, const Heads& h, const Operands& o, i64 head, i64 row, i64 key) {
    Lane lane;
    f32 sum[SHARE];
    const i64 group = head / h.sharing();
    multiply(room, Part(o.q + head * h.rows * h.width, row, h.rows, h.width),
             Part(o.k + group * h.keys * h.width, key, h.keys, h.width), sum);
    i64 own;
    const i64 batch = divide(head, h.heads, own);
    for (int i = 0; i < SHARE; i++) {
        const i64 r = row + lane.row(i), k = key + lane.x;
        f32 score = (f32)h.scale * sum[i];
        if (r >= h.rows || k >= h.keys || (h.is_causal && k > r)) score = -infinity();
        else {
            const i64 at = batch * h.mask[0] + own * h.mask[1] + r * h.mask[2] + k * h.mask[3];
            if (o.counts && !o.counts[at]) score = -infinity();
            if (o.added) score += o.added[at];
        }
        room.weights[lane.row(i)][lane.x] = score;
    }
    __syncthreads();
}

// How many keys the rows of a tile see.
__device__ inline i64 last_key(const Heads& h, i64 row) {
    return h.is_causal && row + SIDE < h.keys ? row + SIDE : h.keys;
}

__device__ inline f32 shift_of(f32 most) { return most == -infinity() ? 0 : most; }
__device__ inline f32 inverse_of(f64 total) { return total == 0 ? 0 : (f32)(1 / total); }

// Calls `each` with every element of a tile of rows that is there, in the places that `spread_rows` writes.
template <class Each>
__device__ inline void over_tile(i64 rows, i64 width, const Each& each) {
    Lane lane;
    for (i64 column = lane.x; column < width; column += SIDE)
        for (int i = 0; i < SHARE; i++)
            if (lane.row(i) < rows) each(lane.row(i), column);
}

KERNEL attention(Heads h, Operands o, f32* y, f32* maxima, f32* sums) {
    __shared__ Room room;
    const Place place(h.rows);
    const i64 thread = (i64)threadIdx.x, head = place.head, group = head / h.sharing();
    const i64 first = head * h.rows + place.first, rows = h.rows - place.first < SIDE ? h.rows - place.first : SIDE;
    Lane lane;
    f32* out = y + first * h.value_width;
    if (thread < SIDE) room.most[thread] = -infinity(), room.totals[thread] = 0;
    if (y) over_tile(rows, h.value_width, [&](i64 r, i64 c) { out[r * h.value_width + c] = 0; });
    for (i64 key = 0; key < last_key(h, place.first); key += SIDE) {
        scores(room, h, o, head, place.first, key);
        if (thread < SIDE) {
            f32 most = room.most[thread];
            for (int j = 0; j < SIDE; j++) most = larger(most, room.weights[thread][j]);
            room.factors[thread] = exp_of(room.most[thread] - shift_of(most));
            room.most[thread] = most;
        }
        __syncthreads();
        for (int i = 0; i < SHARE; i++) {
            f32& weight = room.weights[lane.row(i)][lane.x];
            weight = exp_of(weight - shift_of(room.most[lane.row(i)]));
        }
        __syncthreads();
        if (thread < SIDE) {
            f64 sum = 0;
            for (int j = 0; j < SIDE; j++) sum += (f64)room.weights[thread][j];
            room.totals[thread] = room.totals[thread] * (f64)room.factors[thread] + sum;
        }
        if (y)
            spread_rows(room, room.weights, false, Part(o.v + group * h.keys * h.value_width, key, h.keys, h.value_width),
                        [&](i64 r, i64 c, f32 sum) {
                            if (r < rows) out[r * h.value_width + c] = out[r * h.value_width + c] * room.factors[r] + sum;
                        });
        __syncthreads();
    }
    __syncthreads();
    if (y)
        over_tile(rows, h.value_width, [&](i64 r, i64 c) { out[r * h.value_width + c] *= inverse_of(room.totals[r]); });
    if (maxima && thread < rows) maxima[first + thread] = room.most[thread];
    if (sums && thread < rows) sums[first + thread] = (f32)room.totals[thread];
}
EXPORT(attention)

// Writes the weights of a tile, and the gradients of its scores without the factor of the products. The rows' means are known.
__device__ inline void gradients(Room& room, const Heads& h, const Operands& o, i64 head, i64 row, i64 key) {
    Lane lane;
    f32 sum[SHARE];
    const i64 group = head / h.sharing(), first = head * h.rows + row;
    scores(room, h, o, head, row, key);
    multiply(room, Part(o.dy + head * h.rows * h.value_width, row, h.rows, h.value_width),
             Part(o.v + group * h.keys * h.value_width, key, h.keys, h.value_width), sum);
    for (int i = 0; i < SHARE; i++) {
        const i64 r = lane.row(i);
        const bool is_there = row + r < h.rows;
        f32& weight = room.weights[r][lane.x];
        weight = is_there ? exp_of(weight - shift_of(o.maxima[first + r])) * inverse_of((f64)o.sums[first + r]) : 0;
        room.slopes[r][lane.x] = is_there && key + lane.x < h.keys ? weight * (sum[i] - room.means[r]) : 0;
    }
    __syncthreads();
}

// By row of a tile, the sum of the products of results and their gradients.
__device__ inline void means(Room& room, const Heads& h, const Operands& o, i64 head, i64 row) {
    const i64 thread = (i64)threadIdx.x, lanes = BLOCK / SIDE, own = thread / lanes, part = thread % lanes;
    const i64 at = (head * h.rows + row + own) * h.value_width;
    f64 sum = 0;
    if (row + own < h.rows)
        for (i64 c = part; c < h.value_width; c += lanes) sum += (f64)(o.dy[at + c] * o.y[at + c]);
    __syncthreads();
    room.parts[own][part] = sum;
    __syncthreads();
    if (thread < SIDE) {
        sum = 0;
        for (int i = 0; i < lanes; i++) sum += room.parts[thread][i];
        room.means[thread] = (f32)sum;
    }
    __syncthreads();
}

KERNEL attention_queries(Heads h, Operands o, f32* dq) {
    __shared__ Room room;
    const Place place(h.rows);
    const i64 rows = h.rows - place.first < SIDE ? h.rows - place.first : SIDE;
    const f32* keys = o.k + place.head / h.sharing() * h.keys * h.width;
    f32* out = dq + (place.head * h.rows + place.first) * h.width;
    over_tile(rows, h.width, [&](i64 r, i64 c) { out[r * h.width + c] = 0; });
    means(room, h, o, place.head, place.first);
    for (i64 key = 0; key < last_key(h, place.first); key += SIDE) {
        gradients(room, h, o, place.head, place.first, key);
        spread_rows(room, room.slopes, false, Part(keys, key, h.keys, h.width), [&](i64 r, i64 c, f32 sum) {
            if (r < rows) out[r * h.width + c] += (f32)h.scale * sum;
        });
    }
}
EXPORT(attention_queries)

KERNEL attention_keys(Heads h, Operands o, f32* dk, f32* dv) {
    __shared__ Room room;
    const Place place(h.keys);
    const i64 count = h.keys - place.first < SIDE ? h.keys - place.first : SIDE, first = place.head * h.keys + place.first;
    f32 *key_out = dk + first * h.width, *value_out = dv + first * h.value_width;
    if (dk) over_tile(count, h.width, [&](i64 r, i64 c) { key_out[r * h.width + c] = 0; });
    if (dv) over_tile(count, h.value_width, [&](i64 r, i64 c) { value_out[r * h.value_width + c] = 0; });
    for (i64 head = place.head * h.sharing(); head < (place.head + 1) * h.sharing(); head++)
        for (i64 row = h.is_causal ? place.first : 0; row < h.rows; row += SIDE) {
            means(room, h, o, head, row);
            gradients(room, h, o, head, row, place.first);
            if (dv)
                spread_rows(room, room.weights, true,
                            Part(o.dy + head * h.rows * h.value_width, row, h.rows, h.value_width),
                            [&](i64 r, i64 c, f32 sum) {
                                if (r < count) value_out[r * h.value_width + c] += sum;
                            });
            if (dk)
                spread_rows(room, room.slopes, true, Part(o.q + head * h.rows * h.width, row, h.rows, h.width),
                            [&](i64 r, i64 c, f32 sum) {
                                if (r < count) key_out[r * h.width + c] += (f32)h.scale * sum;
                            });
        }
}
EXPORT(attention_keys)

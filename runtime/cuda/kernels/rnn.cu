// Recurrent layers: what stands between the products of one step and direction. Gates are rows of all gates of a sample.

// Adds the biases of W to all columns, and those of R to the first `both` ones.
KERNEL gate_bias(i64 rows, i64 width, i64 both, const f32* of_w, const f32* of_r, f32* gates) {
    EACH(i, rows * width) {
        i64 column;
        divide(i, width, column);
        f32 x = gates[i] + of_w[column];
        gates[i] = column < both ? x + of_r[column] : x;
    }
}
EXPORT(gate_bias)

// Gates i, o, f, c of an LSTM, and what becomes of cell and state.
KERNEL lstm_step(i64 batch, i64 hidden, f32* gates, f32* h, f32* c) {
    EACH(at, batch * hidden) {
        i64 i;
        f32* row = gates + divide(at, hidden, i) * 4 * hidden + i;
        f32 input = sigmoid(row[0]), output = sigmoid(row[hidden]), forget = sigmoid(row[2 * hidden]);
        f32 candidate = tanhf(row[3 * hidden]), cell = forget * c[at] + input * candidate;
        row[0] = input;
        row[hidden] = output;
        row[2 * hidden] = forget;
        row[3 * hidden] = candidate;
        c[at] = cell;
        h[at] = output * tanhf(cell);
    }
}
EXPORT(lstm_step)

// The gradients of the gates, and of the cell before. Where there is no cell before it is 0.
KERNEL lstm_step_grad(i64 batch, i64 hidden, const f32* gates, const f32* cells, const f32* before, const f32* dh, f32* dc,
                      f32* out) {
    EACH(at, batch * hidden) {
        i64 i, row = divide(at, hidden, i) * 4 * hidden + i;
        f32 input = gates[row], output = gates[row + hidden], forget = gates[row + 2 * hidden];
        f32 candidate = gates[row + 3 * hidden], t = tanhf(cells[at]);
        f32 d = dc[at] + dh[at] * output * (1 - t * t);
        out[row] = d * candidate * input * (1 - input);
        out[row + hidden] = dh[at] * t * output * (1 - output);
        out[row + 2 * hidden] = d * (before ? before[at] : 0) * forget * (1 - forget);
        out[row + 3 * hidden] = d * input * (1 - candidate * candidate);
        dc[at] = d * forget;
    }
}
EXPORT(lstm_step_grad)

// The gates z and r of a GRU; the state, reset, where it is asked for.
KERNEL gru_gates(i64 batch, i64 hidden, f32* gates, const f32* h, f32* reset) {
    EACH(at, batch * hidden) {
        i64 i;
        f32* row = gates + divide(at, hidden, i) * 3 * hidden + i;
        row[0] = sigmoid(row[0]);
        row[hidden] = sigmoid(row[hidden]);
        if (reset) reset[at] = row[hidden] * h[at];
    }
}
EXPORT(gru_gates)

// `candidate` is what the recurrent weights add; where the reset stands behind them, it and their bias come here.
KERNEL gru_step(i64 batch, i64 hidden, i64 resets_behind, const f32* bias, f32* gates, const f32* candidate, f32* h) {
    EACH(at, batch * hidden) {
        i64 i;
        f32* row = gates + divide(at, hidden, i) * 3 * hidden + i;
        f32 more = candidate[at];
        if (resets_behind) more = row[hidden] * (more + (bias ? bias[i] : 0));
        f32 z = row[0], state = tanhf(row[2 * hidden] + more);
        row[2 * hidden] = state;
        h[at] = (1 - z) * state + z * h[at];
    }
}
EXPORT(gru_step)

// The state, reset.
KERNEL gru_reset(i64 batch, i64 hidden, const f32* gates, const f32* h, f32* out) {
    EACH(at, batch * hidden) {
        i64 i, row = divide(at, hidden, i) * 3 * hidden + i;
        out[at] = gates[row + hidden] * (h ? h[at] : 0);
    }
}
EXPORT(gru_reset)

// The gradients of the gates, and the part of the state's before that goes around the gates. `product`: of the recurrent
// weights and the state before, where the reset stands behind them; `recurrent`: the gradients that their products see.
KERNEL gru_step_grad(i64 batch, i64 hidden, i64 resets_behind, const f32* bias, const f32* gates, const f32* before,
                     const f32* product, const f32* dh, f32* out, f32* recurrent, f32* next) {
    EACH(at, batch * hidden) {
        i64 i, row = divide(at, hidden, i) * 3 * hidden + i;
        f32 z = gates[row], reset = gates[row + hidden], candidate = gates[row + 2 * hidden];
        f32 state = before ? before[at] : 0, d = dh[at] * (1 - z) * (1 - candidate * candidate);
        recurrent[row] = out[row] = dh[at] * (state - candidate) * z * (1 - z);
        out[row + 2 * hidden] = d;
        recurrent[row + 2 * hidden] = resets_behind ? d * reset : d;
        next[at] = dh[at] * z;
        if (resets_behind) {
            f32 inner = product[at] + (bias ? bias[i] : 0);
            recurrent[row + hidden] = out[row + hidden] = d * inner * reset * (1 - reset);
        }
    }
}
EXPORT(gru_step_grad)

// The same of the reset before the weights: `product` is the gradient of the state, reset.
KERNEL gru_reset_grad(i64 batch, i64 hidden, const f32* gates, const f32* before, const f32* product, f32* out,
                      f32* recurrent, f32* next) {
    EACH(at, batch * hidden) {
        i64 i, row = divide(at, hidden, i) * 3 * hidden + i;
        f32 reset = gates[row + hidden];
        recurrent[row + hidden] = out[row + hidden] = product[at] * (before ? before[at] : 0) * reset * (1 - reset);
        next[at] += product[at] * reset;
    }
}
EXPORT(gru_reset_grad)

// The sum of rows, by column.
KERNEL row_sums(i64 lanes, i64 rows, i64 width, const f32* x, f32* out) {
    Team team(lanes, 1);
    for (i64 base = team.first(); base < width; base += team.step()) {
        const i64 column = base + team.team;
        f64 sum = 0;
        for (i64 row = team.lane; column < width && row < rows; row += lanes) sum += (f64)x[row * width + column];
        sum = team.sum(sum);
        if (column < width && team.lane == 0) out[column] = (f32)sum;
    }
}
EXPORT(row_sums)

//! Random operators: they draw the same numbers as lmsc's own runtimes, from the node's seed, the run's seed and the number of
//! the step.

use lmsc_ir::{Attr, ElementType, Float, TensorType};

use super::{Cx, Why};
use crate::stablehlo::writer::Val;

/// Words of `bits` bits.
fn words(bits: u32, dims: &[u64]) -> TensorType {
    TensorType::new(if bits == 32 { ElementType::Uint32 } else { ElementType::Uint64 }, dims)
}

impl Cx<'_> {
    /// An operation on integers and a number.
    fn with_word(&mut self, op: &str, x: &Val, number: u64) -> Val {
        let number = self.w.whole(number, &x.ty);
        self.w.elementwise(op, &[x, &number])
    }

    /// The lower and the upper half of words of 64 bits.
    fn halves(&mut self, x: &Val) -> [Val; 2] {
        let low = self.with_word("and", x, u32::MAX.into());
        let high = self.with_word("shift_right_logical", x, 32);
        [low, high].map(|half| self.w.convert(&half, ElementType::Uint32))
    }

    /// The seed of the node, combined with that of its attribute.
    fn seed(&self) -> Result<u64, Why> {
        match self.node.attribute("seed") {
            None => Ok(self.seed),
            Some(&Attr::Float(Float(seed))) => Ok(self.seed ^ u64::from(seed.to_bits())),
            Some(_) => Err("its attribute `seed` is no float".into()),
        }
    }
}

/// The seeds of the node and of the run, mixed as SplitMix64 mixes its state.
fn key(cx: &mut Cx<'_>, seed: &Val) -> Result<Val, Why> {
    let node = cx.seed()?;
    let mut z = cx.with_word("multiply", seed, 0x9e37_79b9_7f4a_7c15);
    z = cx.with_word("xor", &z, node);
    for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
        let moved = cx.with_word("shift_right_logical", &z, shift);
        z = cx.op("xor", &z, &moved);
        z = cx.with_word("multiply", &z, factor);
    }
    let moved = cx.with_word("shift_right_logical", &z, 31);
    Ok(cx.op("xor", &z, &moved))
}

/// Four words for each of `blocks` indices: Philox4x32-10.
///
/// # Source
/// Salmon, Moraes, Dror, Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3*, SC 2011.
fn philox(cx: &mut Cx<'_>, key: &Val, step: &Val, blocks: u64) -> [Val; 4] {
    let ty = words(32, &[blocks]);
    let [low, high] = cx.halves(step).map(|half| cx.w.broadcast(&half, &[blocks]));
    let mut c = [cx.w.iota(&ty, 0), cx.w.whole(0, &ty), low, high];
    let mut key = cx.halves(key);
    for _ in 0..10 {
        let wide = |cx: &mut Cx<'_>, word: &Val, factor| {
            let word = cx.w.convert(word, ElementType::Uint64);
            let product = cx.with_word("multiply", &word, factor);
            cx.halves(&product)
        };
        let [a_low, a_high] = wide(cx, &c[0], 0xd251_1f53);
        let [b_low, b_high] = wide(cx, &c[2], 0xcd9e_8d57);
        let mut mixed = |high: &Val, word: &Val, key: &Val| {
            let mixed = cx.op("xor", high, word);
            cx.op("xor", &mixed, key)
        };
        c = [mixed(&b_high, &c[1], &key[0]), b_low, mixed(&a_high, &c[3], &key[1]), a_low];
        key = [cx.with_word("add", &key[0], 0x9e37_79b9), cx.with_word("add", &key[1], 0xbb67_ae85)];
    }
    c
}

/// A number in [0, 1) of 24 bits for every element of `x`; and `x`, which delays the drawing until it is available.
fn uniform(cx: &mut Cx<'_>, x: &Val) -> Result<[Val; 2], Why> {
    let draws = cx.draws.clone().ok_or("the function has no seed")?;
    let [seed, step] = draws.map(|given| cx.w.bits(&given, ElementType::Uint64));
    let key = key(cx, &seed)?;
    let (mut key, mut x) = (key, x.clone());
    if cx.w.form.hoists() || cx.node.recomputes.is_some() {
        // Otherwise the compiler would merge the recomputed numbers with the original ones.
        let mut both = cx.w.barrier(&[&key, &x]);
        (x, key) = (both.pop().expect("two go in"), both.pop().expect("two go in"));
    }
    let count = x.ty.element_count().ok_or("it has too many elements")?;
    let blocks = count.div_ceil(4);
    if u32::try_from(blocks).is_err() {
        return Err("it has too many elements".into());
    }
    let words = philox(cx, &key, &step, blocks).map(|word| cx.w.reshape(&word, &[blocks, 1]));
    let drawn = cx.w.concatenate(&words.each_ref(), 1);
    let drawn = cx.w.reshape(&drawn, &[4 * blocks]);
    let drawn = cx.w.slice(&drawn, &[(0, count, 1)]);
    let drawn = cx.with_word("shift_right_logical", &drawn, 8);
    let drawn = cx.w.convert(&drawn, ElementType::Float);
    let drawn = cx.with("divide", &drawn, f64::from(1 << 24));
    Ok([cx.w.reshape(&drawn, x.dims()), x])
}

/// In training some elements are dropped, and the others scaled; otherwise all are kept.
pub(super) fn dropout(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let Some(training) = cx.optional(2) else {
        if let Some(ty) = cx.wanted(1) {
            let mask = cx.splat(1.0, &ty);
            cx.give(1, mask)?;
        }
        return cx.give(0, x);
    };
    let training = cx.w.reshape(&training, &[]);
    let ratio = match cx.optional(1) {
        Some(ratio) => cx.w.reshape(&ratio, &[]),
        None => cx.scalar(0.5, ElementType::Float),
    };
    let ratio = cx.w.convert(&ratio, ElementType::Float);
    let none = cx.scalar(0.0, ElementType::Float);
    let ratio = cx.w.select(&training, &ratio, &none);
    let [drawn, x] = uniform(cx, &x)?;
    let least = cx.w.broadcast(&ratio, x.dims());
    let mask = cx.w.compare("GE", &drawn, &least);
    let scale = scale(cx, &ratio, x.element());
    let scaled = cx.op("multiply", &x, &scale);
    let zeros = cx.splat(0.0, &x.ty);
    let y = cx.w.select(&mask, &scaled, &zeros);
    cx.give(0, y)?;
    cx.give_if_wanted(1, &mask)
}

/// `1 / (1 - ratio)`.
fn scale(cx: &mut Cx<'_>, ratio: &Val, element: ElementType) -> Val {
    let one = cx.scalar(1.0, ratio.element());
    let kept = cx.op("subtract", &one, ratio);
    let scale = cx.op("divide", &one, &kept);
    cx.w.convert(&scale, element)
}

/// `dY / (1 - ratio)` where the mask is true, else 0.
pub(super) fn dropout_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, mask) = (cx.operand(0)?, cx.operand(1)?);
    let ratio = match cx.optional(2) {
        Some(ratio) => cx.w.reshape(&ratio, &[]),
        None => cx.scalar(0.5, dy.element()),
    };
    let scale = scale(cx, &ratio, dy.element());
    let scaled = cx.op("multiply", &dy, &scale);
    let zeros = cx.splat(0.0, &dy.ty);
    let dx = cx.w.select(&mask, &scaled, &zeros);
    cx.give(0, dx)
}

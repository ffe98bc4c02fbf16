//! Elementwise operators and their gradients.

use super::Made;
use super::each::{self, Parameters};
use crate::element::{Number, Stored, dispatch};
use crate::kernel::{Io, Kernel};
use crate::math::Real;
use crate::meaning::{Broadcast, count};
use crate::spec::{Spec, SpecError, refuse};
use crate::vector::vectorized;

/// Defines constructors, one per operator: its operands, and the result's element as an expression of theirs.
///
/// `float` and `number` are the permitted element types; `-> bool` says that the result is a truth value; after a semicolon stand
/// the parameters that the attributes give.
macro_rules! elementwise {
    ($($(#[$doc:meta])* $kind:ident $name:ident($($x:ident),+ $(; $p:ident = $parameters:expr)?) $(-> $out:ident)? = $body:expr;)*) => { $(
        $(#[$doc])*
        pub(crate) fn $name(spec: &Spec<'_>) -> Made {
            const K: usize = [$(stringify!($x)),+].len();
            elementwise!(@each $kind [$($x),+] [$($p)?] [$($out)?] $body);
            let parameters: Parameters = elementwise!(@parameters spec $(, $parameters)?);
            dispatch!($kind spec.element(0)?, T => {
                each::kernel::<T, elementwise!(@stored T $($out)?), K>(spec, parameters, each::<<T as Stored>::Math>)
            })
        }
    )* };
    (@parameters $spec:ident) => { [0.0; 3] };
    (@parameters $spec:ident, $parameters:expr) => {{
        let read: fn(&Spec<'_>) -> Result<Parameters, SpecError> = $parameters;
        read($spec)?
    }};
    (@each float $x:tt $p:tt $out:tt $body:expr) => { elementwise!(@each Real, $x $p $out $body); };
    (@each number $x:tt $p:tt $out:tt $body:expr) => { elementwise!(@each Number, $x $p $out $body); };
    (@each $bound:ident, [$($x:ident),+] [$($p:ident)?] [$($out:ident)?] $body:expr) => {
        vectorized! {
            if M::IS_VECTORIZED;
            fn each<M: $bound>(x: [&[M]; K], _p: &Parameters, out: &mut [elementwise!(@out M $($out)?)]) {
                $(let $p = _p;)?
                let n = out.len();
                let [$($x),+] = x.map(|x| &x[..n]);
                for i in 0..n {
                    $(let $x = $x[i];)+
                    out[i] = $body;
                }
            }
        }
    };
    (@out $M:ident) => { $M };
    (@out $M:ident bool) => { u8 };
    (@stored $T:ident) => { $T };
    (@stored $T:ident bool) => { u8 };
}

/// The attribute `alpha`.
pub fn alpha(spec: &Spec<'_>) -> Result<Parameters, SpecError> {
    Ok([spec.float("alpha")?.into(), 0.0, 0.0])
}

/// Two attributes.
pub fn floats(spec: &Spec<'_>, names: [&str; 2]) -> Result<Parameters, SpecError> {
    Ok([spec.float(names[0])?.into(), spec.float(names[1])?.into(), 0.0])
}

/// x · Φ(x) (Hendrycks, Gimpel, *Gaussian Error Linear Units*, arXiv:1606.08415).
#[inline(always)]
fn gelu<M: Real>(x: M) -> M {
    x * x.normal().0
}

#[inline(always)]
fn gelu_slope<M: Real>(x: M) -> M {
    let (below, density) = x.normal();
    below + x * M::of(0.398_942_280_401_432_7) * density
}

const ROOT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
const CUBIC: f64 = 0.044_715;

/// The approximation of GELU by a hyperbolic tangent (section 2 of the same paper). (1 + tanh y) / 2 is the sigmoid of 2y, which
/// keeps its digits where y is negative.
#[inline(always)]
fn fast_gelu<M: Real>(x: M) -> M {
    x * twice_inner(x).sigmoid()
}

#[inline(always)]
fn twice_inner<M: Real>(x: M) -> M {
    x * (M::of(2.0 * ROOT_2_OVER_PI) + M::of(2.0 * ROOT_2_OVER_PI * CUBIC) * (x * x))
}

#[inline(always)]
fn fast_gelu_slope<M: Real>(x: M) -> M {
    let y = twice_inner(x);
    let e = (-y.magnitude()).exp();
    let larger = M::ONE / (M::ONE + e);
    let smaller = e * larger;
    let below = if y < M::ZERO { smaller } else { larger };
    let slope = M::of(2.0 * ROOT_2_OVER_PI) + M::of(6.0 * ROOT_2_OVER_PI * CUBIC) * (x * x);
    below + x * slope * (larger * smaller)
}

/// ln(1 + eˣ), without overflow.
#[inline(always)]
fn softplus<M: Real>(x: M) -> M {
    x.larger(M::ZERO) + (M::ONE + (-x.magnitude()).exp()).ln()
}

/// x to the power y; the most frequent exponents are multiplied out.
#[inline(always)]
fn power<M: Number>(x: M, y: f64) -> M {
    match y {
        2.0 => x.times(x),
        1.0 => x,
        3.0 => x.times(x).times(x),
        y => x.to_power(y),
    }
}

elementwise! {
    number abs(x) = x.magnitude();
    number neg(x) = M::ZERO.minus(x);
    number relu(x) = x.larger(M::ZERO);
    float exp(x) = x.exp();
    float ln(x) = x.ln();
    float root(x) = x.root();
    float reciprocal(x) = M::ONE / x;
    float sigmoid(x) = x.sigmoid();
    float tanh(x) = x.tanh();
    float erf(x) = x.erf();
    float floor(x) = M::of(x.to_f64().floor());
    float ceil(x) = M::of(x.to_f64().ceil());
    float round(x) = M::of(x.to_f64().round_ties_even());
    float sin(x) = M::of(x.to_f64().sin());
    float cos(x) = M::of(x.to_f64().cos());
    float tan(x) = M::of(x.to_f64().tan());
    float asin(x) = M::of(x.to_f64().asin());
    float acos(x) = M::of(x.to_f64().acos());
    float atan(x) = M::of(x.to_f64().atan());
    float sinh(x) = M::of(x.to_f64().sinh());
    float cosh(x) = M::of(x.to_f64().cosh());
    float asinh(x) = M::of(x.to_f64().asinh());
    float acosh(x) = M::of(x.to_f64().acosh());
    float atanh(x) = M::of(x.to_f64().atanh());
    number sign(x) = if x > M::ZERO { M::ONE } else if x < M::ZERO { M::ZERO.minus(M::ONE) } else { x };
    float softplus_of(x) = softplus(x);
    float softsign(x) = x / (M::ONE + x.magnitude());
    float mish(x) = x * softplus(x).tanh();
    float swish(x; p = alpha) = x * (M::of(p[0]) * x).sigmoid();
    float hard_swish(x) = x * (x * M::of(1.0 / 6.0) + M::of(0.5)).larger(M::ZERO).smaller(M::ONE);
    float hard_sigmoid(x; p = |s| floats(s, ["alpha", "beta"]))
        = (M::of(p[0]) * x + M::of(p[1])).larger(M::ZERO).smaller(M::ONE);
    float elu(x; p = alpha) = if x > M::ZERO { x } else { M::of(p[0]) * (x.exp() - M::ONE) };
    float celu(x; p = alpha)
        = x.larger(M::ZERO) + (M::of(p[0]) * ((x / M::of(p[0])).exp() - M::ONE)).smaller(M::ZERO);
    float selu(x; p = |s| floats(s, ["alpha", "gamma"]))
        = M::of(p[1]) * if x > M::ZERO { x } else { M::of(p[0]) * (x.exp() - M::ONE) };
    float leaky_relu(x; p = alpha) = if x >= M::ZERO { x } else { M::of(p[0]) * x };
    float thresholded_relu(x; p = alpha) = if x > M::of(p[0]) { x } else { M::ZERO };
    float exact_gelu(x) = gelu(x);
    float tanh_gelu(x) = fast_gelu(x);
    float quick_gelu(x; p = alpha) = x * (M::of(p[0]) * x).sigmoid();
    float bias_gelu(x, bias) = gelu(x + bias);
    float bias_fast_gelu(x, bias) = fast_gelu(x + bias);
    float is_nan(x) -> bool = u8::from(x.is_not_a_number());
    float is_inf(x; p = infinities) -> bool
        = u8::from((p[0] != 0.0 && x == M::LARGEST) || (p[1] != 0.0 && x == M::LEAST));

    number add(a, b) = a.plus(b);
    number sub(a, b) = a.minus(b);
    number mul(a, b) = a.times(b);
    number div(a, b) = a.over(b);
    number pow(a, b) = power(a, b.to_f64());
    float prelu(x, slope) = if x >= M::ZERO { x } else { slope * x };
    number remainder(a, b; p = |s| Ok([s.int("fmod")? as f64, 0.0, 0.0])) = modulo(a, b, p[0] != 0.0);
    number equal(a, b) -> bool = u8::from(a == b);
    number greater(a, b) -> bool = u8::from(a > b);
    number greater_or_equal(a, b) -> bool = u8::from(a >= b);
    number less(a, b) -> bool = u8::from(a < b);
    number less_or_equal(a, b) -> bool = u8::from(a <= b);

    number relu_grad(dy, x) = if x > M::ZERO { dy } else { M::ZERO };
    float leaky_relu_grad(dy, y; p = alpha) = if y >= M::ZERO { dy } else { M::of(p[0]) * dy };
    float sigmoid_grad(dy, y) = dy * y * (M::ONE - y);
    float tanh_grad(dy, y) = dy * (M::ONE - y * y);
    float sin_grad(dy, x) = dy * M::of(x.to_f64().cos());
    float gelu_grad(dy, x) = dy * gelu_slope(x);
    float fast_gelu_grad(dy, x) = dy * fast_gelu_slope(x);
    float quick_gelu_grad(dy, x; p = alpha) = {
        let s = (M::of(p[0]) * x).sigmoid();
        dy * (s + M::of(p[0]) * x * s * (M::ONE - s))
    };
    float bias_gelu_grad(dy, x, bias) = dy * gelu_slope(x + bias);
    float bias_fast_gelu_grad(dy, x, bias) = dy * fast_gelu_slope(x + bias);
}

/// `Mod`: the remainder with the sign of the divisor, or of the dividend if `fmod` is set.
#[inline(always)]
fn modulo<M: Number>(a: M, b: M, of_dividend: bool) -> M {
    let rest = a.rest(b);
    match rest == M::ZERO {
        _ if of_dividend => rest,
        true => rest.signed_as(b),
        false if (rest < M::ZERO) != (b < M::ZERO) => rest.plus(b),
        false => rest,
    }
}

/// Which infinities `IsInf` tells.
pub fn infinities(spec: &Spec<'_>) -> Result<Parameters, SpecError> {
    let detect = |name| spec.flag(name).map(|b| f64::from(u8::from(b)));
    Ok([detect("detect_positive")?, detect("detect_negative")?, 0.0])
}

/// `Gelu` of ONNX, exact or by the hyperbolic tangent.
pub(crate) fn onnx_gelu(spec: &Spec<'_>) -> Made {
    match &*spec.string("approximate")? {
        "none" => exact_gelu(spec),
        "tanh" => tanh_gelu(spec),
        other => refuse(format!("attribute `approximate` is `{other}`; expected `none` or `tanh`")),
    }
}

/// `FastGelu`, with or without a bias.
pub(crate) fn fast_gelu_with_bias(spec: &Spec<'_>) -> Made {
    if spec.has(1) { bias_fast_gelu(spec) } else { tanh_gelu(spec) }
}

/// `FastGeluGrad`: normally without a bias.
pub(crate) fn fast_gelu_gradient(spec: &Spec<'_>) -> Made {
    if spec.has(2) { bias_fast_gelu_grad(spec) } else { fast_gelu_grad(spec) }
}

macro_rules! folds {
    ($($name:ident($a:ident, $b:ident) = $body:expr;)*) => { $(
        pub(crate) fn $name(spec: &Spec<'_>) -> Made {
            vectorized! {
                if M::IS_VECTORIZED;
                fn step<M: Number>(sum: &mut [M], x: &[M]) {
                    for (sum, &$b) in sum.iter_mut().zip(x) {
                        let $a = *sum;
                        *sum = $body;
                    }
                }
            }
            dispatch!(number spec.element(0)?, T => each::fold::<T>(spec, step::<<T as Stored>::Math>, None))
        }
    )* };
}

folds! {
    sum(a, b) = a.plus(b);
    max(a, b) = a.larger(b);
    min(a, b) = a.smaller(b);
}

/// `Mean` of any number of operands.
pub(crate) fn mean(spec: &Spec<'_>) -> Made {
    vectorized! {
        if M::IS_VECTORIZED;
        fn step<M: Real>(sum: &mut [M], x: &[M]) {
            sum.iter_mut().zip(x).for_each(|(sum, &x)| *sum = *sum + x);
        }
    }
    fn finish<M: Real>(sum: &mut [M], count: usize) {
        sum.iter_mut().for_each(|sum| *sum = *sum / M::of(count as f64));
    }
    dispatch!(float spec.element(0)?, T => {
        each::fold::<T>(spec, step::<<T as Stored>::Math>, Some(finish::<<T as Stored>::Math>))
    })
}

macro_rules! logic {
    ($($name:ident($($x:ident),+) = $body:expr;)*) => { $(
        pub(crate) fn $name(spec: &Spec<'_>) -> Made {
            const K: usize = [$(stringify!($x)),+].len();
            fn each([$($x),+]: [&[u8]; K], _: &Parameters, out: &mut [u8]) {
                for i in 0..out.len() {
                    $(let $x = $x[i] != 0;)+
                    out[i] = u8::from($body);
                }
            }
            (0..K).try_for_each(|i| spec.expect(i, lmsc_ir::ElementType::Bool))?;
            each::kernel::<u8, u8, K>(spec, [0.0; 3], each)
        }
    )* };
}

logic! {
    not(a) = !a;
    and(a, b) = a & b;
    or(a, b) = a | b;
    xor(a, b) = a ^ b;
}

/// `Equal`, of truth values too.
pub(crate) fn equals(spec: &Spec<'_>) -> Made {
    fn each([a, b]: [&[u8]; 2], _: &Parameters, out: &mut [u8]) {
        out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = u8::from((*a != 0) == (*b != 0)));
    }
    match spec.element(0)? {
        lmsc_ir::ElementType::Bool => each::kernel::<u8, u8, 2>(spec, [0.0; 3], each),
        _ => equal(spec),
    }
}

/// The type of a `PRelu` slope of one element per channel, as it broadcasts: before version 7, it lay along axis 1 of the
/// operand.
pub(crate) fn slope_of_channels(spec: &Spec<'_>) -> Result<Option<lmsc_ir::Type>, SpecError> {
    let (x, slope) = (spec.tensor(0)?, spec.tensor(1)?);
    if !spec.op.domain().is_empty() || spec.opset >= 7 || spec.dims(1)?.iter().product::<usize>() == 1 {
        return Ok(None);
    }
    let rest = x.dims.len().saturating_sub(2);
    let dims: Vec<u64> = slope.dims.iter().copied().chain(std::iter::repeat_n(1, rest)).collect();
    Ok(Some(lmsc_ir::TensorType::new(slope.element, dims).into()))
}

/// Calls `make` with the `PRelu` in the form of newer versions.
pub fn with_slope<T>(
    spec: &Spec<'_>,
    make: impl Fn(&Spec<'_>) -> Result<T, SpecError>,
) -> Result<T, SpecError> {
    let Some(ty) = slope_of_channels(spec)? else { return make(spec) };
    let mut newer = spec.clone();
    newer.operands[1] = newer.operands[1].map(|operand| crate::spec::Operand { ty: &ty, ..operand });
    make(&newer)
}

/// The exponent of a `Pow` whose exponent and base have different types.
pub fn exponent(spec: &Spec<'_>) -> Result<f64, SpecError> {
    let exponent = match spec.element(1)? {
        lmsc_ir::ElementType::Float => {
            spec.constant_floats(1)?.map(|e| e.into_iter().map(f64::from).collect())
        }
        _ => spec.constants(1)?.map(|e| e.into_iter().map(|i| i as f64).collect()),
    };
    let exponent: Vec<f64> = exponent.unwrap_or_default();
    match exponent[..] {
        [exponent] => Ok(exponent),
        _ => refuse("exponents of another type than their base are not one constant"),
    }
}

/// `Pow`, whose exponent may have another type than its base.
pub(crate) fn power_of(spec: &Spec<'_>) -> Made {
    if spec.element(0)? == spec.element(1)? {
        return pow(spec);
    }
    if spec.is_in_place(1, 0) {
        return refuse("the exponent is to be overwritten by elements of another type");
    }
    let plan = Broadcast::new(&[spec.dims(0)?, spec.dims(1)?], &spec.result_dims(0)?)?;
    let in_place = spec.is_in_place(0, 0);
    each::check_in_place(&plan, &[in_place], true)?;
    let widen = dispatch!(number spec.element(1)?, E => Ok(widen::<E> as fn(&Io<'_>, &mut [f64])))?;
    let exponents = count(&spec.dims(1)?);
    dispatch!(number spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let exponents = &mut io.workspace::<f64>()[..exponents];
        widen(&io, exponents);
        let (x, exponents) = (io.get::<T>(0), &*exponents);
        each::parts(io.take::<T>(0), |start, out| {
            let mut room = [0.0; each::CHUNK];
            let mut bases = [<T as Stored>::read(bytemuck::Zeroable::zeroed()); each::CHUNK];
            for (i, out) in out.chunks_mut(each::CHUNK).enumerate() {
                let (start, n) = (start + i * each::CHUNK, out.len());
                let exponents = each::view::<f64>(&plan, 1, exponents, start, n, &mut room);
                if in_place {
                    out.iter_mut().zip(exponents).for_each(|(o, &e)| *o = T::write(power(o.read(), e)));
                } else {
                    let bases = each::view::<T>(&plan, 0, x, start, n, &mut bases);
                    let each = out.iter_mut().zip(bases).zip(exponents);
                    each.for_each(|((o, &x), &e)| *o = T::write(power(x, e)));
                }
            }
        });
    }).with_workspace::<f64>(exponents)))
}

/// The elements of operand 1.
fn widen<E: Stored<Math: Number>>(io: &Io<'_>, out: &mut [f64]) {
    out.iter_mut().zip(io.get::<E>(1)).for_each(|(o, e)| *o = e.read().to_f64());
}

/// The bounds of a `Clip`, as attributes or constant operands, if floats of 64 bits represent them exactly.
pub fn bounds(spec: &Spec<'_>) -> Result<Parameters, SpecError> {
    const MOST: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    let exact = |bound: f64| {
        if bound.abs() < MOST || spec.element(0)?.is_float() {
            Ok(bound)
        } else {
            refuse(format!("the bound {bound} is no integer of at most 53 bits"))
        }
    };
    let bound = |operand: usize, name: &str, default: f64| -> Result<f64, SpecError> {
        if spec.has(operand) {
            if spec.dims(operand)?.iter().product::<usize>() > 1 {
                return refuse(format!(
                    "operand {operand} is {}; expected one element",
                    spec.tensor(operand)?
                ));
            }
            return Ok(match spec.element(operand)? {
                lmsc_ir::ElementType::Float => {
                    spec.constant_floats(operand)?.and_then(|v| Some(f64::from(*v.first()?)))
                }
                _ => match spec.constants(operand)?.and_then(|v| v.first().copied()) {
                    Some(bound) => Some(exact(bound as f64)?),
                    None => None,
                },
            }
            .unwrap_or(default));
        }
        if spec.says(name) { Ok(spec.float(name)?.into()) } else { Ok(default) }
    };
    let most = largest(spec)?;
    Ok([bound(1, "min", -most)?, bound(2, "max", most)?, 0.0])
}

/// The bound of a `Clip` that has none: the largest float of the type, which replaces an infinity; no bound for integers.
fn largest(spec: &Spec<'_>) -> Result<f64, SpecError> {
    Ok(match spec.element(0)? {
        // Before version 11, bounds are attributes of type float.
        element if element.is_float() && spec.opset < 11 => f32::MAX.into(),
        lmsc_ir::ElementType::Float => f32::MAX.into(),
        lmsc_ir::ElementType::Double => f64::MAX,
        lmsc_ir::ElementType::Float16 => half::f16::MAX.into(),
        lmsc_ir::ElementType::Bfloat16 => half::bf16::MAX.into(),
        _ => f64::INFINITY,
    })
}

/// `Clip`, with bounds as attributes or as operands.
pub(crate) fn clip(spec: &Spec<'_>) -> Made {
    let element = spec.element(0)?;
    for bound in (1..3).filter(|&i| spec.has(i)) {
        spec.expect(bound, element)?;
        if count(&spec.dims(bound)?) > 1 {
            return refuse(format!("operand {bound} is {}; expected one element", spec.tensor(bound)?));
        }
    }
    let named = |name: &str| spec.says(name).then(|| spec.float(name).map(f64::from)).transpose();
    let most = Some(largest(spec)?).filter(|most| most.is_finite());
    let named = [named("min")?.or(most.map(|most| -most)), named("max")?.or(most)];
    dispatch!(number element, T => {
        let (plan, in_place) = each::plan::<T, T, 1>(spec)?;
        Ok(Kernel::new(move |mut io: Io<'_>| {
            let bound = |i: usize| {
                let given = io.get::<T>(1 + i).first().map(|bound| bound.read());
                given.or(named[i].map(<<T as Stored>::Math as Number>::of_f64))
            };
            let (low, high, x) = (bound(0), bound(1), io.get::<T>(0));
            each::parts(io.take::<T>(0), |start, out| {
                each::by_chunk::<T, T, 1>(&plan, in_place, [x], start, out, |[x], out| {
                    out.copy_from_slice(x);
                    if let Some(low) = low {
                        out.iter_mut().for_each(|o| *o = o.larger(low));
                    }
                    if let Some(high) = high {
                        out.iter_mut().for_each(|o| *o = o.smaller(high));
                    }
                });
            });
        }))
    })
}

/// `Where(condition, a, b)`.
pub(crate) fn select(spec: &Spec<'_>) -> Made {
    spec.expect(0, lmsc_ir::ElementType::Bool)?;
    spec.expect(2, spec.element(1)?)?;
    spec.expect_result(0, spec.element(1)?)?;
    let operands = [spec.dims(0)?, spec.dims(1)?, spec.dims(2)?];
    let plan = Broadcast::new(&operands, &spec.result_dims(0)?)?;
    let in_place = [0, 1, 2].map(|i| spec.is_in_place(i, 0));
    dispatch!(width spec.element(1)?, T => {
        each::check_in_place(&plan, &in_place, true)?;
        if in_place[0] {
            return refuse("the condition is to be overwritten");
        }
        Ok(Kernel::new(move |mut io: Io<'_>| {
            let (condition, a, b) = (io.get::<u8>(0), io.get::<T>(1), io.get::<T>(2));
            each::parts(io.take::<T>(0), |start, out| {
                let mut rooms = [[0; each::CHUNK]; 2];
                let mut flags = [0u8; each::CHUNK];
                for (i, out) in out.chunks_mut(each::CHUNK).enumerate() {
                    let (start, n) = (start + i * each::CHUNK, out.len());
                    let [for_a, for_b] = &mut rooms;
                    let flags = each::view(&plan, 0, condition, start, n, &mut flags);
                    let side = |operand: usize, elements, room| {
                        let view = || each::view::<T>(&plan, operand, elements, start, n, room);
                        (!in_place[operand]).then(view)
                    };
                    match (side(1, a, for_a), side(2, b, for_b)) {
                        (Some(a), Some(b)) => {
                            let each = out.iter_mut().zip(flags).zip(a.iter().zip(b));
                            each.for_each(|((o, &f), (&a, &b))| *o = if f != 0 { a } else { b });
                        }
                        (None, Some(b)) => {
                            let each = out.iter_mut().zip(flags).zip(b);
                            each.for_each(|((o, &f), &b)| *o = if f != 0 { *o } else { b });
                        }
                        (Some(a), None) => {
                            let each = out.iter_mut().zip(flags).zip(a);
                            each.for_each(|((o, &f), &a)| *o = if f != 0 { a } else { *o });
                        }
                        (None, None) => {}
                    }
                }
            });
        }))
    })
}

/// `Scale(x, scale)`: times the scale, or divided by it.
pub(crate) fn scale(spec: &Spec<'_>) -> Made {
    spec.expect_count(1, 1)?;
    spec.expect_like(0, 0)?;
    let down = spec.flag("scale_down")?;
    spec.expect_floats([0])?;
    let in_place = spec.is_in_place(0, 0);
    let apply = move |mut io: Io<'_>, scale: f32| {
        let (x, out) = (io.get::<f32>(0), io.take::<f32>(0));
        let by = |x: f32| if down { x / scale } else { x * scale };
        each::parts(out, |start, out| {
            if in_place {
                out.iter_mut().for_each(|o| *o = by(*o))
            } else {
                out.iter_mut().zip(&x[start..]).for_each(|(o, &x)| *o = by(x))
            }
        });
    };
    Ok(match spec.element(1)? {
        lmsc_ir::ElementType::Float => Kernel::new(move |io| {
            let s = io.get::<f32>(1)[0];
            apply(io, s)
        }),
        lmsc_ir::ElementType::Int64 => Kernel::new(move |io| {
            let s = io.get::<i64>(1)[0] as f32;
            apply(io, s)
        }),
        lmsc_ir::ElementType::Int32 => Kernel::new(move |io| {
            let s = io.get::<i32>(1)[0] as f32;
            apply(io, s)
        }),
        lmsc_ir::ElementType::Double => Kernel::new(move |io| {
            let s = io.get::<f64>(1)[0] as f32;
            apply(io, s)
        }),
        other => return refuse(format!("operand 1 is {other}; this kernel takes float, double or integers")),
    })
}

/// `DivGrad(dY, A, B)`: gradients of both operands of a quotient, summed where they were broadcast.
pub(crate) fn div_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let plan = Broadcast::new(&[spec.dims(1)?, spec.dims(2)?], &spec.dims(0)?)?;
    [0, 1].into_iter().filter(|&i| spec.wants(i)).try_for_each(|i| spec.expect_like(i, i + 1))?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (dy, a, b) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let (da, db) = (io.take::<f32>(0), io.take::<f32>(1));
        da.fill(0.0);
        db.fill(0.0);
        let mut in_a = [0; each::CHUNK];
        let mut in_b = [0; each::CHUNK];
        for start in (0..dy.len()).step_by(each::CHUNK) {
            let n = each::CHUNK.min(dy.len() - start);
            for (operand, places) in [&mut in_a, &mut in_b].into_iter().enumerate() {
                let mut at = 0;
                plan.walk(operand, start, n, |first, step, n| {
                    (0..n).for_each(|i| places[at + i] = first + i * step);
                    at += n;
                });
            }
            for (i, dy) in dy[start..start + n].iter().enumerate() {
                let (i, j) = (in_a[i], in_b[i]);
                if !da.is_empty() {
                    da[i] += dy / b[j];
                }
                if !db.is_empty() {
                    db[j] -= dy * a[i] / (b[j] * b[j]);
                }
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use lmsc_ir::{Graph, Storages};

    use super::*;
    use crate::vector::tests::each_form;
    use crate::{StepContext, prepare};

    /// The bits of an operator's result for the first `n` of some numbers, all of whose operands are these numbers.
    fn bits(op: &str, operands: usize, n: usize) -> Vec<u32> {
        let names = ["a", "b"][..operands].join(", ");
        let typed =
            ["a", "b"][..operands].iter().map(|x| format!("float[{n}] {x}")).collect::<Vec<_>>().join(", ");
        let text = format!("g ({typed}) => (float[{n}] y) {{ [n] float[{n}] y = {op}({names}) }}");
        let graph = Graph::parse(&text).unwrap();
        let spec = Spec::of(&graph, &Storages::of(&graph), graph.order()[0], |_| None);
        let x: Vec<f32> = (0..n).map(|i| (i as f32 - 40.0) * 0.173).collect();
        let mut y = vec![0.0_f32; n];
        let x: &[u8] = bytemuck::cast_slice(&x);
        let kernel = prepare(&spec).unwrap();
        kernel.run(
            Io::new(&[x, x][..operands], &mut [bytemuck::cast_slice_mut(&mut y)], &mut []),
            StepContext::default(),
        );
        y.into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn bits_depend_neither_on_vectors_nor_on_neighbours() {
        for op in [
            "Exp",
            "Log",
            "Tanh",
            "Erf",
            "Sigmoid",
            "Softplus",
            "Gelu",
            "com.microsoft.FastGelu",
            "Mul",
            "Add",
        ]
        .into_iter()
        .chain(["com.microsoft.GeluGrad", "com.microsoft.FastGeluGrad", "com.microsoft.SigmoidGrad"])
        {
            let operands = if op.ends_with("Grad") || op == "Mul" || op == "Add" { 2 } else { 1 };
            let expected = bits(op, operands, 83);
            for n in [1, 7, 15, 16, 33, 64, 83] {
                for (form, found) in each_form(|| bits(op, operands, n)) {
                    assert_eq!(found, expected[..n], "{op} of {n} elements, {form:?}");
                }
            }
        }
    }
}

//! Loops that are compiled several times: for the target's baseline, and for vectors of x86-64 processors that are detected at run
//! time.
//!
//! The compiler fuses no multiplication with an addition and reorders no sum, so all forms compute the same bits.

/// The vectors that a loop may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "other processors have the baseline only")
)]
pub(crate) enum Vectors {
    /// Those that every processor of the target has.
    Baseline,
    /// 256 bits: AVX2.
    Avx2,
    /// 512 bits: AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The widest vectors of this processor.
#[inline]
pub(crate) fn vectors() -> Vectors {
    #[cfg(test)]
    if let Some(forced) = tests::FORCED.get() {
        return forced;
    }
    #[cfg(target_arch = "x86_64")]
    {
        static WIDEST: std::sync::LazyLock<Vectors> = std::sync::LazyLock::new(|| {
            let has_512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match is_x86_feature_detected!("avx2") {
                true if has_512 => Vectors::Avx512,
                true => Vectors::Avx2,
                false => Vectors::Baseline,
            }
        });
        *WIDEST
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vectors::Baseline
}

/// Defines a function whose body is compiled for each of [`Vectors`], and which calls the best form. With `if CONDITION;` before
/// it, there are several forms only where the condition, a constant, holds.
///
/// The functions that the body calls must be inlined, or they use the baseline.
macro_rules! vectorized {
    ($(#[$doc:meta])* $vis:vis fn $($rest:tt)+) => {
        $crate::vector::vectorized! { if true; $(#[$doc])* $vis fn $($rest)+ }
    };
    (if $condition:expr; $(#[$doc:meta])* $vis:vis fn $name:ident $(<$T:ident: $bound:path>)? ($($x:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        $vis fn $name $(<$T: $bound>)? ($($x: $t),*) $(-> $r)? {
            #[inline(always)]
            fn body $(<$T: $bound>)? ($($x: $t),*) $(-> $r)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512 $(<$T: $bound>)? ($($x: $t),*) $(-> $r)? {
                    body($($x),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2 $(<$T: $bound>)? ($($x: $t),*) $(-> $r)? {
                    body($($x),*)
                }
                if $condition {
                    match $crate::vector::vectors() {
                        // SAFETY: the processor has AVX-512 F, BW, DQ and VL, the only demands of the function.
                        $crate::vector::Vectors::Avx512 => return unsafe { avx512($($x),*) },
                        // SAFETY: the processor has AVX2, the only demand of the function.
                        $crate::vector::Vectors::Avx2 => return unsafe { avx2($($x),*) },
                        $crate::vector::Vectors::Baseline => {}
                    }
                }
            }
            body($($x),*)
        }
    };
}

pub(crate) use vectorized;

/// Number of interleaved sums of a row.
pub(crate) const LANES: usize = 16;

/// All lanes as one, by halves.
#[inline(always)]
pub(crate) fn merged(mut lanes: [f64; LANES], merge: impl Fn(f64, f64) -> f64) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = merge(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The sums of `f` over rows of equal length, in lanes of double precision.
#[inline(always)]
pub(crate) fn sums<const K: usize, const R: usize>(
    rows: [&[f32]; K],
    f: impl Fn([f32; K]) -> [f32; R],
) -> [f64; R] {
    let mut sums = [[0.0f64; LANES]; R];
    let n = rows[0].len();
    let (chunks, rest) = (rows.map(|row| row[..n].as_chunks::<LANES>().0), n / LANES * LANES);
    for c in 0..n / LANES {
        let chunk = chunks.map(|chunks| &chunks[c]);
        for i in 0..LANES {
            let terms = f(chunk.map(|chunk| chunk[i]));
            for (sums, term) in sums.iter_mut().zip(terms) {
                sums[i] += f64::from(term);
            }
        }
    }
    for i in rest..n {
        let terms = f(rows.map(|row| row[i]));
        sums.iter_mut().zip(terms).for_each(|(sums, term)| sums[i - rest] += f64::from(term));
    }
    sums.map(|sums| merged(sums, |a, b| a + b))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static FORCED: Cell<Option<Vectors>> = const { Cell::new(None) };
    }

    /// The results of `f` with each of the vectors that this processor has.
    pub(crate) fn each_form<R>(f: impl Fn() -> R) -> Vec<(Vectors, R)> {
        FORCED.set(None);
        let all = match vectors() {
            Vectors::Avx512 => vec![Vectors::Baseline, Vectors::Avx2, Vectors::Avx512],
            Vectors::Avx2 => vec![Vectors::Baseline, Vectors::Avx2],
            Vectors::Baseline => vec![Vectors::Baseline],
        };
        let with = |vectors| {
            FORCED.set(Some(vectors));
            let result = f();
            FORCED.set(None);
            (vectors, result)
        };
        all.into_iter().map(with).collect()
    }

    #[test]
    fn sums_are_those_of_all_elements_in_every_form() {
        for n in [0, 1, 15, 16, 17, 100, 1000] {
            let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.25 - 3.0).collect();
            vectorized! {
                fn both(x: &[f32]) -> [f64; 2] {
                    sums([x, x], |[a, b]| [a, a * b])
                }
            }
            let exact = |f: fn(f64) -> f64| x.iter().map(|&x| f(x.into())).sum::<f64>();
            for (form, found) in each_form(|| both(&x)) {
                assert_eq!(found, [exact(|x| x), exact(|x| x * x)], "{n} elements, {form:?}");
            }
        }
    }
}

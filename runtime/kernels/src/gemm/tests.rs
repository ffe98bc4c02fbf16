use super::*;

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0).collect()
}

fn check(x: Extents, transposed: (bool, bool), into: Into) {
    let (a, b) = (numbers(x.m * x.k), numbers(x.k * x.n));
    let left = if transposed.0 { (1, x.m) } else { (x.k, 1) };
    let right = if transposed.1 { (x.k, 1) } else { (1, x.n) };
    let a = Matrix { data: &a, lane: left.0, k: left.1 };
    let b = Matrix { data: &b, lane: right.0, k: right.1 };
    let before = numbers(x.m * into.row);
    let mut expected = before.clone();
    for i in 0..x.m {
        for j in 0..x.n {
            let product = |k: usize| f64::from(a.data[i * a.lane + k * a.k] * b.data[j * b.lane + k * b.k]);
            let sum: f64 = (0..x.k).map(product).sum();
            let c = &mut expected[i * into.row + j];
            *c = if into.add { *c } else { 0.0 } + into.alpha * sum as f32;
        }
    }
    let mut one = before.clone();
    serial(x, &a, &b, &mut one, into, &mut vec![f32::NAN; x.serial()]);
    for (i, (found, expected)) in one.iter().zip(&expected).enumerate() {
        assert!(
            (found - expected).abs() <= 1e-5 * (x.k as f32).max(1.0),
            "{x:?} at {i}: {found}, {expected}"
        );
    }
    let mut all = before.clone();
    parallel(x, &a, &b, &mut all, into, &mut vec![f32::NAN; x.parallel()]);
    assert_eq!(one, all, "{x:?}");
    let mut room = vec![f32::NAN; Packed::len(x.m, x.k)];
    Packed::fill(&a, x.m, x.k, &mut room);
    let packed = Packed::of(&room, x.m);
    let mut again = before;
    serial(x, &packed, &b, &mut again, into, &mut vec![f32::NAN; x.serial()]);
    assert_eq!(one, again, "{x:?} packed");
}

#[test]
fn products_of_all_extents_are_those_of_the_definition() {
    for m in [0, 1, 7, 8, 9, 150] {
        for n in [0, 1, 31, 32, 33] {
            for k in [0, 1, 5, 16, 255, 256, 300] {
                let x = Extents { m, n, k };
                let transposed = (m % 2 == 0, k % 2 == 0);
                check(x, transposed, Into::dense(n));
            }
        }
    }
    check(Extents { m: 20, n: 1100, k: 30 }, (false, true), Into { row: 1103, alpha: 0.5, add: true });
    check(Extents { m: 300, n: 70, k: 520 }, (true, true), Into { row: 70, alpha: -2.0, add: true });
}

#[test]
fn all_tiles_compute_the_same() {
    let (a, b) = (numbers(50 * MR), numbers(50 * NR));
    let one = portable::tile(&a, &b);
    let mut tiles = vec![tile()];
    #[cfg(target_arch = "x86_64")]
    tiles.extend(x86::tiles());
    for tile in tiles {
        let mut other = [0.0; MR * NR];
        tile(&a, &b, Corner { c: &mut other, height: MR, width: NR, into: Into::dense(NR) });
        assert!(one.iter().zip(&other).all(|(x, y)| (x - y).abs() < 1e-4), "{one:?} {other:?}");
    }
}

#[test]
fn rows_side_by_side_are_all_there_beside_others() {
    fn check<const W: usize>(write: impl Fn(usize, usize, &mut [f32], &[f32])) {
        for (n, length) in [(1, 1), (3, 5), (7, 16), (8, 1), (8, 16), (8, 37)] {
            let rows = numbers(n * length);
            for beside in (0..=W - n).step_by(8) {
                let mut out = vec![f32::NAN; length * W];
                write(n, length, &mut out[beside..], &rows);
                for (at, &found) in out.iter().enumerate() {
                    let (k, lane) = (at / W, at % W);
                    let is_written = (beside..beside + n).contains(&lane);
                    let expected = if is_written { rows[(lane - beside) * length + k] } else { f32::NAN };
                    assert_eq!(found.to_bits(), expected.to_bits(), "{n} of {W} after {beside}: {k}, {lane}");
                }
            }
        }
    }
    fn best<const W: usize>(n: usize, length: usize, out: &mut [f32], rows: &[f32]) {
        transpose::<W>(n, length, out, |i| &rows[i * length..][..length]);
    }
    fn portable<const W: usize>(n: usize, length: usize, out: &mut [f32], rows: &[f32]) {
        portable::transpose::<W>(n, out, &|i| &rows[i * length..][..length]);
    }
    check::<MR>(best::<MR>);
    check::<NR>(best::<NR>);
    check::<MR>(portable::<MR>);
    check::<NR>(portable::<NR>);
}

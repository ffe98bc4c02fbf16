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
fn the_portable_tile_computes_the_same() {
    let (a, b) = (numbers(50 * MR), numbers(50 * NR));
    let (one, mut other) = (portable::tile(&a, &b), [0.0; MR * NR]);
    tile()(&a, &b, Corner { c: &mut other, height: MR, width: NR, into: Into::dense(NR) });
    assert!(one.iter().zip(&other).all(|(x, y)| (x - y).abs() < 1e-4), "{one:?} {other:?}");
}

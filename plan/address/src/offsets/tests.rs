use lmsc_ir::rng::{Rng, Source};

use super::*;

const CAPACITY: u64 = 1 << 20;

fn minimalloc(name: &str) -> Table {
    let path = format!("{}/../../testdata/offsets/{name}.{CAPACITY}.csv", env!("CARGO_MANIFEST_DIR"));
    Table::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn hard_instances_are_placed_at_their_capacity() {
    for name in ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"] {
        let buffers = minimalloc(name).buffers;
        let layout =
            place(&buffers, CAPACITY, Effort::percent(10)).unwrap_or_else(|no| panic!("{name}: {no}"));
        assert_eq!(check(&buffers, &layout, CAPACITY), Ok(layout.bytes), "{name}");
    }
}

#[test]
fn a_file_is_read_and_written() {
    let text = "id,lower,upper,size,alignment,offset\na,0,4,6,4,\nb,2,9,5,1,8\nb,2,6,3,1,13\n\nc,4,9,8,8,\n";
    let table = Table::parse(text).unwrap();
    assert_eq!(table.buffers[1].parts.len(), 2);
    let layout = place(&table.buffers, 16, Effort::percent(1)).unwrap();
    assert_eq!(check(&table.buffers, &layout, 16), Ok(16));
    let written = table.with_offsets(&layout);
    assert_eq!(
        written,
        "id,lower,upper,size,alignment,offset\na,0,4,6,4,0\nb,2,9,5,1,8\nb,2,6,3,1,13\nc,4,9,8,8,0\n"
    );
    let again = Table::parse(&written).unwrap();
    assert_eq!(place(&again.buffers, 16, Effort::percent(1)), Ok(layout));
}

#[test]
fn a_wrong_line_is_named() {
    let cases = [
        (
            "",
            "line 1: there is no column `id`; the first line names the columns, at least id,lower,upper,size",
        ),
        (
            "id,lower,upper\n",
            "line 1: there is no column `size`; the first line names the columns, at least id,lower,upper,size",
        ),
        ("id,lower,upper,size,id\n", "line 1: the column `id` is there twice"),
        ("id,lower,upper,size\n\na,0,1\n", "line 3: it has 3 fields; the first line has 4"),
        ("id,lower,upper,size\na,0,1,-1\n", "line 2: `size` is `-1`; it is a whole number, at least 0"),
        (
            "id,lower,upper,size,alignment\na,0,1,1,0\n",
            "line 2: `alignment` is `0`; it is a whole number, at least 1",
        ),
        (
            "id,lower,upper,size\na,2,1,1\n",
            "line 2: `upper` is 1, before `lower`, 2; a buffer is live from lower until before upper",
        ),
        (
            "id,lower,upper,size\na,0,1,1\nb,0,1,1\na,0,1,1\n",
            "line 4: the id `a` was there before; lines of one id are parts of one buffer and follow one another",
        ),
        (
            "id,lower,upper,size,offset\na,0,1,1,0\na,0,1,1,2\n",
            "line 3: `offset` contradicts the first line of `a`",
        ),
        (
            "id,lower,upper,size,alignment\na,0,1,1,2\na,0,1,1,1\n",
            "line 3: `alignment` contradicts the first line of `a`",
        ),
        (
            "id,lower,upper,size,alignment,offset\na,0,1,4,8,4\n",
            "line 2: `offset` is 4, which is no multiple of the `alignment`, 8",
        ),
        (
            "id,lower,upper,size\na,0,1,9223372036854775807\n",
            "line 2: sizes, alignments and offsets are together above 2^62",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(Table::parse(text).unwrap_err().to_string(), message);
    }
    let unknown = Table::parse("id,lower,uper,size\n").unwrap_err().to_string();
    assert!(unknown.starts_with("line 1: there is no meaning for a column `uper`"), "{unknown}");
}

#[test]
fn flaws_are_found() {
    let buffers =
        [Buffer::new(4, 0..2), Buffer::new(4, 1..3), Buffer { alignment: 4, ..Buffer::new(2, 5..6) }];
    let at = |addresses: [u64; 3]| check(&buffers, &Layout { addresses: addresses.into(), bytes: 8 }, 8);
    assert_eq!(at([0, 4, 4]), Ok(8));
    assert_eq!(at([0, 3, 0]), Err(LayoutFlaw::Overlap { one: 1, other: 0 }));
    assert_eq!(at([0, 5, 0]), Err(LayoutFlaw::Above { buffer: 1 }));
    assert_eq!(at([0, 4, 2]), Err(LayoutFlaw::Address { buffer: 2 }));
    let short = Layout { addresses: vec![0], bytes: 4 };
    assert_eq!(check(&buffers, &short, 8), Err(LayoutFlaw::Count { addresses: 1, buffers: 3 }));
}

#[test]
fn fixed_addresses_that_overlap_have_no_layout() {
    let at = |address| Buffer { fixed: Some(address), ..Buffer::new(4, 0..2) };
    let no = place(&[at(0), at(3)], 100, Effort::percent(1)).unwrap_err();
    assert_eq!((no.found, no.load), (None, 8));
}

/// Whether the buffers from the first unplaced one on fit, by trying every address.
fn brute_force(buffers: &[Buffer], capacity: u64, addresses: &mut Vec<u64>) -> bool {
    let Some(buffer) = buffers.get(addresses.len()) else { return true };
    (0..=capacity).step_by(buffer.alignment as usize).any(|address| {
        addresses.push(address);
        let some = &buffers[..addresses.len()];
        let layout = Layout { addresses: addresses.clone(), bytes: 0 };
        let found = check(some, &layout, capacity).is_ok() && brute_force(buffers, capacity, addresses);
        addresses.pop();
        found
    })
}

#[test]
fn a_no_is_a_proof() {
    let (mut proofs, mut gaps) = (0, 0);
    for seed in 0..1000 {
        let mut rng = Rng::new(seed);
        let buffer = |_| {
            let from = rng.below(6) as u64;
            let until = from + 1 + rng.below(4) as u64;
            Buffer { alignment: [1, 1, 2][rng.below(3)], ..Buffer::new(1 + rng.below(4) as u64, from..until) }
        };
        let mut buffers: Vec<Buffer> = (0..6).map(buffer).collect();
        if seed % 2 == 1 {
            // One that is always live.
            buffers[3] = Buffer::new(1 + seed / 2 % 4, 0..10);
        }
        let (load, _) = load(&buffers);
        for capacity in load..load + 4 {
            match place(&buffers, capacity, Effort::percent(1)) {
                Ok(layout) => {
                    assert_eq!(check(&buffers, &layout, capacity), Ok(layout.bytes), "seed {seed}");
                    break;
                }
                Err(no) => {
                    assert!(no.proven, "seed {seed}: {no}");
                    assert!(!brute_force(&buffers, capacity, &mut Vec::new()), "seed {seed}: {capacity}");
                    proofs += 1;
                    gaps += u32::from(capacity > load);
                }
            }
        }
    }
    assert!(proofs > 20 && gaps > 0, "{proofs} {gaps}");
}

#[test]
fn staircases_and_fixed_addresses_are_respected() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut buffers: Vec<Buffer> = Vec::new();
        for _ in 0..1 + rng.below(40) {
            let part = |rng: &mut Rng| {
                let from = rng.word() % 50;
                Part { bytes: rng.word() % 100, live: from..from + rng.word() % 20 }
            };
            let count = 1 + rng.below(3);
            let parts = (0..count).map(|_| part(&mut rng)).collect();
            buffers.push(Buffer { parts, alignment: 1 << rng.below(5), fixed: None });
        }
        let found = pack(&buffers, Effort::percent(1)).unwrap();
        assert_eq!(check(&buffers, &found, found.bytes), Ok(found.bytes), "seed {seed}");
        let some = rng.below(buffers.len());
        buffers[some].fixed = Some(found.addresses[some]);
        let fixed = pack(&buffers, Effort::percent(1)).unwrap();
        assert_eq!(check(&buffers, &fixed, fixed.bytes), Ok(fixed.bytes), "seed {seed}");
    }
}

#[test]
fn a_hundred_thousand_buffers_take_seconds() {
    // A training step: forward buffers are freed by backward in reverse order, with short-lived ones in between.
    let layers = 25_000u64;
    let mut buffers = Vec::new();
    for layer in 0..layers {
        let size = 1 + (layer * 7919) % 1000;
        buffers.push(Buffer::new(size, layer..2 * layers - layer));
        buffers.push(Buffer::new(size / 2 + 1, layer..layer + 2));
        buffers.push(Buffer::new(size / 3 + 1, 2 * layers - layer - 1..2 * layers - layer + 1));
        buffers.push(Buffer::new(size / 4 + 1, 2 * layers - layer - 1..2 * layers - layer));
    }
    let layout = pack(&buffers, Effort::percent(1)).unwrap();
    let (load, _) = load(&buffers);
    assert_eq!(check(&buffers, &layout, layout.bytes), Ok(layout.bytes));
    assert!(layout.bytes <= load + load / 100, "{} of {load}", layout.bytes);
}

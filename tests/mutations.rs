//! The equivalence check on real graphs: the rewritten model passes, and every kind of damage to it is noticed.

mod support;

use lmsc_ir::equiv;
use lmsc_ir::random::{Damage, Rng, damage};
use lmsc_passes::{PassCx, TFLMS, pass_named, pipeline, run_pipeline};
use support::models::{load, models};

#[test]
fn every_kind_of_damage_to_every_model_is_noticed() {
    for path in models() {
        let original = load(&path);
        let mut rewritten = original.clone();
        let passes: Vec<_> = pipeline(TFLMS).iter().filter_map(|name| pass_named(name)).collect();
        let cx = PassCx { tflms_fixed: true, ..PassCx::default() };
        run_pipeline(&mut rewritten, &passes, &cx, &mut |_, _, _| {}).unwrap();
        let proof = equiv::check(&original, &rewritten).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(proof.swaps > 0, "{}: nothing was swapped", path.display());

        let mut rng = Rng::new(11);
        let mut noticed = Vec::new();
        for &kind in Damage::ALL {
            // Damage that leaves the meaning, such as exchanging operands that are equal, is tried again.
            let difference = (0..4)
                .filter_map(|_| damage(&rewritten, kind, &mut rng))
                .find_map(|damaged| equiv::check(&original, &damaged).err());
            if let Some(difference) = difference {
                assert!(!difference.to_string().is_empty());
                noticed.push(kind);
            }
        }
        assert!(noticed.len() >= 15, "{}: only {noticed:?} were noticed", path.display());
    }
}

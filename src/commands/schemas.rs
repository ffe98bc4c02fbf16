//! The JSON Schemas of the answers, which docs/reference/schemas has for users. They are made from the types that write the answers.

use std::fs;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::{
    bench, check, compare, explain, fit, inspect, launches, offsets, passes, plan, run, survival, sweep,
    verify,
};
use crate::error::ErrorAnswer;
use crate::run::RunFacts;
use crate::targets::TargetList;

/// The fields of [`lmsc_plan::Floors`].
#[derive(JsonSchema)]
#[allow(dead_code, reason = "its schema is that of a type of another crate")]
pub(super) struct FloorFacts {
    /// If plans only swap whole tensors.
    whole_tensors: u64,
    /// If operators may also be recomputed.
    recomputation: u64,
    /// If ranges of tensors may also be copied separately.
    ranges: u64,
}

/// The schema of a type as it is written: fields that are left out where they have no value are optional.
fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The schema of each answer, by the name of the command; `compile` is the main one, `error` that of all.
fn schemas() -> [(&'static str, Schema); 17] {
    [
        ("bench", schema_of::<bench::Ranking>()),
        ("check", schema_of::<check::Verdict>()),
        ("compare", schema_of::<compare::Compared>()),
        ("compile", schema_of::<run::CompiledAndRun<'_>>()),
        ("error", schema_of::<ErrorAnswer<'_>>()),
        ("explain", schema_of::<explain::Story>()),
        ("fit", schema_of::<fit::Fit>()),
        ("inspect", schema_of::<inspect::Inspection>()),
        ("launches", schema_of::<launches::Calls<'_>>()),
        ("offsets", schema_of::<offsets::Answer<'_>>()),
        ("passes", schema_of::<passes::PassList>()),
        ("plan", schema_of::<plan::Answer>()),
        ("run", schema_of::<RunFacts>()),
        ("survival", schema_of::<survival::Survivors<'_>>()),
        ("sweep", schema_of::<sweep::Sweep>()),
        ("targets", schema_of::<TargetList>()),
        ("verify", schema_of::<verify::Verdict>()),
    ]
}

/// `INSTA_UPDATE=always`, which updates snapshots, writes the files anew.
#[test]
fn schemas_in_the_documentation_are_those_of_the_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/schemas");
    for (name, schema) in schemas() {
        let path = folder.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let known = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(known, text, "{}: INSTA_UPDATE=always cargo test writes it anew", path.display());
    }
}

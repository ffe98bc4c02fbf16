//! `lmsc passes`.

use lmsc_passes::{CallOption, Pass, Pipeline};
use serde::Serialize;

use crate::known::passes;

/// The table of passes, with their positions in the default pipeline and their options.
pub fn list_passes() -> String {
    let mut text = String::new();
    for pass in passes() {
        let place = default_place(pass).map_or("   ".to_owned(), |place| format!("{place}. "));
        text += &format!("{place}{:<27} {}\n", pass.name(), pass.summary());
        for CallOption { name, summary, default } in pass.options() {
            let set = format!("{{{name}={default}}}");
            text += &format!("     {set:<25} {summary}\n");
        }
    }
    text
}

/// The passes, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PassList {
    /// Version of this format.
    format: u32,
    passes: Vec<PassFacts>,
}

/// A pass.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PassFacts {
    name: &'static str,
    summary: &'static str,
    /// Its position in the default pipeline, from 1.
    place: Option<usize>,
    options: Vec<OptionFacts>,
}

/// An option of a pass.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OptionFacts {
    name: &'static str,
    summary: &'static str,
    default: String,
    /// The values that it takes, in words.
    takes: String,
}

/// The table of passes as JSON.
pub fn passes_as_json() -> String {
    let option = |option: &CallOption| {
        let (default, takes) = (option.default.to_string(), option.takes());
        OptionFacts { name: option.name, summary: option.summary, default, takes }
    };
    let json = |pass: &&dyn Pass| {
        let options = pass.options().iter().map(option).collect();
        PassFacts { name: pass.name(), summary: pass.summary(), place: default_place(*pass), options }
    };
    let passes = PassList { format: 1, passes: passes().iter().map(json).collect() };
    serde_json::to_string_pretty(&passes).expect("an answer is JSON") + "\n"
}

/// The position of the pass in the default pipeline, counted from 1.
fn default_place(pass: &dyn Pass) -> Option<usize> {
    let default = Pipeline::planned();
    default.passes().position(|other| other.name() == pass.name()).map(|index| index + 1)
}

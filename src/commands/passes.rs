//! `lmsc passes`.

use lmsc_passes::{CallOption, Pass, Pipeline, REGISTRY};

use crate::DEFAULT_PLANNER;

/// The table of passes, with their positions in the default pipeline and their options.
pub fn list_passes() -> String {
    let mut text = String::new();
    for pass in REGISTRY {
        let place = default_place(*pass).map_or("   ".to_owned(), |place| format!("{place}. "));
        text += &format!("{place}{:<27} {}\n", pass.name(), pass.summary());
        for CallOption { name, summary, default } in pass.options() {
            let set = format!("{{{name}={default}}}");
            text += &format!("     {set:<25} {summary}\n");
        }
    }
    text
}

/// The table of passes as JSON.
pub fn passes_as_json() -> String {
    let option = |option: &CallOption| {
        let (default, takes) = (option.default.to_string(), option.takes());
        serde_json::json!({ "name": option.name, "summary": option.summary, "default": default, "takes": takes })
    };
    let json = |pass: &&dyn Pass| {
        let options: Vec<_> = pass.options().iter().map(option).collect();
        let (name, summary, place) = (pass.name(), pass.summary(), default_place(*pass));
        serde_json::json!({ "name": name, "summary": summary, "place": place, "options": options })
    };
    let passes: Vec<_> = REGISTRY.iter().map(json).collect();
    format!("{:#}\n", serde_json::json!({ "format": 1, "passes": passes }))
}

/// The position of the pass in the default pipeline, counted from 1.
fn default_place(pass: &dyn Pass) -> Option<usize> {
    let default = Pipeline::of_planner(DEFAULT_PLANNER);
    default.passes().position(|other| other.name() == pass.name()).map(|index| index + 1)
}

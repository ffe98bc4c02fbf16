//! The experiments of the papers, redone without a GPU.
//!
//! ```console
//! $ cargo run --release --example papers
//! $ cargo run --release --example papers -- opt dqn
//! ```
//!
//! writes `bench/papers/<experiment>.md`, `.csv` and the plots. Times are those of the cost model, budgets are
//! limits, and nothing depends on the machine that runs it: the files of a second run are the same.
//! `bench/papers/README.md` compares the results with those of the papers.

mod dqn;
mod networks;
mod ooc;
mod opt;
mod others;
mod plot;
#[path = "../../tests/support/stochastic.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod stochastic;
mod table;
mod tflms;
mod work;

use std::path::Path;

use plot::Plot;
use table::Table;
use work::Scale;

/// The result of an experiment.
struct Page {
    /// Stem of its files' names.
    name: &'static str,
    title: &'static str,
    /// Description of the experiment.
    about: &'static str,
    tables: Vec<Table>,
    plots: Vec<Plot>,
    /// Every case, for programs.
    cases: Table,
}

type Experiment = fn(Scale) -> Page;

const EXPERIMENTS: &[(&str, Experiment)] = &[
    ("opt", opt::run),
    ("tflms", tflms::run),
    ("ooc", ooc::run),
    ("dqn", dqn::run),
    ("others", others::run),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let unknown = asked.iter().find(|name| !EXPERIMENTS.iter().any(|(known, _)| known == name));
    if let Some(name) = unknown {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        let message = format!("there is no experiment `{name}`; there are {}", known.join(", "));
        work::say(&message);
        std::process::exit(2);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/papers");
    for (name, run) in EXPERIMENTS {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            work::say(name);
            write(&folder, &run(Scale::Full));
        }
    }
}

/// Writes the page, its table for programs and its plots.
fn write(folder: &Path, page: &Page) {
    for (file, text) in files(page) {
        std::fs::write(folder.join(file), text).expect("bench/papers can be written");
    }
}

fn files(page: &Page) -> Vec<(String, String)> {
    let mut text = format!("# {}\n\n{}\n", page.title, page.about);
    page.tables.iter().for_each(|table| text += &format!("\n{}", table.markdown()));
    let plot_name = |plot: &Plot| format!("{}-{}.svg", page.name, plot.name);
    for plot in &page.plots {
        text += &format!("\n![{}]({})\n", plot.title, plot_name(plot));
    }
    text += &format!("\nEvery case: [{0}.csv]({0}.csv).\n", page.name);
    let mut files =
        vec![(format!("{}.md", page.name), text), (format!("{}.csv", page.name), page.cases.csv())];
    files.extend(page.plots.iter().map(|plot| (plot_name(plot), plot.svg())));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_every_experiment_comes_to_the_same_twice() {
        for (name, run) in EXPERIMENTS {
            let page = run(Scale::Smoke);
            assert_eq!(page.name, *name);
            assert!(page.cases.rows.len() > 1 && !page.tables.is_empty(), "{name}");
            assert_eq!(files(&page), files(&run(Scale::Smoke)), "{name}");
        }
    }
}

//! Engines that were recorded from cuDNN, as text.

use std::collections::BTreeMap;

use super::{Card, ConvolutionQuery, EngineChoice};

/// Engines that were recorded from the library.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The library's version.
    pub version: String,
    /// By convolution and card.
    answers: BTreeMap<(String, String), Vec<EngineChoice>>,
}

/// The recorded engines.
pub fn recorded() -> &'static Recorded {
    static READ: std::sync::OnceLock<Recorded> = std::sync::OnceLock::new();
    READ.get_or_init(|| Recorded::parse(include_str!("../../engines/recorded.txt")).unwrap_or_default())
}

impl Recorded {
    /// An empty table of a version of the library.
    pub fn new(version: String) -> Recorded {
        Recorded { version, answers: BTreeMap::new() }
    }

    /// Adds an answer.
    pub fn add(&mut self, of: &ConvolutionQuery, card: &Card, choices: Vec<EngineChoice>) {
        self.answers.insert((of.key(), card.name.to_owned()), choices);
    }

    /// The answer for a card; none if the table does not have the convolution.
    pub fn choices(&self, of: &ConvolutionQuery, card: &str) -> Option<Vec<EngineChoice>> {
        self.answers.get(&(of.key(), card.to_owned())).cloned()
    }

    /// The table as text: engines with their parameters, numbered; then each convolution, with a line for all cards that
    /// have the same answer.
    pub fn text(&self) -> String {
        let engine = |it: &EngineChoice| (it.engine, it.tensor_cores, it.knobs.clone());
        let mut engines: Vec<_> = self.answers.values().flatten().map(engine).collect();
        engines.sort();
        engines.dedup();
        let mut out = format!("cudnn {}\n", self.version);
        for (number, tensor_cores, knobs) in &engines {
            let kind = if *tensor_cores { "tensor" } else { "plain" };
            let knobs: String = knobs.iter().map(|(knob, value)| format!(" {knob}={value}")).collect();
            out += &format!("engine {number} {kind}{knobs}\n");
        }
        let mut by_key: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
        for ((key, card), choices) in &self.answers {
            let index = |it: &EngineChoice| engines.binary_search(&engine(it)).unwrap_or(usize::MAX);
            let answer: String =
                choices.iter().map(|it| format!(" {}:{}", index(it), it.workspace)).collect();
            by_key.entry(key).or_default().entry(answer).or_default().push(card);
        }
        for (key, answers) in by_key {
            out += &format!("{key}\n");
            for (answer, cards) in answers {
                out += &format!("= {}{answer}\n", cards.join(","));
            }
        }
        out
    }

    /// The table of a text; none if it is not one.
    pub fn parse(text: &str) -> Option<Recorded> {
        let mut lines = text.lines();
        let mut table = Recorded::new(lines.next()?.strip_prefix("cudnn ")?.to_owned());
        let (mut engines, mut key) = (Vec::new(), None);
        for line in lines {
            if let Some(engine) = line.strip_prefix("engine ") {
                let mut words = engine.split(' ');
                let (engine, tensor_cores) = (words.next()?.parse().ok()?, words.next()? == "tensor");
                let knob = |word: &str| {
                    let (knob, value) = word.split_once('=')?;
                    Some((knob.parse().ok()?, value.parse().ok()?))
                };
                let knobs = words.map(knob).collect::<Option<_>>()?;
                engines.push(EngineChoice { engine, knobs, tensor_cores, workspace: 0 });
            } else if let Some(answer) = line.strip_prefix("= ") {
                let mut words = answer.split(' ');
                let cards = words.next()?;
                let choice = |word: &str| {
                    let (index, workspace) = word.split_once(':')?;
                    let engine = engines.get(index.parse::<usize>().ok()?)?;
                    Some(EngineChoice { workspace: workspace.parse().ok()?, ..engine.clone() })
                };
                let choices: Vec<EngineChoice> = words.map(choice).collect::<Option<_>>()?;
                for card in cards.split(',') {
                    let key: &String = key.as_ref()?;
                    table.answers.insert((key.clone(), card.to_owned()), choices.clone());
                }
            } else {
                key = Some(line.to_owned());
            }
        }
        Some(table)
    }
}

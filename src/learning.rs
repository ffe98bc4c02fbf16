//! How the planner `dqn` learns, as the command line says it: weights in files, and a bar while it lasts.

use std::path::Path;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};
use lmsc_plan::planners::dqn::{Episode, Learning, MATRICES, Weights};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::Error;
use crate::cli::ParameterArgs;
use crate::emit::write_atomically;

/// The weights that the call gives, if it does.
pub(crate) fn weights(args: &ParameterArgs) -> Result<Option<Weights>, Error> {
    args.weights.as_deref().map(read).transpose()
}

/// How the call wants it learned, from these weights.
pub(crate) fn learning<'a>(args: &ParameterArgs, weights: Option<&'a Weights>) -> Learning<'a> {
    let default = Learning::default();
    Learning {
        episodes: args.episodes.unwrap_or(default.episodes),
        seed: args.seed.unwrap_or(default.seed),
        weights,
        ..default
    }
}

/// The weights of a safetensors file.
fn read(path: &Path) -> Result<Weights, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::reading(path, &e))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| Error::in_file(path, format!("no file of the format safetensors: {e}")))?;
    let mut numbers = Vec::with_capacity(Weights::COUNT);
    for (name, shape) in MATRICES {
        let view = file.tensor(name).ok().filter(|v| v.dtype() == Dtype::F64 && v.shape() == shape);
        let view = view.ok_or_else(|| {
            let [inputs, outputs] = shape;
            let message = format!("there is no `{name}` of type F64 and shape [{inputs},{outputs}]");
            Error::in_file(path, message).with_help("give a file that --save-weights has written")
        })?;
        let chunks = view.data().chunks_exact(8);
        numbers.extend(chunks.map(|b| f64::from_le_bytes(b.try_into().expect("chunks have eight bytes"))));
    }
    Weights::new(numbers).ok_or_else(|| Error::in_file(path, "a weight is no number, or infinite"))
}

/// Writes the weights as a safetensors file.
pub(crate) fn write(path: &Path, weights: &Weights) -> Result<(), Error> {
    let bytes: Vec<u8> = weights.numbers().iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut begin = 0;
    let mut views = Vec::with_capacity(MATRICES.len());
    for (name, shape) in MATRICES {
        let end = begin + 8 * shape.iter().product::<usize>();
        let view = TensorView::new(Dtype::F64, shape.to_vec(), &bytes[begin..end])
            .map_err(|e| Error::Ours(format!("weights: {e}")))?;
        views.push((name, view));
        begin = end;
    }
    let file = safetensors::serialize(views, None).map_err(|e| Error::in_file(path, e))?;
    write_atomically(path, |w| w.write_all(&file))
}

/// Shows the best plan so far while episodes are played, and keeps the weights of the last.
pub(crate) struct Listener {
    compute_nanos: u64,
    bar: ProgressBar,
    last: Mutex<Option<Weights>>,
}

impl Listener {
    pub(crate) fn new(compute_nanos: u64) -> Listener {
        // Hidden where standard error is no terminal.
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("episode {pos}/{len} {wide_bar} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Listener { compute_nanos, bar, last: Mutex::new(None) }
    }

    pub(crate) fn hear(&self, episode: &Episode) {
        let percent = |nanos: u64| 100.0 * nanos as f64 / self.compute_nanos.max(1) as f64;
        self.bar.set_length(episode.of.into());
        self.bar.set_position(episode.number.into());
        let (best, this) = (percent(episode.best_nanos), percent(episode.overhead_nanos));
        self.bar.set_message(format!("best +{best:.2} %, this +{this:.2} %"));
        *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some(episode.weights.clone());
    }

    /// The weights after the last episode that was heard of.
    pub(crate) fn weights(&self) -> Option<Weights> {
        self.bar.finish_and_clear();
        self.last.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

//! Trains the planner `dqn` for the command line: reads and writes weights, and shows progress.

use std::path::Path;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};
#[cfg(feature = "papers")]
use lmsc_papers::dqn::MATRICES;
use lmsc_plan::planners::Episode;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::cli::args::WeightArgs;
use crate::files::write_atomically;
use crate::{Code, Error};

/// No planner of this build learns.
#[cfg(not(feature = "papers"))]
const MATRICES: [(&str, [usize; 2]); 0] = [];

/// The weights in the file of `--weights`, if the call has that option.
pub(crate) fn weights(args: &WeightArgs) -> Result<Option<Vec<f64>>, Error> {
    args.weights.as_deref().map(read).transpose()
}

/// The weights of a safetensors file.
fn read(path: &Path) -> Result<Vec<f64>, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::reading(path, &e))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| {
        Error::in_file(Code::Malformed, path, format!("no file of the format safetensors: {e}"))
    })?;
    let mut numbers = Vec::new();
    for (name, shape) in MATRICES {
        let view = file.tensor(name).ok().filter(|v| v.dtype() == Dtype::F64 && v.shape() == shape);
        let view = view.ok_or_else(|| {
            let [inputs, outputs] = shape;
            let message = format!("there is no `{name}` of type F64 and shape [{inputs},{outputs}]");
            Error::in_file(Code::Malformed, path, message)
                .with_help("give a file that --save-weights has written")
        })?;
        let chunks = view.data().chunks_exact(8);
        numbers.extend(chunks.map(|b| f64::from_le_bytes(b.try_into().expect("chunks have eight bytes"))));
    }
    if numbers.iter().all(|number: &f64| number.is_finite()) {
        Ok(numbers)
    } else {
        Err(Error::in_file(Code::Malformed, path, "a weight is no number, or infinite"))
    }
}

/// Writes the weights as a safetensors file.
pub(crate) fn write(path: &Path, weights: &[f64]) -> Result<(), Error> {
    let bytes: Vec<u8> = weights.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut begin = 0;
    let mut views = Vec::with_capacity(MATRICES.len());
    for (name, shape) in MATRICES {
        let end = begin + 8 * shape.iter().product::<usize>();
        let view = TensorView::new(Dtype::F64, shape.to_vec(), &bytes[begin..end])
            .map_err(|e| Error::ours(format!("weights: {e}")))?;
        views.push((name, view));
        begin = end;
    }
    let file = safetensors::serialize(views, None).map_err(|e| Error::in_file(Code::Malformed, path, e))?;
    write_atomically(path, |w| w.write_all(&file))
}

/// Shows the best plan so far during training, and keeps the weights of the last episode.
pub(crate) struct Listener {
    compute_nanos: u64,
    bar: ProgressBar,
    last: Mutex<Option<Vec<f64>>>,
}

impl Listener {
    pub(crate) fn new(compute_nanos: u64) -> Listener {
        // indicatif hides the bar if standard error is not a terminal.
        Listener::with(compute_nanos, ProgressBar::no_length())
    }

    fn with(compute_nanos: u64, bar: ProgressBar) -> Listener {
        let style = ProgressStyle::with_template("episode {pos}/{len} {wide_bar} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Listener { compute_nanos, bar, last: Mutex::new(None) }
    }

    pub(crate) fn hear(&self, episode: &Episode) {
        let percent = |nanos: u64| 100.0 * nanos as f64 / self.compute_nanos.max(1) as f64;
        self.bar.set_length(episode.of.into());
        self.bar.set_position(episode.number.into());
        let (best, this) = (percent(episode.best_nanos), percent(episode.overhead_nanos));
        self.bar.set_message(format!("best overhead so far +{best:.2} %, this episode +{this:.2} %"));
        *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some(episode.weights.to_vec());
    }

    /// The weights after the last episode that was reported.
    pub(crate) fn weights(&self) -> Option<Vec<f64>> {
        self.bar.finish_and_clear();
        self.last.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

#[cfg(all(test, feature = "papers"))]
mod tests {
    use std::io;
    use std::sync::Arc;

    use indicatif::{ProgressDrawTarget, TermLike};
    use lmsc_papers::dqn::{self, Learning};
    use lmsc_plan::planners::Request;

    use super::*;

    /// A terminal that records its output.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\n")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_tells_the_best_overhead_so_far() {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/traces/kmeans.jsonl");
        let instance = lmsc_plan::instance::Instance::parse(&std::fs::read_to_string(trace).unwrap());
        let problem = instance.unwrap().problem;
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let bar = ProgressBar::with_draw_target(None, target);
        let listener = Listener::with(problem.compute_nanos(), bar);
        let reported = Mutex::new(Vec::new());
        let watch = |episode: &Episode| {
            listener.hear(episode);
            listener.bar.force_draw();
            let percent = |nanos: u64| 100.0 * nanos as f64 / problem.compute_nanos() as f64;
            let (best, this) = (percent(episode.best_nanos), percent(episode.overhead_nanos));
            reported.lock().unwrap().push((best, this));
        };
        let learning = Learning { episodes: 6, watch: Some(&watch), ..Learning::default() };
        let request = Request { recompute: true, ..Request::new(&problem, 118 << 20) };
        dqn::plan(&request, &learning).unwrap();
        let reported = reported.into_inner().unwrap();
        assert_eq!(reported.len(), 6);
        let mut least = f64::INFINITY;
        let screen = screen.0.lock().unwrap().clone();
        for (at, (best, this)) in reported.iter().enumerate() {
            least = least.min(*this);
            let end = format!("best overhead so far +{least:.2} %, this episode +{this:.2} %");
            let is_of =
                |line: &str| line.starts_with(&format!("episode {}/6 ", at + 1)) && line.contains(&end);
            assert!(screen.lines().any(is_of), "{end}\n{screen}");
            assert_eq!(least, *best);
        }
        assert!(listener.weights().is_some());
    }
}

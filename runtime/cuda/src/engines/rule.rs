//! One engine for each convolution of a step, chosen before the step is planned.
//!
//! The floor of a step is the largest sum of one node's tensors and of the workspace that it needs in any case: no plan needs
//! less memory. The rule gives each convolution the fastest engine whose workspace fits beside its tensors below the floor. So no
//! engine raises the smallest budget, and the choice depends on the node and the floor alone: it is the same in every plan of the
//! step, and without a plan.
//!
//! A program carries the choice as the size of each workspace: the fastest engine that fits it is the chosen one again, since
//! engines that come before need more than the rule allows.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use lmsc_ir::{Bytes, Graph, NodeId, Storages};

use super::{Card, ConvolutionQuery, EngineChoice, EngineLibrary, choose, chosen, recorded};
use crate::driver::Gpu;
use crate::precision::Precision;
use crate::recipe::{Call, Convolution, Recipe};

/// Why no engine does a convolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEngine {
    /// There is neither a library to ask, nor a recorded answer.
    #[error("the engines of this card are not known")]
    Unknown,
    /// The library refuses the convolution, or a plan for it.
    #[error("{0}")]
    Refused(String),
    /// No engine qualifies.
    #[error("the library has no deterministic engine for one")]
    None,
    /// All engines need more workspace than there is.
    #[error("one needs {least} bytes of workspace, and has {room}")]
    Room {
        /// The fewest bytes that an engine needs.
        least: u64,
        /// The bytes that there are.
        room: u64,
    },
}

/// The engines that convolve in a step, as a file states them and a session has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepEngines {
    /// The version of cuDNN.
    pub version: String,
    /// The name of the precision to which factors may be rounded.
    pub precision: String,
    /// By node with convolutions, the engine of each as [`EngineChoice::text`] has it; an own kernel is empty.
    pub by_node: BTreeMap<String, Vec<String>>,
}

impl StepEngines {
    /// Number of convolutions of a node that both have, and of those whose engines differ.
    pub fn compared(&self, other: &StepEngines) -> [usize; 2] {
        let both = self.by_node.iter().filter_map(|(node, ours)| Some((ours, other.by_node.get(node)?)));
        both.fold([0, 0], |[all, different], (ours, theirs)| {
            let differing = ours.iter().zip(theirs).filter(|(a, b)| a != b).count();
            [all + ours.len().min(theirs.len()), different + differing]
        })
    }
}

/// The answers about a convolution.
type Answer = Result<Vec<EngineChoice>, NoEngine>;

/// The engines of a card's cuDNN, for products of one precision.
#[derive(Debug)]
pub struct Engines {
    card: Option<Card>,
    precision: Precision,
    /// The library that is asked, opened when the first convolution is met; none if it cannot be used, or is not to be.
    library: OnceLock<Option<EngineLibrary>>,
    /// Answers so far, by the convolution's key in tables.
    answers: Mutex<BTreeMap<String, Answer>>,
}

/// The bytes that a node's calls need.
struct Need {
    /// The recipe without its calls.
    frame: Recipe,
    /// Its convolutions.
    convolutions: Vec<Convolution<()>>,
}

impl Need {
    fn of(mut recipe: Recipe) -> Need {
        let convolution = |call: &Call| match call {
            Call::Convolution { library: Some(it), .. } => Some(Convolution::clone(it).map(|_| ())),
            _ => None,
        };
        let convolutions = recipe.calls.iter().filter_map(convolution).collect();
        (recipe.calls, recipe.constants) = (Vec::new(), Vec::new());
        Need { frame: recipe, convolutions }
    }
}

impl Engines {
    /// The engines of a card: by the library if it is found, otherwise as they were recorded.
    pub fn of_card(card: Option<Card>, precision: Precision) -> Engines {
        Engines { card, precision, library: OnceLock::new(), answers: Mutex::default() }
    }

    /// The recorded engines of a card, whether or not the library is found.
    pub fn recorded(card: Option<Card>, precision: Precision) -> Engines {
        Engines { card, precision, library: None.into(), answers: Mutex::default() }
    }

    /// No engines: own kernels convolve.
    pub fn none() -> Engines {
        Engines::recorded(None, Precision::F32)
    }

    /// The engines of the device of this number.
    ///
    /// # Errors
    /// The message of the driver.
    pub fn of_ordinal(ordinal: u32, precision: Precision) -> Result<Engines, String> {
        let gpu = Gpu::open(ordinal).map_err(|error| error.to_string())?;
        let card = Card::of_device(&gpu)?;
        Ok(Engines::of_card(Some(card), precision))
    }

    /// The engines of a device, by a library that is open.
    pub(crate) fn on_device(
        gpu: &Gpu,
        precision: Precision,
        library: EngineLibrary,
    ) -> Result<Engines, String> {
        let card = Some(Card::of_device(gpu)?);
        Ok(Engines { card, precision, library: Some(library).into(), answers: Mutex::default() })
    }

    /// The library that is asked.
    pub(crate) fn library(&self) -> Option<&EngineLibrary> {
        self.card.as_ref()?;
        self.library.get_or_init(|| EngineLibrary::open().ok()).as_ref()
    }

    /// The version of the library whose engines these are; none where none is known.
    pub fn version(&self) -> Option<&str> {
        let of_table =
            || self.card.as_ref().filter(|card| !card.name.is_empty()).map(|_| &*recorded().version);
        self.library().map(EngineLibrary::version).or_else(of_table)
    }

    /// The question about a convolution.
    pub(crate) fn query<A>(&self, of: &Convolution<A>) -> ConvolutionQuery {
        let (filter, precision) = (of.filter.clone(), self.precision);
        ConvolutionQuery { filter, stored: of.stored, layout: of.layout, precision }
    }

    /// The engines for a convolution in the order of the expected time, each with less workspace than all before it.
    ///
    /// # Errors
    /// [`NoEngine`], if there is none.
    pub fn choices(&self, of: &ConvolutionQuery) -> Answer {
        let key = of.key();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answers.get(&key) {
            return answer.clone();
        }
        let asked = match &self.card {
            Some(card) => choose(of, card, self.library()).map_err(NoEngine::Refused),
            None => Ok(None),
        };
        let answer = match asked {
            Ok(Some(choices)) if choices.is_empty() => Err(NoEngine::None),
            Ok(Some(choices)) => Ok(choices),
            Ok(None) => Err(NoEngine::Unknown),
            Err(refused) => Err(refused),
        };
        answers.insert(key, answer.clone());
        answer
    }

    /// The fastest engine for a convolution that needs at most `room` bytes of workspace.
    ///
    /// # Errors
    /// [`NoEngine`], if there is none.
    pub fn engine<A>(&self, of: &Convolution<A>, room: u64) -> Result<EngineChoice, NoEngine> {
        let choices = self.choices(&self.query(of))?;
        let least = choices.last().map_or(0, |last| last.workspace);
        chosen(&choices, room).cloned().ok_or(NoEngine::Room { least, room })
    }

    /// Workspace in bytes with which each node of the graph runs best on the card, besides its values; zero for a node that
    /// cannot run there. Convolutions get the bytes that their engines need, by the rule.
    pub fn workspaces(&self, graph: &Graph) -> BTreeMap<NodeId, Bytes> {
        self.ruled(graph, |frame| frame.scratch.max(frame.library_scratch))
    }

    /// Workspace in bytes without which nodes of the graph do not run on the card as the rule has chosen: the need of own kernels
    /// and of engines.
    pub fn least_workspaces(&self, graph: &Graph) -> BTreeMap<NodeId, Bytes> {
        self.ruled(graph, |frame| frame.scratch)
    }

    /// The engines of the graph's convolutions, by the rule; none if no engine is known, or there is no convolution.
    pub fn of_step(&self, graph: &Graph) -> Option<StepEngines> {
        let mut by_node = BTreeMap::new();
        self.ruled_by(graph, |id, need, room| {
            let text = |of: &Convolution<()>| {
                self.engine(of, room).map_or_else(|_| String::new(), |engine| engine.text())
            };
            if !need.convolutions.is_empty() {
                let engines = need.convolutions.iter().map(text).collect();
                by_node.insert(graph.node(id).name.to_string(), engines);
            }
        });
        // The library is not opened for a step that does not convolve.
        by_node.values().flatten().find(|engine: &&String| !engine.is_empty())?;
        let version = self.version()?.to_owned();
        let precision = Precision::NAMES[self.precision as usize].to_owned();
        Some(StepEngines { version, precision, by_node })
    }

    /// The workspace of each node: the scratch that `others` says, or that of its engines.
    fn ruled(&self, graph: &Graph, others: impl Fn(&Recipe) -> Bytes) -> BTreeMap<NodeId, Bytes> {
        let mut granted = BTreeMap::new();
        self.ruled_by(graph, |id, need, room| {
            let engines = need
                .convolutions
                .iter()
                .filter_map(|of| self.engine(of, room).ok().map(|engine| Bytes(engine.workspace)));
            let scratch = engines.fold(others(&need.frame), Bytes::max);
            granted.insert(id, need.frame.workspace_with(scratch));
        });
        granted
    }

    /// Calls the function with each node, its need, and the scratch that the rule allows to its engines.
    fn ruled_by(&self, graph: &Graph, mut then: impl FnMut(NodeId, &Need, u64)) {
        let needs = lmsc_runtime::kernels::workspaces_by(
            graph,
            |spec, _| Need::of(crate::prepare(spec).unwrap_or_default()),
            |_| {},
        );
        let storages = Storages::of(graph);
        let tensors = |id: NodeId| {
            let node = graph.node(id);
            let values = node.operands.iter().chain(&node.results).flatten();
            let mut all: Vec<_> = values.map(|&value| storages.storage(value)).collect();
            all.sort_unstable();
            all.dedup();
            let bytes = all.iter().map(|&one| storages.get(one)).filter(|storage| !storage.on_host);
            bytes.map(|storage| storage.bytes.0).fold(0, u64::saturating_add)
        };
        let all = |(&id, need): (&NodeId, &Need)| tensors(id).saturating_add(need.frame.workspace().0);
        let floor = needs.iter().map(all).max().unwrap_or(0);
        for (&id, need) in &needs {
            then(id, need, need.frame.scratch_of(floor.saturating_sub(tensors(id))));
        }
    }
}

//! Convolutions by cuDNN, if its library is found. If it is not, or has no engine for a convolution, own kernels do it: a plan is
//! valid for both.
//!
//! The engine of each convolution is chosen once, before the first step: the fastest that fits the workspace which the program
//! gives to the convolution. A planner that knows the card gives as much as the engine needs that it has chosen by the same
//! function ([`super::engines`]). Nothing is timed, so the choice is the same from run to run.

use std::rc::Rc;

use lmsc_ir::program::Stream;

use super::backend::{Descriptor, Executor};
use super::driver::Gpu;
use super::engines::{ConvolutionQuery, EngineChoice, EngineLibrary, Engines, NoEngine, PlanOn};
use super::library::LibraryFacts;
use super::precision::Precision;
use super::recipe::{Convolution, Filter};

/// The plan of convolutions with these extents and this engine.
struct Planned {
    of: ConvolutionQuery,
    engine: EngineChoice,
    /// The plan and the bytes of workspace that it needs, or why there is none.
    plan: Result<(Rc<Descriptor>, u64), String>,
}

/// A convolution whose engine is chosen.
pub(super) struct Ready {
    plan: Rc<Descriptor>,
    /// The addresses of its tensors and its workspace.
    pack: Rc<Descriptor>,
    workspace: u64,
    filter: Filter,
    engine: EngineChoice,
}

impl Ready {
    /// Its engine.
    pub(super) fn engine(&self) -> &EngineChoice {
        &self.engine
    }

    /// Bytes of workspace that its engine needs.
    pub(super) fn workspace_bytes(&self) -> u64 {
        self.workspace
    }
}

/// The library on a device; its convolutions run on the compute stream.
pub(super) struct Dnn {
    // Fields are dropped in this order, so plans stand before the handle that they are made for.
    planned: Vec<Planned>,
    executor: Executor,
    engines: Engines,
    facts: LibraryFacts,
}

impl Dnn {
    /// Opens the library on this device, whose context is current in this thread; `precision` is the precision to which it may
    /// round factors. It has no rounding to bf16, so bf16 means TF32 here.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn open(gpu: &Gpu, precision: Precision) -> Result<Dnn, String> {
        let library = EngineLibrary::open()?;
        // SAFETY: the session that opens the library drops it before the device and its streams.
        let executor = unsafe { library.executor(gpu.stream(Stream::Compute).cast()) }?;
        let facts = library.facts().clone();
        let engines = Engines::on_device(gpu, precision, library)?;
        Ok(Dnn { planned: Vec::new(), executor, engines, facts })
    }

    /// Its name and version.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.facts.name, self.facts.version)
    }

    /// Its version and path.
    pub(super) fn facts(&self) -> &LibraryFacts {
        &self.facts
    }

    /// The convolution by the fastest engine that needs at most `room` bytes of workspace and runs, which has run once.
    ///
    /// # Errors
    /// Why own kernels must do it.
    ///
    /// # Safety
    /// As for [`Self::convolve`]; the results of the convolution must not be in use yet.
    pub(super) unsafe fn choose(&mut self, of: Convolution<u64>, room: u64) -> Result<Ready, String> {
        let query = self.engines.query(&of);
        let choices = self.engines.choices(&query).map_err(|why| why.to_string())?;
        let least = choices.last().map_or(0, |last| last.workspace);
        let mut why = NoEngine::Room { least, room }.to_string();
        for engine in choices.into_iter().filter(|engine| engine.workspace <= room) {
            let ready = match self.plan(&query, engine.clone()) {
                Ok((_, workspace)) if workspace > room => {
                    Err(NoEngine::Room { least: workspace, room }.to_string())
                }
                // SAFETY: as the caller promises.
                Ok((plan, workspace)) => unsafe { self.ready((plan, engine), &of, workspace) },
                Err(error) => Err(error),
            };
            match ready {
                Ok(ready) => return Ok(ready),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// The plan of a convolution by an engine, made once.
    fn plan(&mut self, of: &ConvolutionQuery, engine: EngineChoice) -> Result<(Rc<Descriptor>, u64), String> {
        if let Some(known) = self.planned.iter().find(|it| it.of == *of && it.engine == engine) {
            return known.plan.clone();
        }
        let library = self.engines.library().ok_or_else(|| NoEngine::Unknown.to_string())?;
        let plan = library.plan(of, &PlanOn::Device(&self.executor), &engine);
        self.planned.push(Planned { of: of.clone(), engine, plan: plan.clone() });
        plan
    }

    /// The convolution at its addresses, which has run once.
    unsafe fn ready(
        &self,
        (plan, engine): (Rc<Descriptor>, EngineChoice),
        of: &Convolution<u64>,
        workspace: u64,
    ) -> Result<Ready, String> {
        let library = self.engines.library().ok_or_else(|| NoEngine::Unknown.to_string())?;
        // An empty workspace may have an address outside the memory, so null is passed.
        let room = if workspace > 0 { of.workspace } else { 0 };
        let pack = library.pack([of.image, of.weights, of.positions], room)?;
        let ready = Ready { plan, pack, workspace, filter: of.filter.clone(), engine };
        // SAFETY: as the caller promises.
        unsafe { self.convolve(&ready)? };
        Ok(ready)
    }

    /// Convolves when the compute stream reaches this point.
    ///
    /// # Safety
    /// The tensors and the workspace are on the device, as large as the convolution says, and stay allocated until it is done;
    /// nothing else uses the workspace until then.
    pub(super) unsafe fn convolve(&self, ready: &Ready) -> Result<(), String> {
        // SAFETY: as the caller promises; both descriptors were finalized, the plan with this handle.
        unsafe { self.executor.execute(&ready.plan, &ready.pack) }.map_err(|why| {
            let Filter { found, image, weights, .. } = &ready.filter;
            format!("{found:?} of a convolution of {image:?} with {weights:?}: {why}")
        })
    }
}

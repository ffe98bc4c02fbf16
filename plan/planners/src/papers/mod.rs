//! The planners of the papers, each as its authors describe it.

pub(crate) mod autoswap;
pub(crate) mod chain;
pub(crate) mod dynprog;
pub(crate) mod greedy;
pub(crate) mod lru;
pub(crate) mod memonger;
mod offload;
mod policy;
pub(crate) mod tflms;
pub(crate) mod vdnn;
pub(crate) mod window;

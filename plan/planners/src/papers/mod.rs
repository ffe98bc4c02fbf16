//! The planners of the papers, each as its authors describe it.

pub mod autoswap;
pub mod chain;
pub mod dynprog;
pub mod greedy;
pub mod lru;
pub mod memonger;
mod offload;
mod policy;
pub mod tflms;
pub mod vdnn;
pub mod window;

//! Tests of the papers' planners on instances, random problems and random graphs: one program, since each of its own would be
//! linked with everything below it.

mod lanes;
mod learning;
mod noise;
mod opt;
mod pages;
mod policies;
mod random_graphs;

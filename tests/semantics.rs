//! The results of the algorithms, through the facade, against the plain reference: results, determinism, links,
//! signals. Proofs say that a schedule is right; these tests say that the engine does what the schedule says.

#[path = "semantics/attributes.rs"]
mod attributes;
#[path = "semantics/calls.rs"]
mod calls;
#[path = "semantics/collectives.rs"]
mod collectives;
#[path = "semantics/library.rs"]
mod library;
#[path = "semantics/ops.rs"]
mod ops;
#[path = "semantics/oversubscribed.rs"]
mod oversubscribed;
#[path = "semantics/ranks.rs"]
mod ranks;
#[path = "semantics/runs.rs"]
mod runs;
#[path = "semantics/spmd.rs"]
mod spmd;
#[path = "semantics/word.rs"]
mod word;
#[path = "semantics/world.rs"]
mod world;

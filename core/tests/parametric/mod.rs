//! The proof for every nranks from outside: the proof for given counts must confirm its claims.

mod claims;
mod doubling;
mod doubling_wrong;
mod lanes;
mod members;
mod mutants;
mod terms;
mod walk;

use std::ops::RangeInclusive;

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::program::Program;
use roundelay_core::syntax::Source;
use roundelay_core::verify::parametric::{self, Every, NotCovered};
use roundelay_core::verify::verify;

/// Sources of the tree whose first algorithm is a member of the class.
const FILES: [&str; 6] = [
    include_str!("../../../stdlib/library/ring.coll"),
    include_str!("../../../stdlib/library/twisted_ring.coll"),
    include_str!("../../../examples/all_gather.coll"),
    include_str!("../../../examples/reduce_scatter.coll"),
    include_str!("../../../examples/ring.coll"),
    include_str!("../../../examples/twisted_ring.coll"),
];

/// The first algorithm of a source.
fn first(text: &str) -> &str {
    text.find("\n}\n").map_or(text, |end| &text[..end + 3])
}

/// All sources of members.
fn members() -> Vec<String> {
    let first = FILES.iter().map(|text| first(text));
    first.chain(members::MEMBERS).map(str::to_owned).collect()
}

/// Returns the algorithms of a source; `None` where it does not compile.
fn algorithms(text: &str) -> Option<Vec<(Program, Source)>> {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::File).ok()?;
    Some(program.algorithms.into_iter().map(|a| (a, source.clone())).collect())
}

/// The claim for every rank count.
fn prove(algorithm: &Program, source: &Source) -> Result<Every, NotCovered> {
    parametric::prove(Configured::new(algorithm.clone(), source).program())
}

/// Whether the proof for given counts accepts all of `counts`; or the first that it refuses, and why.
fn finitely_right(
    algorithm: &Program,
    source: &Source,
    counts: RangeInclusive<u32>,
) -> Result<(), (u32, String)> {
    let laid_out = Configured::new(algorithm.clone(), source);
    for nranks in counts {
        let proof = laid_out.schedule(nranks).and_then(|schedule| verify(&schedule));
        proof.map_err(|found| (nranks, found[0].title.clone()))?;
    }
    Ok(())
}

//! The limits of nested loops.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::program::ir::{Stmt, StmtKind};
use roundelay_core::syntax::Source;

/// Adds the number of loops of each nest in a block.
fn limits(block: &[Stmt], found: &mut Vec<usize>) {
    found.extend(block.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Limit(nest) => Some(nest.len()),
        _ => None,
    }));
    block.iter().flat_map(Stmt::blocks).for_each(|inner| limits(inner, found));
}

/// Returns the number of loops of each nest of the loops of `body`.
fn nests(body: &str) -> Vec<usize> {
    let text = format!("algorithm A(many: int = 3) -> AllReduce {{ {body} }}");
    let source = Source::from_text("test.coll", &text);
    let program = compile(&source, Frontend::File).expect("the source is valid");
    let mut found = Vec::new();
    limits(&program.algorithms[0].body, &mut found);
    found
}

#[test]
fn only_loops_that_every_iteration_comes_to_alike() {
    assert_eq!(
        nests("for a in 0..9 { for b in rank..nranks { for c in 0..many * 2 { } } }"),
        [3, 2]
    );
    assert_eq!(
        nests("for a in 0..9 { for b in 0..8 { } parallel c in 0..log2(nranks) { } }"),
        [2, 2]
    );
    assert_eq!(nests("for a in 0..9 { for b in 0..a { for c in 0..9 { } } }"), [2]);
    assert_eq!(nests("for a in 0..9 { let b = 5; for c in 0..b { } }"), []);
    assert_eq!(nests("for a in 0..9 { if rank == 0 { for b in 0..9 { } } }"), []);
    assert_eq!(nests("for a in 0..9 { for b in [1, 2] { for c in 0..2 { } } }"), []);
    assert_eq!(nests("for a in 0..len([1, 2]) { for b in 0..2 { for c in 0..2 { } } }"), [2]);
}

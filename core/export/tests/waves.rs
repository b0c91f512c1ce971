//! Pages of moves in waves, with the signals of the contest.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::executor::Executor;
use roundelay_core::ids::RankId;
use roundelay_core::syntax::Source;
use roundelay_export::contest::SIGNALS;
use roundelay_synthesis::executor::{Move, Waves};
use roundelay_topology::search::disjoint_trees::SpanningTree;

/// Trees of different heights up and down: an odd number of waves, whose beats are even all the same.
#[test]
fn odd_waves_are_right_with_one_shot_flags() {
    let tree = |parent: [Option<u32>; 3]| {
        let parent = parent.map(|rank| rank.map(RankId)).to_vec();
        (SpanningTree { root: RankId(0), parent }, 1)
    };
    let (star, chain) = (tree([None, Some(0), Some(0)]), tree([None, Some(0), Some(1)]));
    let waves = Waves::of_trees(3, &[star], &[chain]).unwrap();
    let at = |from, to| Move { from, to, begin: 0, end: 1 };
    assert_eq!(waves.up, [[at(1, 0), at(2, 0)]]);
    assert_eq!(waves.down, [[at(0, 1)], [at(1, 2)]]);
    let page = waves.page("Odd", "AllReduce of three waves.", "full_mesh(3)");
    for slices in 1..=4 {
        let class = format!("otherwise => Odd(slices = {slices});");
        let text = format!("{page}executor E for AllReduce {{ topology: full_mesh(3); {class} }}");
        let source = Source::from_text("odd.coll", &text);
        let program = compile(&source, Frontend::File).unwrap();
        let executor = Executor::compile(&program.executors[0], &source).unwrap();
        executor.prove_with(SIGNALS).unwrap();
    }
}

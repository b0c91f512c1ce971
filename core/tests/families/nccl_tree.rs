//! The tree as NCCL runs it: the six moves of its ranks, and the order in which it reduces; read from the schedules, and
//! from runs of these that know nothing of the proof.

use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule, SignalKind, Stream};
use roundelay_core::verify::{depth, verify};

use super::nccl_ring::StreamRun;
use super::pulls::{algorithm, proved, schedule};

const NCCL: &str = include_str!("../../../stdlib/library/nccl_tree.coll");
const PULLED: &str = include_str!("../../../stdlib/library/tree.coll");

/// A move of a primitive: the ranks whose slots it reads, the own buffer it reads, the one it writes, and the ranks whose
/// slots it writes.
type Primitive = (Vec<u32>, Option<Buffer>, Option<Buffer>, Vec<u32>);

/// Returns the moves of each rank. The waits for data before a move name its senders.
fn primitives(schedule: &Schedule) -> Vec<Vec<Primitive>> {
    let of_rank = |stream: &Stream| {
        let (mut moves, mut from) = (Vec::new(), Vec::new());
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            match op.kind {
                OpKind::Wait if schedule.channel(op).kind == SignalKind::Tail => {
                    from.push(schedule.channel(op).from.0);
                }
                OpKind::Move => {
                    let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
                    let own = |all: &[Operand]| {
                        let mut buffers = all.iter().map(|o| schedule.region(*o).buffer);
                        buffers.find(|it| !matches!(it, Buffer::Scratch(_)))
                    };
                    let far = dsts.iter().filter(|o| o.rank != stream.rank).map(|o| o.rank.0);
                    let from = std::mem::take(&mut from);
                    assert_eq!(srcs.len(), from.len() + usize::from(own(srcs).is_some()));
                    moves.push((from, own(srcs), own(dsts), far.collect()));
                }
                _ => {}
            }
        }
        moves
    };
    schedule.streams.iter().map(of_rank).collect()
}

/// One move for each rank and chunk on either way, whatever number of children a rank has: seven at a star of 8.
#[test]
fn each_rank_has_one_move_a_chunk_on_either_way() {
    let (input, output) = (Some(Buffer::Input), Some(Buffer::Output));
    for (tree, n) in [("binary(0)", 7), ("binomial(2)", 8), ("chain(1)", 4), ("star(0)", 8)] {
        let of = algorithm(NCCL, "NcclTreeAllReduce", &[("tree", tree), ("pieces", "3")]);
        let all = schedule(&of, n);
        let moves = primitives(&all);
        let mut roots = 0;
        for (rank, moves) in (0..n).zip(&moves) {
            assert_eq!(moves.len(), 6, "{tree}: rank {rank}");
            let (up, down) = moves.split_at(3);
            assert!(up.iter().all(|it| *it == up[0]) && down.iter().all(|it| *it == down[0]));
            let children = up[0].0.clone();
            let to = up[0].3.first().copied();
            roots += u32::from(to.is_none());
            assert!(to.is_none_or(|to| primitives(&all)[to as usize][0].0.contains(&rank)));
            let (expected_up, expected_down) = match to {
                None => {
                    let sent = (Vec::new(), output, None, children.clone());
                    ((children, input, output, Vec::new()), sent)
                }
                Some(to) => {
                    let kept = (vec![to], None, output, children.clone());
                    ((children, input, None, vec![to]), kept)
                }
            };
            assert_eq!((&up[0], &down[0]), (&expected_up, &expected_down), "{tree}: rank {rank}");
        }
        assert_eq!(roots, 1, "{tree}");
    }
}

/// Every element is reduced in the order of the tree that pulls, on every rank.
#[test]
fn the_order_is_that_of_the_pulled_tree() {
    for n in 2..=9_u32 {
        for tree in ["binary(0)", "binomial(0)", "chain(0)", "double_binary(1)"] {
            let [nccl, pulled] = [(NCCL, "NcclTreeAllReduce"), (PULLED, "TreeAllReduce")]
                .map(|(file, name)| schedule(&algorithm(file, name, &[("tree", tree)]), n));
            let orders = |schedule: &Schedule| {
                let run = StreamRun::run(schedule);
                let of_rank = |rank| run.outputs(rank).into_iter().map(str::to_owned).collect();
                (0..n).map(of_rank).collect::<Vec<Vec<String>>>()
            };
            assert_eq!(orders(&nccl), orders(&pulled), "{tree} at {n}");
        }
    }
}

/// Data goes up the whole tree before any comes down, so one credit will do.
#[test]
fn one_credit_will_do() {
    for n in [2, 3, 8, 13] {
        for slices in ["1", "2"] {
            let set = [("credits", slices), ("slices", slices)];
            let of = algorithm(NCCL, "NcclTreeAllReduce", &set);
            proved(&of, n);
            let needed = depth(&schedule(&of, n)).map(|depth| depth.needed);
            assert!(needed.is_some_and(|needed| needed <= 2), "{needed:?} at {n}");
        }
    }
}

/// A tree page of three children, which reads its own names.
#[test]
fn several_peers_are_one_move() {
    let page = "algorithm Three() -> AllReduce {
    require nranks == 4, \"a root and three leaves\";
    let leaves = [3, 1, 2];
    let nobody = [];
    fifo like output, credits = 2;
    if rank == 0 {
        leaves.recv_reduce_copy_send(local.input, local.output, leaves);
        leaves.send(local.output);
        nobody.send(local.output);
        nobody.recv_reduce(local.output);
    } else {
        peer(0).send(local.input);
        peer(0).recv(local.output);
        peer(0).recv(local.output);
    }
}";
    let of = algorithm(page, "Three", &[]);
    proved(&of, 4);
    let all = schedule(&of, 4);
    let both = (vec![3, 1, 2], Some(Buffer::Input), Some(Buffer::Output), vec![3, 1, 2]);
    let again = (Vec::new(), Some(Buffer::Output), None, vec![3, 1, 2]);
    assert_eq!(primitives(&all)[0], [both, again]);
    assert_eq!(StreamRun::run(&all).outputs(2), ["(3 (1 (2 0)))"]);
    // Leaves that nobody sends to wait for ever, and a result that nobody keeps is lost.
    for (wrong, code) in [
        ("nobody.send(local.output);", Code::UnmatchedWait),
        ("leaves.recv_reduce_send(local.input, nobody);", Code::TooManyOperands),
    ] {
        let of = algorithm(&page.replace("leaves.send(local.output);", wrong), "Three", &[]);
        let found = of.schedule(4).and_then(|schedule| verify(&schedule).map(drop));
        assert_eq!(found.expect_err("it is wrong")[0].code, code, "{wrong}");
    }
}

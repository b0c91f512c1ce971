//! Values worked by hand, with the cut or partition that sets them.

use std::fmt::Write as _;

use expect_test::expect;
use roundelay_core::collective::Collective;

use crate::bounds::{bounds, of};

/// The table of the broken mesh: equal shards, AllReduce, and the cut that binds it.
#[test]
fn meshes_with_cut_cables() {
    let rank_0_keeps_one =
        (2..8).fold("full_mesh(8)".to_owned(), |text, r| text + &format!(" without (0, {r})"));
    let rows = [
        ("full_mesh(8)", "1/4", "1/4", "8 singletons"),
        ("full_mesh(8) without (0, 1)", "7/24", "7/27", "8 singletons"),
        ("full_mesh(8) without (0, 1) without (2, 3)", "7/24", "7/26", "8 singletons"),
        ("full_mesh(8) without (0, 1) without (0, 2)", "7/20", "7/26", "8 singletons"),
        (&rank_0_keeps_one, "7/4", "1", "{0} / rest"),
    ];
    for (text, equal, least, binding) in rows {
        let found = bounds(text);
        let all_reduce = found.bound(Collective::AllReduce);
        assert_eq!(found.equal_shards.per_byte.to_string(), equal, "{text}");
        assert_eq!(all_reduce.per_byte.to_string(), least, "{text}");
        assert_eq!(all_reduce.binding.to_string(), binding, "{text}");
        assert!(all_reduce.exact);
    }
    let exact = of("full_mesh(8) without (0, 1)", Collective::AllReduce).per_byte;
    assert_eq!((exact.num(), exact.den()), (7, 27));
}

#[test]
fn every_collective_on_textbook_topologies() {
    let mut table = String::new();
    for text in [
        "full_mesh(2)",
        "full_mesh(8)",
        "full_mesh(8) without (0, 1)",
        "full_mesh(4, 25GB/s, 2us)",
        "crossbar(8)",
        "ring(8)",
        "torus([4, 4])",
        "spine_leaf(2, 4, 2)",
        "spine_leaf(2, 4, 2, 3)",
        "islands(2, 4)",
        "islands(2, 8, 200GB/s, 2us, 25GB/s, 5us)",
        "groups([8, 4], 25GB/s, 2us, 5GB/s, 7us)",
        "full_mesh(1)",
    ] {
        let found = bounds(text);
        let _ = writeln!(table, "{text}");
        for (collective, bound) in &found.collectives {
            let exact = if bound.exact { "" } else { " (likely)" };
            let _ = writeln!(table, "  {collective}: {}, {}{exact}", bound.per_byte, bound.binding);
        }
        let _ = writeln!(table, "  equal shards: {}", found.equal_shards.per_byte);
        let rounds = found.rounds;
        let _ = writeln!(
            table,
            "  rounds: {} by one port, {} by {}; diameter {}; {:?} ns",
            rounds.one_port, rounds.all_ports, rounds.ports, rounds.diameter, rounds.farthest_ns
        );
    }
    expect![[r"
        full_mesh(2)
          AllReduce: 1, 2 singletons
          ReduceScatter: 1/2, all but {1} -> rest
          AllGather: 1/2, all but {1} -> rest
          Broadcast: 1, all but {1} -> rest
          Reduce: 1, all but {1} -> rest
          Scatter: 1/2, all but {1} -> rest
          Gather: 1/2, all but {1} -> rest
          AllToAll: 1/2, all but {0} -> rest
          equal shards: 1
          rounds: 1 by one port, 1 by 1; diameter 1; Some(0) ns
        full_mesh(8)
          AllReduce: 1/4, 8 singletons
          ReduceScatter: 1/8, all but {0} -> rest
          AllGather: 1/8, all but {0} -> rest
          Broadcast: 1/7, {0} -> rest
          Reduce: 1/7, {0} -> rest
          Scatter: 1/8, {0} -> rest
          Gather: 1/8, {0} -> rest
          AllToAll: 1/8, all but {0} -> rest
          equal shards: 1/4
          rounds: 3 by one port, 1 by 7; diameter 1; Some(0) ns
        full_mesh(8) without (0, 1)
          AllReduce: 7/27, 8 singletons
          ReduceScatter: 7/48, all but {0} -> rest
          AllGather: 7/48, all but {0} -> rest
          Broadcast: 1/6, {0} -> rest
          Reduce: 1/6, {0} -> rest
          Scatter: 7/48, {0} -> rest
          Gather: 7/48, {0} -> rest
          AllToAll: 7/48, all but {0} -> rest
          equal shards: 7/24
          rounds: 3 by one port, 2 by 7; diameter 2; Some(0) ns
        full_mesh(4, 25GB/s, 2us)
          AllReduce: 1/50000000000, 4 singletons
          ReduceScatter: 1/100000000000, all but {0} -> rest
          AllGather: 1/100000000000, all but {0} -> rest
          Broadcast: 1/75000000000, {0} -> rest
          Reduce: 1/75000000000, {0} -> rest
          Scatter: 1/100000000000, {0} -> rest
          Gather: 1/100000000000, {0} -> rest
          AllToAll: 1/100000000000, all but {0} -> rest
          equal shards: 1/50000000000
          rounds: 2 by one port, 1 by 3; diameter 1; Some(2000) ns
        crossbar(8)
          AllReduce: 7/4, 8 singletons
          ReduceScatter: 7/8, all but {0} -> rest
          AllGather: 7/8, all but {0} -> rest
          Broadcast: 1, {0} -> rest
          Reduce: 1, {0} -> rest
          Scatter: 7/8, {0} -> rest
          Gather: 7/8, {0} -> rest
          AllToAll: 7/8, all but {0} -> rest
          equal shards: 7/4
          rounds: 3 by one port, 3 by 1; diameter 1; Some(0) ns
        ring(8)
          AllReduce: 7/8, 8 singletons
          ReduceScatter: 7/16, all but {0} -> rest
          AllGather: 7/16, all but {0} -> rest
          Broadcast: 1/2, {0} -> rest
          Reduce: 1/2, {0} -> rest
          Scatter: 7/16, {0} -> rest
          Gather: 7/16, {0} -> rest
          AllToAll: 1, {4, 5, 6, 7} -> rest
          equal shards: 7/8
          rounds: 4 by one port, 4 by 2; diameter 4; Some(0) ns
        torus([4, 4])
          AllReduce: 15/32, 16 singletons (likely)
          ReduceScatter: 15/64, all but {0} -> rest
          AllGather: 15/64, all but {0} -> rest
          Broadcast: 1/4, {0} -> rest
          Reduce: 1/4, {0} -> rest
          Scatter: 15/64, {0} -> rest
          Gather: 15/64, {0} -> rest
          AllToAll: 1/2, {8, 9, 10, 11, 12, 13, 14, 15} -> rest (likely)
          equal shards: 15/32
          rounds: 4 by one port, 4 by 4; diameter 4; Some(0) ns
        spine_leaf(2, 4, 2)
          AllReduce: 7/4, 8 singletons
          ReduceScatter: 7/8, all but {0} -> rest
          AllGather: 7/8, all but {0} -> rest
          Broadcast: 1, {0} -> rest
          Reduce: 1, {0} -> rest
          Scatter: 7/8, {0} -> rest
          Gather: 7/8, {0} -> rest
          AllToAll: 7/8, all but {0} -> rest
          equal shards: 7/4
          rounds: 3 by one port, 3 by 1; diameter 1; Some(0) ns
        spine_leaf(2, 4, 2, 3)
          AllReduce: 7/4, 8 singletons
          ReduceScatter: 7/8, all but {0} -> rest
          AllGather: 7/8, all but {0} -> rest
          Broadcast: 1, {0} -> rest
          Reduce: 1, {0} -> rest
          Scatter: 7/8, {0} -> rest
          Gather: 7/8, {0} -> rest
          AllToAll: 3/2, {4, 5, 6, 7} -> rest
          equal shards: 7/4
          rounds: 3 by one port, 3 by 1; diameter 1; Some(0) ns
        islands(2, 4)
          AllReduce: 7/8, 8 singletons
          ReduceScatter: 7/16, all but {0} -> rest
          AllGather: 7/16, all but {0} -> rest
          Broadcast: 1/2, {0} -> rest
          Reduce: 1/2, {0} -> rest
          Scatter: 7/16, {0} -> rest
          Gather: 7/16, {0} -> rest
          AllToAll: 3/4, {1, 2, 3, 5, 6, 7} -> rest
          equal shards: 7/8
          rounds: 3 by one port, 2 by 2; diameter 2; Some(0) ns
        islands(2, 8, 200GB/s, 2us, 25GB/s, 5us)
          AllReduce: 1/120000000000, 16 singletons (likely)
          ReduceScatter: 1/240000000000, all but {0} -> rest
          AllGather: 1/240000000000, all but {0} -> rest
          Broadcast: 1/200000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          Reduce: 1/200000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          Scatter: 1/240000000000, {0} -> rest
          Gather: 1/240000000000, {0} -> rest
          AllToAll: 1/50000000000, {8, 9, 10, 11, 12, 13, 14, 15} -> rest (likely)
          equal shards: 1/120000000000
          rounds: 4 by one port, 3 by 2; diameter 2; Some(14000) ns
        groups([8, 4], 25GB/s, 2us, 5GB/s, 7us)
          AllReduce: 1/20000000000, {8, 9, 10, 11} / rest (likely)
          ReduceScatter: 1/30000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          AllGather: 1/30000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          Broadcast: 1/20000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          Reduce: 1/20000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          Scatter: 1/60000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          Gather: 1/60000000000, {0, 1, 2, 3, 4, 5, 6, 7} -> rest
          AllToAll: 1/7500000000, {8, 9, 10, 11} -> rest (likely)
          equal shards: 1/15000000000
          rounds: 4 by one port, 2 by 8; diameter 1; Some(14000) ns
        full_mesh(1)
          AllReduce: 0, nothing has to move
          ReduceScatter: 0, nothing has to move
          AllGather: 0, nothing has to move
          Broadcast: 0, nothing has to move
          Reduce: 0, nothing has to move
          Scatter: 0, nothing has to move
          Gather: 0, nothing has to move
          AllToAll: 0, nothing has to move
          equal shards: 0
          rounds: 0 by one port, 0 by 0; diameter 0; Some(0) ns
    "]]
    .assert_eq(&table);
}

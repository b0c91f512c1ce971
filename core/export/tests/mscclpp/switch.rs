//! Plans whose data goes through a switch: `glres` adds up a chunk of all ranks and stores the sum at all, `gstore` stores a
//! rank's chunk at all.

use roundelay_core::diagnostics::Code;
use roundelay_core::ids::SpanId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::verify::{Proved, Sameness};
use roundelay_exchange::mscclpp;
use serde_json::{Value as Json, json};

use super::{told, verdict};
use crate::sources;

/// The ops by which each rank tells all others that it is here, or that it is done.
fn meeting(nranks: usize) -> Vec<Json> {
    let all: Vec<usize> = (0..nranks - 1).collect();
    let word = |name| json!({"name": name, "channel_ids": all, "channel_type": "memory"});
    let nop = || json!({"name": "nop"});
    vec![nop(), word("rlxsignal"), nop(), word("rlxwait"), nop()]
}

/// A plan in which each rank has a switch do `op` between two meetings, on `buffer` of all ranks.
fn plan(nranks: usize, collective: &str, buffer: &str, op: impl Fn(usize) -> Json) -> Json {
    let gpu = |rank: usize| {
        let others: Vec<usize> = (0..nranks).filter(|other| *other != rank).collect();
        let ids: Vec<usize> = (0..others.len()).collect();
        let ops = [meeting(nranks), vec![op(rank)], meeting(nranks)].concat();
        let all: Vec<usize> = (0..nranks).collect();
        let input = if collective == "allgather" { 1 } else { nranks };
        json!({
            "id": rank, "input_chunks": input, "output_chunks": nranks, "scratch_chunks": 0,
            "channels": [
                {"channel_type": "memory", "connected_to": others},
                {"channel_type": "switch", "buffer_type": buffer,
                 "rank_groups": [{"size": nranks, "ranks": all}]},
            ],
            "remote_buffers": [], "semaphores": [],
            "threadblocks": [{
                "id": 0, "ops": ops, "remote_buffer_refs": [],
                "channels": [
                    {"channel_type": "memory", "channel_ids": ids},
                    {"channel_type": "switch", "channel_ids": [0]},
                ],
            }],
        })
    };
    let gpus: Vec<Json> = (0..nranks).map(gpu).collect();
    json!({
        "name": "by_the_switch", "collective": collective, "protocol": "Simple", "inplace": true,
        "reuse_resources": false, "num_threads_per_block": 1024,
        "use_double_scratch_buffer": false, "buffer_alignment": 16, "min_message_size": 0,
        "max_message_size": 1 << 30, "gpus": gpus,
    })
}

/// A rank's chunk, which a switch reaches at all ranks.
fn at_all(index: usize) -> Json {
    json!([{"switch_channel_id": 0, "index": index, "size": 1}])
}

fn all_reduce(nranks: usize) -> Json {
    plan(nranks, "allreduce", "i", |rank| {
        json!({"name": "glres", "src_buff": at_all(rank), "dst_buff": at_all(rank),
               "channel_type": "switch", "reduce_op": "sum"})
    })
}

fn all_gather(nranks: usize) -> Json {
    plan(nranks, "allgather", "o", |rank| {
        json!({"name": "gstore", "src_buff": [{"type": "i", "index": 0, "size": 1}],
               "dst_buff": at_all(rank), "channel_type": "switch"})
    })
}

#[test]
fn plans_by_the_switch_are_proved() {
    for nranks in 2..=9 {
        let found = verdict(&all_reduce(nranks));
        assert!(found.is_right(), "{nranks} ranks: {found:#?}");
        let proved = found.modes[0].proved.as_ref().expect("it is right");
        let reduction = proved.proof().reduction.clone().expect("it reduces");
        let order = reduction.in_every_mode();
        assert_eq!((order.ranks, order.every_run), (Sameness::Exact, false), "{nranks} ranks");
        // The executor rounds after each rank but the first, and not always to the nearest.
        let most = if nranks > 2 { 2 * (nranks - 1) } else { 2 };
        assert_eq!(order.roundings, most as u32, "{nranks} ranks");
        let found = verdict(&all_gather(nranks));
        assert!(found.is_right(), "{nranks} ranks: {found:#?}");
    }
}

#[test]
fn what_is_wrong_with_a_switch_is_named() {
    // A change of the plan of three ranks, and the error.
    type Change = fn(&mut Json);
    let cases: [(Change, Code, &str); 8] = [
        (|op| op["name"] = json!("glre"), Code::RefusedByRuntime, "`glre` works on a switch"),
        (|op| op["channel_type"] = json!("memory"), Code::RefusedByRuntime, "channel_type"),
        (|op| op["dst_buff"][0]["index"] = json!(2), Code::RefusedByRuntime, "different numbers"),
        (|op| op["dst_buff"][0]["size"] = json!(0), Code::RefusedByRuntime, "as many chunks"),
        (
            |op| op["src_buff"][0]["switch_channel_id"] = json!(1),
            Code::RefusedByRuntime,
            "is 1, and",
        ),
        (|op| op["src_buff"] = json!([]), Code::RefusedByRuntime, "one source"),
        (|op| op["src_buff"][0]["type"] = json!("i"), Code::RefusedByRuntime, "`type`"),
        (|op| *op = json!({"name": "nop"}), Code::WrongResult, "wrong result"),
    ];
    for (change, code, title) in cases {
        let mut plan = all_reduce(3);
        change(&mut plan["gpus"][0]["threadblocks"][0]["ops"][5]);
        let told = told(&plan);
        let found = told.iter().any(|(of, text)| *of == code && text.contains(title));
        assert!(found, "{title}: {told:#?}");
    }
}

#[test]
fn groups_of_a_switch_are_ranks_that_are_there() {
    for (ranks, title) in [
        (json!([1, 2]), "lacks rank 0"),
        (json!([0, 1, 1]), "has a rank twice"),
        (json!([0, 1, 7]), "`ranks` is 7"),
    ] {
        let mut plan = all_reduce(3);
        plan["gpus"][0]["channels"][1]["rank_groups"][0]["ranks"] = ranks;
        let told = told(&plan);
        assert!(told.iter().any(|(_, text)| text.contains(title)), "{title}: {told:#?}");
    }
}

/// An AllGather whose packets a switch stores in scratch of all ranks, from where each rank takes them.
fn packets(nranks: usize) -> Json {
    let mut all = plan(nranks, "allgather", "s", |_| json!({}));
    for (rank, gpu) in all["gpus"].as_array_mut().expect("ranks").iter_mut().enumerate() {
        let own = json!([{"type": "i", "index": 0, "size": 1}]);
        let store = json!({"name": "gstorepkt", "src_buff": own, "dst_buff": at_all(rank),
                           "channel_type": "switch"});
        let take = |from: usize| {
            json!({"name": "upkt", "src_buff": [{"type": "s", "index": from, "size": 1}],
                   "dst_buff": [{"type": "o", "index": from, "size": 1}]})
        };
        let ops: Vec<Json> = std::iter::once(store).chain((0..nranks).map(take)).collect();
        gpu["scratch_chunks"] = json!(2 * nranks);
        gpu["threadblocks"][0]["ops"] = json!(ops);
    }
    all["protocol"] = json!("LL");
    all["inplace"] = json!(false);
    // The next call's packets lie in the other half of scratch.
    all["use_double_scratch_buffer"] = json!(true);
    all
}

#[test]
fn a_reader_waits_for_the_packets_of_a_switch() {
    for nranks in 2..=5 {
        let found = verdict(&packets(nranks));
        assert!(found.is_right(), "{nranks} ranks: {found:#?}");
    }
    // Rank 1 stores at no one.
    let mut plan = packets(3);
    plan["gpus"][1]["threadblocks"][0]["ops"][0] = json!({"name": "nop"});
    let found = told(&plan);
    assert!(found.iter().any(|(_, text)| text.contains("that nobody writes")), "{found:#?}");
    // Packets lie in scratch.
    let mut plan = packets(3);
    plan["gpus"][0]["channels"][1]["buffer_type"] = json!("o");
    let found = told(&plan);
    assert!(found.iter().any(|(code, _)| *code == Code::RefusedByRuntime), "{found:#?}");
}

/// Folds that are stored at all ranks and copies to all are ops of a plan; with other moves of a switch, ranks do all of them.
#[test]
fn moves_of_a_switch_are_written() {
    for (name, word) in [
        ("SwitchAllReduce", Some("glres")),
        ("SwitchAllGather", Some("gstore")),
        ("SwitchReduceScatter", None),
        ("OneShotSwitchAllReduce", None),
    ] {
        for nranks in [2, 3, 8] {
            let schedule = sources::named(name).schedule(nranks).expect("it is laid out");
            let proved = Proved::new(schedule).expect("it is right");
            let plan = mscclpp::export(&proved, false);
            // Where ranks fold, they must round as the executor does.
            if word.is_none() && nranks > 2 {
                assert_eq!(plan.expect_err("it rounds once")[0].code, Code::NotExportable);
                continue;
            }
            let text = plan.expect("a plan");
            assert_eq!(text.contains("switch"), word.is_some(), "{name}: {text}");
            assert!(word.is_none_or(|word| text.contains(&format!("\"{word}\""))), "{name}");
        }
    }
}

/// The executor rounds after each rank, which a page may forbid.
#[test]
fn a_demand_of_few_roundings_is_kept() {
    let mut schedule = sources::named("SwitchAllReduce").schedule(4).expect("it is laid out");
    for (most, right) in [(6, true), (5, false)] {
        schedule.demands.roundings = Some((most, SpanId(0)));
        let proved = Proved::new(schedule.clone()).expect("two roundings are enough");
        let plan = mscclpp::export(&proved, false);
        assert_eq!(plan.is_ok(), right, "{most}: {plan:?}");
    }
}

/// A rank that does not wait for all others has the switch take what is not there yet.
#[test]
fn a_switch_takes_from_ranks_that_are_here() {
    let mut plan = all_reduce(3);
    // Rank 0 waits for rank 1 alone, before and behind.
    for op in [3, 9] {
        plan["gpus"][0]["threadblocks"][0]["ops"][op]["channel_ids"] = json!([0]);
    }
    let told = told(&plan);
    let races = [Code::RaceWithCaller, Code::Race];
    assert!(told.iter().any(|(code, _)| races.contains(code)), "{told:#?}");
}

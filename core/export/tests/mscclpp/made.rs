//! Right plans of several kinds: plans that are written here, and plans that are made from algorithms of the library.
//!
//! A text is a plan of two ranks, which reduce to all; each rank has two channels to the other over memory and two over
//! ports, and a peer's scratch, input and output as buffers 0, 1 and 2. `KEY = VALUE` sets a key of the plan or of ranks,
//! `block` begins a block, `pipeline` puts all of a block into a loop, and every other line is an op: `i0` is a chunk, `0:1`
//! a chunk of a buffer of the peer, `*2` its length, behind `@` are channels, `of 0/2` is a part of the op, and `port` says
//! that it goes over a port. `r` is the rank, and `p` its peer; what stands behind `0|` is for rank 0 alone.

use roundelay_core::layout::Algorithm as _;
use roundelay_core::verify::Proved;
use roundelay_exchange::mscclpp;
use serde_json::{Value as Json, json};

use super::two_ranks;
use crate::sources;

/// The plan of an algorithm of the library.
fn exported(name: &str, nranks: u32, in_place: bool) -> String {
    let proved = Proved::new(sources::named(name).schedule(nranks).expect("it is laid out"));
    let proved = proved.expect("it is right");
    mscclpp::export(&proved, in_place).unwrap_or_else(|all| panic!("{name}: {all:#?}"))
}

fn number(text: &str, rank: usize) -> usize {
    let one = |text| match text {
        "r" => rank,
        "p" => 1 - rank,
        number => number.parse().unwrap_or_else(|_| panic!("{number:?} is no number")),
    };
    text.split('+').map(one).sum()
}

fn chunks(words: &[&str], rank: usize) -> Json {
    let chunk = |word: &&str| {
        let (place, size) = word.split_once('*').unwrap_or((word, "1"));
        let size = number(size, rank);
        match place.split_once(':') {
            Some((id, at)) => {
                json!({"buffer_id": number(id, rank), "index": number(at, rank), "size": size})
            }
            None => {
                let (letter, at) = place.split_at(1);
                json!({"type": letter, "index": number(at, rank), "size": size})
            }
        }
    };
    words.iter().map(chunk).collect()
}

/// The op of a line.
pub(super) fn op(line: &str, rank: usize) -> Json {
    let (whole, part) = line.split_once(" of ").unwrap_or((line, ""));
    let over_port = whole.strip_prefix("port ");
    let way = if over_port.is_some() { "port" } else { "memory" };
    let words: Vec<&str> = over_port.unwrap_or(whole).split(' ').collect();
    let (name, words) = (words[0], &words[1..]);
    let numbers = |words: &[&str]| words.iter().map(|word| number(word, rank)).collect::<Vec<_>>();
    match name {
        "nop" => return json!({"name": name}),
        "barrier" => {
            let [id, blocks] = numbers(words)[..] else { panic!("{line}") };
            return json!({"name": name, "barrier_id": id, "num_threadblocks": blocks});
        }
        "sem_acquire" | "sem_release" => {
            return json!({"name": name, "semaphore_ids": numbers(words)});
        }
        "signal" | "wait" | "flush" | "rlxsignal" | "rlxwait" => {
            return json!({"name": name, "channel_ids": numbers(words), "channel_type": way});
        }
        _ => {}
    }
    let (places, channels) =
        words.split_at(words.iter().position(|w| *w == "@").unwrap_or(words.len()));
    let (srcs, dsts) = places.split_at(places.iter().position(|w| *w == ">").expect(line));
    let mut op =
        json!({"name": name, "src_buff": chunks(srcs, rank), "dst_buff": chunks(&dsts[1..], rank)});
    if !["copy", "cpkt", "upkt"].contains(&name) {
        op["channel_type"] = json!(way);
    }
    if let [_, channels @ ..] = channels {
        op["channel_ids"] = json!(numbers(channels));
    }
    if let Some((id, all)) = part.split_once('/') {
        op["tbg_info"] = json!({"tb_id": number(id, rank), "tbg_size": number(all, rank)});
    }
    op
}

/// The plan of a text.
pub(super) fn plan(text: &str) -> Json {
    let both = ["memory", "port"];
    let gpu = |rank: usize| {
        let remote =
            |letter| json!({"rank": 1 - rank, "type": letter, "access_channel_types": both});
        json!({
            "id": rank, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 4, "threadblocks": [],
            "channels": both.map(|way| json!({"channel_type": way, "connected_to": [1 - rank, 1 - rank]})),
            "remote_buffers": [remote("s"), remote("i"), remote("o")],
            "semaphores": [{"init_value": 0}, {"init_value": 1}],
        })
    };
    let mut plan = json!({
        "name": "made", "collective": "allreduce", "protocol": "Simple", "inplace": true,
        "gpus": [gpu(0), gpu(1)],
    });
    for line in text.lines() {
        let (rank, line) =
            line.split_once("| ").map_or((None, line), |(rank, line)| (Some(rank), line));
        let ranks = (0..2).filter(|at| rank.is_none_or(|rank| number(rank, 0) == *at));
        if let Some((key, value)) = line.split_once(" = ") {
            let value: Json = serde_json::from_str(value).expect("a value of JSON");
            if key.ends_with("_chunks") || key == "semaphores" {
                ranks.for_each(|rank| plan["gpus"][rank][key] = value.clone());
            } else {
                plan[key] = value;
            }
            continue;
        }
        for rank in ranks {
            let blocks = plan["gpus"][rank]["threadblocks"].as_array_mut().expect("a list");
            if line == "block" {
                let own = both.map(|way| json!({"channel_type": way, "channel_ids": [0, 1]}));
                let refs = both
                    .map(|way| json!({"access_channel_type": way, "remote_buffer_ids": [0, 1, 2]}));
                blocks.push(json!({"id": blocks.len(), "ops": [], "channels": own, "remote_buffer_refs": refs}));
                continue;
            }
            let mut ops = &mut blocks.last_mut().expect("a block")["ops"];
            if line == "pipeline" {
                *ops = json!([{"name": line, "iter_context": {"unit_size": 1024, "num_chunks": 1}, "ops": []}]);
                continue;
            }
            if ops[0]["name"] == "pipeline" {
                ops = &mut ops[0]["ops"];
            }
            ops.as_array_mut().expect("a list").push(op(line, rank));
        }
    }
    plan
}

/// The texts of the plans that are written here, by name.
pub(super) fn texts() -> Vec<(&'static str, String)> {
    read_texts(include_str!("plans.txt"))
}

/// The texts of a file, each below its name.
pub(super) fn read_texts(file: &'static str) -> Vec<(&'static str, String)> {
    let lines = file.lines();
    let mut texts: Vec<(&str, String)> = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("plan ") {
            Some(name) => texts.push((name, String::new())),
            None => texts.last_mut().expect("a plan").1.extend([line, "\n"]),
        }
    }
    texts
}

/// A plan that is written here.
pub(super) fn named(name: &str) -> Json {
    plan(&texts().into_iter().find(|(known, _)| *known == name).expect(name).1)
}

/// Returns all plans, by name.
pub(super) fn all() -> Vec<(String, Json)> {
    let parse = |text: &str| serde_json::from_str(text).expect("it is JSON");
    let mut all = vec![("two ranks".to_owned(), parse(&two_ranks()))];
    all.extend(texts().into_iter().map(|(name, text)| (name.to_owned(), plan(&text))));
    for (name, nranks, in_place) in [
        ("RingAllReduce", 2, true),
        ("RingReduceScatter", 3, false),
        ("RingAllGather", 3, true),
        ("TwistedRingAllReduce", 2, false),
        ("MeshAllGather", 2, false),
        ("MeshAllToAll", 2, false),
    ] {
        let text = exported(name, nranks, in_place);
        all.push((format!("{name} {nranks} {in_place}"), parse(&text)));
    }
    all
}

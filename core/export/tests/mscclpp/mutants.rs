//! Right plans in which an op is dropped, moved or changed: the proof must agree with the executor in small.

use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use serde_json::{Value as Json, json};

use super::model::{items, number};
use super::proxies::is_of_port;
use super::run::outcome;
use super::{made, told};
use crate::models::Outcome;
use crate::mutants::Mutants;

/// Returns the result of the proof, in the words of the model; and whether only a missing `nop` causes it, which the
/// proof also reports where the threads of the model happen to do no harm.
fn proved(plan: &Json) -> (Outcome, bool, Vec<(Code, String)>) {
    let told = told(plan);
    let outcomes = told.iter().map(|(code, _)| match code {
        Code::Deadlock | Code::UnmatchedWait | Code::LeftOverSignal => Outcome::Hangs,
        Code::SharedSignal => Outcome::Shared,
        Code::Race | Code::RaceWithCaller | Code::ScratchRace => Outcome::Race,
        Code::WrongResult | Code::UninitializedRead => Outcome::Wrong,
        _ => Outcome::Refused,
    });
    let worst = outcomes.max().unwrap_or(Outcome::Right);
    let careful = told.iter().any(|(_, title)| title.contains("without a `nop`"));
    (worst, careful, told)
}

/// Returns the outcome of the executor in two orders, with one stretch of each loop and, where that is right, with two.
fn expected(plan: &Json) -> Outcome {
    let run = |stretches, seed| outcome(plan, stretches, &mut Rng::with_seed(seed));
    match run(1, 1).max(run(1, 2)) {
        Outcome::Right => run(2, 3),
        wrong => wrong,
    }
}

fn blocks(plan: &Json) -> Vec<(usize, usize)> {
    let gpus = items(&plan["gpus"]).iter().enumerate();
    gpus.flat_map(|(gpu, value)| {
        (0..items(&value["threadblocks"]).len()).map(move |block| (gpu, block))
    })
    .collect()
}

fn mutate(plan: &mut Json, random: &mut Rng) {
    let all = blocks(plan);
    let (gpu, block) = all[random.usize(..all.len())];
    let [inputs, scratch] =
        ["input_chunks", "scratch_chunks"].map(|key| number(&plan["gpus"][gpu][key]));
    let block = &mut plan["gpus"][gpu]["threadblocks"][block];
    let wires = block["channels"][0]["channel_ids"].as_array().map_or(0, Vec::len);
    let remotes =
        block["remote_buffer_refs"][0]["remote_buffer_ids"].as_array().map_or(0, Vec::len);
    let mut ops = block["ops"].as_array_mut().expect("a list");
    if ops.len() == 1 && ops[0]["name"] == "pipeline" {
        ops = ops[0]["ops"].as_array_mut().expect("a list");
    }
    if ops.is_empty() {
        return;
    }
    let at = random.usize(..ops.len());
    let kind = random.usize(..9);
    match kind {
        0 => {
            ops.remove(at);
        }
        1 if at + 1 < ops.len() => ops.swap(at, at + 1),
        2 => {
            let copy = ops[at].clone();
            ops.insert(random.usize(..ops.len()), copy);
        }
        3 if ops[at].get("channel_ids").is_some() => {
            ops[at]["channel_ids"][0] = json!(random.usize(..wires));
        }
        8 if is_of_port(&ops[at]) && ops[at].get("src_buff").is_some() => {
            ops[at]["name"] = json!(["put", "pws", "pwsf", "ppkt"][random.usize(..4)]);
        }
        _ => {
            let moving: Vec<usize> =
                (0..ops.len()).filter(|at| ops[*at].get("src_buff").is_some()).collect();
            if moving.is_empty() {
                return;
            }
            let op = &mut ops[moving[random.usize(..moving.len())]];
            let side = ["src_buff", "dst_buff"][random.usize(..2)];
            let count = items(&op[side]).len();
            let chunk = &mut op[side][random.usize(..count)];
            match kind {
                4 if chunk.get("type").is_some() => {
                    chunk["type"] = json!(["i", "o", "s"][random.usize(..3)]);
                }
                5 if chunk.get("buffer_id").is_some() => {
                    chunk["buffer_id"] = json!(random.usize(..remotes));
                }
                _ => chunk["index"] = json!(random.usize(..inputs.max(scratch))),
            }
        }
    }
}

#[test]
fn right_plans() {
    for (name, plan) in made::all() {
        let (ours, _, told) = proved(&plan);
        assert_eq!(ours, Outcome::Right, "{name}: {told:#?}");
        assert_eq!(expected(&plan), Outcome::Right, "{name}");
    }
}

#[test]
fn mutants_are_judged_as_they_run() {
    let mutants = Mutants { usual: 300, variable: "ROUNDELAY_MSCCLPP_MUTANTS", seed: 11 };
    mutants.judge(&made::all(), mutate, |name, plan| {
        let expected = expected(plan);
        let (ours, careful, told) = proved(plan);
        // Packets that two ops write, or that no op writes and a port sends, are refused, with any outcome.
        let says = |part: &str| told.iter().any(|(_, title)| title.contains(part));
        let early =
            says("two ops write packets") || name.contains("of port") && says("that nobody writes");
        // Data that is read before it is written may also be read in no order.
        let unwritten = told.iter().any(|(code, _)| *code == Code::UninitializedRead);
        // Packets that a port sends before they are written may be old, and are waited for in vain.
        let old = ours == Outcome::Race && says("packets");
        let agree = ours == expected
            || old && expected == Outcome::Hangs
            || careful && ours == Outcome::Race
            || early
            || unwritten && ours == Outcome::Wrong && expected == Outcome::Race;
        assert!(agree, "{name}: {ours:?}, not {expected:?}: {told:#?}\n{plan}");
        expected
    });
}

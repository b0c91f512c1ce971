//! Right plans in which an op is dropped, moved or changed: the proof must agree with the executor in small.

use roundelay_core::diagnostics::Code;
use serde_json::{Value as Json, json};

use super::model::{Outcome, items, number};
use super::proxies::is_of_port;
use super::run::outcome;
use super::{Dice, made, told};

/// Mutants of a normal run; `ROUNDELAY_MSCCLPP_MUTANTS` asks for more.
const MUTANTS: usize = 300;

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
    let run = |stretches, seed| outcome(plan, stretches, &mut Dice(seed));
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

fn mutate(plan: &mut Json, dice: &mut Dice) {
    let all = blocks(plan);
    let (gpu, block) = all[dice.roll(all.len())];
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
    let at = dice.roll(ops.len());
    let kind = dice.roll(9);
    match kind {
        0 => {
            ops.remove(at);
        }
        1 if at + 1 < ops.len() => ops.swap(at, at + 1),
        2 => {
            let copy = ops[at].clone();
            ops.insert(dice.roll(ops.len()), copy);
        }
        3 if ops[at].get("channel_ids").is_some() => {
            ops[at]["channel_ids"][0] = json!(dice.roll(wires));
        }
        8 if is_of_port(&ops[at]) && ops[at].get("src_buff").is_some() => {
            ops[at]["name"] = json!(["put", "pws", "pwsf", "ppkt"][dice.roll(4)]);
        }
        _ => {
            let moving: Vec<usize> =
                (0..ops.len()).filter(|at| ops[*at].get("src_buff").is_some()).collect();
            if moving.is_empty() {
                return;
            }
            let op = &mut ops[moving[dice.roll(moving.len())]];
            let side = ["src_buff", "dst_buff"][dice.roll(2)];
            let count = items(&op[side]).len();
            let chunk = &mut op[side][dice.roll(count)];
            match kind {
                4 if chunk.get("type").is_some() => {
                    chunk["type"] = json!(["i", "o", "s"][dice.roll(3)]);
                }
                5 if chunk.get("buffer_id").is_some() => {
                    chunk["buffer_id"] = json!(dice.roll(remotes));
                }
                _ => chunk["index"] = json!(dice.roll(inputs.max(scratch))),
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
    let asked = std::env::var("ROUNDELAY_MSCCLPP_MUTANTS").ok();
    let all = asked.map_or(MUTANTS, |text| text.parse().expect("a number of mutants"));
    let plans = made::all();
    let seed = std::env::var("ROUNDELAY_MSCCLPP_SEED").ok();
    let mut dice = Dice(seed.map_or(11, |text| text.parse().expect("a number")));
    let mut seen = std::collections::BTreeMap::new();
    for mutant in 0..all {
        let (name, right) = &plans[dice.roll(plans.len())];
        let mut plan = right.clone();
        for _ in 0..=dice.roll(2) {
            mutate(&mut plan, &mut dice);
        }
        let expected = expected(&plan);
        let (ours, careful, told) = proved(&plan);
        // Packets that two ops write, or that no op writes and a port sends, are refused, with any outcome.
        let says = |part: &str| told.iter().any(|(_, title)| title.contains(part));
        let early =
            says("two ops write packets") || name.starts_with("port") && says("that nobody writes");
        // Data that is read before it is written may also be read in no order.
        let unwritten = told.iter().any(|(code, _)| *code == Code::UninitializedRead);
        // Packets that a port sends before they are written may be old, and are waited for in vain.
        let old = ours == Outcome::Race && says("packets");
        let agree = ours == expected
            || old && expected == Outcome::Hangs
            || careful && ours == Outcome::Race
            || early
            || unwritten && ours == Outcome::Wrong && expected == Outcome::Race;
        assert!(agree, "mutant {mutant} of {name}: {ours:?}, not {expected:?}: {told:#?}\n{plan}");
        *seen.entry(expected).or_insert(0) += 1;
    }
    eprintln!("{all} mutants: {seen:?}");
    for outcome in [Outcome::Right, Outcome::Wrong, Outcome::Race, Outcome::Hangs, Outcome::Refused]
    {
        assert!(seen.contains_key(&outcome), "no mutant is {outcome:?}: {seen:?}");
    }
}

//! The effects of single rules of the executor, and what its reports say besides.

use roundelay_core::diagnostics::Code;
use serde_json::{Value as Json, json};

use super::made::{named, op, plan, read_texts, texts};
use super::{read, told, two_ranks, verdict};
use crate::cases;

#[test]
fn what_is_said_of_plans() {
    let mut all = texts();
    all.extend(read_texts(include_str!("bases.txt")));
    cases::check("mscclpp/rules.txt", &all, |text| {
        let text = read(&plan(text).to_string());
        let verdict = text.program.as_ref().map(|program| program.verdict(&text.source));
        let proof = verdict.iter().flat_map(|all| all.errors().chain(&all.warnings));
        let said = text.errors.iter().chain(proof).chain(&text.warnings);
        let mut lines: Vec<_> = said.map(|said| format!("{} {}", said.code, said.title)).collect();
        lines.truncate(5);
        if lines.is_empty() { "right".to_owned() } else { lines.join("\n") }
    });
}

fn two() -> Json {
    serde_json::from_str(&two_ranks()).expect("it is JSON")
}

#[test]
fn the_plan_of_two_ranks() {
    let right = verdict(&two());
    assert!(right.is_right());
    assert_eq!((right.orders, right.stretches.len()), (Some(1), 0));
    let proved = right.modes[0].proved.clone().expect("it is proved");
    assert_eq!((proved.schedule().multiple, proved.schedule().streams.len()), (2, 4));
    assert_eq!(verdict(&named("pipeline")).stretches, [1, 3]);
    // Both wait first: a deadlock, told with the ops that wait.
    let mut stuck = two();
    for gpu in 0..2 {
        let ops = &mut stuck["gpus"][gpu]["threadblocks"][0]["ops"];
        ops.as_array_mut().expect("a list").swap(2, 3);
    }
    assert_eq!(
        told(&stuck)[0],
        (Code::Deadlock, "deadlock: 2 blocks wait for each other".to_owned())
    );
    let notes = verdict(&stuck).modes[0].errors[0].all_notes().collect::<Vec<_>>().join("\n");
    assert!(notes.contains("gpu 0 block 0 op 2 (line 1) waits for gpu 1"), "{notes}");
}

#[test]
fn notes_tell_of_proxies_and_of_versions() {
    let again = "collective = \"allgather\"\ninput_chunks = 1\nblock\nsignal 0\nwait 0\nnop\ncopy or > s0\nnop\n\
                 port pws s0 > 2:r @ 0\ncopy or > s0\nnop\nport wait 0\nnop";
    let note = verdict(&plan(again)).modes[0].errors[0].notes.concat();
    let late = "a proxy carries out a put over a port at any time after the op";
    assert!(note.contains(late), "{note}");
    let flush = verdict(&named("port flush"));
    let notes = flush.warnings[0].all_notes().collect::<Vec<_>>().join("\n");
    assert!(notes.contains("0.8 and 0.9 take it for `pws`, and then: race on"), "{notes}");
}

#[test]
fn a_channel_leads_to_the_peer_of_the_buffer() {
    let mut plan = named("port sums");
    let third = json!({"rank": 0, "type": "o", "access_channel_types": ["port"]});
    plan["gpus"].as_array_mut().expect("a list").push(json!({
        "id": 2, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 4, "semaphores": [],
        "threadblocks": [{"id": 0, "ops": [op("port put o0 > 0:0 @ 0", 0)],
            "channels": [{"channel_type": "port", "channel_ids": [0]}],
            "remote_buffer_refs": [{"access_channel_type": "port", "remote_buffer_ids": [0]}]}],
        "channels": [{"channel_type": "port", "connected_to": [1]}], "remote_buffers": [third],
    }));
    assert_eq!(told(&plan)[0].1, "a put to rank 0 over a channel to rank 1");
}

//! Puts and signals over ports: what the queue of the proxy orders, what it does not order, and which executors flush.

use roundelay_core::diagnostics::Code;
use serde_json::{Value as Json, json};

use super::made::{self, chunk, data, far, nop, plan, port, sent, signal};
use super::{read, told, verdict};

/// Returns the ops of a rank, of its own chunk, and of that chunk at the peer.
type Sending<'a> = &'a dyn Fn(usize, &[Json], &[Json]) -> Vec<Json>;

/// Each rank waits until its peer has entered, and then gathers both ranks' chunks in place: `ops` sends the own chunk.
fn gather(ops: impl Fn(usize, &[Json], &[Json]) -> Vec<Json>) -> Json {
    let head = json!({"collective": "allgather"});
    let mut plan = plan(&head, |rank| {
        vec![[talk(), ops(rank, &[chunk("o", rank)], &[far(2, rank)])].concat()]
    });
    for gpu in 0..2 {
        plan["gpus"][gpu]["input_chunks"] = json!(1);
    }
    plan
}

/// Signals to each other over memory.
fn talk() -> Vec<Json> {
    vec![signal("signal", 0), signal("wait", 0), nop()]
}

fn warnings(plan: &Json) -> Vec<String> {
    let text = read(&plan.to_string());
    let mut all = text.warnings.clone();
    let program = text.program.unwrap_or_else(|| panic!("{:#?}", text.errors));
    all.extend(program.verdict(&text.source).warnings);
    all.into_iter().map(|warning| warning.title).collect()
}

/// A put and the signal behind it on one channel need no `nop`, as one thread enters both into one queue.
#[test]
fn signals_follow_puts_of_their_channel() {
    let tail = || vec![port("wait", &[0]), nop()];
    let right = |ops: Sending<'_>| {
        let plan = gather(|rank, src, dst| [ops(rank, src, dst), tail()].concat());
        assert_eq!(told(&plan), [], "{plan}");
    };
    right(&|_, src, dst| vec![sent("pws", src, dst, &[0])]);
    right(&|_, src, dst| vec![sent("pwsf", src, dst, &[0])]);
    right(&|_, src, dst| vec![sent("put", src, dst, &[0]), port("signal", &[0])]);
    right(&|_, src, dst| vec![sent("put", src, dst, &[0]), nop(), port("signal", &[0])]);
    // All threads have stored their data before the signal is entered.
    right(&|_, src, dst| vec![data("put", src, dst), nop(), port("signal", &[0])]);
}

#[test]
fn what_no_queue_orders() {
    let tail = |ids: &[usize]| vec![port("wait", ids), nop()];
    let wrong = |name: &str, ops: Sending<'_>, ids: &[usize]| {
        let told = told(&gather(|rank, src, dst| [ops(rank, src, dst), tail(ids)].concat()));
        assert!(
            told.iter().any(|(code, _)| matches!(
                code,
                Code::Race | Code::RaceWithCaller | Code::ScratchRace
            )),
            "{name}: {told:#?}"
        );
    };
    let put = |src: &[Json], dst: &[Json]| sent("put", src, dst, &[0]);
    wrong("the signal comes first", &|_, src, dst| vec![port("signal", &[0]), put(src, dst)], &[0]);
    wrong(
        "the signal goes another way",
        &|_, src, dst| vec![put(src, dst), nop(), port("signal", &[1])],
        &[1],
    );
    wrong(
        "the signal goes over memory",
        &|_, src, dst| vec![put(src, dst), nop(), signal("signal", 1), signal("wait", 1), nop()],
        &[],
    );
    wrong(
        "threads store data, and one of them signals",
        &|_, src, dst| vec![data("put", src, dst), port("signal", &[0])],
        &[0],
    );
    wrong(
        "another thread signals",
        &|_, src, dst| vec![put(src, dst), port("signal", &[1, 0])],
        &[0, 1],
    );
    wrong(
        "the source is not written yet",
        &|rank, _, dst| {
            let staged = data("copy", &[chunk("o", rank)], &[chunk("s", 0)]);
            vec![staged, sent("pws", &[chunk("s", 0)], dst, &[0])]
        },
        &[0],
    );
    let overwritten = |between: Vec<Json>| {
        move |rank: usize, _: &[Json], dst: &[Json]| {
            let stage = |from: &str, at| data("copy", &[chunk(from, at)], &[chunk("s", 0)]);
            let put = sent("pws", &[chunk("s", 0)], dst, &[0]);
            [vec![stage("o", rank), nop(), put], between.clone(), vec![stage("o", rank), nop()]]
                .concat()
        }
    };
    wrong("the source is written again", &overwritten(vec![]), &[0]);
    let again = gather(|rank, src, dst| overwritten(vec![])(rank, src, dst));
    let note = &verdict(&again).checked.errors[0].notes.concat();
    assert!(
        note.contains("a proxy carries out a put over a port at any time after the op"),
        "{note}"
    );
    wrong("a nop does not wait for the proxy", &overwritten(vec![nop()]), &[0]);
    let flush = vec![port("flush", &[0]), nop()];
    wrong("a flush does nothing", &overwritten(flush), &[0]);
    wrong(
        "two channels write one place",
        &|_, src, dst| vec![sent("pws", &[src, src].concat(), &[dst, dst].concat(), &[0, 1])],
        &[0, 1],
    );
    wrong(
        "two threads write one place",
        &|_, src, dst| {
            let both = sent("put", &[src, src].concat(), &[dst, dst].concat(), &[0, 0]);
            vec![both, nop(), port("signal", &[0])]
        },
        &[0],
    );
    // Until the data of the peer has come, and with it the knowledge that the own put was read.
    let answered = gather(|rank, _, dst| {
        let stage = || data("copy", &[chunk("o", rank)], &[chunk("s", 0)]);
        let (put, ack) = (sent("pws", &[chunk("s", 0)], dst, &[0]), port("signal", &[1]));
        let waits = [port("wait", &[0]), nop(), ack, port("wait", &[1]), nop()];
        [vec![stage(), nop(), put], waits.to_vec(), vec![stage(), nop()]].concat()
    });
    assert_eq!((told(&answered), warnings(&answered)), (vec![], vec![]));
}

/// The k-th channel of an op is the k-th thread's: a signal is behind its own thread's waits alone.
#[test]
fn threads_of_single_channels() {
    let twice = |signals: &[usize], between: Vec<Json>| {
        plan(&json!({"collective": "none"}), |_| {
            let all = json!([0, 1]);
            let both =
                |name: &str| json!({"name": name, "channel_ids": all, "channel_type": "memory"});
            let signals: Vec<Json> = signals.iter().map(|id| port("signal", &[*id])).collect();
            let waits = [port("wait", &[0]), port("wait", &[1])];
            let first = vec![both("signal"), both("wait")];
            vec![[first, between.clone(), signals, vec![nop()], waits.to_vec()].concat()]
        })
    };
    assert_eq!(told(&twice(&[0, 1], vec![nop()])), []);
    // Thread 0 has waited for channel 0 alone; that its signals come behind it is no mistake.
    assert_eq!(told(&twice(&[0, 1], vec![])), []);
    let crossed = plan(&json!({"collective": "none"}), |_| {
        let both =
            |name: &str| json!({"name": name, "channel_ids": [0, 1], "channel_type": "memory"});
        vec![vec![both("signal"), both("wait"), both("signal"), nop(), both("wait")]]
    });
    let error = "waits and signals of several channels without a `nop` between them";
    assert_eq!(told(&crossed)[0], (Code::Race, error.to_owned()));
    // A signal of thread 0 says nothing of the data that thread 1 has waited for.
    let reads = |nops: usize| {
        plan(&json!({"inplace": false}), |rank| {
            let both =
                |name: &str| json!({"name": name, "channel_ids": [0, 1], "channel_type": "memory"});
            let peer = 1 - rank;
            let put = |at: usize| data("put", &[chunk("i", at)], &[far(0, at)]);
            let sum = |at: usize| data("re", &[chunk("i", at), chunk("s", at)], &[chunk("o", at)]);
            let mut ops = vec![signal("signal", 0), signal("wait", 0), nop()];
            ops.extend([put(0), put(1), nop(), both("signal"), both("wait")]);
            ops.extend(vec![nop(); nops]);
            ops.extend([sum(rank), sum(peer)]);
            vec![ops]
        })
    };
    assert_eq!(told(&reads(1)), []);
    assert!(!told(&reads(0)).is_empty());
}

/// Packets that are read, and a signal, without a `nop`: other threads may still read and store.
#[test]
fn a_signal_behind_packets() {
    let sums = |nops: usize| {
        let head = json!({"protocol": "LL", "use_double_scratch_buffer": true, "inplace": false});
        plan(&head, |rank| {
            let mut ops = vec![
                signal("signal", 0),
                signal("wait", 0),
                nop(),
                data("ppkt", &[chunk("i", 1 - rank)], &[far(0, 0)]),
                data("repkt", &[chunk("i", rank), chunk("s", 0)], &[chunk("o", rank)]),
            ];
            ops.extend(vec![nop(); nops]);
            ops.extend([signal("signal", 1), signal("wait", 1), nop()]);
            ops.push(data("get", &[far(2, 1 - rank)], &[chunk("o", 1 - rank)]));
            ops.extend([nop(), signal("signal", 1), signal("wait", 1)]);
            vec![ops]
        })
    };
    assert_eq!(told(&sums(1)), []);
    assert!(told(&sums(0)).iter().any(|(code, _)| *code == Code::Race), "{:?}", told(&sums(0)));
}

#[test]
fn packets_over_ports() {
    assert_eq!(told(&made::port_packets()), []);
    let changed = |change: &dyn Fn(&mut Json)| {
        let mut plan = made::port_packets();
        for gpu in 0..2 {
            change(&mut plan["gpus"][gpu]["threadblocks"][0]["ops"]);
        }
        told(&plan)
    };
    let says = |told: Vec<(Code, String)>, code: Code, expected: &str| {
        let found = told.iter().any(|(known, title)| *known == code && title.contains(expected));
        assert!(found, "{expected}: {told:#?}");
    };
    let early = |ops: &mut Json| {
        ops.as_array_mut().expect("a list").remove(2);
    };
    says(changed(&early), Code::Race, "packets slot 0");
    let offset = |ops: &mut Json| ops[3]["dst_buff"][0]["index"] = json!(0);
    says(changed(&offset), Code::Race, "two ops write packets of one chunk");
    let unwritten = |ops: &mut Json| ops[3]["src_buff"][0]["index"] = json!(3);
    assert!(!changed(&unwritten).is_empty());
    let plain = |ops: &mut Json| ops[3]["src_buff"][0]["type"] = json!("i");
    says(changed(&plain), Code::RefusedByRuntime, "packets outside of scratch");
    let unmade = |ops: &mut Json| {
        ops.as_array_mut().expect("a list").remove(0);
    };
    says(changed(&unmade), Code::UnmatchedWait, "packets of chunk 0 that nobody writes");
    let put = |ops: &mut Json| ops[3]["name"] = json!("put");
    says(changed(&put), Code::RefusedByRuntime, "of which calls take the halves in turn");
    // Packets that come from the peer are not waited for by a `ppkt`.
    let onward = |ops: &mut Json| {
        let ops = ops.as_array_mut().expect("a list");
        ops.push(sent("ppkt", &[chunk("s", 2)], &[far(0, 1)], &[0]));
    };
    assert!(!changed(&onward).is_empty());
    let mut plan = made::port_packets();
    let known = "a `ppkt` over a port, which takes its source from the executor's first plan";
    assert!(warnings(&plan).iter().any(|title| title == known));
    plan["reuse_resources"] = json!(true);
    assert!(warnings(&plan).iter().all(|title| title != known));
}

/// Only later executors flush; where a plan needs it, or where it alone says that a source is read, that is a warning.
#[test]
fn flushes_by_version() {
    let waits = "a `pwsf`, which waits for its put only from June 2026 on";
    let returns = "a rank may return before its proxy has read this";
    assert_eq!(told(&made::port_flush()), []);
    assert_eq!(warnings(&made::port_flush()), [waits]);
    let text = read(&made::port_flush().to_string());
    let verdict = text.program.expect("it is read").verdict(&text.source);
    let notes = verdict.warnings[0].all_notes().collect::<Vec<_>>().join("\n");
    assert!(notes.contains("0.8 and 0.9 take it for `pws`, and then: race on"), "{notes}");
    let last = |name: &str, then: Vec<Json>| {
        let put = |src: &[Json], dst: &[Json]| sent(name, src, dst, &[0]);
        gather(|_, src, dst| {
            [vec![put(src, dst), port("wait", &[0]), nop()], then.clone()].concat()
        })
    };
    assert_eq!(warnings(&last("pws", talk())), [] as [&str; 0], "the last signals tell of the end");
    let ends = ["pws", "pwsf"].map(|name| last(name, vec![]));
    assert!(ends.iter().all(|plan| told(plan).is_empty()));
    assert_eq!(ends.map(|plan| warnings(&plan)), [[returns], [waits]]);
}

/// Puts of two sizes are two ops, and each thread waits for its own flushes: no `nop` is needed between them.
#[test]
fn flushes_of_two_threads() {
    let wide = |letter: &str, at: usize| json!({"type": letter, "index": at, "size": 2});
    let far_wide = |at: usize| json!({"buffer_id": 0, "index": at, "size": 2});
    let flushes = |ids: &[usize]| {
        plan(&json!({"inplace": false}), |_| {
            let own = [chunk("i", 0), chunk("i", 1)];
            let twice = [wide("i", 0), wide("i", 0)];
            let sum = |at: usize| data("re", &[own[at].clone(), chunk("s", at)], &[chunk("o", at)]);
            let sends = vec![
                sent("pwsf", &own, &[far(0, 0), far(0, 1)], ids),
                sent("pwsf", &twice, &[far_wide(2), far_wide(4)], ids),
            ];
            let wait = |id: &usize| [port("wait", &[*id]), nop()];
            let waits: Vec<Json> = ids.iter().chain(ids).flat_map(wait).collect();
            vec![[talk(), sends, waits, vec![sum(0), sum(1), nop()], talk()].concat()]
        })
    };
    for ids in [[0, 1], [0, 0]] {
        let mut plan = flushes(&ids);
        for gpu in 0..2 {
            plan["gpus"][gpu]["scratch_chunks"] = json!(6);
        }
        assert_eq!(told(&plan), [], "{ids:?}");
    }
}

/// Puts that were merged: two threads enter on one channel. Which of them is first is open, but both signals come.
#[test]
fn two_threads_on_one_channel() {
    let merged = |waits: &[usize], between: usize| {
        plan(&json!({"inplace": false}), |_| {
            let (own, come) = ([chunk("i", 0), chunk("i", 1)], [far(0, 0), far(0, 1)]);
            let sum = |at: usize| data("re", &[own[at].clone(), chunk("s", at)], &[chunk("o", at)]);
            let mut ops = vec![signal("signal", 0), signal("wait", 0)];
            ops.extend(vec![nop(); between]);
            ops.push(sent("pws", &own, &come, &[0, 0]));
            let waits = waits.iter().flat_map(|at| {
                let sums = if *at == 1 { vec![] } else { vec![sum(at / 2)] };
                [vec![port("wait", &[0]), nop()], sums].concat()
            });
            ops.extend(waits);
            ops.extend(if waits_all(&ops) { vec![sum(0), sum(1)] } else { vec![sum(1)] });
            ops.extend([nop(), signal("signal", 1), signal("wait", 1)]);
            vec![ops]
        })
    };
    assert_eq!(told(&merged(&[1, 1], 1)), []);
    let early = told(&merged(&[0, 1], 1));
    assert!(!early.is_empty(), "after one signal neither put is known");
    let error = "a wait, and entries of two threads on one channel, without a `nop` between them";
    assert_eq!(told(&merged(&[1, 1], 0))[0], (Code::Race, error.to_owned()));
}

fn waits_all(ops: &[Json]) -> bool {
    ops.iter().all(|op| op["name"] != "re")
}

#[test]
fn a_channel_leads_to_the_peer_of_the_buffer() {
    let mut plan = made::port_sums();
    assert!(verdict(&plan).is_right());
    let third = json!({"rank": 0, "type": "o", "access_channel_types": ["port"]});
    plan["gpus"].as_array_mut().expect("a list").push(json!({
        "id": 2, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 4, "semaphores": [],
        "threadblocks": [{"id": 0, "ops": [sent("put", &[chunk("o", 0)], &[far(0, 0)], &[0])],
            "channels": [{"channel_type": "port", "channel_ids": [0]}],
            "remote_buffer_refs": [{"access_channel_type": "port", "remote_buffer_ids": [0]}]}],
        "channels": [{"channel_type": "port", "connected_to": [1]}], "remote_buffers": [third],
    }));
    let told = told(&plan);
    assert_eq!(told[0].1, "a put to rank 0 over a channel to rank 1");
}

//! The effects of single rules of the executor.

use roundelay_core::diagnostics::Code;
use serde_json::{Value as Json, json};

use super::made::{self, chunk, data, far, nop, plan, semaphore, signal};
use super::{told, two_ranks, verdict};

fn codes(plan: &Json) -> Vec<Code> {
    told(plan).into_iter().map(|(code, _)| code).collect()
}

fn says(plan: &Json, code: Code, expected: &str) {
    let told = told(plan);
    assert!(
        told.iter().any(|(known, title)| *known == code && title.contains(expected)),
        "{code} {expected}: {told:#?}"
    );
}

fn two() -> Json {
    serde_json::from_str(&two_ranks()).expect("it is JSON")
}

fn ops(plan: &mut Json, gpu: usize, block: usize) -> &mut Vec<Json> {
    plan["gpus"][gpu]["threadblocks"][block]["ops"].as_array_mut().expect("a list")
}

#[test]
fn the_plan_of_two_ranks() {
    let verdict = verdict(&two());
    assert!(verdict.is_right());
    assert_eq!((verdict.orders, verdict.stretches.len()), (Some(1), 0));
    let proved = verdict.checked.proved.expect("it is proved");
    assert_eq!((proved.schedule().multiple, proved.schedule().streams.len()), (2, 4));
    // Both wait first: a deadlock, told with the ops that wait.
    let mut stuck = two();
    for gpu in 0..2 {
        ops(&mut stuck, gpu, 0).swap(2, 3);
    }
    says(&stuck, Code::Deadlock, "2 blocks wait for each other");
    let text = super::read(&stuck.to_string());
    let program = text.program.expect("it makes sense");
    let errors = program.verdict(&text.source).checked.errors;
    let notes = errors[0].all_notes().collect::<Vec<_>>().join("\n");
    assert!(notes.contains("gpu 0 block 0 op 2 (line 1) waits for gpu 1"), "{notes}");
}

/// The threads that move data are not the threads that signal.
#[test]
fn a_nop_is_needed() {
    // A `nop` is needed between a put and its signal.
    let mut early = two();
    ops(&mut early, 0, 0).remove(1);
    assert!(codes(&early).contains(&Code::Race) || codes(&early).contains(&Code::ScratchRace));
    // A `nop` is needed between a wait and an op that relies on it.
    let mut late = two();
    ops(&mut late, 0, 0).remove(4);
    assert!(!codes(&late).is_empty());
    // A `nop` is needed between a read and a signal, also where a wait stands there.
    let mut read = made::shared();
    ops(&mut read, 0, 0).swap(8, 9);
    ops(&mut read, 0, 0).remove(7);
    says(&read, Code::Race, "a wait, data and a signal without a `nop` between them");
    // A `nop` is needed between ops on equal chunks, unless each thread has the elements that it had.
    let same = |dst: Json| {
        plan(&json!({"inplace": false}), |_| {
            vec![vec![
                data("copy", &[chunk("i", 0)], &[chunk("s", 0)]),
                data("copy", &[chunk("s", 0)], std::slice::from_ref(&dst)),
            ]]
        })
    };
    let all = told(&same(chunk("o", 0)));
    assert!(all.iter().all(|(code, _)| *code == Code::WrongResult), "{all:#?}");
    let half = plan(&json!({"inplace": false}), |_| {
        let both = json!({"type": "s", "index": 0, "size": 2});
        let input = json!({"type": "i", "index": 0, "size": 2});
        let first = json!({"name": "copy", "src_buff": [input], "dst_buff": [both]});
        vec![vec![first, data("copy", &[chunk("s", 1)], &[chunk("o", 1)])]]
    });
    says(&half, Code::Race, "two ops on the same chunks without a `nop` between them");
}

#[test]
fn packets_and_halves_of_scratch() {
    assert!(verdict(&made::packets(true)).is_right());
    // With one scratch for all calls, the next call writes packets that may still be read.
    assert!(verdict(&made::one_shot(true)).is_right());
    let one = codes(&made::one_shot(false));
    assert!(one.contains(&Code::ScratchRace), "{one:?}");
    let mut simple = made::packets(true);
    simple["protocol"] = json!("Simple");
    for gpu in 0..2 {
        simple["gpus"][gpu]["scratch_chunks"] = json!(2);
    }
    says(&simple, Code::OutOfBounds, "packets 1..2 of `s`, of which gpu 1 has 1");
    let mut unsent = made::packets(true);
    ops(&mut unsent, 0, 0).remove(0);
    says(&unsent, Code::UnmatchedWait, "packets of chunk 0 that nobody writes");
    let mut later = made::packets(true);
    let first = ops(&mut later, 0, 0).remove(0);
    ops(&mut later, 0, 0).push(first);
    assert!(!codes(&later).is_empty());
    let mut plain = made::packets(true);
    ops(&mut plain, 0, 0).insert(0, data("copy", &[chunk("i", 0)], &[chunk("s", 1)]));
    says(&plain, Code::RefusedByRuntime, "packets lie where chunks of the same scratch lie");
    let mut far_scratch = made::packets(true);
    ops(&mut far_scratch, 0, 0).push(data("put", &[chunk("i", 0)], &[far(0, 3)]));
    says(&far_scratch, Code::RefusedByRuntime, "plain data in a peer's scratch");
}

#[test]
fn barriers_and_semaphores() {
    assert!(verdict(&made::barrier()).is_right());
    let mut fewer = made::barrier();
    for gpu in 0..2 {
        for block in 0..2 {
            ops(&mut fewer, gpu, block)[1]["num_threadblocks"] = json!(3);
        }
    }
    says(&fewer, Code::Deadlock, "is for 3 blocks, and 2 use it");
    let mut none = made::barrier();
    for block in 0..2 {
        ops(&mut none, 0, block).remove(1);
    }
    assert!(!codes(&none).is_empty(), "the barrier is needed");
    assert!(verdict(&made::pipeline()).is_right());
    assert_eq!(verdict(&made::pipeline()).stretches, [1, 3]);
    let mut zero = made::pipeline();
    zero["gpus"][0]["semaphores"][1]["init_value"] = json!(0);
    assert!(codes(&zero).contains(&Code::Deadlock), "{:?}", told(&zero));
    let with =
        |blocks: fn() -> Vec<Vec<Json>>| plan(&json!({"collective": "none"}), move |_| blocks());
    let gathered = with(|| {
        let release = || {
            vec![
                data("copy", &[chunk("i", 0)], &[chunk("s", 0)]),
                nop(),
                semaphore("sem_release", 0),
            ]
        };
        let mut second = release();
        second[0] = data("copy", &[chunk("i", 1)], &[chunk("s", 1)]);
        let wait = vec![
            semaphore("sem_acquire", 0),
            semaphore("sem_acquire", 0),
            nop(),
            data("copy", &[chunk("s", 0)], &[chunk("s", 2)]),
            data("copy", &[chunk("s", 1)], &[chunk("s", 3)]),
        ];
        vec![release(), second, wait]
    });
    assert_eq!(codes(&gathered), []);
    let open = with(|| {
        let give = || vec![semaphore("sem_release", 0)];
        let take = || vec![semaphore("sem_acquire", 0)];
        vec![give(), give(), take(), take()]
    });
    says(&open, Code::SharedSignal, "is released by 2 blocks, and acquired by 2");
    let more = with(|| vec![vec![semaphore("sem_release", 0)], vec![]]);
    says(&more, Code::LeftOverSignal, "is released 1 times, and acquired 0 times");
}

/// The k-th channel to a peer belongs to the peer's k-th.
#[test]
fn channels_pair_by_their_order() {
    let crossed = |ids: [usize; 2]| {
        plan(&json!({"collective": "none"}), |rank| {
            vec![vec![signal("signal", ids[rank]), signal("wait", ids[rank])]]
        })
    };
    assert_eq!(codes(&crossed([1, 1])), []);
    assert!(codes(&crossed([0, 1])).contains(&Code::UnmatchedWait), "{:?}", told(&crossed([0, 1])));
}

/// The executor confuses the numbers of the two sides of a `get`.
#[test]
fn a_get_is_mixed_up() {
    let get = |src: usize, dst: usize| {
        plan(&json!({"inplace": false, "collective": "allgather"}), |rank| {
            let peer = 1 - rank;
            let talk = || [signal("signal", 0), signal("wait", 0), nop()];
            let own = data("copy", &[chunk("i", 0)], &[chunk("o", rank)]);
            let pull = data("get", &[far(1, src * peer)], &[chunk("o", dst * peer)]);
            vec![[&talk()[..], &[own, pull], &talk()].concat()]
        })
    };
    let mut plan = get(0, 1);
    for gpu in 0..2 {
        plan["gpus"][gpu]["input_chunks"] = json!(1);
    }
    // The op goes beyond the input of a peer.
    says(&plan, Code::OutOfBounds, "chunks 1..2 of `i`, of which gpu 1 has 1");
    let text = super::read(&plan.to_string());
    assert!(text.warnings[0].title.contains("a `get` between chunks of different numbers"));
}

#[test]
fn chunks_of_equal_length() {
    let mut uneven = two();
    uneven["gpus"][1]["output_chunks"] = json!(4);
    says(&uneven, Code::RefusedByRuntime, "gpu 1 cuts its data into other chunks than gpu 0");
    uneven["gpus"][0]["output_chunks"] = json!(4);
    says(&uneven, Code::RefusedByRuntime, "2 chunks of input and 4 of output");
    let mut apart = two();
    apart["inplace"] = json!(false);
    says(&apart, Code::InputWritten, "the input is written");
}

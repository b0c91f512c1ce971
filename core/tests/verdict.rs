//! The verdict: rank counts, roots, limits and an end by the caller, and its form as JSON.

use roundelay_core::AnyProof;
use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::{Configured, Limits};
use roundelay_core::syntax::Source;
use roundelay_core::verdict::{Asked, Verdict, Within};
use roundelay_core::verify::Signals;

use crate::proof::slips::AROUND;

/// Every rank pulls the input of the root, which waits for fewer than `served` ranks.
fn star(served: &str) -> String {
    format!(
        "algorithm Star(root: Rank) -> Broadcast {{
    let hub = peer(root);
    if rank == root {{
        copy(local.input, local.output);
        for d in 1..{served} {{
            let other = peer((root + d) % nranks);
            other.TxAck();
            other.RxDataSignal();
        }}
    }} else {{
        hub.RxAck();
        copy(hub.output, local.output);
        hub.TxDataSignal();
    }}
}}"
    )
}

fn read(text: &str) -> (Configured, Source) {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| panic!("{errors:#?}"));
    (Configured::new(program.algorithms[0].clone(), &source), source)
}

fn verdict(text: &str, asked: &Asked<'_>) -> Verdict<AnyProof> {
    Verdict::with_facts(&read(text).0, asked, |_| (), |proof| proof)
}

/// The errors: code and rank count.
fn errors<F>(verdict: &Verdict<F>) -> Vec<(Code, Option<u32>)> {
    verdict.errors.iter().map(|error| (error.code, error.nranks)).collect()
}

#[test]
fn a_count_is_refused_or_named() {
    let mut asked = Asked::with_limits(&[1, 2, 3], Within::Plans);
    let found = verdict(AROUND, &asked);
    assert_eq!((found.counts(), errors(&found)), (vec![2, 3], vec![]));
    assert_eq!((found.refused.len(), found.refused[0].0, found.is_right()), (1, 1, true));
    asked.named = true;
    let found = verdict(AROUND, &asked);
    assert_eq!(
        (found.counts(), errors(&found)),
        (vec![2, 3], vec![(Code::RankCountRefused, Some(1))])
    );
    assert!(found.refused.is_empty() && !found.is_right());
    let found = verdict(AROUND, &Asked::with_limits(&[1], Within::Plans));
    assert!(found.is_refused() && found.is_right());
}

#[test]
fn every_root_is_proved() {
    let asked = Asked::with_limits(&[1, 2, 3], Within::Plans);
    let found = verdict(&star("nranks"), &asked);
    assert!(found.proved.iter().all(|count| !count.roots.is_partial()));
    let (algorithm, source) = read(&star("nranks"));
    assert_eq!(found.held_values(&algorithm, &source, false), ["root 0..=2"]);
    let each: Vec<u64> = found.proved.iter().map(|count| count.ops).collect();
    assert_eq!(found.ops, each.iter().sum::<u64>());
    let ops: Vec<u64> =
        found.proved.iter().map(|count| count.facts.ops() * u64::from(count.nranks())).collect();
    assert_eq!(each, ops, "each root has as many ops");
    // Wrong with root 1 alone, so that the first proof is right.
    let found = verdict(&star("if root == 1 { nranks - 1 } else { nranks }"), &asked);
    assert_eq!((found.counts(), found.wrong.clone()), (vec![1], vec![2]));
    assert_eq!(errors(&found), [(Code::UnmatchedWait, Some(2))]);
    let together = Asked { within: Within::Together(1000), ..asked };
    let found = verdict(&star("if root == 1 { nranks - 1 } else { nranks }"), &together);
    assert_eq!((found.counts(), found.wrong.clone()), (vec![1, 3], vec![2]));
    assert!(found.proved[1].roots.is_partial(), "three ranks with their own root alone");
    assert_eq!(errors(&found), [(Code::UnmatchedWait, Some(2))]);
}

/// A flag loses the second of two acks, whatever the limits.
#[test]
fn signals_are_those_of_the_question() {
    let twice = "algorithm Twice() -> AllGather {
    let other = peer((rank + 1) % nranks);
    let before = peer((rank - 1) % nranks);
    require nranks == 2, \"a pair\";
    copy(local.input, local.output.block(rank));
    other.TxAck();
    other.TxAck();
    before.RxAck();
    before.RxAck();
    copy(before.output.block(1 - rank), local.output.block(1 - rank));
    other.TxDataSignal();
    before.RxDataSignal();
}";
    for within in [Within::Plans, Within::Each(Limits::EXPANSION), Within::Together(1000)] {
        let asked = Asked::with_limits(&[2], within);
        assert_eq!(verdict(twice, &asked).counts(), [2], "{within:?}");
        let signals = Signals { one_shot: true, ..Signals::default() };
        let found = verdict(twice, &Asked { signals, ..asked });
        assert_eq!(errors(&found), [(Code::LostSignal, Some(2))], "{within:?}");
    }
}

#[test]
fn what_is_wrong_is_told_once_or_at_every_count() {
    let wrong = AROUND.replacen("left.RxAck();", "", 1);
    let counts = [1, 2, 3, 4];
    let asked = Asked::with_limits(&counts, Within::Each(Limits::EXPANSION));
    let found = verdict(&wrong, &asked);
    assert_eq!((found.wrong.clone(), found.errors.len()), (vec![2], 1));
    let found = verdict(&wrong, &Asked { every_count: true, ..asked });
    assert_eq!((found.wrong.clone(), found.errors.len()), (vec![2, 3, 4], 0));
    assert!(!found.is_right() && !found.is_refused());
}

#[test]
fn the_limits_leave_counts_out() {
    let few = Limits { steps: 20, ops: 20 };
    let counts = [2, 3, 4, 1];
    let found = verdict(AROUND, &Asked::with_limits(&counts, Within::Each(few)));
    assert_eq!((found.counts(), found.beyond.clone()), (vec![2], vec![3, 4]));
    assert_eq!((found.refused.len(), found.is_right(), found.is_refused()), (1, true, false));
    // The ops of two ranks are taken from those of three.
    let ops = verdict(AROUND, &Asked::with_limits(&[2], Within::Plans)).ops;
    let found = verdict(AROUND, &Asked::with_limits(&counts, Within::Together(ops + 1)));
    assert_eq!((found.counts(), found.beyond.clone()), (vec![2], vec![3, 4, 1]));
    // Beyond the limits of plans it is an error, and the last one.
    let endless = "algorithm A() -> AllReduce { for a in 0..1000000000000 {} }";
    let found = verdict(endless, &Asked::with_limits(&[2, 3], Within::Plans));
    assert_eq!((errors(&found), found.wrong.clone()), (vec![(Code::StepLimit, Some(2))], vec![2]));
    let found = verdict(endless, &Asked::with_limits(&[2, 3], Within::Each(few)));
    assert_eq!((errors(&found), found.beyond.clone()), (vec![], vec![2, 3]));
    // With all counts first, their own roots use up what other roots would need.
    let (star, asked) = (star("nranks"), [4, 3]);
    let own: u64 = verdict(&star, &Asked::with_limits(&asked, Within::Plans))
        .proved
        .iter()
        .map(|count| count.facts.ops())
        .sum();
    let found = verdict(&star, &Asked::with_limits(&asked, Within::Together(own + 1)));
    assert!(found.counts() == [4, 3] && found.proved.iter().all(|count| count.roots.is_partial()));
}

#[test]
fn the_caller_ends_the_proofs() {
    let asked = Asked { stop: Some(|| true), ..Asked::with_limits(&[2, 3], Within::Plans) };
    let found = verdict(AROUND, &asked);
    assert_eq!((found.stopped, found.counts(), found.is_right()), (Some(2), vec![], false));
    assert!(!found.is_refused());
}

/// As `roundelay check --format json` prints it.
#[test]
fn the_verdict_as_json() {
    let (algorithm, source) = read(AROUND);
    let begun = std::cell::RefCell::new(Vec::new());
    let begins = |n, _: &_| begun.borrow_mut().push(n);
    let asked = Asked::with_limits(&[1, 2], Within::Plans);
    let found = Verdict::check(&algorithm, &source, &asked, begins);
    assert_eq!(*begun.borrow(), [1, 2]);
    let json = found.json().to_string();
    let (before, after) = json.split_once(", \"seconds\": ").expect("the time");
    assert_eq!(before, r#"{"name": "Around", "collective": "AllGather", "ok": true"#);
    let (_, after) = after.split_once(", ").expect("more fields");
    let (before, after) = after.split_once(", \"certificates\": ").expect("the certificates");
    let ops = found.ops;
    assert_eq!(
        before,
        format!(
            "\"ops\": {ops}, \"nranks\": [1, 2], \"proved\": [2], \
             \"refused\": [{{\"nranks\": 1, \"reason\": \"somebody to talk to\"}}]"
        )
    );
    let certificate = &found.proved[0].facts.certificate;
    assert_eq!(after, format!("[{}], \"every_nranks\": {{\"from\": 2}}}}", certificate.json()));

    let found =
        Verdict::check(&algorithm, &source, &Asked::with_limits(&[1], Within::Plans), |_, _| ());
    assert_eq!(errors(&found), [(Code::NothingAdmitted, None)]);
    let json = found.json().to_string();
    assert!(json.contains("\"ok\": false") && !json.contains("every_nranks"), "{json}");
    let error = found.errors[0].json(&source).to_string();
    assert_eq!(
        error,
        "{\"code\": \"E0505\", \"severity\": \"error\", \"title\": \"Around admits none of the rank counts asked for\", \
         \"file\": \"test.coll\", \"line\": 1, \"column\": 11, \"end_line\": 1, \"end_column\": 17, \"nranks\": null, \
         \"label\": \"\", \"others\": [], \"notes\": [\"somebody to talk to\"], \"help\": null}"
    );
}

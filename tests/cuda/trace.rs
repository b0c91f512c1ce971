//! Translation validation: a kernel's text performs exactly the schedule that was proved, op by op.

use std::fmt::Write as _;

use expect_test::expect_file;
use roundelay::select;
use roundelay_core::ids::OpId;
use roundelay_core::schedule::{Buffer, OpKind, Operand, SignalKind};
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Facts, Kernel};
use roundelay_kernels::shim::{Outcome, Shim, ShimJob};
use roundelay_tests::{root, taken};

use super::runs::{code, inputs, loops, named, on_the_host, program, proved, run, spec, try_run};
use super::sweep::Sweep;

/// Returns the ops that a kernel must have done, in the words of its trace.
fn expected(kernel: &Kernel, facts: &Facts, count: u64) -> String {
    let schedule = &*kernel.schedule;
    let place = |operand: &Operand| {
        let region = schedule.region(*operand);
        let (name, first) = match region.buffer {
            Buffer::Input => ('i', 0),
            Buffer::Output => ('o', 0),
            Buffer::Scratch(id) => {
                let (first, len) = facts.scratch(id);
                ('s', first + u64::from(region.slot) * len)
            }
        };
        let offset = first + region.lo.element(count) - region.base.element(count);
        format!(" {}.{name}+{offset}", operand.rank)
    };
    let mut text = String::new();
    for stream in &schedule.streams {
        let _ = writeln!(text, "group {} {}", stream.rank, stream.index);
        for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
            let op = schedule.op(at);
            let verb = match op.kind {
                OpKind::Move => {
                    let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
                    let places: String = srcs.iter().chain(dsts).map(place).collect();
                    let (_, len) = schedule.extent(schedule.region(srcs[0]), count);
                    let finish = if kernel.finishes(at) { " finish" } else { "" };
                    let _ = writeln!(text, "move {} {}{places} x{len}{finish}", op.srcs, op.dsts);
                    continue;
                }
                OpKind::Post => "post",
                OpKind::Wait => "wait",
            };
            let channel = schedule.channel(op);
            let lane = match channel.kind {
                SignalKind::Fork | SignalKind::Join => channel.lane.0 as usize,
                _ => {
                    let values = &schedule.lanes[channel.lane.index()];
                    facts.lanes.iter().position(|lane| lane == values).expect("a lane of the facts")
                }
            };
            let (kind, from, to) = (channel.kind, channel.from, channel.to);
            let _ = writeln!(text, "{verb} {kind:?} {from} {to} {lane}");
        }
    }
    text
}

/// Returns the first line in which two texts differ, with its group.
fn difference(expected: &str, found: &str) -> Option<String> {
    let mut group = "";
    let (mut left, mut right) = (expected.lines(), found.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (a, b) if a == b => group = a.filter(|line| line.starts_with("group")).unwrap_or(group),
            (a, b) => {
                let shown = |line: Option<&str>| line.unwrap_or("nothing").to_owned();
                return Some(format!("{group}: proved `{}`, did `{}`", shown(a), shown(b)));
            }
        }
    }
}

fn traced(shim: &Shim, kernel: &Kernel, count: u64) -> Option<String> {
    let data = inputs(kernel, count);
    let job = ShimJob { trace: true, threads: 1, ..ShimJob::new(kernel, count, &data) };
    let outcome = run(shim, &job);
    difference(&expected(kernel, &job.facts, count), &outcome.trace)
}

/// Every algorithm of the library, at its rank counts from 1 to 9 in turn, and for counts that no number divides: its
/// ops, and its results. Of the others the loops are compared with the proved ops, as of each kernel that is made.
#[test]
fn every_kernel_does_what_was_proved_and_leaves_the_hosts_bits() {
    let (mut sweep, mut wrong) = (Sweep::default(), String::new());
    for (turn, algorithm) in select::library().iter().enumerate() {
        for nranks in 1..=9 {
            let Some(proved) = proved(algorithm, nranks) else { continue };
            let kernel = loops(algorithm, &proved, spec(algorithm));
            if !taken(turn + nranks as usize, 3) || !sweep.tries(&kernel) {
                continue;
            }
            for count in [1, 61] {
                if let Err(why) = validate(&kernel, &proved, count) {
                    eprintln!("{} for {nranks} ranks, count {count}: {why}", kernel.name);
                    let _ =
                        writeln!(wrong, "{} for {nranks} ranks, count {count}: {why}", kernel.name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let kernels = sweep.kernels();
    assert!(kernels > 100, "the library has more kernels than {kernels}");
}

pub(super) fn validate(kernel: &Kernel, proved: &Proved, count: u64) -> Result<(), String> {
    let shim = program(kernel);
    let data = inputs(kernel, count);
    let job = ShimJob { trace: true, ..ShimJob::new(kernel, count, &data) };
    let outcome = try_run(&shim, &job)?;
    difference(&expected(kernel, &job.facts, count), &outcome.trace).map_or(Ok(()), Err)?;
    let host = on_the_host(proved, kernel, count, &data);
    let same = |outcome: Outcome, how: &str| {
        if outcome.outputs == host {
            Ok(())
        } else {
            Err(format!("other bits than the host's, {how}"))
        }
    };
    same(outcome, "out of place")?;
    if kernel.proof.in_place {
        same(try_run(&shim, &ShimJob { in_place: true, trace: false, ..job })?, "in place")?;
    }
    Ok(())
}

/// A generator that writes a wrong text is detected, for each kind of mistake.
#[test]
fn a_wrong_text_is_found_out() {
    let algorithm = named("RingAllReduce");
    let proved = proved(algorithm, 4).expect("any rank count will do");
    let kernel = loops(algorithm, &proved, spec(algorithm));
    let right = code(&kernel.text);
    assert_eq!(traced(&program(&kernel), &kernel, 61), None);
    let mut told = Vec::new();
    for (from, to) in [
        ("me - round - 1 + nranks", "me - round - 2 + nranks"),
        ("reduce(lane.of(left, OUTPUT", "reduce(lane.of(right, OUTPUT"),
        (
            "copy(lane.of(left, OUTPUT, {b, 1}), lane.mine(OUTPUT, {b, 1}))",
            "copy(lane.mine(OUTPUT, {b, 1}), lane.of(left, OUTPUT, {b, 1}))",
        ),
        ("nranks - 1; ++round", "nranks - 2; ++round"),
        ("ROUNDELAY_PIECES 4", "ROUNDELAY_PIECES 5"),
        ("lane.RxAck(left);", ""),
    ] {
        assert!(right.contains(from), "the text has `{from}`");
        let wrong = right.replacen(from, to, 1);
        let shim = Shim::compile(&wrong, &kernel.name).unwrap_or_else(|error| panic!("{error}"));
        let data = inputs(&kernel, 61);
        let limit = std::time::Duration::from_millis(300);
        let job = ShimJob {
            trace: true,
            threads: 1,
            poll_limit: limit,
            ..ShimJob::new(&kernel, 61, &data)
        };
        let outcome = shim.run(&job).unwrap_or_else(|error| panic!("{error}"));
        let found = difference(&expected(&kernel, &job.facts, 61), &outcome.trace);
        let found = found.unwrap_or_else(|| panic!("`{to}` for `{from}` was not noticed"));
        told.push(format!("{found}\n"));
    }
    // The book shows the result of the first.
    expect_file![root().join("book/src/listings/kernel/wrong.text")].assert_eq(&told[0]);
}

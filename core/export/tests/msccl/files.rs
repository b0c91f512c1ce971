//! Published programs with known verdicts.

use roundelay_core::diagnostics::Code;
use roundelay_core::schedule::{Channel, Schedule, SignalKind, legality, text as written};
use roundelay_exchange::msccl::{self, Connections, Runtime};
use roundelay_exchange::{Mode, Protocol};

use super::{bytes, codes, verdict_of};

#[test]
fn right_ones() {
    for (name, mode, orders) in [
        ("azure-allgather-hierarchical-4.xml", Mode::OutOfPlace, None),
        ("astra-sim-ring-allreduce-8.xml", Mode::InPlace, Some(1)),
        ("msccl-small-allreduce-8.xml", Mode::InPlace, Some(1)),
        ("msccl-tools-ring-8.xml", Mode::InPlace, Some(1)),
    ] {
        let text = msccl::read(name, &bytes(name), None);
        assert_eq!(text.errors, [], "{name}");
        let (_, verdict) = verdict_of(&text, &Connections::default());
        assert_eq!(codes(&verdict), [], "{name}");
        assert_eq!(verdict.orders, orders, "{name}");
        let [checked] = &verdict.modes[..] else { panic!("{name}: {:?}", verdict.modes) };
        assert_eq!(checked.mode, mode, "{name}");
        assert!(checked.proved.is_some(), "{name}");
        assert_eq!(verdict.safe.map(|safe| safe.bytes), Some(None), "{name}");
    }
}

#[test]
fn nops_and_reductions_are_lowered_as_the_runtime_does() {
    let name = "msccl-small-allreduce-8.xml";
    let text = msccl::read(name, &bytes(name), None);
    let program = text.program.expect("it is read");
    assert_eq!(program.header.protocol, Protocol::Ll);
    // Two sends, five waits that a chain of `nop`s hands to a reduction, and that with six more.
    let block = &program.gpus[0].blocks[0];
    let chain = block.operations.iter().find(|operation| !operation.more.is_empty()).unwrap();
    assert_eq!((chain.waits.len(), chain.more.len(), chain.posts), (6, 6, true));
    assert_eq!(chain.level, 13, "the number of its last step");
}

#[test]
fn a_chain_without_its_end_and_a_wrong_result() {
    let name = "msccl-small-allreduce-8-wrong.xml";
    let text = msccl::read(name, &bytes(name), None);
    assert!(text.errors.iter().all(|error| error.code == Code::RefusedByRuntime));
    let place = text.source.location(text.errors[0].primary);
    assert_eq!((place.line, place.column), (12, 7), "the first step behind the chain");
    let (_, verdict) = verdict_of(&text, &Connections::default());
    assert!(codes(&verdict).contains(&Code::WrongResult), "{:?}", codes(&verdict));
}

#[test]
fn two_blocks_of_one_connection() {
    let name = "msccl-tools-ring-8-wrong.xml";
    let text = msccl::read(name, &bytes(name), None);
    let (_, verdict) = verdict_of(&text, &Connections::default());
    assert!(!codes(&verdict).is_empty());
    assert!(codes(&verdict).iter().all(|code| *code == Code::SharedSignal));
}

#[test]
fn a_race_without_a_contract() {
    for (name, race) in
        [("msccl-tools-pipeline-24-wrong.xml", true), ("msccl-tools-pipeline-24.xml", false)]
    {
        // `custom` is a name of the first runtime alone.
        let refused = Runtime::ALL.map(|runtime| {
            let text = msccl::read(name, &bytes(name), Some(runtime));
            text.errors.iter().any(|error| error.title.contains("is called `custom`"))
        });
        assert_eq!(refused, [true, true, false]);
        let text = msccl::read(name, &bytes(name), None);
        assert_eq!(text.errors, [], "{name}");
        let (program, verdict) = verdict_of(&text, &Connections::default());
        assert_eq!(program.header.collective, None);
        assert_eq!(!codes(&verdict).is_empty(), race, "{name}");
        assert!(codes(&verdict).iter().all(|code| *code == Code::Race), "{name}");
    }
}

/// The schedule of a program is like any other: its text form is read back, and it states its assumptions.
#[test]
fn schedules_are_written_and_read() {
    for (name, multiple, words) in
        [("azure-allgather-hierarchical-4.xml", 4, false), ("msccl-small-allreduce-8.xml", 8, true)]
    {
        let text = msccl::read(name, &bytes(name), None);
        let program = text.program.expect("it is read");
        let schedule =
            program.schedule(&text.source, program.header.modes()[0], 71).expect("it fits");
        assert_eq!(schedule.multiple, multiple, "{name}");
        let local = |channel: &Channel| channel.kind == SignalKind::Local;
        assert_eq!(schedule.channels.iter().any(local), words, "{name}");
        let read = written::parse(&written::print(&schedule)).expect("it is read back");
        assert!(read == schedule, "{name}");
        // Pieces change places on their way, so nothing holds of other counts: they are not cut alike.
        let every = Schedule { multiple: 1, ..schedule };
        assert!(legality::check(&every).is_err(), "{name}");
    }
}

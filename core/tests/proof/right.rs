//! Right schedules are proved for every rank count, and survive their text form.

use roundelay_core::diagnostics::Code;
use roundelay_core::ids::SpanId;
use roundelay_core::schedule::text;
use roundelay_core::values::order_class::OrderClass;
use roundelay_core::verify::{Sameness, verify};
use roundelay_oracles::{judge, wrong};

use crate::proof::programs::{ONE_MODE, RIGHT, TAKEN_BACK, TAKEN_FOR_HOME, TURNED, UNEVEN};
use crate::proof::{lay_out, schedule};

#[test]
fn right_algorithms_are_proved() {
    for (source, refuses) in RIGHT {
        for nranks in 1..=9 {
            match lay_out(source, nranks) {
                Err(found) if refuses(nranks) => assert_eq!(found[0].code, Code::RankCountRefused),
                Err(found) => panic!("{nranks} ranks: {found:#?}\n{source}"),
                Ok(schedule) => {
                    assert!(!refuses(nranks), "{nranks} ranks are not refused\n{source}");
                    let proof = verify(&schedule);
                    assert!(proof.is_ok(), "{nranks} ranks: {proof:#?}\n{source}");
                }
            }
        }
    }
}

#[test]
fn what_is_wrong_only_in_place_is_refused() {
    let schedule = schedule(&UNEVEN.replace("#[out_of_place]", ""), 3);
    assert_eq!(verify(&schedule).expect_err("in place")[0].code, Code::InPlaceOnly);
    assert!(wrong(&schedule, 6, true).is_some());
    assert_eq!(wrong(&schedule, 6, false), None);
}

#[test]
fn what_is_wrong_only_in_mixtures_says_so() {
    let two = schedule(ONE_MODE, 2);
    let found = verify(&two).expect("right in one mode").one_mode.expect("wrong in mixtures");
    assert_eq!((found.code, two.location(found.at).line), (Code::OneMode, 14));
    assert!(judge(&two).expect("coarse cuts").mixed.is_some());
    let other = [ONE_MODE, TURNED, TAKEN_FOR_HOME];
    for source in &other[1..] {
        let three = schedule(source, 3);
        let found = verify(&three).expect("right in one mode").one_mode;
        assert_eq!(found.expect("wrong in mixtures").code, Code::OneMode);
    }
    for (source, refuses) in RIGHT.iter().filter(|(source, _)| !other.contains(source)) {
        for nranks in (1..=9).filter(|n| !refuses(*n)) {
            let proof = verify(&schedule(source, nranks)).expect("it is right");
            assert_eq!(proof.one_mode, None, "{nranks} ranks\n{source}");
        }
    }
}

/// Orders are facts of every mode: an order that differs in place alone is reported, refused where it is demanded, and
/// named with that mode.
#[test]
fn orders_that_differ_in_place_are_told() {
    let mut turned = schedule(TURNED, 3);
    let proof = verify(&turned).expect("right in one mode");
    let reduction = proof.reduction.expect("it reduces");
    let differs = Sameness::Differs;
    let order = reduction.in_every_mode();
    assert_eq!((order.ranks, order.elements, reduction.modes), (differs, differs, differs));
    let witness = reduction.witness(OrderClass::AllRanks).expect("two ranks");
    assert!(!order.in_rank_order && witness.in_place);
    assert_eq!(proof.orders.of_one_piece(), 2);
    turned.demands.order.push((OrderClass::AllRanks, SpanId(0)));
    let refused = verify(&turned).expect_err("one order is demanded");
    assert_eq!(refused[0].code, Code::OrderDiffers);
    assert!(refused[0].title.starts_with("in place, ranks 0 and 1"), "{}", refused[0].title);
}

/// In place these quarters are memory that this copy writes, a quarter further.
#[test]
fn steps_and_ports_are_those_of_the_mode_in_which_they_are_most() {
    let both = |text: &str| {
        let apart = text.replace("algorithm", "#[out_of_place] algorithm");
        [apart.as_str(), text].map(|text| verify(&schedule(text, 3)).expect("it is right"))
    };
    let [apart, any] = both(TAKEN_BACK);
    assert_eq!((apart.steps, apart.ports.most(), apart.ports.in_place), (4, 1, false));
    assert_eq!((any.steps, any.ports.most(), any.ports.in_place), (4, 2, true));
    let budget = TAKEN_BACK.replace("algorithm", "#[budget(ports = 1)] algorithm");
    let found = verify(&schedule(&budget, 3)).expect_err("two peers at once");
    assert_eq!(found[0].code, Code::PortConflict);
    assert!(found[0].title.starts_with("in place, rank 0 sends to 2 peers"), "{}", found[0].title);
    let [apart, any] = both(&TAKEN_BACK.replace("copy(local.block[0], left.kept[1]);", ""));
    assert_eq!([apart.steps, any.steps], [3, 4]);
}

#[test]
fn a_move_whose_operands_overlap_in_place_is_refused() {
    let text = "algorithm Shift() -> AllReduce {
        require count % 4 == 0, \"quarters\";
        require nranks == 1, \"alone\";
        scratch kept: like output;
        copy(local.input, local.kept);
        copy(local.input.split(4)[0..2], local.output.split(4)[1..3]);
        copy(local.kept, local.output);
    }";
    let found = verify(&schedule(text, 1)).expect_err("in place");
    assert_eq!(found[0].code, Code::InPlaceOnly);
    assert!(found[0].notes[0].contains("E0213"), "{found:?}");
    let apart = text.replacen("algorithm", "#[out_of_place] algorithm", 1);
    assert!(verify(&schedule(&apart, 1)).is_ok());
}

#[test]
fn the_text_form_is_read_back_exactly() {
    for (source, refuses) in RIGHT {
        for nranks in (1..=5).filter(|n| !refuses(*n)) {
            let mut schedule = schedule(source, nranks);
            for op in schedule.ops.iter_mut().filter(|op| op.srcs > 1) {
                op.finish = true;
            }
            schedule.out_of_place = nranks % 2 == 0;
            let printed = text::print(&schedule);
            assert_eq!(text::parse(&printed).as_ref(), Ok(&schedule), "{printed}");
        }
    }
}

#[test]
fn broken_text_is_an_error_and_no_crash() {
    let printed = text::print(&schedule(RIGHT[1].0, 2));
    let bytes = printed.as_bytes();
    for at in (0..bytes.len()).step_by(3) {
        let mut cut = bytes.to_vec();
        cut.drain(at..(at + 5).min(bytes.len()));
        let mut torn = bytes.to_vec();
        torn[at] = b"9#@/-x \n"[at % 8];
        for text in [cut, torn, bytes[..at].to_vec()] {
            // The proof accepts as input every schedule that can be read, right or not.
            if let Ok(schedule) = text::parse(&String::from_utf8_lossy(&text)) {
                let _ = verify(&schedule);
            }
        }
    }
    for wrong in
        ["", "rank 0 stream 0", "schedule A AllReduce nranks 1", "schedule A B nranks 1 root 0"]
    {
        assert_eq!(text::parse(wrong).map_err(|e| e.line), Err(1), "{wrong}");
    }
    let second = format!("{printed}{printed}");
    let line = printed.lines().count() + 1;
    assert_eq!(text::parse(&second).map_err(|e| e.line), Err(line));
}

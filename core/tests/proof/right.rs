//! What is right is proved for every rank count, and survives its text form.

use roundelay_core::diagnostics::Code;
use roundelay_core::schedule::text;
use roundelay_core::verify::verify;

use crate::proof::oracle::{judge, wrong};
use crate::proof::programs::{ONE_MODE, RIGHT, UNEVEN};
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
    for (source, refuses) in RIGHT.iter().filter(|(source, _)| *source != ONE_MODE) {
        for nranks in (1..=9).filter(|n| !refuses(*n)) {
            let proof = verify(&schedule(source, nranks)).expect("it is right");
            assert_eq!(proof.one_mode, None, "{nranks} ranks\n{source}");
        }
    }
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
            // Whatever can be read, right or not, the proof can be asked about.
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

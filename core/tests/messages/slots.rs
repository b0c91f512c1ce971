//! Scratch where a rank keeps received data: slots of a few widths, of which one is used again when two are free.

use std::fmt::Write as _;

use roundelay_core::messages::TwoSided;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, text};
use roundelay_core::verify::Proved;

/// A slot by its scratch buffer, and a scratch buffer by name, slots, and width in twelfths.
type Slot = (String, u32);
type Slots = (String, u32, u64);

/// Returns the slots into which rank 0 receives the input of rank 1, cut into pieces of these twelfths of a unit, one
/// message each; and the scratch of the form behind the author's.
fn slots(pieces: &[u64]) -> (Vec<Slot>, Vec<Slots>) {
    assert_eq!(pieces.iter().sum::<u64>(), 24, "two blocks");
    let (mut zero, mut one, mut at) = (String::new(), String::new(), 0);
    for piece in pieces {
        let cut = format!("[{at}/12..{}/12]", at + piece);
        let _ = write!(
            zero,
            "  wait data 1->0 @0\n  fold 0.received0#0@0{cut}, 1.input{cut} -> 0.received0#0@0{cut} @0\n  \
             post ack 0->1 @0\n"
        );
        one += "  post data 1->0 @0\n  wait ack 0->1 @0\n";
        at += piece;
    }
    let text = format!(
        "schedule A ReduceScatter nranks 2 root 0\nscratch received0 slots 1 width 2\nrank 0 stream 0\n  \
         copy 0.input[0..2] -> 0.received0#0@0[0..2] @0\n{zero}  copy 0.received0#0@0[0..1] -> 0.output[0..1] @0\n  \
         post data 0->1 @0\n  wait ack 1->0 @0\nrank 1 stream 0\n{one}  wait data 0->1 @0\n  \
         copy 0.received0#0@0[1..2] -> 1.output[0..1] @0\n  post ack 1->0 @0\n"
    );
    let schedule = text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let author = Proved::new(schedule).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
    let form = TwoSided::new(&author).expect("it has a form");
    let schedule = form.schedule();
    let name = |at: usize| schedule.scratch[at].name.clone();
    let to_zero = form.messages().iter().filter(|message| message.to.0 == 0);
    let taken = to_zero.map(|message| {
        let region = &schedule.regions[message.target.index()];
        let Buffer::Scratch(id) = region.buffer else {
            panic!("{message:?} is received elsewhere")
        };
        (name(id.index()), region.slot)
    });
    let twelfths = |width: Rat| width.num() * 12 / width.den();
    let added = schedule.scratch.iter().filter(|scratch| scratch.name != "received0");
    let scratch = added.map(|s| (s.name.clone(), s.slots, twelfths(s.width)));
    (taken.collect(), scratch.collect())
}

#[test]
fn a_slot_is_used_again_when_two_are_free() {
    let (taken, scratch) = slots(&[6, 6, 6, 6]);
    assert_eq!(taken, [0, 1, 0, 1].map(|slot| ("received1".to_owned(), slot)));
    assert_eq!(scratch, [("received1".to_owned(), 2, 6)]);
}

#[test]
fn sizes_are_powers_of_two() {
    let sizes = |pieces: &[u64]| {
        let (taken, scratch) = slots(pieces);
        let number = |(name, _): &Slot| name.strip_prefix("received")?.parse::<u32>().ok();
        let taken: Vec<_> = taken.iter().filter_map(number).collect();
        (taken, scratch.into_iter().map(|(_, slots, width)| (slots, width)).collect::<Vec<_>>())
    };
    assert_eq!(sizes(&[24]), (vec![1], vec![(1, 24)]));
    assert_eq!(sizes(&[3, 4, 5, 6, 6]), (vec![1, 1, 1, 2, 2], vec![(2, 5), (2, 6)]));
    assert_eq!(sizes(&[6, 11, 5, 2]), (vec![1, 1, 2, 3], vec![(2, 11), (1, 5), (1, 2)]));
    assert_eq!(sizes(&[12, 9, 3]), (vec![1, 2, 3], vec![(1, 12), (1, 9), (1, 3)]));
    assert_eq!(sizes(&[18, 4, 2]), (vec![1, 2, 3], vec![(1, 18), (1, 4), (1, 2)]));
}

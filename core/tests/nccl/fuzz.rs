//! Real files with bytes changed, cut out, doubled and swapped: no result is a panic.

use roundelay_core::topology::nccl::{self, Assumption};
use roundelay_core::topology::{NodeId, paths};

use crate::nccl::{FULL, PARTIAL, bytes};

/// Numbers of a fixed sequence, so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// Pieces that hurt where they land.
const PIECES: [&str; 16] = [
    "\"",
    "<",
    ">",
    "/",
    "&",
    "&#0;",
    "&x;",
    "\0",
    "-1",
    "99999999999999999999",
    "<pci busid=\"x\">",
    "</cpu>",
    "<gpu rank=\"0\">",
    "<!--",
    "<![CDATA[",
    "\u{feff}",
];

fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.roll(bytes.len());
    match dice.roll(5) {
        0 => bytes[at] = dice.roll(256) as u8,
        1 => {
            let end = bytes.len().min(at + dice.roll(60));
            bytes.drain(at..end);
        }
        2 => {
            let end = bytes.len().min(at + dice.roll(400));
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        3 => {
            let piece = PIECES[dice.roll(PIECES.len())].bytes();
            bytes.splice(at..at, piece);
        }
        _ => {
            // Digits keep the file whole and make it lie.
            if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                bytes[at + digit] = b'0' + dice.roll(10) as u8;
            }
        }
    }
}

#[test]
fn changed_files() {
    let assume = Assumption::parse("sm=90,nvlinks=18").unwrap();
    let (mut dice, mut good, mut bad) = (Dice(1), 0, 0);
    for name in FULL.into_iter().chain(PARTIAL) {
        let original = bytes(name);
        for _ in 0..1500 {
            let mut changed = original.clone();
            for _ in 0..=dice.roll(3) {
                mutate(&mut changed, &mut dice);
            }
            match nccl::read(name, &changed, Some(assume.clone())) {
                Ok(system) => {
                    good += 1;
                    let paths = paths::from(&system.topology, NodeId(0));
                    assert_eq!(paths.len(), system.topology.nodes().len());
                    if let Ok(written) = system.write() {
                        let again = nccl::read(name, written.as_bytes(), None);
                        assert_eq!(again.map(|again| again.topology), Ok(system.topology));
                    }
                }
                Err(problem) => {
                    bad += 1;
                    assert!(!problem.title.is_empty());
                }
            }
        }
    }
    // Both happen often, or the changes are not worth their time.
    assert!(good > 1000 && bad > 1000, "{good} good, {bad} bad");
}

//! Programs with bytes changed, cut out, doubled and swapped: no result is a panic, and each comes soon.

use roundelay_export::exchange::msccl::{self, Connections};

use super::{bytes, generate};

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
const PIECES: [&str; 18] = [
    "\"",
    "<",
    ">",
    "/",
    "&",
    "&#0;",
    "&x;",
    "\0",
    "-1",
    "2147483647",
    "-2147483648",
    "99999999999999999999",
    "<step s=\"0\"/>",
    "</tb>",
    "<gpu id=\"0\">",
    "<!--",
    "<![CDATA[",
    "\u{feff}",
];

fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.roll(bytes.len());
    match dice.roll(10) {
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
fn changed_programs() {
    let (mut dice, mut good, mut bad) = (Dice(1), 0, 0);
    let made = generate::all().into_iter().map(|(_, text)| text.into_bytes());
    let published = [bytes("azure-allgather-hierarchical-4.xml")];
    for (original, times) in made.map(|text| (text, 60)).chain(published.map(|text| (text, 40))) {
        for _ in 0..times {
            let mut changed = original.clone();
            for _ in 0..=dice.roll(2) {
                mutate(&mut changed, &mut dice);
            }
            let text = msccl::read("changed.xml", &changed, None);
            for said in text.errors.iter().chain(&text.warnings) {
                assert!(!said.title.is_empty());
                let place = text.source.location(said.primary);
                assert!(place.line >= 1 && place.column >= 1);
                roundelay_core::render::render(said, &text.source, false);
            }
            match &text.program {
                Some(program) => {
                    good += 1;
                    let verdict = program.verdict(&text.source, &Connections::default());
                    for error in verdict.errors() {
                        roundelay_core::render::render(error, &text.source, false);
                    }
                }
                None => {
                    bad += 1;
                    assert!(!text.errors.is_empty());
                }
            }
        }
    }
    // Both happen often, or the changes are not worth their time.
    assert!(good > 100 && bad > 300, "{good} good, {bad} bad");
}

/// Files that are made to take long, or much memory.
#[test]
fn hostile_files() {
    let refused = |text: &str, why: &str| {
        let read = msccl::read("hostile.xml", text.as_bytes(), None);
        let title = read.errors.first().map(|error| error.title.clone()).unwrap_or_default();
        assert!(read.program.is_none() && title.contains(why), "{why}: {title}");
    };
    refused(&"<algo>".repeat(100_000), "nest");
    let head = "<algo name=\"x\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"1\" \
                coll=\"allreduce\" inplace=\"1\">";
    refused(&format!("{head}{}", "<gpu id=\"0\">"), "ends inside");
    refused(&format!("{head}{}</algo>", "<gpu/>".repeat(600_000)), "elements");
    refused(&format!("<algo {}/>", "a=\"1\" ".repeat(100_000)), "without");
    refused(&format!("<algo name=\"{}\"/>", "x".repeat(1 << 20)), "bytes");
    let entities = "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]><algo/>";
    refused(entities, "elements and comments alone");
    // As many ranks and chunks as may be said, and nothing there.
    let most = head.replace("ngpus=\"1\"", "ngpus=\"2000000000\"");
    refused(&format!("{most}</algo>"), "ngpus");
}

//! Foreign files with bytes changed, cut out, doubled and swapped: no result is a panic, and each comes soon.

use std::ops::Range;

use fastrand::Rng;

/// Pieces that hurt where they land in XML.
pub(crate) const XML: [&str; 11] =
    ["\"", "<", ">", "/", "&", "&#0;", "&x;", "\0", "<!--", "<![CDATA[", "\u{feff}"];

/// Numbers that lie.
const NUMBERS: [&str; 5] =
    ["-1", "4294967295", "2147483647", "-2147483648", "99999999999999999999"];

/// Changes each text `times` times, and asks whether it is taken all the same. Both answers must come often, or the
/// changes are not worth their time: `least` are the fewest texts that are taken, and that are not.
pub(crate) fn fuzz(
    texts: impl IntoIterator<Item = Vec<u8>>,
    times: usize,
    pieces: &[&str],
    least: [usize; 2],
    mut is_taken: impl FnMut(&[u8]) -> bool,
) {
    let (mut random, mut taken, mut tried) = (Rng::with_seed(1), 0, 0);
    for original in texts {
        for _ in 0..times {
            let mut text = original.clone();
            for _ in 0..=random.usize(..3) {
                change(&mut text, pieces, &mut random);
            }
            taken += usize::from(is_taken(&text));
            tried += 1;
        }
    }
    let refused = tried - taken;
    assert!(taken > least[0] && refused > least[1], "{taken} taken, {refused} refused");
}

fn change(text: &mut Vec<u8>, pieces: &[&str], random: &mut Rng) {
    let at = random.usize(..text.len());
    let part = |most: usize, random: &mut Rng| -> Range<usize> {
        at..text.len().min(at + random.usize(..most))
    };
    match random.u8(..10) {
        0 => text[at] = random.u8(..),
        1 => _ = text.drain(part(60, random)),
        2 => {
            let again = text[part(400, random)].to_vec();
            text.splice(at..at, again);
        }
        3 => {
            let own = random.usize(..pieces.len() + NUMBERS.len());
            let piece = pieces.iter().chain(&NUMBERS).nth(own).expect("it is one of them");
            text.splice(at..at, piece.bytes());
        }
        // Digits keep the file whole and make it lie.
        kind => {
            if let Some(digit) = text[at..].iter().position(u8::is_ascii_digit) {
                let place = at + digit;
                if kind == 4 {
                    text.splice(place..=place, NUMBERS[random.usize(..NUMBERS.len())].bytes());
                } else {
                    text[place] = random.u8(b'0'..=b'9');
                }
            }
        }
    }
}

//! Programs with bytes changed.

use super::{bytes, generate, says};
use crate::fuzz::{XML, fuzz};

#[test]
fn changed_programs() {
    let made = generate::all().into_iter().map(|(_, text)| text.into_bytes());
    let all = made.chain([bytes("azure-allgather-hierarchical-4.xml")]);
    let own = ["<step s=\"0\"/>", "</tb>", "<gpu id=\"0\">"];
    fuzz(all, 60, &[&XML[..], &own].concat(), [100, 300], |text| says(text).0);
}

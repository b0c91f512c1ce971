//! Mistakes in the device headers that kernels on several devices alone have in them; `cargo xtask ptx --mutants` runs all
//! mistakes.

#[path = "gpu/mutants.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod mutants;
#[path = "gpu/ptx.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod ptx;

use mutants::{Choice, Extent};

use super::driver::{cases, engine};

#[test]
fn weak_signals_to_another_device_are_found() {
    let choice = Choice { arch: "sm_90".parse().expect("an architecture"), defines: Vec::new() };
    let some = ["a post to another", "after a wait for another", "poll for another"];
    let some = some.map(str::to_owned);
    assert_eq!(mutants::all(&choice, Extent::SeveralDevices, &some, 0), 0);
}

#[test]
fn every_mistake_is_one_of_the_headers() {
    let all = mutants::mutants();
    let stale: Vec<&str> = all.iter().filter(|one| one.is_stale()).map(|one| one.name).collect();
    assert_eq!(stale, Vec::<&str>::new());
}

//! The prelude's walk where the library does not lead it: nested streams, numbers of other groups, calls in calls,
//! slots of any shape, fifos inside fifos; each against its schedule and the host's bits.

use std::fmt::Write as _;

use roundelay::Algorithm as _;
use roundelay_core::check::Door;
use roundelay_core::emit::cuda::{Protocol, Spec};
use roundelay_core::schedule::interpret::Interpreted;
use roundelay_core::source::Source;
use roundelay_tests::compile;

use super::runs::{loops, proved, spec};
use super::trace::validate;

fn programs() -> Vec<Interpreted> {
    let source = Source::from_text("walks.coll", include_str!("walks.coll"));
    let said = |errors: Vec<roundelay_core::diagnostics::Diagnostic>| -> String {
        errors.iter().map(|error| error.report(&source)).collect()
    };
    let program = compile(&source, Door::File).unwrap_or_else(|errors| panic!("{}", said(errors)));
    let public = program.algorithms.into_iter().filter(|algorithm| algorithm.public);
    public.map(|algorithm| Interpreted::new(algorithm, &source)).collect()
}

#[test]
fn the_corners_of_the_language_do_what_was_proved() {
    let (mut kernels, mut wrong) = (0, String::new());
    for algorithm in &programs() {
        match validated(algorithm) {
            Ok(validated) => kernels += validated,
            Err(why) => _ = writeln!(wrong, "{}, {why}", algorithm.name()),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(kernels > 50, "{kernels} kernels");
}

/// How many kernels of an algorithm do what was proved, or the first that does not.
fn validated(algorithm: &Interpreted) -> Result<u32, String> {
    let fits = spec(algorithm);
    let lined = (fits.protocol == Protocol::Simple).then_some(Protocol::Ll);
    let mut kernels = 0;
    for nranks in [1, 2, 3, 5, 8, 9] {
        let Some(proved) = proved(algorithm, nranks) else { continue };
        for protocol in std::iter::once(fits.protocol).chain(lined) {
            let kernel = loops(algorithm, &proved, Spec { protocol, ..fits });
            for count in [1, 61, 30_011 * 9] {
                validate(&kernel, &proved, count)
                    .map_err(|why| format!("{protocol:?}, {nranks} ranks, count {count}: {why}"))?;
            }
            kernels += 1;
        }
    }
    Ok(kernels)
}

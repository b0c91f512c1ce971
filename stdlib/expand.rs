//! The functions that expanded code calls; not for writing by hand.

use std::fmt::Write as _;
use std::sync::Arc;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::executor::Executor;
pub use roundelay_core::expansion::Read;
pub use roundelay_core::layout::Configured;
use roundelay_core::layout::roots::{self, RootsAt, WithRoot};
pub use roundelay_core::source::{CalledSource, Location};
use roundelay_core::syntax::Source;
pub use roundelay_core::values::escape::{Escapes, Int, Scope};
pub use roundelay_core::values::params::ParamValue;
use roundelay_kernels::executor::CompiledExecutor;

use crate::library::SOURCES;
use crate::{Algorithm, Collective, Error, Topology};

/// Returns a statement's place.
pub const fn at(line: u32, column: u32, end_line: u32, end_column: u32) -> Location {
    Location { line, column, end_line, end_column }
}

/// Returns the executor `name` of `source`, which its macro has compiled before.
///
/// # Panics
///
/// If it cannot be compiled now, which the macro rules out.
pub fn executor(name: &str, source: &str) -> CompiledExecutor {
    let source = Source::from_text(format!("{name}.coll"), source);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(SOURCES));
    let program = program.expect("the macro has checked it");
    let checked = program.executors.into_iter().find(|executor| executor.name == name);
    let checked = checked.expect("a source in canonical form holds its executor");
    CompiledExecutor::new(Executor::compile(&checked, &source).expect("the macro has compiled it"))
}

/// The most ops of the schedules with other roots than an algorithm's own that a generated test proves, at all rank
/// counts together.
const OTHER_ROOTS: u64 = 1 << 17;

/// Checks that `algorithm` is proved for these rank counts, with every root where that is cheap; generated tests call it.
/// Refused counts do not matter, unless they are `named` or all are refused.
///
/// # Panics
///
/// If a proof fails, with all findings.
pub fn is_proved(algorithm: &dyn Algorithm, counts: impl IntoIterator<Item = u32>, named: bool) {
    let with_defaults = algorithm.configured().program().algorithm();
    let mut ops_left = OTHER_ROOTS;
    let mut proved = Vec::new();
    let mut refusal = None;
    let mut wrong = String::new();
    for nranks in counts {
        let mut own = true;
        let mut refused = None;
        let most = ops_left.min(roots::MOST_OPS);
        let at = with_defaults.roots().each(nranks, most, |root| {
            let own = std::mem::replace(&mut own, false);
            let findings = match roundelay_core::prove(&AtRoot { algorithm, root }, nranks) {
                Ok(proved) => {
                    let (root, ops) = (proved.schedule().root, proved.schedule().ops.len() as u64);
                    ops_left = ops_left.saturating_sub(if own { 0 } else { ops });
                    return WithRoot::Proved { root, ops };
                }
                Err(findings) => findings,
            };
            let refuses = findings.iter().all(|finding| finding.code.refuses());
            let error = Error::from_findings(algorithm, nranks, findings);
            if refuses {
                refused = Some(error);
                return WithRoot::Refused;
            }
            // The smallest count that shows it says most.
            if wrong.is_empty() {
                let with = root.map_or_else(String::new, |root| format!("\n  with root {root}"));
                let _ = write!(wrong, "{error}{with}");
            }
            WithRoot::Ended
        });
        match refused {
            _ if at.is_proved() => proved.push(at),
            Some(error) if named && wrong.is_empty() => wrong = error.to_string(),
            Some(error) => refusal = Some(error),
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    if let (true, Some(refusal)) = (proved.is_empty(), refusal) {
        panic!("{} admits no rank count that was tried: {refusal}", algorithm.name());
    }
    if proved.iter().any(RootsAt::is_partial) {
        println!("{} is proved for {}", algorithm.name(), roots::text(&proved));
    }
}

/// An algorithm with a root, if one is to be set.
struct AtRoot<'a> {
    algorithm: &'a dyn Algorithm,
    root: Option<u32>,
}

impl Algorithm for AtRoot<'_> {
    fn name(&self) -> &str {
        self.algorithm.name()
    }

    fn collective(&self) -> Collective {
        self.algorithm.collective()
    }

    fn out_of_place(&self) -> bool {
        self.algorithm.out_of_place()
    }

    fn file(&self) -> &str {
        self.algorithm.file()
    }

    fn source(&self) -> &str {
        self.algorithm.source()
    }

    fn locations(&self) -> &[Location] {
        self.algorithm.locations()
    }

    fn callees(&self) -> &[CalledSource<'_>] {
        self.algorithm.callees()
    }

    fn given(&self) -> Vec<(&'static str, ParamValue)> {
        self.algorithm.given()
    }

    fn escapes(&self) -> &'static [Escapes] {
        self.algorithm.escapes()
    }

    fn placed_on(&self) -> Option<&Arc<Topology>> {
        self.algorithm.placed_on()
    }

    fn configured(&self) -> Configured {
        self.algorithm.configured().with_root(self.root)
    }
}

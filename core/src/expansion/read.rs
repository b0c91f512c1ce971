//! The source in a struct that a macro has made, which is read again when the algorithm is first used.

use std::sync::OnceLock;

use crate::check::canonical;
use crate::check::dependencies::Dependencies;
use crate::diagnostics::Diagnostic;
use crate::layout::{Algorithm, Configured};
use crate::program::lower;

/// An algorithm that a macro expanded, as it is read from its source at its first use.
#[derive(Debug)]
pub struct Read {
    library: &'static [(&'static str, &'static str)],
    read: OnceLock<Configured>,
}

impl Read {
    /// Makes an algorithm that is not read yet; `library` has names and texts of the library's sources.
    pub const fn new(library: &'static [(&'static str, &'static str)]) -> Self {
        Self { library, read: OnceLock::new() }
    }

    /// Returns the algorithm with the values that its struct has for the parameters.
    ///
    /// # Panics
    /// If the source makes no sense, which its macro rules out.
    pub fn configured<A: Algorithm + ?Sized>(&self, expanded: &A) -> Configured {
        let first = || read(expanded, self.library).expect("the macro has checked it");
        let mut read = self.read.get_or_init(first).clone();
        for (name, value) in expanded.given() {
            read.set(name, value).expect("the struct has the fields of the parameters");
        }
        read
    }
}

fn read<A: Algorithm + ?Sized>(
    expanded: &A,
    library: &[(&str, &str)],
) -> Result<Configured, Vec<Diagnostic>> {
    let library = Dependencies::library(library);
    let (checked, source) = canonical(expanded.source(), expanded.callees(), &library)?;
    let own = lower(&checked, &source).algorithms.pop();
    let mut own = own.expect("a source in canonical form holds its algorithm");
    // Its statements stand where the author wrote them, and have the numbers that they had there.
    expanded.file().clone_into(&mut own.file);
    own.locations = expanded.locations().into();
    Ok(Configured::new(own, &source))
}

//! The modules of a harness, compiled and read.

use std::sync::Arc;

use roundelay_ptx::program::{Function, Module};
use sha2::{Digest as _, Sha256};

use crate::harness::{Harness, KernelModule, Origin};
use crate::sequence::Case;

/// The PTX of a module.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// The text.
    pub ptx: String,
    /// For kernels that the harness instantiates: the name there, and the name in the text.
    pub names: Vec<(String, String)>,
    /// The texts that it was made of, each with its file.
    pub sources: Vec<(String, String)>,
}

/// A module after it was compiled and read.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) module: Module,
    pub(crate) names: Vec<(String, String)>,
    pub(crate) sources: Vec<(String, String)>,
    pub(crate) hash: String,
}

impl Loaded {
    /// The kernel of a name in the harness.
    pub(crate) fn kernel(&self, name: &str) -> Result<&Function, String> {
        let known =
            self.names.iter().find(|(known, _)| known == name).map(|(_, mangled)| mangled.as_str());
        let wanted = known.unwrap_or(name);
        let part = format!("{}{wanted}", wanted.len());
        let kernels = || self.module.functions.iter().filter(|function| function.is_kernel);
        let exact = kernels().find(|function| function.name == wanted);
        // The C++ name in a mangled one has its length before it.
        let mut holds = kernels()
            .filter(|function| function.name.starts_with("_Z") && function.name.contains(&part));
        match (exact, holds.next(), holds.next()) {
            (Some(function), ..) | (None, Some(function), None) => Ok(function),
            (None, None, _) => {
                let names: Vec<_> = kernels().map(|function| function.name.as_str()).collect();
                Err(format!(
                    "the module `{}` has no kernel `{name}`; it has {}",
                    self.name,
                    names.join(", ")
                ))
            }
            (None, Some(one), Some(other)) => Err(format!(
                "the module `{}` has several kernels `{name}`, such as {} and {}: give the whole name of one",
                self.name, one.name, other.name
            )),
        }
    }
}

impl Harness {
    /// The cases of the harness: all numbers of ranks with all elements. `compile` gives the PTX of a module for a number of
    /// ranks; a module whose text does not depend on it is compiled once.
    ///
    /// # Errors
    /// The error of `compile`, or what it makes of a text that cannot be read.
    pub fn cases<E>(
        &self,
        compile: impl Fn(&KernelModule, u32) -> Result<Compiled, E>,
        unreadable: impl Fn(&KernelModule, &roundelay_ptx::BadText) -> E,
    ) -> Result<Vec<Case>, E> {
        let mut cases = Vec::new();
        for &ranks in &self.run.ranks {
            let mut loaded = Vec::new();
            for module in &self.modules {
                let before = cases.first().map(|case: &Case| &case.loaded);
                let known =
                    before.and_then(|all| all.iter().find(|known| known.name == module.name));
                if let Some(known) = known.filter(|_| !module.depends_on_ranks()) {
                    loaded.push(known.clone());
                    continue;
                }
                let Compiled { ptx, names, sources } = compile(module, ranks)?;
                let parsed = Module::parse(&ptx).map_err(|bad| unreadable(module, &bad))?;
                let mut hash = Sha256::new();
                for (_, text) in &sources {
                    hash.update(text);
                }
                let hash: [u8; 32] = hash.finalize().into();
                let hash =
                    hash.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
                let name = module.name.clone();
                loaded.push(Arc::new(Loaded { name, module: parsed, names, sources, hash }));
            }
            for elements in &self.run.elements {
                cases.push(Case { ranks, elements: elements.clone(), loaded: loaded.clone() });
            }
        }
        Ok(cases)
    }
}

impl KernelModule {
    /// Whether its text may depend on the number of ranks: where a flag or a name has `RANKS`, or the text has.
    fn depends_on_ranks(&self) -> bool {
        let flags = self.defines.iter().chain(&self.options);
        match &self.origin {
            Origin::Ptx(_) | Origin::PtxText(_) => false,
            Origin::Text(text) => {
                text.contains("RANKS") || flags.into_iter().any(|flag| flag.contains("RANKS"))
            }
            // The files that a file includes are not known here.
            Origin::File(_) => true,
        }
    }
}

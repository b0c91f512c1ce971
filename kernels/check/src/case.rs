//! The cases of a harness: a number of ranks and the elements of its calls, with the modules compiled for them.

use std::sync::Arc;

use roundelay_ptx::program::Module;
use sha2::{Digest as _, Sha256};

use crate::addresses::table_bytes;
use crate::expression::Numbers;
use crate::harness::{Harness, KernelModule, ModuleText};
use crate::modules::{Compiled, Loaded};

/// A case: a number of ranks, and the elements of the calls in turn.
#[derive(Clone, Debug)]
pub struct Case {
    /// The number of ranks.
    pub ranks: u32,
    /// The elements of call 0, 1, … in turn.
    pub elements: Vec<i64>,
    pub(crate) loaded: Vec<Arc<Loaded>>,
}

impl Case {
    pub(crate) fn numbers(&self, harness: &Harness, rank: u32, call: u32) -> Numbers {
        let elements = self.elements[call as usize % self.elements.len()];
        let run = &harness.run;
        [
            rank.into(),
            self.ranks.into(),
            call.into(),
            run.calls.into(),
            elements,
            0,
            run.root.into(),
        ]
    }

    /// The bytes of a buffer at a rank in a call.
    pub(crate) fn bytes(
        &self,
        harness: &Harness,
        buffer: usize,
        (rank, call): (u32, u32),
    ) -> Result<u64, String> {
        let buffer = &harness.memory[buffer];
        if let Some(bytes) = table_bytes(buffer, self.ranks) {
            return Ok(bytes);
        }
        let len = buffer.len.value(&self.numbers(harness, rank, call))?;
        let bytes =
            u64::try_from(len).ok().and_then(|len| len.checked_mul(buffer.dtype.size() as u64));
        bytes.filter(|bytes| *bytes < 1 << 40).ok_or_else(|| {
            format!("`{}` has {len} elements at rank {rank} in call {call}", buffer.name)
        })
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
            ModuleText::Ptx(_) | ModuleText::PtxText(_) => false,
            ModuleText::Text(text) => {
                text.contains("RANKS") || flags.into_iter().any(|flag| flag.contains("RANKS"))
            }
            // The files that a file includes are not known here.
            ModuleText::File(_) => true,
        }
    }
}

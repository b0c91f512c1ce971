//! The modules of a harness, compiled and read.

use roundelay_ptx::program::{Function, Module};

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

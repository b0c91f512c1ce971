//! An opcode as its words: each is taken once, and one that is left is an error.

use crate::error::BadText;
use crate::program::{Float, Scope, Space, Type};

/// The words of an opcode that are not taken yet.
pub(super) struct Words<'t> {
    pub(super) line: u32,
    opcode: &'t str,
    left: Vec<&'t str>,
}

/// Returns the type of that name.
pub(super) fn ty(name: &str) -> Option<Type> {
    Some(match name {
        "pred" => Type::Pred,
        "f16" => Type::Float(Float::F16),
        "bf16" => Type::Float(Float::Bf16),
        "f16x2" => Type::Float(Float::F16x2),
        "bf16x2" => Type::Float(Float::Bf16x2),
        "f32" => Type::Float(Float::F32),
        "f64" => Type::Float(Float::F64),
        _ => {
            let bits = match name.get(1..)? {
                "8" => 8,
                "16" => 16,
                "32" => 32,
                "64" => 64,
                _ => return None,
            };
            match name.as_bytes()[0] {
                b'b' => Type::Bits(bits),
                b'u' => Type::Unsigned(bits),
                b's' => Type::Signed(bits),
                _ => return None,
            }
        }
    })
}

impl<'t> Words<'t> {
    /// Splits an opcode at its points, and returns its first word with the rest.
    pub(super) fn of(opcode: &'t str, line: u32) -> (&'t str, Self) {
        let mut words = opcode.split('.');
        let first = words.next().unwrap_or_default();
        (first, Self { line, opcode, left: words.collect() })
    }

    pub(super) fn error(&self, what: impl std::fmt::Display) -> BadText {
        BadText::new(self.line, format!("`{}`: {what}", self.opcode))
    }

    /// The refusal of an instruction that the subset does not have.
    pub(super) fn unknown(&self) -> BadText {
        self.error("the instruction is not in the subset")
    }

    /// Takes a word, if it is there.
    pub(super) fn has(&mut self, word: &str) -> bool {
        self.find(|other| (other == word).then_some(())).is_some()
    }

    /// Takes the first word that is something.
    pub(super) fn find<T>(&mut self, is: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (at, found) =
            self.left.iter().enumerate().find_map(|(at, word)| Some((at, is(word)?)))?;
        self.left.remove(at);
        Some(found)
    }

    /// Takes all words that are something.
    pub(super) fn drop(&mut self, is: impl Fn(&str) -> bool) {
        self.left.retain(|word| !is(word));
    }

    /// Looks for the first word that is something, and leaves it.
    pub(super) fn look<T>(&self, is: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.left.iter().find_map(|word| is(word))
    }

    /// Takes the next type.
    pub(super) fn ty(&mut self) -> Result<Type, BadText> {
        self.find(ty).ok_or_else(|| self.error("a type is missing"))
    }

    pub(super) fn space(&mut self) -> Option<Space> {
        self.find(|word| {
            Some(match word {
                "global" => Space::Global,
                "const" => Space::Const,
                "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
                "local" => Space::Local,
                "param" | "param::entry" | "param::func" => Space::Param,
                _ => return None,
            })
        })
    }

    pub(super) fn scope(&mut self) -> Option<Scope> {
        self.find(|word| {
            Some(match word {
                "cta" => Scope::Cta,
                "cluster" => Scope::Cluster,
                "gpu" => Scope::Gpu,
                "sys" => Scope::Sys,
                _ => return None,
            })
        })
    }

    /// Refuses a word that was not taken.
    pub(super) fn end(&self) -> Result<(), BadText> {
        match self.left.first() {
            None => Ok(()),
            Some(word) => Err(self.error(format_args!("`.{word}` is not in the subset"))),
        }
    }
}

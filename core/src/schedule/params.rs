//! Parameter values given from outside: `--set ring=1,2,3,0` on the command line, setters in Rust.

use super::ring::Ring;
use crate::check::hir::ParamTy;

/// A value for a parameter of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParamValue {
    /// For `int` and `Rank`.
    Int(i64),
    /// For `bool`.
    Bool(bool),
    /// For `Ring`.
    Ring(Ring),
    /// For `[Rank]`.
    Ranks(Vec<i64>),
}

impl ParamValue {
    /// Reads a value of type `ty`; the error says what would be right.
    pub fn parse(ty: ParamTy, text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not {}", ty.takes());
        match ty {
            ParamTy::Int | ParamTy::Rank => text.trim().parse().map(Self::Int).map_err(|_| bad()),
            ParamTy::Bool => text.trim().parse().map(Self::Bool).map_err(|_| bad()),
            ParamTy::Ring => match text.trim() {
                "natural" => Ok(Self::Ring(Ring::natural())),
                "twisted" => Ok(Self::Ring(Ring::twisted())),
                list => ranks(list).map(|r| Self::Ring(Ring::order(r))).ok_or_else(bad),
            },
            ParamTy::Ranks => ranks(text).map(Self::Ranks).ok_or_else(bad),
        }
    }

    /// Whether the value fits a parameter of type `ty`.
    pub fn fits(&self, ty: ParamTy) -> bool {
        matches!(
            (self, ty),
            (Self::Int(_), ParamTy::Int | ParamTy::Rank)
                | (Self::Bool(_), ParamTy::Bool)
                | (Self::Ring(_), ParamTy::Ring)
                | (Self::Ranks(_), ParamTy::Ranks)
        )
    }
}

fn ranks(text: &str) -> Option<Vec<i64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|item| item.trim().parse().ok()).collect()
}

impl ParamTy {
    /// The type as written in the language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Bool => "bool",
            Self::Rank => "Rank",
            Self::Ring => "Ring",
            Self::Ranks => "[Rank]",
        }
    }

    /// What a value of the type looks like on the command line.
    pub const fn takes(self) -> &'static str {
        match self {
            Self::Int => "a 64-bit integer",
            Self::Bool => "`true` or `false`",
            Self::Rank => "the number of a rank",
            Self::Ring => "`natural`, `twisted`, or ranks in ring order such as `1,2,3,0`",
            Self::Ranks => "a list of ranks such as `0,2,4`",
        }
    }
}

//! Parameter values from the caller: `--set ring=1,2,3,0` on the command line, setters in Rust.

use std::sync::Arc;

use super::groups::Groups;
use super::ring::Ring;
use super::rings::Rings;
use super::tree::{Tree, TreeKind};
use super::trees::Trees;
use crate::topology::Topology;
use roundelay_base::named_enum;
use roundelay_topology::Problem;

/// A value for a parameter of an algorithm; each variant is for parameters of the type that it names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParamValue {
    /// A number, for parameters of type `int` and `Rank`.
    Int(i64),
    /// A truth value, for parameters of type `bool`.
    Bool(bool),
    /// A ring order, for parameters of type `Ring`.
    Ring(Ring),
    /// Several ring orders, for parameters of type `Rings`.
    Rings(Rings),
    /// A tree, for parameters of type `Tree`.
    Tree(Tree),
    /// Several weighted trees, for parameters of type `Trees`.
    Trees(Trees),
    /// Groups, for parameters of type `Groups`.
    Groups(Groups),
    /// A topology, for parameters of type `Topology`.
    Topology(Arc<Topology>),
    /// A list of ranks, for parameters of type `[Rank]`.
    Ranks(Vec<i64>),
}

macro_rules! from {
    ($($variant:ident $ty:ty,)*) => {$(
        impl From<$ty> for ParamValue {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

from! {
    Int i64,
    Bool bool,
    Ring Ring,
    Rings Rings,
    Tree Tree,
    Trees Trees,
    Groups Groups,
    Topology Arc<Topology>,
    Ranks Vec<i64>,
}

impl ParamValue {
    /// Reads a value of type `ty` from `text`, as the command line writes it. The word `topology` stands for `given`,
    /// the topology of the run.
    ///
    /// # Errors
    /// A message with the expected form.
    pub fn parse(ty: ParamTy, text: &str, given: Option<&Arc<Topology>>) -> Result<Self, String> {
        let topology = |text: &str| topology(text, given);
        let bad = || format!("`{text}` is not {}", ty.takes());
        match ty {
            ParamTy::Int | ParamTy::Rank => text.trim().parse().map(Self::Int).map_err(|_| bad()),
            ParamTy::Bool => text.trim().parse().map(Self::Bool).map_err(|_| bad()),
            ParamTy::Ring => match (text.trim(), call(text)) {
                ("natural", _) => Ok(Self::Ring(Ring::natural())),
                ("twisted", _) => Ok(Self::Ring(Ring::twisted())),
                (_, Some(("around", t))) => Ok(Self::Ring(Ring::around(topology(t)?))),
                (list, _) => ranks(list).map(|r| Self::Ring(Ring::order(r))).ok_or_else(bad),
            },
            ParamTy::Rings => match call(text) {
                Some(("channels", t)) => Ok(Self::Rings(Rings::channels(topology(t)?))),
                Some(("disjoint", rest)) => {
                    let (t, k) = rest.rsplit_once(',').ok_or_else(bad)?;
                    let k = k.trim().parse().map_err(|_| bad())?;
                    Ok(Self::Rings(Rings::disjoint(topology(t)?, k)))
                }
                _ => {
                    let orders = text.split(';').map(ranks).collect::<Option<Vec<_>>>();
                    orders.map(|o| Self::Rings(o.into_iter().collect())).ok_or_else(bad)
                }
            },
            ParamTy::Tree => tree(text).map(Self::Tree).ok_or_else(bad),
            ParamTy::Trees => trees(text).map(Self::Trees).ok_or_else(bad),
            ParamTy::Groups => match (text.trim(), call(text)) {
                ("balanced", _) => Ok(Self::Groups(Groups::balanced())),
                ("natural", _) | (_, Some(("natural", ""))) => {
                    Ok(Self::Groups(Groups::natural(given)))
                }
                (_, Some(("islands", t))) => Ok(Self::Groups(Groups::islands(topology(t)?))),
                (_, Some(("rails", t))) => Ok(Self::Groups(Groups::rails(topology(t)?))),
                (_, Some((form, list))) => groups(form, list).map(Self::Groups).ok_or_else(bad),
                _ => Err(bad()),
            },
            ParamTy::Topology => topology(text).map(Self::Topology),
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
                | (Self::Rings(_), ParamTy::Rings)
                | (Self::Tree(_), ParamTy::Tree)
                | (Self::Trees(_), ParamTy::Trees)
                | (Self::Groups(_), ParamTy::Groups)
                | (Self::Topology(_), ParamTy::Topology)
                | (Self::Ranks(_), ParamTy::Ranks)
        )
    }
}

/// Splits `name(inside)` into its name and its inside.
fn call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim().split_once('(')?;
    Some((name.trim(), rest.strip_suffix(')')?))
}

fn topology(text: &str, given: Option<&Arc<Topology>>) -> Result<Arc<Topology>, String> {
    if text.trim() == "topology" {
        return given
            .cloned()
            .ok_or_else(|| "`topology` is the topology of the run, and none was given".to_owned());
    }
    text.parse().map(Arc::new).map_err(|problem: Problem| format!("`{text}`: {}", problem.title))
}

fn tree(text: &str) -> Option<Tree> {
    let Some((form, inside)) = call(text) else { return ranks(text).map(Tree::parents) };
    let regular = TreeKind::from_name(form);
    match (regular, form, &*ranks(inside)?) {
        (Some(kind), _, [root]) => Some(Tree::regular(kind, *root)),
        (_, "double_binary", [which]) => Some(Tree::double_binary(*which, None)),
        (_, "double_binary", [which, root]) => Some(Tree::double_binary(*which, *root)),
        _ => None,
    }
}

fn trees(text: &str) -> Option<Trees> {
    let (form, inside) = call(text).unwrap_or((text.trim(), ""));
    let kind = TreeKind::from_name(form);
    match (kind, form, inside.trim()) {
        (Some(kind), _, "") => Some(Trees::regular(kind)),
        (_, "double_binary", "") => Some(Trees::double_binary(None)),
        (_, "double_binary", root) => Some(Trees::double_binary(root.parse::<i64>().ok()?)),
        (_, "turned", list) => Some(Trees::turned(weighted(list)?)),
        _ => Some(Trees::of(weighted(text)?)),
    }
}

/// Reads trees such as `-1,0,0,1*3;1,-1,1,0`: the parents of each, and its weight unless that is 1.
fn weighted(text: &str) -> Option<Vec<(Tree, i64)>> {
    let tree = |text: &str| {
        let (parents, weight) = match text.split_once('*') {
            Some((parents, weight)) => (parents, weight.trim().parse().ok()?),
            None => (text, 1),
        };
        Some((Tree::parents(ranks(parents)?), weight))
    };
    text.split(';').map(tree).collect()
}

fn groups(form: &str, inside: &str) -> Option<Groups> {
    match (form, &*ranks(inside)?) {
        ("of", [size]) => Some(Groups::of(*size)),
        ("balanced", []) => Some(Groups::balanced()),
        ("sizes", sizes) => Some(Groups::sizes(sizes.iter().copied())),
        ("colors", colors) => Some(Groups::colors(colors.iter().copied())),
        _ => None,
    }
}

fn ranks(text: &str) -> Option<Vec<i64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|item| item.trim().parse().ok()).collect()
}

named_enum! {
    /// The type of the values that a parameter takes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ParamTy {
        /// `int`
        Int = "int",
        /// `bool`
        Bool = "bool",
        /// `Rank`: an `int` in `0..nranks`
        Rank = "Rank",
        /// `Ring`
        Ring = "Ring",
        /// `Rings`
        Rings = "Rings",
        /// `Tree`
        Tree = "Tree",
        /// `Trees`
        Trees = "Trees",
        /// `Groups`
        Groups = "Groups",
        /// `Topology`
        Topology = "Topology",
        /// `[Rank]`
        Ranks = "[Rank]",
    }
}

impl ParamTy {
    /// Whether the type has a natural value for a missing argument: the natural ring, the full mesh.
    pub const fn has_natural(self) -> bool {
        matches!(self, Self::Ring | Self::Topology)
    }

    /// Returns the form of a value of the type on the command line.
    pub const fn takes(self) -> &'static str {
        match self {
            Self::Int => "a 64-bit integer",
            Self::Bool => "`true` or `false`",
            Self::Rank => "the number of a rank",
            Self::Ring => {
                "`natural`, `twisted`, `around(TOPOLOGY)`, or ranks in ring order such as `1,2,3,0`"
            }
            Self::Rings => {
                "`channels(TOPOLOGY)`, `disjoint(TOPOLOGY, 2)`, or ring orders such as `0,1,2;0,2,1`"
            }
            Self::Tree => {
                "`binary(0)`, `binomial(0)`, `chain(0)`, `star(0)`, `double_binary(1)`, or the parent of each rank such as `-1,0,0,1`"
            }
            Self::Trees => {
                "`binary`, `binomial`, `chain`, `star`, `double_binary`, `double_binary(0)`, or the parents in each tree, with weights, such as `-1,0,0,1*3;1,-1,1,0`, `turned(-1,0,0,1)`"
            }
            Self::Groups => {
                "`of(4)`, `sizes(8,4)`, `colors(0,0,1,1)`, `balanced`, `natural`, `islands(TOPOLOGY)` or `rails(TOPOLOGY)`"
            }
            Self::Topology => "a topology such as `full_mesh(8) without (0, 1)`",
            Self::Ranks => "a list of ranks such as `0,2,4`",
        }
    }
}

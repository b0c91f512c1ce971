//! The checked expressions: their kinds, types and places.

use super::{Ty, VarId};
use crate::source::Span;
use crate::syntax::ast::{BinOp, UnOp};
use crate::values::arith::IntFn;
use crate::values::tree::TreeKind;
use roundelay_base::named_enum;
use roundelay_topology::GpuModel;
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::shape::ShapeKind;

/// An argument of a topology's constructor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeArg {
    /// A size: an int or a list.
    Size(Expr),
    /// Bytes a second.
    Rate(u64),
    /// Nanoseconds.
    Time(u64),
    /// A machine that has a name.
    Machine(&'static NamedMachine),
    /// The GPUs that the ranks are.
    Gpus(GpuModel),
    /// The switches reduce.
    Reducing,
}

/// The constructor of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeForm {
    /// `Tree::binary(root)`, `binomial`, `chain`, `star`
    Regular(TreeKind, Expr),
    /// `Tree::double_binary(which)`, or with a root
    DoubleBinary(Expr, Option<Expr>),
    /// `Tree::parents([…])`
    Parents(Expr),
}

/// The constructor of several trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreesForm {
    /// `Trees::binary()`, `binomial`, `chain`, `star`
    Regular(TreeKind),
    /// `Trees::double_binary()`, or with a root
    DoubleBinary(Option<Expr>),
    /// `Trees::parents([…], [weights])`, `Trees::turned([…], [weights])`
    Parents {
        /// The parents of all ranks, tree by tree.
        parents: Expr,
        /// The weight of each tree.
        weights: Option<Expr>,
        /// Whether the trees are repeated for every turn of the ranks.
        turned: bool,
    },
    /// `Trees::even(trees)`
    Even(Expr),
}

/// A field of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeField {
    /// A peer: the rank without a parent.
    Root,
    /// A peer: the parent of this rank.
    Parent,
    /// A list: the children of this rank.
    Children,
    /// An int: steps from the root to this rank.
    Level,
    /// An int: steps from the root to the farthest rank.
    Depth,
}

named_enum! {
    /// A field of a topology that holds for all its ranks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TopologyField {
        /// Pairs of ranks that are not linked, as one list.
        Missing = "missing",
        /// The part of the data that each rank should own.
        Shares = "shares",
        /// The ranks that are linked to all other ranks.
        Hubs = "hubs",
    }
}

/// The constructor of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupsForm {
    /// `Groups::of(size)`
    Of(Expr),
    /// `Groups::sizes([…])`
    Sizes(Expr),
    /// `Groups::colors([…])`
    Colors(Expr),
    /// `Groups::balanced()`
    Balanced,
    /// `Groups::natural()`
    Natural,
    /// `Groups::islands(topology)`
    Islands(Expr),
    /// `Groups::rails(topology)`
    Rails(Expr),
}

/// A field of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsField {
    /// A list: this rank's group.
    Mine,
    /// A list: the ranks at this rank's position, group by group.
    Across,
    /// An int: the number of this rank's group.
    Index,
    /// An int: this rank's position in its group.
    Position,
    /// A bool: whether all groups are of one size.
    Even,
}

/// A typed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// Its kind, with its parts.
    pub kind: Box<ExprKind>,
    /// Its type.
    pub ty: Ty,
    /// Its place.
    pub span: Span,
}

/// The expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// A literal.
    Int(i64),
    /// A literal.
    Bool(bool),
    /// A variable.
    Var(VarId),
    /// `rank`
    Rank,
    /// `nranks`
    Nranks,
    /// `local`
    Local,
    /// `all`
    All,
    /// `input`
    Input,
    /// `output`
    Output,
    /// `-a`, `!a`
    Unary(UnOp, Expr),
    /// Arithmetic, comparison (of int, bool or peer) or logic.
    Binary(BinOp, Expr, Expr),
    /// `if c { a } else { b }`
    If(Expr, Expr, Expr),
    /// `[a, b, c]`
    List(Vec<Expr>),
    /// `log2(a)` and its kin.
    IntFn(IntFn, Vec<Expr>),
    /// `is_power_of_two(a)`
    IsPowerOfTwo(Expr),
    /// `peer(a)`
    Peer(Expr),
    /// `len(list)` or `len(pieces)`
    Len(Expr),
    /// `rev(list)`
    Rev(Expr),
    /// `list[i]`
    Element(Expr, Expr),
    /// `p.rank`
    RankOf(Expr),
    /// `ring.left`
    RingLeft(Expr),
    /// `ring.right`
    RingRight(Expr),
    /// `ring.position`
    RingPosition(Expr),
    /// `Ring::natural(nranks)`
    RingNatural,
    /// `Ring::twisted()`
    RingTwisted,
    /// `Ring::order([…])`
    RingOrder(Expr),
    /// `Ring::around(topology)`
    RingAround(Expr),
    /// `Rings::channels(topology)`
    RingsChannels(Expr),
    /// `Rings::disjoint(topology, k)`
    RingsDisjoint(Expr, Expr),
    /// `ring[i]`: the rank at position i.
    RingSeat(Expr, Expr),
    /// `ring.position_of(rank)`
    RingPositionOf(Expr, Expr),
    /// `rings[i]`
    RingAt(Expr, Expr),
    /// `Tree::binary(root)` and its kin.
    Tree(TreeForm),
    /// `tree.root` and its kin.
    TreeField(TreeField, Expr),
    /// `Trees::parents([…])` and its kin.
    Trees(TreesForm),
    /// `trees[t]`
    TreeAt(Expr, Expr),
    /// `trees.weights`
    TreesWeights(Expr),
    /// `trees.weights_of(rank)`
    TreesWeightsOf(Expr, Expr),
    /// `trees.position_of(t)`
    TreesPositionOf(Expr, Expr),
    /// `Groups::of(size)` and its kin.
    Groups(GroupsForm),
    /// `groups.mine` and its kin.
    GroupsField(GroupsField, Expr),
    /// `groups.index_of(rank)`, `groups.position_of(rank)`
    GroupsOf(GroupsField, Expr, Expr),
    /// `groups[i]`: the ranks of group i.
    GroupAt(Expr, Expr),
    /// `full_mesh(8, 25GB/s, 2us) without (0, 1)`
    Topology(ShapeKind, Vec<ShapeArg>, Vec<(Expr, Expr)>),
    /// `topology.linked(a, b)`
    Linked(Expr, Expr, Expr),
    /// `topology.neighbors(r)`
    Neighbors(Expr, Expr),
    /// `topology.relays(a, b)`
    Relays(Expr, Expr, Expr),
    /// `topology.missing()` and its kin: lists about all ranks.
    TopologyField(TopologyField, Expr),
    /// `region.split(n)`, or by a list of weights.
    Split(Expr, Expr),
    /// `region.block(r)`: piece r of `nranks`.
    Block(Expr, Expr),
    /// `pieces[i]`
    Piece(Expr, Expr),
    /// `pieces[i..j]`
    Range(Expr, Expr, Expr),
    /// `peer.region`: a region, or pieces, as they lie on a rank.
    On(Expr, Expr),
    /// `rust { … }`: its number among the escapes of its algorithm, and the values of the names in its text.
    Rust(u32, Vec<Expr>),
    /// An expression with a reported error.
    Error,
}

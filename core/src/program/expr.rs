//! The expressions of a program: operators on operands.

use crate::ids::VarId;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith::{self, Fault, IntFn};
use crate::values::tree::TreeKind;
use roundelay_topology::GpuModel;
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::shape::ShapeKind;

/// An expression: an operator on its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// The operator.
    pub op: Op,
    /// Its operands.
    pub args: Box<[Expr]>,
    /// The place of the expression.
    pub span: Span,
}

impl Expr {
    /// Makes an operator on these operands, without a place.
    pub fn operator(op: Op, args: Vec<Self>) -> Self {
        Self { op, args: args.into(), span: Span::default() }
    }

    /// Makes an operator without operands.
    pub fn leaf(op: Op) -> Self {
        Self::operator(op, Vec::new())
    }

    /// Makes a number.
    pub fn int(value: i64) -> Self {
        Self::leaf(Op::Int(value))
    }

    /// Makes the value of the variable with a number.
    pub fn var(number: usize) -> Self {
        Self::leaf(Op::Var(VarId(number as u32)))
    }

    /// Computes a number from numbers, where the operator is one of arithmetic. `value` computes an operand; those of
    /// `&&`, `||` and `if` are computed only if they are reached.
    #[inline]
    pub fn arithmetic<'e, E>(
        &'e self,
        mut value: impl FnMut(&'e Self) -> Result<i64, E>,
    ) -> Option<Result<Result<i64, Fault>, E>> {
        let args = &self.args;
        let mut compute = || {
            Ok(Ok(match self.op {
                Op::Neg => return Ok(arith::arithmetic(BinOp::Sub, 0, value(&args[0])?)),
                Op::Flip => !value(&args[0])?,
                Op::Not => (value(&args[0])? == 0).into(),
                Op::Binary(BinOp::And) => (value(&args[0])? != 0 && value(&args[1])? != 0).into(),
                Op::Binary(BinOp::Or) => (value(&args[0])? != 0 || value(&args[1])? != 0).into(),
                Op::Binary(op) => {
                    let (left, right) = (value(&args[0])?, value(&args[1])?);
                    if !op.compares() {
                        return Ok(arith::arithmetic(op, left, right));
                    }
                    arith::compare(op, left, right).into()
                }
                Op::If => {
                    let chosen = if value(&args[0])? != 0 { &args[1] } else { &args[2] };
                    value(chosen)?
                }
                Op::Function(function) => {
                    let first = value(&args[0])?;
                    let second = args.get(1).map_or(Ok(0), &mut value)?;
                    return Ok(function.apply(first, second));
                }
                _ => {
                    let of = value(&args[0])?;
                    (of > 0 && of & (of - 1) == 0).into()
                }
            }))
        };
        self.op.is_arithmetic().then(&mut compute)
    }

    /// Visits the expression and all its parts.
    pub(crate) fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        self.args.iter().for_each(|arg| arg.walk(visit));
    }
}

/// The operators. A truth value is 0 or 1, and a peer is its rank in the whole run, so that most values are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A number.
    Int(i64),
    /// The value of a variable.
    Var(VarId),
    /// This rank's number among the ranks that the statement sees.
    Rank,
    /// The number of ranks that the statement sees.
    Nranks,
    /// This rank as a peer.
    Local,
    /// `-a`
    Neg,
    /// A number with all bits inverted.
    Flip,
    /// `!a` of a truth value.
    Not,
    /// Arithmetic, a comparison, or `&&` and `||`, of which the second operand may not be reached.
    Binary(BinOp),
    /// The second operand if the first holds, or else the third.
    If,
    /// A function of numbers.
    Function(IntFn),
    /// Whether a number is a power of two.
    IsPowerOfTwo,
    /// A list of its operands.
    List,
    /// The length of a list, of rings, of trees, of groups, or of pieces.
    Len,
    /// A list from its last element to its first.
    Rev,
    /// An element of a list.
    Element,
    /// The peer with this number among the ranks that the statement sees.
    Peer,
    /// A peer's number among the ranks that the statement sees.
    RankOf,
    /// The input buffer.
    Input,
    /// The output buffer.
    Output,
    /// A region cut into a number of pieces, or into pieces of the weights of a list.
    Split,
    /// One of several pieces.
    Piece,
    /// The pieces from one up to, and without, another, as one region.
    Pieces,
    /// A region as it lies on a peer.
    On,
    /// The ring of all ranks in their order.
    RingNatural,
    /// The ring of the mesh of eight.
    RingTwisted,
    /// The ring of the ranks of a list.
    RingOrder,
    /// A ring of links of a topology.
    RingAround,
    /// The peer to the left in a ring.
    RingLeft,
    /// The peer to the right in a ring.
    RingRight,
    /// This rank's position in a ring.
    RingPosition,
    /// The peer at a position of a ring.
    RingSeat,
    /// The position of a rank in a ring.
    RingPositionOf,
    /// As many rings as a topology has channels.
    RingsChannels,
    /// A number of rings of a topology that share no link.
    RingsDisjoint,
    /// One of several rings.
    RingsAt,
    /// A tree of this kind with a given root.
    Tree(TreeKind),
    /// One of the two trees of a double binary tree; a second operand is its root.
    TreeDoubleBinary,
    /// The tree of a list of parents.
    TreeParents,
    /// The root of a tree, a peer.
    TreeRoot,
    /// The peer above this rank.
    TreeParent,
    /// The ranks below this rank.
    TreeChildren,
    /// The steps from the root to this rank.
    TreeLevel,
    /// The steps from the root to the farthest rank.
    TreeDepth,
    /// A tree of this kind for each root.
    Trees(TreeKind),
    /// Both trees of a double binary tree; an operand is their root.
    TreesDoubleBinary,
    /// The trees of a list of parents; a second operand is the list of their weights.
    TreesParents,
    /// The trees of a list of parents, repeated for every turn of the ranks; a second operand is the list of their
    /// weights.
    TreesTurned,
    /// Trees: each tree as often as its weight says.
    TreesEven,
    /// One of several trees.
    TreesAt,
    /// The weights of several trees.
    TreesWeights,
    /// The weights of the trees of a root.
    TreesWeightsOf,
    /// The place of a tree among the trees of its root.
    TreesPositionOf,
    /// Groups of a given size.
    GroupsOf,
    /// Groups of the sizes of a list.
    GroupsSizes,
    /// Groups of equal entries of a list.
    GroupsColors,
    /// Groups whose number and size are as nearly equal as possible.
    GroupsBalanced,
    /// The islands of the topology of the run; groups of one size without one.
    GroupsNatural,
    /// The islands of a topology.
    GroupsIslands,
    /// The ranks at one position of each island.
    GroupsRails,
    /// This rank's group.
    GroupsMine,
    /// The ranks at this rank's position, group by group.
    GroupsAcross,
    /// The number of this rank's group.
    GroupsIndex,
    /// This rank's position in its group.
    GroupsPosition,
    /// Whether all groups have one size.
    GroupsEven,
    /// The number of a rank's group.
    GroupsIndexOf,
    /// A rank's position in its group.
    GroupsPositionOf,
    /// The ranks of a group.
    GroupsAt,
    /// A topology of this shape; its last operands are pairs of ranks, as many as the number, between which links are
    /// cut.
    Topology(ShapeKind, u32),
    /// A bandwidth in bytes a second, for a topology.
    Rate(u64),
    /// A latency in nanoseconds, for a topology.
    Time(u64),
    /// A machine that has a name, for a topology.
    Machine(&'static NamedMachine),
    /// The GPUs that the ranks are, for a topology.
    Gpus(GpuModel),
    /// The switches reduce, for a topology.
    Reducing,
    /// Whether two ranks are linked.
    Linked,
    /// The ranks that a rank is linked to.
    Neighbors,
    /// The ranks that can relay between two others.
    Relays,
    /// The pairs of ranks that are not linked.
    Missing,
    /// The share of the data that each rank should own.
    Shares,
    /// The ranks that are linked to all others.
    Hubs,
    /// An entry of the table with this number, by its indices. Only the loop form of an algorithm has tables.
    Entry(u32),
    /// The escape with this number, which only the compiled crate can run, on the values of the names in its text.
    Escape(u32),
}

impl Op {
    /// Whether it computes a number from numbers alone.
    #[inline]
    pub const fn is_arithmetic(self) -> bool {
        matches!(
            self,
            Self::Neg
                | Self::Flip
                | Self::Not
                | Self::Binary(_)
                | Self::If
                | Self::Function(_)
                | Self::IsPowerOfTwo
        )
    }
}

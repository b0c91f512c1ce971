//! The operators of a program in one table: their names in its text form, and the kinds of their operands.

use super::ir::{Expr, Kind, Op, Pass, Program};
use crate::values::arith::IntFn;
use crate::values::tree::TreeKind;
use roundelay_topology::GpuModel;
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::shape::ShapeKind;

/// An operator without parts of its own: its name, the kinds of its operands, and the kind of its value.
type Row = (Op, &'static str, &'static [Kind], Kind);

use Kind::{Groups, List, Number, Pieces, Place, Region, Ring, Rings, Topology, Tree, Trees};

/// Operators whose operands are always of these kinds.
const TABLE: &[Row] = &[
    (Op::Rank, "rank", &[], Number),
    (Op::Nranks, "nranks", &[], Number),
    (Op::Local, "local", &[], Number),
    (Op::Neg, "neg", &[Number], Number),
    (Op::Flip, "flip", &[Number], Number),
    (Op::Not, "not", &[Number], Number),
    (Op::IsPowerOfTwo, "is_power_of_two", &[Number], Number),
    (Op::Rev, "rev", &[List], List),
    (Op::Element, "element", &[List, Number], Number),
    (Op::Peer, "peer", &[Number], Number),
    (Op::RankOf, "rank_of", &[Number], Number),
    (Op::Input, "input", &[], Region),
    (Op::Output, "output", &[], Region),
    (Op::Piece, "piece", &[Pieces, Number], Region),
    (Op::Pieces, "pieces", &[Pieces, Number, Number], Region),
    (Op::On, "on", &[Number, Region], Place),
    (Op::Reducing, "reducing", &[], Kind::Quantity),
    (Op::RingNatural, "ring.natural", &[], Ring),
    (Op::RingTwisted, "ring.twisted", &[], Ring),
    (Op::RingOrder, "ring.order", &[List], Ring),
    (Op::RingAround, "ring.around", &[Topology], Ring),
    (Op::RingLeft, "ring.left", &[Ring], Number),
    (Op::RingRight, "ring.right", &[Ring], Number),
    (Op::RingPosition, "ring.position", &[Ring], Number),
    (Op::RingSeat, "ring.seat", &[Ring, Number], Number),
    (Op::RingPositionOf, "ring.position_of", &[Ring, Number], Number),
    (Op::RingsChannels, "rings.channels", &[Topology], Rings),
    (Op::RingsDisjoint, "rings.disjoint", &[Topology, Number], Rings),
    (Op::RingsAt, "rings.at", &[Rings, Number], Ring),
    (Op::TreeParents, "tree.parents", &[List], Tree),
    (Op::TreeRoot, "tree.root", &[Tree], Number),
    (Op::TreeParent, "tree.parent", &[Tree], Number),
    (Op::TreeChildren, "tree.children", &[Tree], List),
    (Op::TreeLevel, "tree.level", &[Tree], Number),
    (Op::TreeDepth, "tree.depth", &[Tree], Number),
    (Op::TreesAt, "trees.at", &[Trees, Number], Tree),
    (Op::TreesEven, "trees.even", &[Trees], Trees),
    (Op::TreesWeights, "trees.weights", &[Trees], List),
    (Op::TreesWeightsOf, "trees.weights_of", &[Trees, Number], List),
    (Op::TreesPositionOf, "trees.position_of", &[Trees, Number], Number),
    (Op::GroupsOf, "groups.of", &[Number], Groups),
    (Op::GroupsSizes, "groups.sizes", &[List], Groups),
    (Op::GroupsColors, "groups.colors", &[List], Groups),
    (Op::GroupsBalanced, "groups.balanced", &[], Groups),
    (Op::GroupsNatural, "groups.natural", &[], Groups),
    (Op::GroupsIslands, "groups.islands", &[Topology], Groups),
    (Op::GroupsRails, "groups.rails", &[Topology], Groups),
    (Op::GroupsMine, "groups.mine", &[Groups], List),
    (Op::GroupsAcross, "groups.across", &[Groups], List),
    (Op::GroupsIndex, "groups.index", &[Groups], Number),
    (Op::GroupsPosition, "groups.position", &[Groups], Number),
    (Op::GroupsEven, "groups.even", &[Groups], Number),
    (Op::GroupsIndexOf, "groups.index_of", &[Groups, Number], Number),
    (Op::GroupsPositionOf, "groups.position_of", &[Groups, Number], Number),
    (Op::GroupsAt, "groups.at", &[Groups, Number], List),
    (Op::Linked, "topology.linked", &[Topology, Number, Number], Number),
    (Op::Neighbors, "topology.neighbors", &[Topology, Number], List),
    (Op::Relays, "topology.relays", &[Topology, Number, Number], List),
    (Op::Missing, "topology.missing", &[Topology], List),
    (Op::Shares, "topology.shares", &[Topology], List),
    (Op::Hubs, "topology.hubs", &[Topology], List),
];

/// Operators whose operands may be of several kinds, or of any number.
const OTHERS: &[(Op, &str)] = &[
    (Op::If, "if"),
    (Op::List, "list"),
    (Op::Len, "len"),
    (Op::Split, "split"),
    (Op::TreeDoubleBinary, "tree.double_binary"),
    (Op::TreesDoubleBinary, "trees.double_binary"),
    (Op::TreesParents, "trees.parents"),
    (Op::TreesTurned, "trees.turned"),
];

impl Op {
    /// The name of an operator that is written as a function of its operands; `None` for the others.
    pub fn name(self) -> Option<String> {
        if let Some(row) = TABLE.iter().find(|row| row.0 == self) {
            return Some(row.1.to_owned());
        }
        if let Some(row) = OTHERS.iter().find(|row| row.0 == self) {
            return Some(row.1.to_owned());
        }
        match self {
            Self::Function(function) => Some(function.name().to_owned()),
            // A text with an escape is not read back, as it lacks the escape's Rust.
            Self::Escape(number) => Some(format!("escape.{number}")),
            Self::Tree(kind) => Some(format!("tree.{}", kind.name())),
            Self::Trees(kind) => Some(format!("trees.{}", kind.name())),
            Self::Topology(kind, cuts) => Some(format!("topology.{}.{cuts}", kind.name())),
            Self::Machine(machine) => Some(format!("machine.{}", machine.name)),
            Self::Gpus(model) => Some(format!("gpus.{model}")),
            _ => None,
        }
    }

    /// Returns the operator with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.1 == name).map(|row| row.0);
        let row = row.or_else(|| OTHERS.iter().find(|row| row.1 == name).map(|row| row.0));
        let function = || IntFn::from_name(name).map(Self::Function);
        let tree = || {
            let (many, kind) = name.split_once('.')?;
            let kind = TreeKind::from_name(kind)?;
            match many {
                "tree" => Some(Self::Tree(kind)),
                "trees" => Some(Self::Trees(kind)),
                _ => None,
            }
        };
        let topology = || {
            let (kind, cuts) = name.strip_prefix("topology.")?.rsplit_once('.')?;
            Some(Self::Topology(ShapeKind::from_name(kind)?, cuts.parse().ok()?))
        };
        let machine = || NamedMachine::find(name.strip_prefix("machine.")?).map(Self::Machine);
        let gpus = || {
            let model = name.strip_prefix("gpus.")?;
            let cuda = || GpuModel::cuda(model.strip_prefix("sm=")?.parse().ok()?);
            cuda().or_else(|| GpuModel::amd(model)).map(Self::Gpus)
        };
        row.or_else(function).or_else(tree).or_else(topology).or_else(machine).or_else(gpus)
    }

    /// Returns the kind of the value, if the operator takes operands of these kinds; not for `Var`.
    pub fn result(self, args: &[Kind]) -> Option<Kind> {
        if let Some((_, _, takes, gives)) = TABLE.iter().find(|row| row.0 == self) {
            return (*takes == args).then_some(*gives);
        }
        let numbers = |args: &[Kind]| args.iter().all(|kind| *kind == Number);
        match (self, args) {
            (Self::Int(_), [])
            | (Self::Binary(_), [Number, Number])
            | (Self::Len, [List | Rings | Trees | Groups | Pieces])
            | (Self::Escape(_), _) => Some(Number),
            (Self::If, [Number, then, otherwise]) => (then == otherwise).then_some(*then),
            (Self::Function(f), _) => (numbers(args) && args.len() == f.arity()).then_some(Number),
            (Self::List, _) => numbers(args).then_some(List),
            (Self::Split, [Region, Number | List]) => Some(Pieces),
            (Self::Tree(_) | Self::TreeDoubleBinary, [Number])
            | (Self::TreeDoubleBinary, [Number, Number]) => Some(Tree),
            (Self::Trees(_) | Self::TreesDoubleBinary, [])
            | (Self::TreesDoubleBinary, [Number])
            | (Self::TreesParents | Self::TreesTurned, [List] | [List, List]) => Some(Trees),
            (Self::Rate(_) | Self::Time(_) | Self::Machine(_) | Self::Gpus(_), []) => {
                Some(Kind::Quantity)
            }
            (Self::Topology(_, cuts), _) => {
                let sizes = args.len().checked_sub(2 * cuts as usize)?;
                let (sizes, cuts) = args.split_at(sizes);
                let sizes = sizes.iter().all(|k| matches!(k, Number | List | Kind::Quantity));
                (sizes && numbers(cuts)).then_some(Topology)
            }
            _ => None,
        }
    }
}

impl Program {
    /// The kind of the value of an expression; `None` where that has no kind.
    pub(crate) fn kind(&self, expr: &Expr) -> Option<Kind> {
        if let Op::Var(var) = expr.op {
            return Some(self.var(var).kind);
        }
        let args: Option<Vec<Kind>> = expr.args.iter().map(|arg| self.kind(arg)).collect();
        expr.op.result(&args?)
    }

    /// Whether the value of an expression is a list.
    pub(crate) fn is_list(&self, expr: &Expr) -> bool {
        self.kind(expr) == Some(Kind::List)
    }

    /// Returns the list of ranks in place of a peer of a pass, the first where there are two.
    pub fn list_of_peers<'a>(&self, pass: &'a Pass) -> Option<&'a Expr> {
        pass.from.iter().chain(&pass.to).find(|peer| self.is_list(peer))
    }
}

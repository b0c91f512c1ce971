//! The constructors and fields of rings, trees and groups: `Ring::around(topology)`, `tree.parent`.

use super::hir::{Expr, ExprKind, GroupsField, GroupsForm, TreeField, TreeForm, TreesForm, Ty};
use super::{Checker, scope};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast;
use crate::values::tree::TreeKind;
use roundelay_topology::shape::ShapeKind;

/// Every constructor and its arguments as written.
const FORMS: [(&str, &str); 27] = [
    ("Ring::natural", "(nranks)"),
    ("Ring::order", "([…])"),
    ("Ring::twisted", "()"),
    ("Ring::around", "(topology)"),
    ("Rings::channels", "(topology)"),
    ("Rings::disjoint", "(topology, k)"),
    ("Tree::binary", "(root)"),
    ("Tree::binomial", "(root)"),
    ("Tree::chain", "(root)"),
    ("Tree::star", "(root)"),
    ("Tree::double_binary", "(which, root)"),
    ("Tree::parents", "([…])"),
    ("Trees::binary", "()"),
    ("Trees::binomial", "()"),
    ("Trees::chain", "()"),
    ("Trees::star", "()"),
    ("Trees::double_binary", "(root)"),
    ("Trees::parents", "([…], [weights])"),
    ("Trees::turned", "([…], [weights])"),
    ("Trees::even", "(trees)"),
    ("Groups::of", "(size)"),
    ("Groups::sizes", "([…])"),
    ("Groups::colors", "([…])"),
    ("Groups::balanced", "()"),
    ("Groups::natural", "()"),
    ("Groups::islands", "(topology)"),
    ("Groups::rails", "(topology)"),
];

/// The types that have constructors.
const OWNERS: [&str; 5] = ["Ring", "Rings", "Tree", "Trees", "Groups"];

/// Whether a call of `path` makes a topology.
pub(super) fn makes_topology(path: &[ast::Name]) -> bool {
    matches!(path, [name] if ShapeKind::from_name(&name.text).is_some())
}

/// Returns the first type with a constructor of that name, if the name is none of a topology: `Tree` rather than
/// `Trees`.
pub(super) fn owner(name: &str) -> Option<&'static str> {
    FORMS.iter().find_map(|(known, _)| {
        let (owner, form) = known.split_once("::")?;
        (form == name && ShapeKind::from_name(name).is_none()).then_some(owner)
    })
}

impl Checker<'_> {
    /// Checks a call of a path such as `Ring::order`.
    pub(super) fn constructor(
        &mut self,
        path: &[ast::Name],
        args: &[ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let written: Vec<_> = path.iter().map(|n| n.text.as_str()).collect();
        let written = written.join("::");
        let made = match written.split_once("::") {
            Some(("Ring" | "Rings", _)) => self.rings(&written, args),
            Some(("Tree", form)) => self.tree(form, args).map(|f| (ExprKind::Tree(f), Ty::Tree)),
            Some(("Trees", form)) => {
                self.trees(form, args).map(|f| (ExprKind::Trees(f), Ty::Trees))
            }
            Some(("Groups", form)) => {
                self.groups(form, args).map(|f| (ExprKind::Groups(f), Ty::Groups))
            }
            _ => None,
        };
        if let Some((kind, ty)) = made {
            return Some(Expr { kind: Box::new(kind), ty, span });
        }
        if let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == written) {
            let takes = if *form == "()" { 0 } else { form.split(',').count() };
            let name = &path[path.len() - 1];
            self.arity(name, takes, args.len(), span, &format!("{written}{form}"));
            return None;
        }
        let help = match scope::nearest(&path[0].text, OWNERS) {
            Some(owner) => {
                let of =
                    |known: &str| known.strip_prefix(owner).is_some_and(|n| n.starts_with("::"));
                let known = FORMS.iter().filter(|(known, _)| of(known));
                let known: Vec<_> = known.map(|(name, form)| format!("`{name}{form}`")).collect();
                let (last, others) = known.split_last().expect("every type has constructors");
                format!("the constructors are {} and {last}", others.join(", "))
            }
            None => format!("the types with constructors are `{}`", OWNERS.join("`, `")),
        };
        self.error(
            Diagnostic::new(Code::UnknownName, span, format!("nothing is called `{written}`"))
                .help(help),
        );
        None
    }

    /// Reports a field of a value without a name. Expanded Rust looks such a value up by a statement of its own, which
    /// has no room inside an expression.
    pub(super) fn has_a_name(&mut self, asked: &Expr) {
        if !is_made(asked) {
            return;
        }
        let (ty, name) = match asked.ty {
            Ty::Ring => ("Ring", "ring"),
            Ty::Rings => ("Rings", "rings"),
            Ty::Tree => ("Tree", "tree"),
            Ty::Trees => ("Trees", "trees"),
            Ty::Groups => ("Groups", "groups"),
            _ => ("Topology", "topology"),
        };
        let help = if self.in_default {
            format!("make it a parameter before this one: `{name}: {ty} = …`")
        } else {
            format!("name it first: `let {name} = …;`")
        };
        let title = format!("a value of type `{ty}` is asked before it has a name");
        self.error(
            Diagnostic::new(Code::WrongType, asked.span, title).label("made here").help(help),
        );
    }

    fn rings(&mut self, written: &str, args: &[ast::Expr]) -> Option<(ExprKind, Ty)> {
        let kind = match (written, args) {
            ("Ring::natural", [n]) => {
                let n = self.expect(n, Ty::Int);
                if !matches!(*n.kind, ExprKind::Nranks | ExprKind::Error) {
                    self.error(
                        Diagnostic::new(
                            Code::WrongType,
                            n.span,
                            "the natural ring is one of all ranks",
                        )
                        .help("write `Ring::natural(nranks)`"),
                    );
                }
                ExprKind::RingNatural
            }
            ("Ring::twisted", []) => ExprKind::RingTwisted,
            ("Ring::order", [list]) => ExprKind::RingOrder(self.expect(list, Ty::List)),
            ("Ring::around", [topology]) => {
                ExprKind::RingAround(self.expect(topology, Ty::Topology))
            }
            ("Rings::channels", [topology]) => {
                ExprKind::RingsChannels(self.expect(topology, Ty::Topology))
            }
            ("Rings::disjoint", [topology, k]) => ExprKind::RingsDisjoint(
                self.expect(topology, Ty::Topology),
                self.expect(k, Ty::Int),
            ),
            _ => return None,
        };
        Some((kind, if written.starts_with("Rings") { Ty::Rings } else { Ty::Ring }))
    }

    fn tree(&mut self, form: &str, args: &[ast::Expr]) -> Option<TreeForm> {
        let regular = TreeKind::from_name(form);
        Some(match (regular, form, args) {
            (Some(kind), _, [root]) => TreeForm::Regular(kind, self.rank_of(root)),
            (_, "double_binary", [which]) => {
                TreeForm::DoubleBinary(self.expect(which, Ty::Int), None)
            }
            (_, "double_binary", [which, root]) => {
                TreeForm::DoubleBinary(self.expect(which, Ty::Int), Some(self.rank_of(root)))
            }
            (_, "parents", [list]) => TreeForm::Parents(self.expect(list, Ty::List)),
            _ => return None,
        })
    }

    fn trees(&mut self, form: &str, args: &[ast::Expr]) -> Option<TreesForm> {
        let regular = TreeKind::from_name(form);
        Some(match (regular, form, args) {
            (Some(kind), _, []) => TreesForm::Regular(kind),
            (_, "double_binary", []) => TreesForm::DoubleBinary(None),
            (_, "double_binary", [root]) => TreesForm::DoubleBinary(Some(self.rank_of(root))),
            (_, "parents" | "turned", [parents, weights @ ..]) if weights.len() < 2 => {
                let parents = self.expect(parents, Ty::List);
                let weights = weights.first().map(|weights| self.expect(weights, Ty::List));
                TreesForm::Parents { parents, weights, turned: form == "turned" }
            }
            (_, "even", [trees]) => TreesForm::Even(self.expect(trees, Ty::Trees)),
            _ => return None,
        })
    }

    fn groups(&mut self, form: &str, args: &[ast::Expr]) -> Option<GroupsForm> {
        Some(match (form, args) {
            ("of", [size]) => GroupsForm::Of(self.expect(size, Ty::Int)),
            ("sizes", [list]) => GroupsForm::Sizes(self.expect(list, Ty::List)),
            ("colors", [list]) => GroupsForm::Colors(self.expect(list, Ty::List)),
            ("balanced", []) => GroupsForm::Balanced,
            ("natural", []) => GroupsForm::Natural,
            ("islands", [topology]) => GroupsForm::Islands(self.expect(topology, Ty::Topology)),
            ("rails", [topology]) => GroupsForm::Rails(self.expect(topology, Ty::Topology)),
            _ => return None,
        })
    }
}

/// Whether the expression makes the value in its own place.
fn is_made(expr: &Expr) -> bool {
    match &*expr.kind {
        ExprKind::RingNatural
        | ExprKind::RingTwisted
        | ExprKind::RingOrder(_)
        | ExprKind::RingAround(_)
        | ExprKind::RingsChannels(_)
        | ExprKind::RingsDisjoint(..)
        | ExprKind::Tree(_)
        | ExprKind::Trees(_)
        | ExprKind::Groups(_)
        | ExprKind::Topology(..) => true,
        ExprKind::If(_, then, otherwise) => is_made(then) || is_made(otherwise),
        _ => false,
    }
}

/// Returns the expression and type of the field `name` of a value, if it has that field.
pub(super) fn field(base: &Expr, name: &str) -> Option<(ExprKind, Ty)> {
    let tree = |field, ty| Some((ExprKind::TreeField(field, base.clone()), ty));
    let groups = |field, ty| Some((ExprKind::GroupsField(field, base.clone()), ty));
    match (base.ty, name) {
        (Ty::Ring, "left") => Some((ExprKind::RingLeft(base.clone()), Ty::Peer)),
        (Ty::Ring, "right") => Some((ExprKind::RingRight(base.clone()), Ty::Peer)),
        (Ty::Ring, "position") => Some((ExprKind::RingPosition(base.clone()), Ty::Int)),
        (Ty::Tree, "root") => tree(TreeField::Root, Ty::Peer),
        (Ty::Tree, "parent") => tree(TreeField::Parent, Ty::Peer),
        (Ty::Tree, "children") => tree(TreeField::Children, Ty::List),
        (Ty::Tree, "level") => tree(TreeField::Level, Ty::Int),
        (Ty::Tree, "depth") => tree(TreeField::Depth, Ty::Int),
        (Ty::Trees, "weights") => Some((ExprKind::TreesWeights(base.clone()), Ty::List)),
        (Ty::Groups, "mine") => groups(GroupsField::Mine, Ty::List),
        (Ty::Groups, "across") => groups(GroupsField::Across, Ty::List),
        (Ty::Groups, "index") => groups(GroupsField::Index, Ty::Int),
        (Ty::Groups, "position") => groups(GroupsField::Position, Ty::Int),
        (Ty::Groups, "even") => groups(GroupsField::Even, Ty::Bool),
        (Ty::Peer, "rank") => Some((ExprKind::RankOf(base.clone()), Ty::Int)),
        _ => None,
    }
}

/// Returns the fields of a type's values.
pub(super) const fn fields(ty: Ty) -> &'static [&'static str] {
    match ty {
        Ty::Ring => &["left", "right", "position"],
        Ty::Tree => &["root", "parent", "children", "level", "depth"],
        Ty::Trees => &["weights"],
        Ty::Groups => &["mine", "across", "index", "position", "even"],
        _ => &[],
    }
}

/// Whether a field's value is equal at every rank.
pub(super) fn is_uniform(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::TreeField(TreeField::Root | TreeField::Depth, _)
        | ExprKind::TreesWeights(_)
        | ExprKind::GroupsField(GroupsField::Even, _) => true,
        ExprKind::RankOf(peer) => is_uniform(&peer.kind),
        _ => false,
    }
}

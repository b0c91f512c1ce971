//! The memory that a scratch takes, in the words of an author.

use super::super::hir::{self, Expr, ExprKind, Stmt, StmtKind, VarId};
use crate::collective::Collective;

/// An amount of `times / over * nranks^power` units of the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Units {
    times: i64,
    over: i64,
    power: i32,
}

/// Returns the units of a scratch, such as `2 * nranks`; `None` where they depend on more than `nranks`.
pub(super) fn of(algorithm: &hir::Algorithm, slots: Option<&Expr>, like: &Expr) -> Option<String> {
    let slot = piece(algorithm, like)?;
    let units = match slots {
        Some(slots) => slot.times(factor(slots)?),
        None => Some(slot),
    };
    units.map(Units::text)
}

/// Returns the units of a region, or of one of its pieces.
fn piece(algorithm: &hir::Algorithm, region: &Expr) -> Option<Units> {
    match &*region.kind {
        ExprKind::Input => Some(units(Collective::max_input_units, algorithm.collective)),
        ExprKind::Output => Some(units(Collective::max_output_units, algorithm.collective)),
        ExprKind::Var(var) => match &declaration(&algorithm.body, *var)?.kind {
            StmtKind::Let(_, value) => piece(algorithm, value),
            StmtKind::Scratch(_, _, like, _) => piece(algorithm, like),
            _ => None,
        },
        ExprKind::Split(region, pieces) => {
            let pieces = factor(pieces)?;
            let inverse = Units { times: pieces.over, over: pieces.times, power: -pieces.power };
            piece(algorithm, region)?.times(inverse)
        }
        ExprKind::Piece(pieces, _) => piece(algorithm, pieces),
        _ => None,
    }
}

/// Returns one unit, or `nranks` units.
fn units(of: fn(Collective, u32) -> u32, collective: Collective) -> Units {
    Units { times: 1, over: 1, power: i32::from(of(collective, 2) > 1) }
}

/// Returns the declaration of a name: scratch and its shape are declared at the top of the algorithm.
fn declaration(body: &[Stmt], name: VarId) -> Option<&Stmt> {
    body.iter().find(
        |stmt| matches!(&stmt.kind, StmtKind::Let(var, _) | StmtKind::Scratch(var, ..) if *var == name),
    )
}

/// Returns the units of a number, or of `nranks`.
fn factor(expr: &Expr) -> Option<Units> {
    match *expr.kind {
        ExprKind::Int(times) if times > 0 => Some(Units { times, over: 1, power: 0 }),
        ExprKind::Nranks => Some(Units { times: 1, over: 1, power: 1 }),
        _ => None,
    }
}

impl Units {
    fn times(self, by: Self) -> Option<Self> {
        let times = self.times.checked_mul(by.times)?;
        let over = self.over.checked_mul(by.over)?;
        let (mut a, mut b) = (times, over);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { times: times / a, over: over / a, power: self.power + by.power })
    }

    fn text(self) -> String {
        let Self { times, over, power } = self;
        let ranks = |n: i32| (0..n).map(|_| "nranks".to_owned());
        let number = |n: i64| (n > 1).then(|| n.to_string());
        let above: Vec<_> = number(times).into_iter().chain(ranks(power)).collect();
        let below: Vec<_> = number(over).into_iter().chain(ranks(-power)).collect();
        let above = if above.is_empty() { "1".to_owned() } else { above.join(" * ") };
        match below.len() {
            0 => above,
            1 => format!("{above} / {}", below[0]),
            _ => format!("{above} / ({})", below.join(" * ")),
        }
    }
}

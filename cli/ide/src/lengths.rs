//! The lengths of views and of slots of scratch, as an author would write them: in counts of the call, and in the numbers
//! that regions are cut in.

use roundelay_core::check::hir::{Algorithm, Expr, ExprKind, StmtKind, VarId, walk};
use roundelay_core::collective::Collective;
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;

/// The length of a region: this many times the count, divided by the product of the numbers.
#[derive(Clone)]
struct Length {
    /// Whether the count is taken once for each rank.
    of_ranks: bool,
    /// The numbers of pieces that the region is cut in, as they are written.
    cuts: Vec<String>,
}

/// Returns the length that belongs behind each declared view and scratch, with the last token of its statement.
pub(super) fn of(algorithm: &Algorithm, source: &Source) -> Vec<(Span, String)> {
    let mut known: Vec<(VarId, Length)> = Vec::new();
    let mut found = Vec::new();
    walk(&algorithm.body, &mut |stmt| {
        let (var, region, slots) = match &stmt.kind {
            StmtKind::Let(var, region) => (var, region, None),
            StmtKind::Scratch(var, slots, like, _) => (var, like, Some(slots)),
            _ => return,
        };
        let lengths = Lengths { algorithm, source, known: &known };
        let Some(length) = lengths.of(region) else { return };
        let span = algorithm.spans.get(stmt.at.index()).copied().unwrap_or_default();
        let each = match (slots, &*region.kind) {
            (Some(Some(_)), _) | (None, ExprKind::Split(..)) => "each ",
            _ => "",
        };
        found.push((span, format!("{each}{}", length.text())));
        known.push((*var, length));
    });
    found
}

struct Lengths<'a> {
    algorithm: &'a Algorithm,
    source: &'a Source,
    known: &'a [(VarId, Length)],
}

impl Lengths<'_> {
    /// Returns the length of a region, or of each of its pieces; `None` where it is not told by these few forms.
    fn of(&self, region: &Expr) -> Option<Length> {
        use Collective::{AllGather, AllToAll, Gather, ReduceScatter, Scatter};
        let collective = self.algorithm.collective;
        let whole = |of_ranks| Some(Length { of_ranks, cuts: Vec::new() });
        match &*region.kind {
            ExprKind::Input => whole(matches!(collective, ReduceScatter | AllToAll | Scatter)),
            ExprKind::Output => whole(matches!(collective, AllGather | AllToAll | Gather)),
            ExprKind::Var(var) => {
                let known = self.known.iter().rfind(|(known, _)| known == var);
                known.map(|(_, length)| length.clone())
            }
            ExprKind::Piece(pieces, _) => self.of(pieces),
            ExprKind::Split(region, pieces) if pieces.ty == roundelay_core::check::hir::Ty::Int => {
                let mut length = self.of(region)?;
                let cut = self.source.text_at(pieces.span);
                match &*cut {
                    "1" => {}
                    "nranks" if length.of_ranks => length.of_ranks = false,
                    _ => length.cuts.push(cut),
                }
                Some(length)
            }
            _ => None,
        }
    }
}

impl Length {
    fn text(&self) -> String {
        let count = if self.of_ranks { "nranks * count" } else { "count" };
        let word = |cut: &String| cut.chars().all(|c| c.is_alphanumeric() || c == '_');
        let cut = |cut: &String| if word(cut) { cut.clone() } else { format!("({cut})") };
        let cuts = self.cuts.iter().map(|one| format!(" / {}", cut(one)));
        format!("{count}{}", cuts.collect::<String>())
    }
}

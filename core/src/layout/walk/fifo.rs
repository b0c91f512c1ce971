//! Fifos: their options, and the data that is passed through them.

use super::Walk;
use crate::layout::builder::fifo;
use crate::layout::builder::{Builder, Place, Stop};
use crate::program::ir::{Expr, Pass, Stmt};

impl<'p> Walk<'p> {
    /// Returns an option of the fifo.
    pub(super) fn option(
        &mut self,
        b: &mut Builder<'_>,
        name: &'static str,
        value: Option<&'p Expr>,
        default: u32,
    ) -> Result<u32, Stop> {
        let Some(expr) = value else { return Ok(default) };
        let value = self.int(b, expr)?;
        self.settle(b, expr.span, fifo::size(name, value))
    }

    pub(super) fn pass(
        &mut self,
        b: &mut Builder<'_>,
        stmt: &Stmt,
        pass: &'p Pass,
    ) -> Result<(), Stop> {
        // Expressions are evaluated in the order of the source: the peer before the dot comes first.
        let from = pass.from.as_ref().map(|peer| self.rank(b, peer)).transpose()?;
        let first = match (&from, &pass.to) {
            (None, Some(to)) => Some(self.rank(b, to)?),
            _ => None,
        };
        let own = pass.own.as_ref().map(|place| self.own(b, place)).transpose()?;
        let dst = pass.dst.as_ref().map(|place| self.own(b, place)).transpose()?;
        let to = match (first, &pass.to) {
            (None, Some(to)) => Some(self.rank(b, to)?),
            (first, _) => first,
        };
        b.pass(self.at, from, own, dst, to)?;
        self.trace_pass(b, stmt, [from, to]);
        Ok(())
    }

    /// Returns a place of this rank.
    fn own(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Place, Stop> {
        let place = self.place(b, expr)?;
        self.exactly(b, expr.span, |b, at| b.own(at, place))?;
        Ok(place)
    }
}

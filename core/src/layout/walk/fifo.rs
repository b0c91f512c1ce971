//! Fifos: their options, and the data that is passed through them.

use super::Walk;
use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
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
        let from = pass.from.as_ref().map(|peer| self.peers(b, peer)).transpose()?;
        let first = match (&from, &pass.to) {
            (None, Some(to)) => Some(self.peers(b, to)?),
            _ => None,
        };
        let own = pass.own.as_ref().map(|place| self.own(b, place)).transpose()?;
        let dst = pass.dst.as_ref().map(|place| self.own(b, place)).transpose()?;
        let to = match (first, &pass.to) {
            (None, Some(to)) => Some(self.peers(b, to)?),
            (first, _) => first,
        };
        let ends = [from, to].map(Option::unwrap_or_default);
        b.pass(self.at, &ends[0], own, dst, &ends[1])?;
        // A list may take no part, and then there is no move; its loops are those of the schedule in any case.
        if self.program.list_of_peers(pass).is_none() {
            self.trace_pass(b, stmt, ends.map(|peers| peers.first().copied()));
        }
        Ok(())
    }

    /// Returns the peer of a primitive, or those of a list of ranks.
    fn peers(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Vec<RankId>, Stop> {
        if !self.program.is_list(expr) {
            return Ok(vec![self.rank(b, expr)?]);
        }
        let numbers = self.list(b, expr)?;
        let mut peers = Vec::with_capacity(numbers.len());
        for number in numbers.iter() {
            let peer = self.settle(b, expr.span, b.find_rank(*number))?;
            if peers.contains(&peer) {
                let title = format!("rank {peer} is in the list twice");
                let finding = Finding::new(Code::BadArgument, SpanId(self.at), title)
                    .help("a link passes one message at once: write two primitives, or give the rank once");
                return Err(self.fail(b, expr.span, finding));
            }
            peers.push(peer);
        }
        Ok(peers)
    }

    /// Returns a place of this rank.
    fn own(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Place, Stop> {
        let place = self.place(b, expr)?;
        self.exactly(b, expr.span, |b, at| b.own(at, place))?;
        Ok(place)
    }
}

//! The fifo and NCCL's primitives, with every fault at the option, peer or region that it stands in.

use super::Run;
use super::eval::Value;
use crate::check::hir::{Expr, Primitive};
use crate::schedule::builder::fifo::{self, CREDITS, SLICES};
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::value::{Peer, Piece, Place, Split};

impl<'a> Run<'a> {
    pub(super) fn fifo(
        &mut self,
        b: &mut Builder<'_>,
        like: &'a Expr,
        credits: Option<&'a Expr>,
        slices: Option<&'a Expr>,
    ) -> Result<(), Stop> {
        let shape = self.eval(b, like)?;
        let credits = self.option(b, "credits", credits, CREDITS)?;
        let slices = self.option(b, "slices", slices, SLICES)?;
        match shape {
            Value::Region(like) => b.fifo(self.at, Piece(Ok(like)), credits, slices),
            Value::Pieces(like) => b.fifo_blocks(self.at, &Split(Ok(like)), credits, slices),
            other => unreachable!("checked as a region, is {other:?}"),
        }
    }

    fn option(
        &mut self,
        b: &mut Builder<'_>,
        name: &'static str,
        value: Option<&'a Expr>,
        default: u32,
    ) -> Result<u32, Stop> {
        let Some(expr) = value else { return Ok(default) };
        let value = self.int(b, expr)?;
        self.settle(b, expr.span, fifo::size(name, value))
    }

    pub(super) fn primitive(
        &mut self,
        b: &mut Builder<'_>,
        primitive: Primitive,
        peer: &'a Expr,
        places: &'a [Expr],
        onward: Option<&'a Expr>,
    ) -> Result<(), Stop> {
        let at = self.at;
        let peer = Peer(Ok(self.peer(b, peer)?));
        let first = self.own(b, &places[0])?;
        let last = if places.len() > 1 { self.own(b, &places[1])? } else { first };
        let to = onward.map(|to| self.peer(b, to)).transpose()?.map_or(peer, |to| Peer(Ok(to)));
        match primitive {
            Primitive::Send => b.send(at, peer, first),
            Primitive::Recv => b.recv(at, peer, first),
            Primitive::RecvReduce => b.recv_reduce(at, peer, first),
            Primitive::RecvCopySend => b.recv_copy_send(at, peer, first, to),
            Primitive::RecvReduceSend => b.recv_reduce_send(at, peer, first, to),
            Primitive::RecvReduceCopy => b.recv_reduce_copy(at, peer, first, last),
            Primitive::RecvReduceCopySend => b.recv_reduce_copy_send(at, peer, first, last, to),
        }
    }

    /// A region of this rank.
    fn own(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Place, Stop> {
        let place = self.place(b, expr)?;
        self.exactly(b, expr.span, |b, at| b.own(at, place))?;
        Ok(place)
    }
}

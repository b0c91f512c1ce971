//! The parts into which a turn cuts pieces: between two cuts it moves a piece as one.

use super::space::{CellRange, Space};

impl Space {
    /// Returns the pieces to which a turn takes a piece, as memory: their cells may be turned inside.
    pub(crate) fn images(&self, piece: CellRange, by: u32) -> Vec<CellRange> {
        if piece.len == 0 {
            return Vec::new();
        }
        let mut cuts = Vec::new();
        if self.is_cut(piece) {
            self.cuts(piece, by, &mut cuts);
        }
        cuts.push(piece.len);
        let mut from = 0;
        let image = |to| {
            let part = CellRange { first: piece.first + from, len: to - from, ..piece };
            from = to;
            self.image(part, by)
        };
        cuts.into_iter().map(image).collect()
    }

    /// Returns the one piece to which a turn takes a piece that it does not cut.
    pub(crate) fn image(&self, piece: CellRange, by: u32) -> CellRange {
        CellRange { first: self.block(piece, by), ..piece }
    }

    /// Whether wheels turn cells inside a piece.
    pub(crate) fn turns_inside(&self, piece: CellRange) -> bool {
        self.wheels[piece.buffer].last().is_some_and(|wheel| wheel.stride < piece.len)
    }

    /// Whether a boundary between steps of a wheel lies inside a piece.
    pub(crate) fn is_cut(&self, piece: CellRange) -> bool {
        let stride = self.wheels[piece.buffer].last().map_or(u64::MAX, |wheel| wheel.stride);
        piece.len > 0 && piece.first / stride != (piece.first + piece.len - 1) / stride
    }

    /// Returns the cells that the wheels of a buffer turn among themselves.
    pub(crate) fn span(&self, buffer: usize) -> u64 {
        self.wheels[buffer].first().map_or(1, |wheel| wheel.stride * self.radix(wheel))
    }

    /// Returns the parts into which a turn cuts the pieces of one move, so that it moves each part of each piece as one:
    /// the first cell of each piece, and the cells of a part. `None` where there are more than `most`.
    pub(crate) fn parts(
        &self,
        pieces: &[CellRange],
        by: u32,
        most: usize,
    ) -> Option<Vec<(Vec<u64>, u64)>> {
        let inside = |piece: &CellRange| self.turns_inside(*piece) || self.is_cut(*piece);
        let len = pieces[0].len;
        if !pieces.iter().any(inside) {
            let firsts = pieces.iter().map(|piece| self.turned(*piece, by).first);
            return Some(vec![(firsts.collect(), len)]);
        }
        // Turned alike, operands at equal places keep their distances: the places of the first operand tell all.
        let CellRange { buffer, first, .. } = pieces[0];
        let span = self.span(buffer);
        let alike = pieces.iter().all(|other| {
            (other.buffer == buffer || self.wheels[other.buffer] == self.wheels[buffer])
                && other.first.abs_diff(first) % span == 0
        });
        let mut cuts = Vec::new();
        if alike {
            self.cuts(pieces[0], by, &mut cuts);
            cuts.push(len);
        } else {
            cuts.extend(1..=len);
        }
        let mut from = 0;
        let part = |to: u64| {
            let part = |piece: &CellRange| {
                let part = CellRange { first: piece.first + from, len: to - from, ..*piece };
                if alike { self.block(part, by) } else { self.cell(part.buffer, part.first, by) }
            };
            let part = (pieces.iter().map(part).collect(), to - from);
            from = to;
            part
        };
        let mut all: Vec<(Vec<u64>, u64)> = cuts.into_iter().map(part).collect();
        all.sort_unstable();
        let mut parts: Vec<(Vec<u64>, u64)> = Vec::new();
        for (firsts, len) in all {
            match parts.last_mut() {
                Some((before, done))
                    if before.iter().zip(&firsts).all(|(before, now)| before + *done == *now) =>
                {
                    *done += len;
                }
                _ => parts.push((firsts, len)),
            }
        }
        if parts.len() > most {
            return None;
        }
        Some(parts)
    }

    /// Adds the places inside a piece, from its first cell on, where a turn cuts it: between two of these places it
    /// moves the piece as one, but for the wheels inside, which turn whole spans in themselves.
    pub(crate) fn cuts(&self, piece: CellRange, by: u32, cuts: &mut Vec<u64>) {
        let end = piece.first + piece.len;
        self.cut_within(piece.buffer, 0, (piece.first, end), by, &mut |at| {
            if at > piece.first && at < end {
                cuts.push(at - piece.first);
            }
        });
        cuts.sort_unstable();
        cuts.dedup();
    }

    fn cut_within(
        &self,
        buffer: usize,
        wheel: usize,
        (first, end): (u64, u64),
        by: u32,
        cut: &mut impl FnMut(u64),
    ) {
        let Some(turned) = self.wheels[buffer].get(wheel) else { return };
        let (stride, radix) = (turned.stride, self.radix(turned));
        let span = stride * radix;
        let step = u64::from(self.turns.digit(by, turned.digit));
        let mut at = first;
        while at < end {
            // The part of the piece in one span of the wheel.
            let begin = at / span * span;
            let until = end.min(begin + span);
            cut(until);
            if (at, until) != (begin, begin + span) {
                // Whole steps move as one, up to the step that comes around to the beginning.
                let (whole, rest) = (at.div_ceil(stride) * stride, until / stride * stride);
                if whole < rest {
                    cut(whole);
                    cut(rest);
                    if step > 0 {
                        cut((begin + (radix - step) * stride).clamp(whole, rest));
                    }
                    self.cut_within(buffer, wheel + 1, (at, whole), by, cut);
                    self.cut_within(buffer, wheel + 1, (rest, until), by, cut);
                } else {
                    cut(whole.min(until));
                    self.cut_within(buffer, wheel + 1, (at, whole.min(until)), by, cut);
                    self.cut_within(buffer, wheel + 1, (whole.min(until), until), by, cut);
                }
            }
            at = until;
        }
    }

    /// Returns the first cell to which a turn takes a piece between two of its cuts: by the wheels whose spans the piece
    /// does not fill.
    pub(crate) fn block(&self, piece: CellRange, by: u32) -> u64 {
        let mut stride = 1;
        for wheel in self.wheels[piece.buffer].iter().rev() {
            let span = wheel.stride * self.radix(wheel);
            if piece.first.is_multiple_of(span) && piece.len.is_multiple_of(span) {
                stride = span;
            }
        }
        self.moved(piece.buffer, piece.first, by, stride)
    }
}

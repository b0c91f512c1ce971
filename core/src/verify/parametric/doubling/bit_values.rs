//! The values at each place: an induction over the rounds. As no two accesses race, all ranks may be taken to run each
//! statement at once. What a rank has gathered is a set of ranks: the inputs that are summed in a buffer of one block,
//! or the blocks that are in a buffer of nranks blocks. In round k this set is the one known to 2^k ranks, and the
//! round has to double it.

use std::collections::BTreeMap;

use super::bit_order::RankSet::{self, All, Doubled, Known, Next, Other, Own, Unknown};
use super::bit_order::set_of;
use super::numbers::RoundSeat;
use super::{Blocks, Doubling, SeatPlace};
use crate::collective::Collective;
use crate::schedule::Buffer;
use crate::verify::layout::BufferMode;
use crate::verify::parametric::claim::Values;
use crate::verify::parametric::places::Effect;
use crate::verify::parametric::rounds::{Answer, Covered as _, Naming as _, Rounds};

/// The state of a rank's buffers while all ranks run together.
struct Ranks<'a> {
    program: &'a Rounds<Doubling>,
    /// The ranks that a buffer has gathered, if it is known.
    gathered: BTreeMap<Buffer, RankSet>,
    /// The seat of the peer whose sums are read.
    ahead: Option<RoundSeat>,
}

impl Values for Doubling {
    fn complete(of: &Rounds<Self>, effects: &[Effect<Self>], mode: BufferMode) -> Answer<bool> {
        // In place, each input is the rank's own data in its output.
        let own = if mode == BufferMode::InPlace { Buffer::Output } else { Buffer::Input };
        let mut ranks = Ranks { program: of, gathered: [(own, Own)].into(), ahead: None };
        let part = |effect: &Effect<Self>| of.steps[effect.step].part;
        effects.chunk_by(|a, b| part(a) == part(b)).try_for_each(|moves| ranks.part(moves))?;
        Ok(ranks.held(Buffer::Output) == All)
    }

    /// Each move of an `AllGather` has the same blocks on both sides, but scratch is not followed.
    fn keeps_blocks(program: &Rounds<Self>) -> bool {
        program.collective == Collective::AllGather && program.scratch == 0
    }
}

/// Returns a place as the rank at seat `to` names it.
fn turned(place: &SeatPlace, to: RoundSeat) -> Option<SeatPlace> {
    let mut place = SeatPlace { owner: place.owner.seen(to)?, ..*place };
    if let Some(Blocks { seat, .. }) = &mut place.region.block {
        *seat = seat.seen(to)?;
    }
    Some(place)
}

impl Ranks<'_> {
    fn held(&self, buffer: Buffer) -> RankSet {
        self.gathered.get(&buffer).copied().unwrap_or(Unknown)
    }

    /// Runs the moves of a part: once, or in all rounds of a loop. Round 0 knows each rank alone, as 2^0 ranks, and
    /// each round has to double what is known: so the round behind the last would know all ranks.
    fn part(&mut self, moves: &[Effect<Doubling>]) -> Answer<()> {
        if !self.program.rounds(moves[0].step) {
            return moves.iter().try_for_each(|of| self.run(of));
        }
        let start = |place: &SeatPlace| match self.held(place.region.buffer) {
            Own => (place.region.buffer, Known),
            All => (place.region.buffer, All),
            _ => (place.region.buffer, Unknown),
        };
        let written: BTreeMap<_, _> = moves.iter().flat_map(|of| &of.writes).map(start).collect();
        self.gathered.extend(&written);
        moves.iter().try_for_each(|of| self.run(of))?;
        for (buffer, start) in written {
            let end = match (start, self.held(buffer)) {
                (Known, Doubled) | (All, All) => Some(All),
                (Unknown, _) => Some(Unknown),
                _ => None,
            };
            let what = "the rounds of this loop do not double what a rank has";
            let at = self.program.steps[moves[0].step].at;
            self.gathered.insert(buffer, end.covered(at, what)?);
        }
        Ok(())
    }

    /// Runs a move on all ranks at once.
    fn run(&mut self, of: &Effect<Doubling>) -> Answer<()> {
        let at = self.program.steps[of.step].at;
        let mut after = self.gathered.clone();
        // The first source of a reduce is its destination.
        let reduces = of.reads.len() > 1;
        // All buffers of an AllReduce have one block. Those of an AllGather are blocks of ranks, and no sums.
        let sums = self.program.collective == Collective::AllReduce;
        for write in &of.writes {
            // The rank that owns the destination sees the move of the rank that writes there.
            let places = of.reads[usize::from(reduces)..].iter().chain([write]);
            let places = places.map(|place| turned(place, write.owner)).collect::<Option<Vec<_>>>();
            let now = match &places.covered(at, "three ranks take part in this move")?[..] {
                [sources @ .., to] if sums => self.sum(sources, to, reduces),
                [source, to] if to.region.many && !reduces => self.block(source, to),
                _ => None,
            };
            let what = "this reads or adds what is not known to be there in every round";
            after.insert(write.region.buffer, now.covered(at, what)?);
        }
        self.gathered = after;
        Ok(())
    }

    /// Returns what a buffer of one block has gathered after a move to it.
    fn sum(&mut self, sources: &[SeatPlace], to: &SeatPlace, reduces: bool) -> Option<RankSet> {
        let mut sum = reduces.then(|| self.held(to.region.buffer));
        for source in sources {
            let value = match (source.owner, self.held(source.region.buffer)) {
                (_, All) => All,
                (RoundSeat::Own, held) => held,
                // Sums ahead and sums behind are both the next ones, but not in one program.
                (seat, Known) if *self.ahead.get_or_insert(seat) == seat => Next,
                _ => return None,
            };
            // With any other nranks, the last round would add ranks twice.
            let doubles = self.program.class.powers_of_two;
            sum = Some(match (sum, value) {
                (_, Unknown) => return None,
                (None, value) => value,
                (Some(Known), Next) | (Some(Next), Known) if doubles => Doubled,
                _ => return None,
            });
        }
        sum
    }

    /// Returns what a buffer of nranks blocks has gathered after a copy to it: each block that is written must get the
    /// input of its rank.
    fn block(&self, source: &SeatPlace, to: &SeatPlace) -> Option<RankSet> {
        let mut source = *source;
        if source.region.buffer == Buffer::Input {
            // An input is the block of its rank.
            source.region.block = Some(Doubling::block_of(source.owner));
        } else if !source.region.many {
            return None;
        }
        let holds = matches!(
            (self.held(source.region.buffer), set_of(&source)),
            (All, _) | (Known | Own, Own) | (Known, Known) | (Doubled, Own | Known | Other | Next)
        );
        (holds && source.region.block == to.region.block).then(|| {
            match (self.held(to.region.buffer), set_of(to)) {
                (_, All) => All,
                (Known, Next) => Doubled,
                (Unknown, Own) => Own,
                (now, _) => now,
            }
        })
    }
}

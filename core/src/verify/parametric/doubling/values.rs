//! The values at each place: an induction over the rounds. As no two accesses race, all ranks may be taken to run each
//! statement at once. What a rank has gathered is a set of ranks: the inputs that are summed in a buffer of one block, or
//! the blocks that are in a buffer of nranks blocks. In round k this set is the one known to 2^k ranks, and
//! the round has to double it.

use super::program::{Blocks, Doubling, Move, SeatPlace, Stretch};
use super::terms::RoundSeat;
use crate::collective::Collective;
use crate::schedule::Buffer;
use crate::verify::parametric::rounds::NotCovered;

/// The ranks whose data a buffer has gathered, as the buffer's rank sees them. The sets known in round k are those of
/// [`Stretch`]: 2^k ranks, the rank itself among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathered {
    /// No rank: nothing is known of what the buffer holds.
    Nothing,
    /// The rank alone.
    Own,
    /// The ranks known in round k.
    Known,
    /// The ranks that round k adds, without those known.
    Next,
    /// The ranks known in round k and those that it adds: those known in the next round, or all.
    Doubled,
    /// All ranks.
    All,
}

use Gathered::{All, Doubled, Known, Next, Nothing, Own};

/// The state of a rank's buffers while all ranks run together.
struct Ranks<'a> {
    program: &'a Doubling,
    /// The ranks that the output has gathered, and then those of each scratch buffer.
    gathered: Vec<Gathered>,
    /// The seat of the peer whose sums are read.
    ahead: Option<RoundSeat>,
}

/// Proves that every output holds the promised values at the end.
pub(super) fn complete(
    program: &Doubling,
    effects: &[(usize, Move)],
    in_place: bool,
) -> Result<(), NotCovered> {
    let mut gathered = vec![Nothing; 1 + program.scratch.len()];
    if in_place {
        gathered[0] = Own;
    }
    let mut ranks = Ranks { program, gathered, ahead: None };
    for part in 0..program.parts.len() {
        let moves: Vec<_> =
            effects.iter().filter(|(step, _)| program.steps[*step].part == part).collect();
        if program.parts[part] {
            ranks.rounds(&moves)?;
        } else {
            moves.iter().try_for_each(|(step, of)| ranks.run(*step, of))?;
        }
    }
    if ranks.gathered[0] != All {
        let what = format!("not every block ends as the {} wants it", program.collective);
        return Err(NotCovered::new(program.header, what));
    }
    Ok(())
}

fn index(buffer: Buffer) -> usize {
    match buffer {
        Buffer::Scratch(id) => 1 + id.index(),
        _ => 0,
    }
}

impl Ranks<'_> {
    /// Runs all rounds of a loop. Round 0 knows each rank alone, as 2^0 ranks, and each round has to double what is
    /// known: so the round behind the last would know all ranks.
    fn rounds(&mut self, moves: &[&(usize, Move)]) -> Result<(), NotCovered> {
        let Some((first, _)) = moves.first() else { return Ok(()) };
        let mut written = vec![false; self.gathered.len()];
        for place in moves.iter().flat_map(|(_, of)| &of.destinations) {
            written[index(place.buffer)] = true;
        }
        for (gathered, written) in self.gathered.iter_mut().zip(&written) {
            *gathered = match *gathered {
                Own if *written => Known,
                kept if !written || kept == All => kept,
                _ => Nothing,
            };
        }
        let start = self.gathered.clone();
        moves.iter().try_for_each(|(step, of)| self.run(*step, of))?;
        for (gathered, start) in self.gathered.iter_mut().zip(start) {
            *gathered = match (start, *gathered) {
                (Known, Doubled) => All,
                (Nothing, _) => Nothing,
                (before, after) if before == after && before != Known => after,
                _ => {
                    let what = "the rounds of this loop do not double what a rank has";
                    return self.program.fault(*first, what);
                }
            };
        }
        Ok(())
    }

    /// Runs a move on all ranks at once.
    fn run(&mut self, step: usize, of: &Move) -> Result<(), NotCovered> {
        let mut after = self.gathered.clone();
        for destination in &of.destinations {
            // The rank that owns the destination sees the move of the rank that writes there.
            let back = destination.owner.back();
            let turned = |place: &SeatPlace| {
                let seat = |seat: RoundSeat| match seat {
                    seat if destination.owner == RoundSeat::Own => Some(seat),
                    RoundSeat::Own => Some(back),
                    seat if seat == destination.owner => Some(RoundSeat::Own),
                    _ => None,
                };
                let blocks = match place.blocks {
                    Blocks::One(of) => Blocks::One(seat(of)?),
                    Blocks::Group(of) => Blocks::Group(seat(of)?),
                    Blocks::Run(of) => Blocks::Run(seat(of)?),
                    blocks => blocks,
                };
                Some(SeatPlace { owner: seat(place.owner)?, blocks, ..*place })
            };
            let sources: Option<Vec<SeatPlace>> = of.sources.iter().map(turned).collect();
            let (Some(sources), Some(to)) = (sources, turned(destination)) else {
                return self.program.fault(step, "three ranks take part in this move");
            };
            let now = if self.program.has_blocks(to.buffer) {
                self.blocks(&sources, &to, of.reduces)
            } else {
                self.sum(&sources, &to, of.reduces)
            };
            let Some(now) = now else {
                let what = "this reads or adds what is not known to be there in every round";
                return self.program.fault(step, what);
            };
            after[index(to.buffer)] = now;
        }
        self.gathered = after;
        Ok(())
    }

    /// Returns what a buffer of one block has gathered after a move to it.
    fn sum(&mut self, sources: &[SeatPlace], to: &SeatPlace, reduces: bool) -> Option<Gathered> {
        let mut sum = if reduces { Some(self.gathered[index(to.buffer)]) } else { None };
        for source in sources {
            // In an AllGather, these buffers are blocks of ranks and no sums.
            if self.program.has_blocks(source.buffer)
                || self.program.collective != Collective::AllReduce
            {
                return None;
            }
            let held = match source.buffer {
                Buffer::Input => Own,
                buffer => self.gathered[index(buffer)],
            };
            let value = match (source.owner, held) {
                (_, All) => All,
                (RoundSeat::Own, held) => held,
                // Sums ahead and sums behind are both the next ones, but not in one program.
                (seat, Known) if *self.ahead.get_or_insert(seat) == seat => Next,
                _ => return None,
            };
            sum = Some(match (sum, value) {
                (_, Nothing) => return None,
                (None, value) => value,
                // With any other nranks, the last round would add ranks twice.
                (Some(Known), Next) | (Some(Next), Known) if self.program.powers_of_two => Doubled,
                _ => return None,
            });
        }
        sum
    }

    /// Returns what a buffer of nranks blocks has gathered after a move to it: each block that is written must get the
    /// input of its rank.
    fn blocks(&self, sources: &[SeatPlace], to: &SeatPlace, reduces: bool) -> Option<Gathered> {
        let [source] = sources else { return None };
        let now = self.gathered[index(to.buffer)];
        // An input is the block of its rank.
        let holds = if self.program.has_blocks(source.buffer) {
            let there = self.gathered[index(source.buffer)];
            let holds = matches!(
                (there, source.stretch()),
                (All, _)
                    | (Known | Own, Stretch::Own)
                    | (Known, Stretch::Known)
                    | (Doubled, Stretch::Own | Stretch::Known | Stretch::Other | Stretch::Next)
            );
            holds && source.blocks == to.blocks
        } else {
            source.buffer == Buffer::Input && to.blocks == Blocks::One(source.owner)
        };
        if reduces || !holds {
            return None;
        }
        Some(match (now, to.stretch()) {
            (_, Stretch::All) => All,
            (Known, Stretch::Next) => Doubled,
            (Nothing, Stretch::Own) => Own,
            (now, _) => now,
        })
    }
}

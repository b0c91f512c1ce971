//! NCCL's primitives: data passes from rank to rank through slots at the receiver. A sender has as many credits as a
//! link has slots; it waits for a credit when all are spent (`head`), and the receiver waits for data (`tail`). The
//! primitives write ordinary copies, reduces and signals, which every check sees.

use rustc_hash::FxHashMap;

use super::{At, Builder, Place, Stop};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, RankId, ScratchId, SpanId};
use crate::layout::area::{Area, Pieces};
use crate::layout::interning::Tables;
use crate::layout::slots::Sizes;
use crate::rational::Rat;
use crate::schedule::lengths::{self, Lengths};
use crate::schedule::{Buffer, Channel, OpKind, Region, SignalKind};
use crate::values::arith::Fault;

/// The name of the fifo's scratch buffer.
pub(crate) const NAME: &str = "fifo";

/// The default number of slots of a link: NCCL's 8 steps, of which a slice takes two.
pub const CREDITS: u32 = 4;
/// The default number of slices of a message.
pub const SLICES: u32 = 1;

/// The fifo of an algorithm, as one rank sees it while its program is laid out.
pub(super) struct Fifo {
    /// The statement that declares it.
    at: At,
    buffer: ScratchId,
    sizes: Sizes,
    /// The links that this rank uses, in the order of their first use.
    links: Vec<LinkUse>,
    /// The position of each link in `links`, by its lane and ends.
    known: FxHashMap<(LaneId, RankId, RankId), usize>,
}

/// The use of a link by a rank at one of its ends: the number of steps it has taken there.
#[derive(Clone, Copy)]
struct LinkUse {
    lane: LaneId,
    from: RankId,
    to: RankId,
    first_slot: u32,
    steps: u64,
}

impl LinkUse {
    /// Returns the channel of a signal: `head` goes from the receiver to the sender, `tail` goes with the data.
    fn channel(&self, kind: SignalKind) -> Channel {
        let (from, to) = match kind {
            SignalKind::Head => (self.to, self.from),
            _ => (self.from, self.to),
        };
        Channel { from, to, kind, lane: self.lane }
    }
}

/// The steps of a pass on its links.
#[derive(Clone, Copy, Debug)]
pub struct PassSteps {
    /// The scratch of the fifo.
    pub fifo: ScratchId,
    /// The slots of each link.
    pub credits: u32,
    /// The slices of each message.
    pub slices: u32,
    /// The first slot of the link that data comes from, and of the one that it goes to, each with the number of steps on
    /// that link before the pass.
    pub links: [Option<(u32, u64)>; 2],
}

/// Checks the value of an option of the fifo.
pub(crate) fn size(function: &'static str, value: i64) -> Result<u32, Fault> {
    let fits =
        u32::try_from(value).ok().filter(|n| (1..=Tables::SLOT_LIMIT).contains(&(*n).into()));
    let takes = "a number from 1 to 1048576";
    fits.ok_or(Fault::Argument { function, takes, got: value })
}

/// The effect of a primitive on one piece: the ranks that it receives from, the regions of this rank that take part,
/// and the ranks that it sends to.
#[derive(Clone, Copy)]
struct Pass<'a> {
    from: &'a [RankId],
    own: Option<Area>,
    dst: Option<Area>,
    to: &'a [RankId],
}

/// The most peers of a primitive on either side: a move has a source, or a destination, of the rank's own beside theirs.
const MOST_PEERS: usize = super::data::MAX_SOURCES - 1;

/// Credits that a sender takes back at the end of a fifo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    /// The receiver that gives the credits.
    pub(crate) peer: RankId,
    /// The lane of the link.
    pub(crate) lane: LaneId,
    /// The number of credits.
    pub(crate) times: u64,
}

impl Builder<'_> {
    /// `fifo like region, credits = …, slices = …;`
    pub(crate) fn fifo(
        &mut self,
        at: At,
        like: &Area,
        credits: u32,
        slices: u32,
    ) -> Result<(), Stop> {
        self.open_fifo(at, like.floating, like.width(), (credits, slices))
    }

    /// `fifo like pieces, credits = …, slices = …;`: a slot holds the widest piece.
    pub(crate) fn fifo_blocks(
        &mut self,
        at: At,
        like: &Pieces,
        credits: u32,
        slices: u32,
    ) -> Result<(), Stop> {
        let width = self.settle(at, like.widest())?;
        self.open_fifo(at, like.whole.floating, width, (credits, slices))
    }

    fn open_fifo(
        &mut self,
        at: At,
        floating: bool,
        width: Rat,
        (credits, slices): (u32, u32),
    ) -> Result<(), Stop> {
        if floating {
            return Err(self.fault(at, Fault::FloatingSlot));
        }
        let slice = Rat::ZERO.boundary(width, 1, slices.into()).ok_or(Fault::Fraction);
        let sizes = Sizes { width: self.settle(at, slice)?, credits, slices };
        let (buffer, new) = self.next_scratch((NAME, false), sizes.width);
        if new {
            self.tables.slots.sizes.insert(buffer, sizes);
        }
        let first = self.tables.slots.sizes.get(&buffer).copied();
        if self.is_called() {
            // Groups of several sizes run it, each with its own slot size.
            let scratch = &mut self.tables.scratch[buffer.index()];
            scratch.width = scratch.width.max(sizes.width);
        } else if first != Some(sizes) {
            let of = |s: Sizes| {
                format!("credits = {}, slices = {}, {} units a slot", s.credits, s.slices, s.width)
            };
            let (here, there) = (of(sizes), first.map_or_else(|| "no fifo".to_owned(), of));
            return Err(self.fail(
                Finding::new(Code::ScratchPlacement, SpanId(at), "the fifo differs between ranks")
                    .note(format!("rank {} has {here}; rank 0 has {there}", self.rank))
                    .help("both ends of a link count alike: let its sizes depend on `nranks` and parameters only"),
            ));
        }
        let (links, known) = (Vec::new(), FxHashMap::default());
        self.fifo = Some(Fifo { at, buffer, sizes, links, known });
        Ok(())
    }

    /// Ends the fifo with the algorithm that declared it: each sender waits for its outstanding credits, so there is
    /// a wait for every post, and the next run starts with slot 0 again.
    pub(crate) fn end_fifo(&mut self) -> Result<(), Stop> {
        let owed = self.owed();
        let Some(Fifo { at, .. }) = self.fifo.take() else { return Ok(()) };
        let me = self.rank;
        for Credit { peer, lane, times } in owed {
            let head = Channel { from: peer, to: me, kind: SignalKind::Head, lane };
            for _ in 0..times {
                self.signal(at, OpKind::Wait, head)?;
            }
        }
        Ok(())
    }

    /// Returns the outstanding credits of each link that this rank sends on.
    pub(crate) fn owed(&self) -> Vec<Credit> {
        let Some(Fifo { sizes, links, .. }) = &self.fifo else { return Vec::new() };
        let sent = links.iter().filter(|link| link.from == self.rank);
        let credit = |link: &LinkUse| {
            let times = link.steps.min(sizes.credits.into());
            Credit { peer: link.to, lane: link.lane, times }
        };
        sent.map(credit).collect()
    }

    /// Returns the steps of the last pass, which received from the one rank and sent to the other.
    pub(crate) fn last_steps(&self, [from, to]: [Option<RankId>; 2]) -> Option<PassSteps> {
        let Fifo { buffer, sizes, links, known, .. } = self.fifo.as_ref()?;
        let lane = self.lane.id();
        let step = |from: Option<RankId>, to: Option<RankId>| {
            let link = links[*known.get(&(lane, from?, to?))?];
            Some((link.first_slot, link.steps - u64::from(sizes.slices)))
        };
        let links = [step(from, Some(self.rank)), step(Some(self.rank), to)];
        Some(PassSteps { fifo: *buffer, credits: sizes.credits, slices: sizes.slices, links })
    }

    // ---- the primitives ---------------------------------------------------------------------

    /// Passes data slice by slice: received data, if any, folded into `own`, if any, goes to `dst` and on to `to`. Of
    /// several ranks `[a, b, …]` and own data x it is `a op (b op (… op x))`.
    pub(crate) fn pass(
        &mut self,
        at: At,
        from: &[RankId],
        own: Option<Place>,
        dst: Option<Place>,
        to: &[RankId],
    ) -> Result<(), Stop> {
        let Some(sizes) = self.fifo.as_ref().map(|fifo| fifo.sizes) else {
            let title = "data is passed through a fifo, and none is declared";
            return Err(self.fail(Finding::new(Code::UnknownName, SpanId(at), title)));
        };
        for (peers, does) in [(from, "receives from"), (to, "sends to")] {
            peers.iter().try_for_each(|peer| self.far(at, *peer, does))?;
            if peers.len() > MOST_PEERS {
                let title = format!(
                    "a primitive {does} {} peers, and has room for {MOST_PEERS}",
                    peers.len()
                );
                let finding = Finding::new(Code::TooManyOperands, SpanId(at), title)
                    .help("take them in several primitives, each with a part of the list");
                return Err(self.fail(finding));
            }
        }
        let own = own.map(|place| self.own(at, place)).transpose()?;
        let dst = dst.map(|place| self.own(at, place)).transpose()?;
        let whole = self.settle_own(at, Pass { from, own, dst, to }, sizes)?;
        match (from.is_empty(), whole.dst.is_some() || !to.is_empty()) {
            // Received data would be lost.
            (false, false) => {
                let title =
                    "the result goes nowhere: the list of peers that it is sent to is empty";
                return Err(self.fail(Finding::new(Code::TooManyOperands, SpanId(at), title).help(
                    "keep it by a primitive with `copy`, or put this into an `if` for ranks that send",
                )));
            }
            // Nothing is sent, or own data stays where it is.
            (true, false) => return Ok(()),
            (true, true) if whole.own == whole.dst && to.is_empty() => return Ok(()),
            _ => {}
        }
        for slice in 0..sizes.slices {
            let cut = |area: Option<Area>| area.map(|area| part(area, slice, sizes.slices));
            let own = self.settle(at, cut(whole.own).transpose())?;
            let dst = self.settle(at, cut(whole.dst).transpose())?;
            self.pass_slice(at, &Pass { own, dst, ..whole })?;
        }
        // A slot of the author's scratch then holds the whole received region, not its last slice.
        if let Some(area) = whole.dst
            && let Buffer::Scratch(id) = area.region.buffer
        {
            self.slots.insert((id, area.region.slot), area);
        }
        Ok(())
    }

    /// Checks that a peer is another rank.
    fn far(&mut self, at: At, rank: RankId, does: &str) -> Result<(), Stop> {
        if rank != self.rank {
            return Ok(());
        }
        let title = format!("rank {rank} {does} itself");
        let finding = Finding::new(Code::SelfSignal, SpanId(at), title);
        Err(self.fail(match self.size() {
            1 => finding
                .remedy("with one rank there is nobody else: put this into `if nranks > 1 { … }`"),
            _ => finding.help("within a rank data is moved by `copy` and `reduce`"),
        }))
    }

    /// Returns a region of this rank: data at other ranks comes and goes through the fifo alone.
    pub(crate) fn own(&mut self, at: At, (rank, area): Place) -> Result<Area, Stop> {
        if rank == self.rank {
            let there = self.locate(rank, area);
            return self.settle(at, there);
        }
        let title =
            format!("this region is rank {rank}'s, and a primitive has regions of its own rank");
        Err(self.fail(
            Finding::new(Code::NoLocalOperand, SpanId(at), title)
                .note("what a peer sends lies in a slot of the fifo, which is not named")
                .help("write `local.…`, and the peer before the dot"),
        ))
    }

    /// Settles the regions of a primitive in the shape that they share, which must fit the fifo's slots.
    fn settle_own<'a>(
        &mut self,
        at: At,
        mut pass: Pass<'a>,
        sizes: Sizes,
    ) -> Result<Pass<'a>, Stop> {
        let regions = [pass.own, pass.dst].into_iter().flatten();
        let operands: Vec<_> = regions.map(|area| (self.rank, area)).collect();
        let shape = self.shape(at, &operands)?;
        for area in [&mut pass.own, &mut pass.dst].into_iter().flatten() {
            if area.floating {
                *area = self.tables.settle_slot(*area, shape, at);
            }
            let ends = |area: &Area| (area.region.lo, area.region.hi);
            let equal = lengths::compare(ends(&shape), ends(area), self.tables.multiple);
            if equal != Lengths::Equal {
                return Err(self.unequal(at, equal, &shape, area));
            }
        }
        if let (Some(own), Some(dst)) = (&pass.own, &pass.dst)
            && own != dst
            && super::data::overlap(own, dst)
        {
            return Err(self.overlapping(at, self.rank, dst));
        }
        for area in [Some(shape), pass.own, pass.dst].into_iter().flatten() {
            self.settle(at, area.split(sizes.slices.into()))?;
        }
        let slice = self.settle(at, part(shape, 0, sizes.slices))?;
        if slice.width() > sizes.width {
            let name = self.tables.describe_area(&shape.region);
            let slices = match sizes.slices {
                1 => String::new(),
                n => format!(" in {n} slices"),
            };
            let title = format!("{name}{slices} does not fit the slots of the fifo");
            return Err(self.fail(
                Finding::new(Code::LengthMismatch, SpanId(at), title)
                    .note(format!(
                        "a slot has room for {} units, and this needs {}",
                        sizes.width,
                        slice.width()
                    ))
                    .help("let the fifo be `like` the largest region that is sent at once"),
            ));
        }
        Ok(pass)
    }

    /// Writes one slice: waits for data and for a free slot at the next rank, moves the data, and signals both ends.
    fn pass_slice(&mut self, at: At, pass: &Pass<'_>) -> Result<(), Stop> {
        let me = self.rank;
        let incoming = pass.from.iter().map(|from| self.step_of(at, *from, me));
        let incoming = incoming.collect::<Result<Vec<_>, _>>()?;
        let outgoing = pass.to.iter().map(|to| self.step_of(at, me, *to));
        let outgoing = outgoing.collect::<Result<Vec<_>, _>>()?;
        for (link, _) in &incoming {
            self.signal(at, OpKind::Wait, link.channel(SignalKind::Tail))?;
        }
        for (link, _) in &outgoing {
            if self.spent(*link) {
                self.signal(at, OpKind::Wait, link.channel(SignalKind::Head))?;
            }
        }
        let shape = pass.own.or(pass.dst).expect("a primitive has a region");
        let mut places: Vec<Place> = pass.own.iter().map(|area| (me, *area)).collect();
        // A fold goes from its first source to its last one.
        for (_, slot) in incoming.iter().rev() {
            places.push((me, self.tables.in_slot(*slot, shape, at)));
        }
        let srcs = places.len();
        places.extend(pass.dst.map(|area| (me, area)));
        for (link, slot) in &outgoing {
            places.push((link.to, self.tables.in_slot(*slot, shape, at)));
        }
        self.data(at, srcs, places.iter())?;
        for (link, _) in &outgoing {
            self.signal(at, OpKind::Post, link.channel(SignalKind::Tail))?;
        }
        for (link, _) in &incoming {
            self.signal(at, OpKind::Post, link.channel(SignalKind::Head))?;
        }
        Ok(())
    }

    /// Whether all slots of a link were written before its next step.
    fn spent(&self, link: LinkUse) -> bool {
        self.fifo.as_ref().is_some_and(|fifo| link.steps >= fifo.sizes.credits.into())
    }

    /// Returns a link before its next step, and the slot of that step.
    fn step_of(&mut self, at: At, from: RankId, to: RankId) -> Result<(LinkUse, Region), Stop> {
        let lane = self.lane.id();
        let Some(fifo) = &mut self.fifo else { return Err(Stop) };
        let (buffer, sizes) = (fifo.buffer, fifo.sizes);
        let index = match fifo.known.get(&(lane, from, to)) {
            Some(index) => *index,
            None => {
                let first_slot = self.tables.link_slots(buffer, sizes.credits, lane, from, to);
                let index = fifo.links.len();
                fifo.known.insert((lane, from, to), index);
                let Some(first_slot) = first_slot else {
                    let most = Tables::SLOT_LIMIT;
                    let title = format!("the fifo of rank {to} has more than {most} slots");
                    return Err(self.fail(Finding::new(Code::StepLimit, SpanId(at), title)));
                };
                fifo.links.push(LinkUse { lane, from, to, first_slot, steps: 0 });
                index
            }
        };
        let link = &mut fifo.links[index];
        let before = *link;
        link.steps += 1;
        let slot = before.first_slot + (before.steps % u64::from(sizes.credits)) as u32;
        let region = Area::floating_slot(buffer, sizes.width).region;
        Ok((before, Region { slot, ..region }))
    }
}

impl Tables {
    /// Returns a slot of the fifo with data of a region in it. The two ends of a link may name different blocks: a rank
    /// may receive as block 1 the data that another rank sends as block 3.
    fn in_slot(&mut self, slot: Region, shape: Area, at: At) -> Area {
        self.settle_slot(Area { region: slot, floating: true, frame: 0, axes: 0 }, shape, at)
    }

    /// Returns the first slot of a link at its receiver.
    fn link_slots(
        &mut self,
        buffer: ScratchId,
        credits: u32,
        lane: LaneId,
        from: RankId,
        to: RankId,
    ) -> Option<u32> {
        // Where one rank stands for all, its link to another rank has the slots of the like link to this rank.
        let (from, to) = match &self.turning {
            Some(turning) => (RankId(turning.turns.turn_between(to.0, from.0)), RankId(0)),
            None => (from, to),
        };
        if let Some(first) = self.slots.first.get(&(buffer, lane, from, to)) {
            return Some(*first);
        }
        let taken = self.slots.taken.entry((buffer, to)).or_insert(0);
        let first = *taken;
        *taken += u64::from(credits);
        let all = u32::try_from(*taken).ok().filter(|all| u64::from(*all) <= Self::SLOT_LIMIT)?;
        // Every rank has equal scratch: the slots that the busiest receiver needs.
        let scratch = &mut self.scratch[buffer.index()];
        scratch.slots = scratch.slots.max(all);
        self.slots.first.insert((buffer, lane, from, to), first as u32);
        Some(first as u32)
    }
}

/// Returns slice `index` of a region.
fn part(area: Area, index: u32, slices: u32) -> Result<Area, Fault> {
    // An unsettled slot of scratch has no shape to be cut, so a whole region is returned unchanged.
    if slices == 1 { Ok(area) } else { area.split(slices.into())?.piece(index.into()) }
}

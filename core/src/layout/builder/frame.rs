//! Frames: the ranks that a `within` block sees as `0..len`, and the regions that a called algorithm uses as its
//! input and output. Frames translate names only: signals, streams and memory stay the rank's.

use std::sync::Arc;

use super::{At, Builder, Stop};
use crate::collective::Collective;
use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::layout::area::Area;
use crate::layout::call_identity::BoundBuffer;
use crate::program::Program;
use crate::rational::{Rat, gcd, lcm};
use crate::schedule::Buffer;
use crate::values::arith::Fault;
use crate::values::members::Members;

/// The cost of a call in the budget of steps: the cost of 16 rounds of a loop.
const CALL: u64 = 16;

/// The number of calls, from the outermost on, that a message about a fault inside them names.
const TOLD: usize = 4;

/// Some of the ranks, with new numbers.
#[derive(Debug)]
pub(crate) struct Group {
    members: Arc<[RankId]>,
    /// Members by rank, with their numbers.
    numbers: Vec<(RankId, u32)>,
    /// The number of this rank.
    mine: u32,
}

/// The ranks and buffers that a statement sees.
#[derive(Debug)]
pub(super) struct Frame {
    /// The ranks of the frame; those of the frame around it if `None`.
    group: Option<Group>,
    /// The called algorithm, if the frame is of a call.
    call: Option<CallFrame>,
}

/// An algorithm that is being run on regions of its caller.
#[derive(Debug)]
struct CallFrame {
    name: String,
    input: BoundBuffer,
    output: BoundBuffer,
    /// The width of a unit of its count, in units of the run's count.
    unit: Rat,
}

impl Group {
    /// Returns the group of `members`, in this order; `None` where `rank` is no member. Fails with a rank that is
    /// named twice.
    fn new(members: Vec<RankId>, rank: RankId) -> Result<Option<Self>, RankId> {
        let mut numbers: Vec<_> = members.iter().copied().zip(0..).collect();
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(pair[0].0);
        }
        let mine = members.iter().position(|member| *member == rank);
        Ok(mine.map(|mine| Self { members: members.into(), numbers, mine: mine as u32 }))
    }

    fn number(&self, rank: RankId) -> Option<u32> {
        let at = self.numbers.binary_search_by_key(&rank, |(member, _)| *member).ok()?;
        Some(self.numbers[at].1)
    }
}

impl Builder<'_> {
    /// Returns the ranks of the block inside `within`; `None` where these are all ranks.
    pub(super) fn ranks(&self) -> Option<&Group> {
        innermost(&self.frames)
    }

    /// Returns the number of blocks of `within` around the statement.
    fn depth(&self) -> usize {
        self.frames.iter().filter(|frame| frame.group.is_some()).count()
    }

    /// Returns the number of ranks of a group.
    fn many(&self, group: Option<&Group>) -> u32 {
        group.map_or(self.ranks_of_run(), |group| group.members.len() as u32)
    }

    /// Returns the ranks that the numbers of the program stand for.
    pub(super) fn members(&self) -> Members {
        Members(self.ranks().map(|group| group.members.clone()))
    }

    /// Returns the number of ranks that the program sees.
    pub(crate) fn size(&self) -> u32 {
        self.many(self.ranks())
    }

    /// Returns the number of ranks of the whole run.
    pub(crate) fn ranks_of_run(&self) -> u32 {
        self.tables.nranks
    }

    /// Returns a number whose multiples are the counts of the run for which the count of the running algorithm is a
    /// multiple of `of` and its regions begin at whole elements; `None` beyond 64 bits.
    pub(super) fn in_counts_of_run(&self, of: u64) -> Option<u64> {
        let Some(call) = self.frames.iter().rev().find_map(|frame| frame.call.as_ref()) else {
            return Some(of);
        };
        let unit = call.unit;
        let whole = of.checked_mul(unit.den())? / gcd(unit.num(), of);
        let begins = [call.input, call.output].map(|bound| bound.area().region.lo.den());
        begins.into_iter().try_fold(whole, lcm)
    }

    /// Returns the ranks that the program sees, inside `within`.
    pub(crate) fn seen(&self) -> Option<Vec<RankId>> {
        self.ranks().map(|group| group.members.to_vec())
    }

    /// Returns this rank's number among the ranks that the program sees.
    pub(crate) fn here(&self) -> u32 {
        self.ranks().map_or(self.rank.0, |group| group.mine)
    }

    pub(crate) fn find_rank(&self, rank: i64) -> Result<RankId, Fault> {
        let nranks = self.size();
        let known = u32::try_from(rank).ok().filter(|r| *r < nranks);
        known.map(|number| self.member(RankId(number))).ok_or(Fault::Rank { rank, nranks })
    }

    /// Returns the number of a rank among those that the program sees.
    pub(crate) fn number(&self, rank: RankId) -> Result<i64, Fault> {
        number_in(self.ranks(), rank).map(i64::from)
    }

    /// Returns the rank with the number `number`.
    pub(super) fn member(&self, number: RankId) -> RankId {
        self.ranks().map_or(number, |group| group.members[number.index()])
    }

    /// Returns the name of the running algorithm, and the number of ranks that it runs on.
    pub(super) fn running(&self) -> (&str, u32) {
        let called = self.frames.iter().rposition(|frame| frame.call.is_some());
        let around = called.map_or(&[][..], |frame| &self.frames[..frame]);
        let nranks = self.many(innermost(around));
        let call = called.and_then(|frame| self.frames[frame].call.as_ref());
        (call.map_or(&self.tables.algorithm, |call| &call.name), nranks)
    }

    /// Whether a called algorithm is running.
    pub(crate) fn is_called(&self) -> bool {
        !self.path.is_empty()
    }

    /// `within group { body }`: for the ranks of the group, which are `0..len` in the body.
    pub(crate) fn within(
        &mut self,
        at: At,
        group: &[i64],
        body: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.spend(at, 0, 1)?;
        let members = group.iter().map(|rank| self.find_rank(*rank)).collect();
        let members = self.settle(at, members)?;
        let group = match Group::new(members, self.rank) {
            Ok(group) => group,
            Err(twice) => {
                let twice = self.settle(at, self.number(twice))?;
                let title = format!("a group names rank {twice} twice");
                return Err(self.fail(Finding::new(Code::BadArgument, SpanId(at), title)));
            }
        };
        self.exact = None;
        let Some(group) = group else { return Ok(()) };
        self.frames.push(Frame { group: Some(group), call: None });
        let done = body(self);
        self.frames.pop();
        done
    }

    /// `Algorithm(…) on (input, output)`: lays out its ops, on these regions and the ranks that the program sees.
    pub(crate) fn run(
        &mut self,
        at: At,
        algorithm: &Program,
        (input, output): (Area, Area),
        body: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.take(at, CALL, || "the calls of algorithms go".to_owned())?;
        let call = self.bind(at, algorithm, input, output)?;
        self.agree(at, &call)?;
        let lane = self.lane.id();
        self.path.push(at);
        self.called_at.get_or_insert(at);
        let exact = self.exact.take();
        let fifo = self.fifo.take();
        let declared = std::mem::replace(&mut self.declared, 0);
        self.frames.push(Frame { group: None, call: Some(call) });
        let done = body(self).and_then(|()| self.end_fifo());
        self.frames.pop();
        self.fifo = fifo;
        self.declared = declared;
        self.exact = exact;
        self.path.pop();
        if self.path.is_empty() {
            self.called_at = None;
        }
        debug_assert!(done.is_err() || self.lane.id() == lane, "lanes are left as they were");
        match self.pending.take() {
            Some(finding) => Err(self.fail_called(at, algorithm, finding)),
            None => done,
        }
    }

    /// Reports a fault in a called algorithm at the call.
    fn fail_called(&mut self, at: At, algorithm: &Program, mut finding: Finding) -> Stop {
        let line = algorithm.locations.get(finding.at.index()).map_or(0, |place| place.line);
        let Program { name, file, .. } = algorithm;
        if finding.code == Code::RankCountRefused {
            let (outer, nranks) = self.running();
            finding.title = format!("{outer} refuses nranks = {nranks}: {}", finding.title);
        } else {
            let label = std::mem::take(&mut finding.label);
            let label = if label.is_empty() { String::new() } else { format!(": {label}") };
            if self.path.len() < TOLD {
                finding.notes.insert(0, format!("in {name}, line {line} of {file}{label}"));
            }
        }
        finding.label = format!("{name} runs here");
        finding.others.clear();
        finding.operands.clear();
        finding.exact = None;
        finding.at = SpanId(at);
        self.fail(finding)
    }

    /// Returns the frame of a call, if the regions have the sizes that the algorithm's collective needs.
    fn bind(
        &mut self,
        at: At,
        algorithm: &Program,
        input: Area,
        output: Area,
    ) -> Result<CallFrame, Stop> {
        if input.floating || output.floating {
            return Err(self.fault(at, Fault::FloatingSlot));
        }
        let collective = algorithm.collective;
        let n = self.size();
        let (many, one) = (
            collective.max_input_units(n).max(collective.max_output_units(n)),
            collective.max_input_units(n).min(collective.max_output_units(n)),
        );
        let whole = (BoundBuffer::Whole(input), BoundBuffer::Whole(output));
        let bound = if many == one {
            (input.width() == output.width()).then_some(whole)
        } else {
            let inwards = collective.max_input_units(n) == many;
            let (large, small) = if inwards { (input, output) } else { (output, input) };
            let blocks = self.settle(at, large.split(i64::from(n)))?;
            let mine = self.settle(at, blocks.piece(i64::from(self.here())))?;
            let mine = self.tables.block(large, mine, self.depth());
            let same = small.width() == large.width();
            if same || small == mine {
                let block = BoundBuffer::Block(if same { small } else { large });
                let whole = BoundBuffer::Whole(large);
                Some(if inwards { (whole, block) } else { (block, whole) })
            } else {
                (small.width() == mine.width()).then_some(whole)
            }
        };
        let Some((input, output)) = bound else {
            return Err(self.misfit(at, &algorithm.name, collective, input, output));
        };
        if algorithm.out_of_place && shares(input, output) {
            let title = format!("{} has no in-place form", algorithm.name);
            return Err(self.fail(
                Finding::new(Code::CallMismatch, SpanId(at), title)
                    .label("its input and output share memory here")
                    .help("give it an output of its own: `on (input_region, output_region)`"),
            ));
        }
        let depth = self.depth();
        self.tables.bound([input, output].map(BoundBuffer::area), depth, at);
        let width = input.area().width().max(output.area().width());
        let unit = Rat::ZERO.boundary(width, 1, many.into()).ok_or(Fault::Fraction);
        let unit = self.settle(at, unit)?;
        Ok(CallFrame { name: algorithm.name.clone(), input, output, unit })
    }

    fn misfit(&mut self, at: At, name: &str, of: Collective, input: Area, output: Area) -> Stop {
        let n = self.size();
        let title = format!(
            "{name} runs on an input of {} and an output of {} units of the count",
            input.width(),
            output.width()
        );
        let (i, o) = (of.max_input_units(n), of.max_output_units(n));
        self.fail(
            Finding::new(Code::CallMismatch, SpanId(at), title)
                .note(format!("the input of {of} is to its output as {i} to {o}, for {n} ranks"))
                .help("give it one region for both, or two that are pieces of the same split"),
        )
    }

    /// Checks that all ranks of a call run it on equal regions, as the algorithm assumes when it names a peer's
    /// buffer.
    fn agree(&mut self, at: At, call: &CallFrame) -> Result<(), Stop> {
        let mut path = self.path.clone();
        path.push(at);
        let key = (path, self.lane.id());
        let times = self.calls.entry(key.clone()).or_insert(0);
        *times += 1;
        let id = (key.0, key.1, *times);
        let members = match self.ranks() {
            Some(group) => group.members.clone(),
            None => Arc::from([]),
        };
        let bound = (call.input, call.output);
        let (rank, first) = *self.tables.calls.entry((id, members)).or_insert((self.rank, bound));
        if first == bound {
            return Ok(());
        }
        let title =
            format!("ranks {rank} and {} run {} on different regions", self.rank, call.name);
        Err(self.fail(
            Finding::new(Code::CallMismatch, SpanId(at), title)
                .note("a called algorithm sees the same regions at all its ranks")
                .help(
                    "where every rank has its own block, name the whole: then the smaller buffer of rank r \
                     is block r of it",
                ),
        ))
    }

    /// Returns the region that the running algorithm uses as a buffer.
    pub(crate) fn buffer(&mut self, buffer: Buffer) -> Area {
        let called = self.frames.iter().rposition(|frame| frame.call.is_some());
        let Some(frame) = called else {
            let nranks = self.ranks_of_run();
            let units = match buffer {
                Buffer::Input => self.tables.collective.max_input_units(nranks),
                _ => self.tables.collective.max_output_units(nranks),
            };
            return Area::whole(buffer, units);
        };
        let call = self.frames[frame].call.as_ref().expect("found by that");
        match if buffer == Buffer::Input { call.input } else { call.output } {
            BoundBuffer::Whole(area) => area,
            BoundBuffer::Block(_) => {
                let mine = self.block_in(frame, self.rank).expect("this rank runs it");
                Area { frame: frame as u32 + 1, ..mine }
            }
        }
    }

    /// Whether input and output of the running algorithm are the rank's own blocks of a region.
    pub(crate) fn blocks(&self) -> [bool; 2] {
        let call = self.frames.iter().rev().find_map(|frame| frame.call.as_ref());
        let block = |bound: &BoundBuffer| matches!(bound, BoundBuffer::Block(_));
        call.map_or([false; 2], |call| [block(&call.input), block(&call.output)])
    }

    /// Returns block `rank` of the region that a frame's call is bound to by blocks.
    fn block_in(&mut self, frame: usize, rank: RankId) -> Result<Area, Fault> {
        let around = &self.frames[..frame];
        let group = innermost(around);
        let (number, n) = (number_in(group, rank)?, self.many(group));
        let call = self.frames[frame].call.as_ref();
        let call = call.expect("regions that differ by rank come from calls");
        let ((BoundBuffer::Block(large), _) | (_, BoundBuffer::Block(large))) =
            (call.input, call.output)
        else {
            unreachable!("one of the two is bound by blocks")
        };
        let depth = around.iter().filter(|frame| frame.group.is_some()).count();
        let mine = large.split(i64::from(n))?.piece(i64::from(number))?;
        Ok(self.tables.block(large, mine, depth))
    }

    /// Returns the region at `rank`, where a call gives each rank a block of its own.
    pub(super) fn locate(&mut self, rank: RankId, mut area: Area) -> Result<Area, Fault> {
        while area.frame > 0 {
            let frame = area.frame as usize - 1;
            let (mine, theirs) = (self.block_in(frame, self.rank)?, self.block_in(frame, rank)?);
            let moved = |x: Rat| {
                x.minus(mine.region.lo)
                    .and_then(|x| x.plus(theirs.region.lo))
                    .ok_or(Fault::Fraction)
            };
            let before = area.region;
            area.region.lo = moved(before.lo)?;
            area.region.hi = moved(before.hi)?;
            area.frame = mine.frame;
        }
        Ok(area)
    }
}

/// Returns the group that the last of these frames sees; `None` where these are all ranks.
fn innermost(frames: &[Frame]) -> Option<&Group> {
    frames.iter().rev().find_map(|frame| frame.group.as_ref())
}

/// Returns the number of a rank in a group.
fn number_in(group: Option<&Group>, rank: RankId) -> Result<u32, Fault> {
    let number = group.map_or(Some(rank.0), |group| group.number(rank));
    number.ok_or(Fault::Outside { rank: rank.0 })
}

/// Whether the two buffers of a call overlap.
fn shares(input: BoundBuffer, output: BoundBuffer) -> bool {
    let (a, b) = (input.area().region, output.area().region);
    a.buffer == b.buffer && a.slot == b.slot && a.lo < b.hi && b.lo < a.hi
}

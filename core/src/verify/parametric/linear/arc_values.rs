//! The value at every place, for every nranks: an induction over the rounds. For each move of a loop the values of the
//! first rounds are computed, the value in any round is guessed from them, and the guess is proved: the values that a
//! round reads, known or guessed for the rounds before, must make the guess for this round.

use std::collections::BTreeSet;

use super::arcs::ArcValue;
use super::{Linear, Place, Region, own_block};
use crate::collective::Collective;
use crate::rational::Rat;
use crate::schedule::Buffer;
use crate::source::Span;
use crate::verify::layout::BufferMode;
use crate::verify::parametric::places::{Relation, locate, relate};
use crate::verify::parametric::rounds::{
    Action, Answer, Covered as _, Interval, NotCovered, WHOLE, covers, meet,
};
use crate::verify::parametric::terms::{Affine, Facts, LinearVerdict, N, S, T};

type Effect = crate::verify::parametric::places::Effect<Linear>;

type Rounds = crate::verify::parametric::rounds::Rounds<Linear>;

/// The number of rounds that are computed one by one.
const COMPUTED: i64 = 3;

/// The most case distinctions within one read.
const CASES: u32 = 16;

/// Values, each with the case in which a place holds it.
type Cases = Vec<(Facts, ArcValue)>;

/// The value that a move writes.
#[derive(Clone, Debug, Default)]
struct WrittenValue {
    /// The values in the first rounds of the loop.
    computed: Vec<ArcValue>,
    /// The value in later rounds, a term in s.
    later: Option<ArcValue>,
}

/// A write that a read may see as the last: the move, its round, the rank that ran it, and the written region.
#[derive(Clone, Debug)]
struct ValueSource {
    effect: usize,
    round: Affine,
    /// The rank that ran the move, counted from the reading rank.
    rank: Affine,
    /// The region that was written, of which the read takes a part.
    wrote: Region,
    /// The conditions under which the write is before the read and covers its place.
    conditions: Vec<Affine>,
}

/// The values in memory over the whole of a run.
struct PlaceValues<'a> {
    program: &'a Rounds,
    effects: &'a [Effect],
    mode: BufferMode,
    facts: Facts,
    forms: Vec<WrittenValue>,
}

/// Whether every output holds the promised values at the end.
pub(super) fn complete(program: &Rounds, effects: &[Effect], mode: BufferMode) -> Answer<bool> {
    let facts = program.class.ranks();
    let forms = vec![WrittenValue::default(); effects.len()];
    let mut values = PlaceValues { program, effects, mode, facts, forms };
    for part in 0..program.parts.len() {
        values.part(part)?;
    }
    values.end()
}

/// Whether `whole` covers all of `part`, given that they share memory.
fn all_of(whole: &Region, part: &Region) -> bool {
    match (whole.block, part.block) {
        (None, _) => covers(whole.outer, part.outer),
        (Some(_), Some(_)) => covers(whole.inner, part.inner),
        (Some(_), None) => false,
    }
}

impl PlaceValues<'_> {
    /// Proves the values of the moves of one part, in order.
    fn part(&mut self, part: usize) -> Answer<()> {
        let own = |i: &usize| self.program.steps[self.effects[*i].step].part == part;
        let moves: Vec<usize> = (0..self.effects.len()).filter(own).collect();
        let (first, last) = self.program.parts[part].rounds;
        for k in 0..COMPUTED {
            let round = first + Affine::int(k);
            let facts = self.facts.within(S, round, round).and(last - S);
            if facts.is_empty() {
                return Ok(());
            }
            for &i in &moves {
                let cases = self.run(i, &facts)?;
                let all: Vec<ArcValue> =
                    cases.iter().map(|(_, v)| v.seen(Affine::ZERO, round)).collect();
                let one = all.iter().find(|v| cases.iter().all(|(f, other)| v.is(other, f)));
                let one = one.ok_or_else(|| {
                    self.fault(i, "what this writes depends on nranks in more than its length")
                })?;
                self.forms[i].computed.push(one.clone());
            }
        }
        let next = first + Affine::int(1);
        for &i in &moves {
            let [_, a, b] = &self.forms[i].computed[..] else { return Ok(()) };
            let later = a.continued(b, next);
            let later = later.ok_or_else(|| {
                self.fault(i, "what this writes follows no pattern from round to round")
            })?;
            self.forms[i].later = Some(later);
        }
        let facts = self.facts.within(S, first + Affine::int(COMPUTED), last);
        for &i in &moves {
            let guess = self.forms[i].later.clone().ok_or_else(|| self.fault(i, "no guess"))?;
            if !self.run(i, &facts)?.iter().all(|(facts, value)| guess.is(value, facts)) {
                return Err(
                    self.fault(i, "what this writes follows no pattern from round to round")
                );
            }
        }
        Ok(())
    }

    fn fault(&self, effect: usize, what: &str) -> NotCovered {
        NotCovered::new(self.program.steps[self.effects[effect].step].at, what)
    }

    /// Returns the value that a move writes in round s.
    fn run(&self, effect: usize, facts: &Facts) -> Answer<Cases> {
        let Effect { step, reads, .. } = &self.effects[effect];
        let at = self.program.steps[*step].at;
        let mut sums: Vec<(Facts, Option<ArcValue>)> = vec![(facts.clone(), None)];
        for place in reads {
            let mut next = Vec::new();
            for (facts, sum) in sums {
                for (facts, value) in self.read(place, *step, at, &facts)? {
                    let sum = match &sum {
                        None => value,
                        Some(sum) => sum
                            .plus(&value, &facts)
                            .covered(at, "this reduces elements that do not belong together")?,
                    };
                    next.push((facts, Some(sum)));
                }
            }
            sums = next;
        }
        Ok(sums.into_iter().filter_map(|(facts, sum)| Some((facts, sum?))).collect())
    }

    /// Returns the values that statement `step` reads at `place` in round s; a step after all statements is the end.
    fn read(&self, place: &Place, step: usize, at: Span, facts: &Facts) -> Answer<Cases> {
        let mut sources = Vec::new();
        for (i, effect) in self.effects.iter().enumerate() {
            for write in &effect.writes {
                self.sources(place, step, at, facts, (i, effect.step, write), &mut sources)?;
            }
        }
        let mut cases = Vec::new();
        self.resolve(place, at, facts, sources, CASES, &mut cases)?;
        Ok(cases)
    }

    /// Adds the latest rounds before s in which `write` may have written `place`.
    fn sources(
        &self,
        place: &Place,
        step: usize,
        at: Span,
        facts: &Facts,
        (effect, writer, write): (usize, usize, &Place),
        sources: &mut Vec<ValueSource>,
    ) -> Answer<()> {
        let part = self.program.steps[writer].part;
        let now = self.program.steps.get(step).map(|step| step.part);
        let relation = relate(&place.region, &write.region, at)?;
        if relation == Relation::Apart || now.is_some_and(|now| now < part) {
            return Ok(());
        }
        if !all_of(&write.region, &place.region) {
            return Err(NotCovered::new(
                at,
                "this reads what several moves, or other cuts, have written",
            ));
        }
        let (first, last) = self.program.parts[part].rounds;
        // The last round in which the write is before the read.
        let latest = (now == Some(part)).then(|| S - Affine::int(i64::from(writer >= step)));
        let mut push = |round: Affine, mut conditions: Vec<Affine>| {
            conditions.extend([round - first, last - round]);
            conditions.extend(latest.map(|latest| latest - round));
            let rank = place.owner - write.owner.at(round);
            let wrote = write.region;
            sources.push(ValueSource { effect, round, rank, wrote, conditions });
        };
        let far = || NotCovered::new(at, "this block runs around the ring more than once");
        let between = match relation {
            Relation::SameBlock => own_block(place) - own_block(write).at(T),
            _ => Affine::ZERO,
        };
        let slope = between.other_slope();
        match slope {
            0 => {
                let round = latest.unwrap_or(last);
                for j in facts.multiples(between).ok_or_else(far)? {
                    let rest = between - N * j;
                    push(round, vec![rest, -rest]);
                }
            }
            1 | -1 => {
                let both = facts.within(T, first, last);
                for j in both.multiples(between).ok_or_else(far)? {
                    // `between` is slope * t + more, and 1 / slope is slope.
                    let more = between - T * slope;
                    push((N * j - more) * slope, Vec::new());
                }
            }
            _ => return Err(NotCovered::new(at, "blocks that are skipped from round to round")),
        }
        Ok(())
    }

    /// Finds the last of `sources` in each case, and adds the value that it wrote.
    fn resolve(
        &self,
        place: &Place,
        at: Span,
        facts: &Facts,
        mut sources: Vec<ValueSource>,
        splits: u32,
        cases: &mut Cases,
    ) -> Answer<()> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut doubt = None;
        sources.retain(|source| match facts.judge(&source.conditions) {
            LinearVerdict::Holds => true,
            LinearVerdict::Fails => false,
            LinearVerdict::Depends(term) => {
                doubt.get_or_insert(term);
                true
            }
        });
        let mut last: Option<&ValueSource> = None;
        if doubt.is_none() {
            for source in &sources {
                let Some(other) = last else {
                    last = Some(source);
                    continue;
                };
                match self.later(source, other) {
                    Err(later) => last = Some(if later { source } else { other }),
                    Ok(term) if facts.prove(term) => last = Some(source),
                    Ok(term) if facts.and(term).is_empty() => {}
                    Ok(term) => doubt = Some(term),
                }
            }
        }
        if let Some(term) = doubt {
            if splits == 0 {
                return Err(NotCovered::new(at, "too many cases of what this reads"));
            }
            self.resolve(place, at, &facts.and(term), sources.clone(), splits - 1, cases)?;
            return self.resolve(place, at, &facts.but_not(term), sources, splits - 1, cases);
        }
        match last {
            None => self.initial(place, at, facts, cases),
            Some(source) => self.written(place, at, facts, source, cases),
        }
    }

    /// Whether write `a` is later than write `b`: decided by the text, or by the sign of a term.
    fn later(&self, a: &ValueSource, b: &ValueSource) -> Result<Affine, bool> {
        let (x, y) = (self.effects[a.effect].step, self.effects[b.effect].step);
        let (p, q) = (self.program.steps[x].part, self.program.steps[y].part);
        if p == q { Ok(a.round - b.round - Affine::int(i64::from(x < y))) } else { Err(p > q) }
    }

    /// Adds the value that `source` wrote, as the reading rank sees it.
    fn written(
        &self,
        place: &Place,
        at: Span,
        facts: &Facts,
        source: &ValueSource,
        cases: &mut Cases,
    ) -> Answer<()> {
        let form = &self.forms[source.effect];
        let part = self.program.steps[self.effects[source.effect].step].part;
        let since = source.round - self.program.parts[part].rounds.0;
        let mut add = |facts: Facts, value: Option<&ArcValue>| {
            if facts.is_empty() {
                return Ok(());
            }
            let value = value
                .and_then(|v| narrow(v.seen(source.rank, source.round), source, place))
                .covered(at, "this reads what is cut in another way than it was written")?;
            cases.push((facts, value));
            Ok(())
        };
        for (k, value) in form.computed.iter().enumerate() {
            let k = Affine::int(k as i64);
            add(facts.within(since, k, k), Some(value))?;
        }
        let computed = Affine::int(form.computed.len() as i64);
        add(facts.and(since - computed), form.later.as_ref())
    }

    /// Adds the value at a place without a write.
    fn initial(&self, place: &Place, at: Span, facts: &Facts, cases: &mut Cases) -> Answer<()> {
        let region = place.region;
        let input = Region { buffer: Buffer::Input, ..region };
        let unwritten =
            || NotCovered::new(at, "in some round or for some nranks, nothing was written here");
        let home = match (region.buffer, self.mode, self.program.collective) {
            (Buffer::Input, ..) => region,
            (Buffer::Output, BufferMode::InPlace, Collective::AllReduce) => input,
            (Buffer::Output, BufferMode::InPlace, Collective::AllGather) => {
                // The owner's own block is its input.
                let Some(block) = region.block.filter(|_| region.outer == WHOLE) else {
                    return Err(unwritten());
                };
                if !facts.prove_congruent(block - place.owner) {
                    return Err(unwritten());
                }
                Region { many: false, outer: region.inner, block: None, inner: WHOLE, ..input }
            }
            _ => return Err(unwritten()),
        };
        cases.push((facts.clone(), ArcValue::of(place.owner, home)));
        Ok(())
    }

    /// Whether at the end every piece of every output holds the value that the collective promises.
    fn end(&self) -> Answer<bool> {
        let at = self.program.header;
        for region in self.outputs() {
            let home = Region { buffer: Buffer::Input, ..region };
            let piece = |block, inner| Region { outer: WHOLE, block, inner, ..home };
            let expected = match self.program.collective {
                Collective::AllReduce => ArcValue::complete(home),
                Collective::ReduceScatter => {
                    let block = Some(Affine::ZERO);
                    ArcValue::complete(Region { many: true, ..piece(block, region.outer) })
                }
                Collective::AllGather => {
                    let outer = region.inner;
                    ArcValue::of(S, Region { many: false, outer, ..piece(None, WHOLE) })
                }
                _ => ArcValue::of(S, piece(Some(Affine::ZERO), region.inner)),
            };
            let place = Place { owner: Affine::ZERO, region };
            let place = locate(place, self.program.collective, self.mode, at)?;
            let facts = self.facts.within(S, Affine::ZERO, N - Affine::int(1));
            for (facts, value) in self.read(&place, usize::MAX, at, &facts)? {
                if !expected.is(&value, &facts) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the output in pieces that were each written as a whole: blocks are those of round s.
    fn outputs(&self) -> Vec<Region> {
        let places = self.program.steps.iter().flat_map(|step| match &step.action {
            Action::Move(_, dsts) => dsts.clone(),
            _ => Vec::new(),
        });
        let written: Vec<Region> =
            places.map(|p| p.region).filter(|r| r.buffer == Buffer::Output).collect();
        let many = matches!(self.program.collective, Collective::AllGather | Collective::AllToAll);
        let mut regions = Vec::new();
        let outers = if many { vec![WHOLE] } else { atoms(written.iter().map(|r| r.outer)) };
        for outer in outers {
            let within = || written.iter().filter(move |r| meet(r.outer, outer));
            let region = Region { buffer: Buffer::Output, many, outer, block: None, inner: WHOLE };
            if !many && within().all(|r| r.block.is_none()) {
                regions.push(region);
                continue;
            }
            let blocked = within().filter(|r| r.block.is_some());
            for inner in atoms(blocked.map(|r| r.inner)) {
                regions.push(Region { block: Some(S), inner, ..region });
            }
        }
        regions
    }
}

/// Returns the stretches of a whole between all ends of `intervals`.
fn atoms(intervals: impl Iterator<Item = Interval>) -> Vec<Interval> {
    let ends = intervals.flat_map(|(lo, hi)| [lo, hi]).chain([Rat::ZERO, Rat::ONE]);
    let ends: Vec<Rat> = ends.collect::<BTreeSet<_>>().into_iter().collect();
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Returns the part of a value that lies at `place`.
fn narrow(mut value: ArcValue, source: &ValueSource, place: &Place) -> Option<ArcValue> {
    let (mut wrote, mut read) = (source.wrote, place.region);
    if wrote.block.is_some() == read.block.is_some() {
        if *wrote.finest() != *read.finest() {
            let whole = value.home.finest();
            (*whole == *wrote.finest()).then(|| *whole = *read.finest())?;
        }
        return Some(value);
    }
    // The data was copied to the place that it had in the input, so any piece of it is that piece of the input.
    let alike = value.home.block.is_none()
        && (value.home.many, value.home.outer) == (wrote.many, wrote.outer);
    let home = Region { buffer: Buffer::Input, ..read };
    alike.then_some(ArcValue { home, ..value })
}

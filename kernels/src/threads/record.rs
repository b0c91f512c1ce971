//! The record that errors of calls are made from: the names of shapes, refusals that not all ranks were told of, and
//! the reason for which all calls ended.

use roundelay_core::ids::RankId;

use crate::error::{Differ, Error};

/// Bits of a shape's number, as it is published with a call.
pub(super) const SHAPE_BITS: u32 = 24;

/// The most shapes at once.
pub(super) const SHAPES: usize = 1 << SHAPE_BITS;

/// The record of calls, kept under a lock, off the path of calls that go well.
#[derive(Default)]
pub(super) struct Record {
    pub(super) shapes: Shapes,
    refusals: Vec<Refusal>,
    /// The rank that gave up first, and the text of its error.
    pub(super) cause: Option<(RankId, String)>,
}

/// The names of shapes, by number. Numbers are used again.
#[derive(Default)]
pub(super) struct Shapes(Vec<Option<String>>);

impl Shapes {
    pub(super) fn add(&mut self, name: String) -> Result<u32, Error> {
        let free = self.0.iter().position(Option::is_none);
        let at = free.unwrap_or(self.0.len());
        if at == SHAPES {
            let what = format!("more than {SHAPES} plans at once for one communicator");
            return Err(Error::BadOption { what, fix: "keep fewer" });
        }
        self.0.resize(self.0.len().max(at + 1), None);
        self.0[at] = Some(name);
        Ok(at as u32)
    }

    pub(super) fn remove(&mut self, shape: u32) {
        self.0[shape as usize] = None;
    }

    pub(super) fn name(&self, shape: u32) -> String {
        self.0.get(shape as usize).cloned().flatten().unwrap_or_else(|| "another call".to_owned())
    }
}

/// A void call, and the ranks that were told of it.
pub(super) struct Refusal {
    differ: Differ,
    told: Box<[bool]>,
}

impl Refusal {
    pub(super) fn new(differ: Differ, nranks: u32, finder: RankId) -> Self {
        let told = (0..nranks).map(|rank| rank == finder.0).collect();
        Self { differ, told }
    }
}

impl Record {
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }

    /// Returns the difference in call `number`, once for each rank, if that call was refused.
    pub(super) fn tell(&mut self, rank: RankId, number: u64) -> Option<Box<Differ>> {
        self.tell_of(rank, |differ| differ.number == number)
    }

    /// Returns, once for each rank, the difference in a refused call that `rank` had left before it came to call
    /// `number`.
    pub(super) fn tell_late(&mut self, rank: RankId, number: u64) -> Option<Box<Differ>> {
        let mut differ = self.tell_of(rank, |differ| differ.number < number)?;
        differ.late = Some(rank);
        Some(differ)
    }

    fn tell_of(&mut self, rank: RankId, which: impl Fn(&Differ) -> bool) -> Option<Box<Differ>> {
        let untold = |refusal: &Refusal| !refusal.told[rank.index()] && which(&refusal.differ);
        let at = self.refusals.iter().position(untold)?;
        let refusal = &mut self.refusals[at];
        refusal.told[rank.index()] = true;
        let differ = Box::new(refusal.differ.clone());
        if refusal.told.iter().all(|told| *told) {
            self.refusals.remove(at);
        }
        Some(differ)
    }

    /// Returns the refusals of which ranks were not told, each with such a rank.
    pub(super) fn untold(&self) -> impl Iterator<Item = (RankId, &Differ)> {
        self.refusals.iter().flat_map(|refusal| {
            let untold = (0..).map(RankId).zip(&refusal.told).filter(|(_, told)| !**told);
            untold.map(|(rank, _)| (rank, &refusal.differ))
        })
    }

    /// Whether there is a refusal that `rank` was not told of.
    pub(super) fn keeps_for(&self, rank: RankId) -> bool {
        self.refusals.iter().any(|refusal| !refusal.told[rank.index()])
    }
}

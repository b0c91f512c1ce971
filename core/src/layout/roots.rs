//! The roots for which a rooted collective is proved.
//!
//! An algorithm whose root is not set is right where it is right for every root, so every root is proved where that is
//! cheap. Elsewhere the algorithm's own root is proved alone, and certificates and warnings name that root.

use crate::ids::RankId;
use crate::units::ranges;

/// The most ops of the schedules of all roots of one rank count up to which every root is proved.
pub const MOST_OPS: u64 = 1 << 16;

/// The roots that an algorithm may be given.
#[derive(Clone, Copy, Debug)]
pub struct Roots {
    /// Whether the collective has a root that is not set.
    free: bool,
    /// The algorithm's own root, if its default is a number.
    own: Option<u32>,
}

/// The outcome of a proof with one root.
#[derive(Clone, Copy, Debug)]
pub enum WithRoot {
    /// The proof holds for a schedule.
    Proved {
        /// The root of the schedule.
        root: RankId,
        /// The ops of all ranks.
        ops: u64,
    },
    /// The algorithm refuses the rank count with this root.
    Refused,
    /// It fails, or is left, and no other root is tried.
    Ended,
}

/// The roots for which one rank count is proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootsAt {
    nranks: u32,
    roots: Vec<u32>,
    /// The ops with the first root.
    ops: u64,
    /// Whether other roots were left out.
    left: bool,
}

impl Roots {
    /// Returns the roots of an algorithm that has none, or whose root is set.
    pub(super) const fn fixed() -> Self {
        Self { free: false, own: None }
    }

    /// Returns the roots of an algorithm whose root is not set; its `own` one is known if its default is a number.
    pub(super) const fn any(own: Option<u32>) -> Self {
        Self { free: true, own }
    }

    /// Proves a rank count with the algorithm's own root, and then with every other, unless the schedules of all roots
    /// have more than `most` ops. `prove` takes the root to set, if one is to be set.
    pub fn each(
        self,
        nranks: u32,
        most: u64,
        mut prove: impl FnMut(Option<u32>) -> WithRoot,
    ) -> RootsAt {
        let mut at = self.first(nranks, &mut prove);
        self.others(&mut at, most, prove);
        at
    }

    /// Proves a rank count with the algorithm's own root alone; where that is no rank of the run, with root 0.
    pub fn first(self, nranks: u32, prove: impl FnOnce(Option<u32>) -> WithRoot) -> RootsAt {
        let root = self.own.map(|own| if own < nranks { own } else { 0 });
        // A refusal takes a few statements of each rank.
        let ops = 16 * u64::from(nranks);
        let mut at = RootsAt { nranks, roots: Vec::new(), ops, left: self.free };
        match prove(root) {
            WithRoot::Proved { root, ops } => {
                at.roots.push(root.0);
                at.ops = ops;
                at.left &= nranks > 1;
            }
            WithRoot::Refused => {}
            WithRoot::Ended => at.ops = u64::MAX,
        }
        at
    }

    /// Proves the rank count with every root that is left, unless the schedules of all roots have more than `most` ops.
    pub fn others(
        self,
        at: &mut RootsAt,
        most: u64,
        mut prove: impl FnMut(Option<u32>) -> WithRoot,
    ) {
        if !at.left || at.ops.saturating_mul(at.nranks.into()) > most {
            return;
        }
        let first = at.roots.first().copied();
        for root in (0..at.nranks).filter(|root| Some(*root) != first) {
            match prove(Some(root)) {
                WithRoot::Proved { root, .. } => at.roots.push(root.0),
                WithRoot::Refused => {}
                WithRoot::Ended => return,
            }
        }
        at.left = false;
    }
}

impl RootsAt {
    /// Returns the rank count.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// Whether it is proved with some root.
    pub fn is_proved(&self) -> bool {
        !self.roots.is_empty()
    }

    /// Whether roots were left out that the algorithm may be given.
    pub fn is_partial(&self) -> bool {
        self.left && self.is_proved()
    }
}

/// Returns the roots of proofs in words, such as `root 0..=8`, or `root 0..=3 at nranks 2..=4 and root 0 alone at nranks
/// 64`.
pub fn text(proofs: &[RootsAt]) -> String {
    let of = |partial: bool| {
        let some: Vec<_> = proofs.iter().filter(|at| at.is_partial() == partial).collect();
        let mut roots: Vec<u32> = some.iter().flat_map(|at| at.roots.iter().copied()).collect();
        roots.sort_unstable();
        roots.dedup();
        let counts: Vec<u32> = some.iter().map(|at| at.nranks).collect();
        (!roots.is_empty()).then(|| (format!("root {}", ranges(&roots)), ranges(&counts)))
    };
    match (of(false), of(true)) {
        (Some((every, at)), Some((own, beyond))) => {
            format!("{every} at nranks {at} and {own} alone at nranks {beyond}")
        }
        (None, Some((own, _))) => format!("{own} alone"),
        (Some((every, _)), None) => every,
        (None, None) => "no root".to_owned(),
    }
}

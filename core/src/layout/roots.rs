//! The roots for which a rooted collective is proved.
//!
//! An algorithm whose root is not set is right where it is right for every root, so every root is proved where that is
//! cheap. Elsewhere the algorithm's own root is proved alone, and certificates and warnings name that root.

use crate::ids::RankId;
use crate::units::counted;

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
        (!roots.is_empty()).then(|| (format!("root {}", counted(&roots)), counted(&counts)))
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

#[cfg(test)]
mod tests {
    use super::{Roots, RootsAt, WithRoot, text};
    use crate::ids::RankId;

    fn proved(root: Option<u32>, ops: u64) -> WithRoot {
        WithRoot::Proved { root: RankId(root.unwrap_or(0)), ops }
    }

    #[test]
    fn every_root_is_proved_up_to_the_limit() {
        let at = |own, nranks, most| {
            let mut tried = Vec::new();
            let at = Roots::any(own).each(nranks, most, |root| {
                tried.push(root);
                proved(root, 10)
            });
            (tried, text(&[at]))
        };
        assert_eq!(at(Some(0), 3, 30), (vec![Some(0), Some(1), Some(2)], "root 0..=2".to_owned()));
        assert_eq!(at(Some(2), 3, 29), (vec![Some(2)], "root 2 alone".to_owned()));
        assert_eq!(at(Some(2), 2, 29).0, [Some(0), Some(1)], "rank 2 is not there");
        assert_eq!(at(None, 2, 29).0, [None, Some(1)]);
        assert_eq!(at(Some(0), 1, 0), (vec![Some(0)], "root 0".to_owned()));
        let set = Roots::fixed().each(4, 1, |root| proved(root.or(Some(3)), 10));
        assert_eq!(text(&[set]), "root 3");
    }

    #[test]
    fn roots_that_are_refused_are_no_roots() {
        let only_two = |root| if root == Some(2) { proved(root, 1) } else { WithRoot::Refused };
        let at = Roots::any(Some(0)).each(4, 256, only_two);
        assert!(!at.is_partial());
        assert_eq!(text(&[at]), "root 2");
        assert!(!Roots::any(Some(0)).each(4, 255, only_two).is_proved(), "too many to be tried");
    }

    #[test]
    fn the_words_name_the_counts_where_they_differ() {
        let with = |nranks, roots: &[u32], left| {
            let at = Roots::any(Some(0)).first(nranks, |root| proved(root, 1));
            RootsAt { roots: roots.to_vec(), left, ..at }
        };
        let proofs = [with(2, &[0, 1], false), with(3, &[0, 1, 2], false), with(64, &[0], true)];
        assert_eq!(text(&proofs), "root 0..=2 at nranks 2..=3 and root 0 alone at nranks 64");
        assert_eq!(text(&proofs[..2]), "root 0..=2");
        assert_eq!(text(&[]), "no root");
    }
}

//! The choices that a run leaves open: which threads go on, and which of several stores a load reads.

/// The subject of a choice. Alternative 0 is the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The threads that go on; plain: those that ran last.
    Threads,
    /// The number of lanes that go on, of lanes that stand together; plain: all of them.
    Lanes,
    /// The store that a strong load reads; plain: the newest one.
    Store,
    /// The place of a strong store in coherence order; plain: behind all others.
    Place,
    /// The next window of an access to several; plain: the first one.
    Order,
}

/// For each subject, the number of choices of which a seeded run makes one that is not plain.
const ONE_IN: [u64; 5] = [12, 48, 5, 6, 2];

/// A source of choices.
#[derive(Clone, Debug)]
pub(crate) enum Choices {
    /// Random choices.
    Seeded {
        /// The state of the generator.
        state: u64,
        /// The number of choices so far.
        made: u64,
        /// The choices that were not plain, with their numbers, where they are wanted.
        recorded: Option<Vec<(u64, u32)>>,
    },
    /// Plain choices but for those of a list, for a run that is made smaller.
    Sparse {
        /// The choices that are not plain, with their numbers in rising order.
        others: Vec<(u64, u32)>,
        /// The first entry of the list that is to come.
        next: usize,
        /// The number of choices so far.
        made: u64,
    },
    /// One path of a search through all choices.
    Path(Path),
    /// The order of warps is random, and all other choices are plain: a strong load waits for the store that its warp has
    /// not seen, and no poll is in vain.
    Patient {
        /// The state of the generator.
        state: u64,
        /// The number of strong loads so far.
        loads: u64,
    },
}

/// A path of choices, each with its number of alternatives. Behind its end, every choice is the plain one, and makes the
/// path longer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    steps: Vec<(u32, u32)>,
    made: usize,
}

impl Path {
    /// Turns to the next path in the order of a depth-first search. False: there is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.made = 0;
        while let Some((chosen, alternatives)) = self.steps.pop() {
            if chosen + 1 < alternatives {
                self.steps.push((chosen + 1, alternatives));
                return true;
            }
        }
        false
    }
}

impl Choices {
    /// Random choices by a seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded { state: seed, made: 0, recorded: None }
    }

    /// Random choices by a seed, of which those that are not plain are recorded.
    pub(crate) fn recorded(seed: u64) -> Self {
        Self::Seeded { state: seed, made: 0, recorded: Some(Vec::new()) }
    }

    /// Plain choices but for those of a list.
    pub(crate) fn sparse(others: Vec<(u64, u32)>) -> Self {
        Self::Sparse { others, next: 0, made: 0 }
    }

    /// The order of warps by a seed, for a run whose counts are the same for all seeds.
    pub(crate) fn patient(seed: u64) -> Self {
        Self::Patient { state: seed, loads: 0 }
    }

    /// Returns one of as many alternatives as `count` says, which are at least one. `count` is not called where the
    /// choice is the plain one anyway.
    pub(crate) fn choose(&mut self, what: Choice, count: impl FnOnce() -> usize) -> usize {
        match self {
            Self::Seeded { state, made, recorded } => {
                *made += 1;
                if !draw(state).is_multiple_of(ONE_IN[what as usize]) {
                    return 0;
                }
                let others = count() as u64 - 1;
                if others == 0 {
                    return 0;
                }
                let chosen = 1 + draw(state) % others;
                if let Some(recorded) = recorded {
                    recorded.push((*made, chosen as u32));
                }
                chosen as usize
            }
            Self::Sparse { others, next, made } => {
                *made += 1;
                match others.get(*next) {
                    Some(&(number, chosen)) if number == *made => {
                        *next += 1;
                        (chosen as usize).min(count() - 1)
                    }
                    _ => 0,
                }
            }
            Self::Path(path) => {
                let alternatives = count();
                if alternatives == 1 {
                    return 0;
                }
                if path.made == path.steps.len() {
                    path.steps.push((0, alternatives as u32));
                }
                path.made += 1;
                path.steps[path.made - 1].0 as usize
            }
            Self::Patient { state, .. } => match what {
                Choice::Threads if draw(state).is_multiple_of(ONE_IN[what as usize]) => {
                    (draw(state) % count() as u64) as usize
                }
                Choice::Threads | Choice::Lanes | Choice::Store | Choice::Place | Choice::Order => {
                    0
                }
            },
        }
    }

    /// The recorded choices that were not plain.
    pub(crate) fn into_recorded(self) -> Vec<(u64, u32)> {
        match self {
            Self::Seeded { recorded, .. } => recorded.unwrap_or_default(),
            Self::Sparse { others, .. } => others,
            Self::Path(_) | Self::Patient { .. } => Vec::new(),
        }
    }

    /// The number of the next strong load, where strong loads wait for their stores.
    pub(crate) fn waiting_load(&self) -> Option<u64> {
        match self {
            Self::Patient { loads, .. } => Some(*loads),
            _ => None,
        }
    }

    /// Notes that the lanes of a strong load have loaded.
    pub(crate) fn has_loaded(&mut self) {
        if let Self::Patient { loads, .. } = self {
            *loads += 1;
        }
    }

    /// Whether the choices are a path of a search.
    pub(crate) fn is_path(&self) -> bool {
        matches!(self, Self::Path(_))
    }
}

/// Returns the next number of a generator.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

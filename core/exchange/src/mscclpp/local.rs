//! Barriers and semaphores between blocks of a rank, as signals between two streams each.

use std::collections::BTreeMap;

use super::Program;
use super::program::Act;
use super::steps::{All, MscclppStep, Word, streams};
use crate::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::schedule::{OpKind, SignalKind};

/// The steps of a rank that use one barrier or one semaphore: for each block the numbers of its steps.
type Uses = BTreeMap<usize, Vec<usize>>;

/// Adds the posts and waits of barriers and semaphores.
///
/// # Errors
/// Barriers that other numbers of blocks use than they declare (E0301, E0310), semaphores with a wait that no release
/// ends (E0302), with a release too many (E0303), or with several possible releases for a wait (E0310).
pub(super) fn connect(program: &Program, all: &mut All) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for (rank, blocks) in all.iter_mut().enumerate() {
        let mut rank = LocalRank { number: rank, streams: streams(blocks), blocks };
        rank.barriers(&mut wrong);
        let semaphores = &program.gpus[rank.number].semaphores;
        for (id, init) in (0..).zip(semaphores) {
            wrong.extend(rank.semaphore(id, *init as usize));
        }
    }
    wrong
}

struct LocalRank<'a> {
    number: usize,
    streams: Vec<u32>,
    blocks: &'a mut Vec<Vec<MscclppStep>>,
}

impl LocalRank<'_> {
    fn uses(&self, used: impl Fn(&Act) -> bool) -> Uses {
        let mut uses = Uses::new();
        for (block, steps) in self.blocks.iter().enumerate() {
            for (index, step) in steps.iter().enumerate() {
                if used(&step.what) {
                    uses.entry(block).or_default().push(index);
                }
            }
        }
        uses
    }

    fn at(&self, block: usize, index: usize) -> SpanId {
        self.blocks[block][index].at
    }

    /// Returns a post or a wait between two blocks; `purpose` tells its kind and number.
    fn word(&self, kind: OpKind, [from, to]: [usize; 2], purpose: [i64; 2]) -> Word {
        let ends = [self.streams[from], self.streams[to]].map(i64::from);
        let rank = self.number as u32;
        Word {
            kind,
            ends: (rank, rank),
            signal: SignalKind::Local,
            lane: [ends, purpose].concat(),
            anew: true,
        }
    }

    fn barriers(&mut self, wrong: &mut Vec<Diagnostic>) {
        let mut ids: BTreeMap<u32, u32> = BTreeMap::new();
        for step in self.blocks.iter().flatten() {
            if let Act::Barrier { id, blocks } = step.what {
                let known = ids.entry(id).or_insert(blocks);
                if *known != blocks {
                    let title = format!(
                        "barrier {id} is for {blocks} blocks here, and for {known} elsewhere"
                    );
                    wrong.push(Diagnostic::new(Code::Deadlock, span(step.at), title));
                    return;
                }
            }
        }
        for (id, blocks) in ids {
            wrong.extend(self.barrier(id, blocks as usize));
        }
    }

    /// Adds the signals of a barrier: every block signals the first block that takes part, and waits for its answer.
    fn barrier(&mut self, id: u32, blocks: usize) -> Option<Diagnostic> {
        let uses = self.uses(|what| matches!(what, Act::Barrier { id: used, .. } if *used == id));
        let (&leader, first) = uses.first_key_value()?;
        let at = span(self.at(leader, first[0]));
        if uses.len() != blocks {
            let title = format!(
                "barrier {id} of gpu {} is for {blocks} blocks, and {} use it",
                self.number,
                uses.len()
            );
            let code = if uses.len() < blocks { Code::Deadlock } else { Code::SharedSignal };
            return Some(Diagnostic::new(code, at, title));
        }
        let times = uses.values().map(Vec::len).min().unwrap_or(0);
        for (block, used) in &uses {
            if let Some(more) = used.get(times) {
                let title = format!("barrier {id}, to which another block does not come so often");
                return Some(Diagnostic::new(
                    Code::UnmatchedWait,
                    span(self.at(*block, *more)),
                    title,
                ));
            }
        }
        let purpose = [1, id.into()];
        for (&block, used) in uses.iter().filter(|(block, _)| **block != leader) {
            for (turn, &index) in used.iter().enumerate() {
                let [come, go] = [[block, leader], [leader, block]];
                let here =
                    [self.word(OpKind::Post, come, purpose), self.word(OpKind::Wait, go, purpose)];
                let there =
                    [self.word(OpKind::Wait, come, purpose), self.word(OpKind::Post, go, purpose)];
                let led = uses[&leader][turn];
                self.blocks[block][index].before.extend(here);
                let [wait, post] = there;
                self.blocks[leader][led].before.push(wait);
                self.blocks[leader][led].after.push(post);
            }
        }
        None
    }

    fn semaphore(&mut self, id: u32, init: usize) -> Option<Diagnostic> {
        let releases = self.uses(|what| matches!(what, Act::Release(used) if *used == id));
        let acquires = self.uses(|what| matches!(what, Act::Acquire(used) if *used == id));
        let count = |uses: &Uses| uses.values().map(Vec::len).sum::<usize>();
        let (given, taken) = (count(&releases), count(&acquires));
        let told = |uses: &Uses, code, title: String| {
            let first = uses.first_key_value().map(|(block, used)| self.at(*block, used[0]));
            Diagnostic::new(code, span(first.unwrap_or_default()), title)
        };
        let name = format!("semaphore {id} of gpu {}", self.number);
        if given < taken {
            let title = format!("{name} is released {given} times, and acquired {taken} times");
            let error = told(&acquires, Code::UnmatchedWait, title);
            return Some(if init == 0 {
                error
            } else {
                error.note(format!("it begins at {init}, and keeps what a call leaves"))
            });
        }
        if given > taken {
            let title = format!("{name} is released {given} times, and acquired {taken} times");
            let error = told(&releases, Code::LeftOverSignal, title);
            return Some(error.note("it keeps what a call leaves, so the next call does not wait"));
        }
        let purpose = [2, id.into()];
        match (releases.len(), acquires.len()) {
            (0, _) | (_, 0) => None,
            (1, 1) => self.pair(&name, init, (&releases, &acquires), purpose),
            // No step stands between the uses of one block: each wait comes after all steps before the first release,
            // or all releases come before the step behind the last wait.
            (from, to)
                if (from == 1 || to == 1)
                    && init == 0
                    && self.together(if from == 1 { &releases } else { &acquires }) =>
            {
                let all = |uses: &Uses| -> Vec<(usize, usize)> {
                    let of = |(block, used): (&usize, &Vec<usize>)| {
                        used.iter().map(|index| (*block, *index)).collect::<Vec<_>>()
                    };
                    uses.iter().flat_map(of).collect()
                };
                let (posts, waits) = (all(&releases), all(&acquires));
                let last = waits[waits.len() - 1];
                for turn in 0..posts.len() {
                    let (post, wait) =
                        if from == 1 { (posts[0], waits[turn]) } else { (posts[turn], last) };
                    let word = |kind| self.word(kind, [post.0, wait.0], purpose);
                    let [before, after] = [word(OpKind::Wait), word(OpKind::Post)];
                    self.blocks[post.0][post.1].after.push(after);
                    self.blocks[wait.0][wait.1].before.push(before);
                }
                None
            }
            (from, to) => {
                let title = format!("{name} is released by {from} blocks, and acquired by {to}");
                let error = told(&acquires, Code::SharedSignal, title);
                Some(error.note("which of the releases ends a wait is open"))
            }
        }
    }

    /// Pairs the releases of one block with the acquires of another: the k-th release ends the k-th acquire after the
    /// first `init` acquires, which pass at once. As many releases remain; waits at the end take them, since the rank's
    /// next call comes after them.
    fn pair(
        &mut self,
        name: &str,
        init: usize,
        (releases, acquires): (&Uses, &Uses),
        purpose: [i64; 2],
    ) -> Option<Diagnostic> {
        let (&from, posts) = releases.first_key_value().unwrap_or((&0, &EMPTY));
        let (&to, waits) = acquires.first_key_value().unwrap_or((&0, &EMPTY));
        if from == to {
            // The block must release before it acquires, or it deadlocks.
            for (turn, &wait) in waits.iter().enumerate().skip(init) {
                if posts[turn - init] > wait {
                    let title =
                        format!("deadlock: {name} is released by the same block, and later");
                    let at = span(self.at(to, wait));
                    return Some(Diagnostic::new(Code::Deadlock, at, title));
                }
            }
            return None;
        }
        for &index in posts {
            let post = self.word(OpKind::Post, [from, to], purpose);
            self.blocks[from][index].after.push(post);
        }
        let wait = self.word(OpKind::Wait, [from, to], purpose);
        for &index in waits.iter().skip(init) {
            self.blocks[to][index].before.push(wait.clone());
        }
        let passing = init.min(waits.len());
        if let Some(at) = self.blocks[to].last().map(|step| step.at).filter(|_| passing > 0) {
            // At the end of the block, so that the order of its other steps does not matter.
            let before = vec![wait; passing];
            self.blocks[to].push(MscclppStep {
                at,
                what: Act::Sync,
                thread: 0,
                before,
                after: Vec::new(),
            });
        }
        None
    }

    /// Whether the uses of the single block are neighbours, apart from `Sync` steps between them.
    fn together(&self, uses: &Uses) -> bool {
        let Some((&block, used)) = uses.first_key_value() else { return true };
        let (Some(first), Some(last)) = (used.first(), used.last()) else { return true };
        let between = self.blocks[block].iter().enumerate().skip(*first).take(last - first);
        between.into_iter().all(|(at, step)| used.contains(&at) || matches!(step.what, Act::Sync))
    }
}

static EMPTY: Vec<usize> = Vec::new();

//! Loads and stores of the elements of an access.

use super::history::Strong;
use super::{Global, Memory, Refusal, Rules, Target, Thread};
use crate::assumptions::Assumption;
use crate::choices::Choices;
use crate::program::{MemoryAccess, Scope, Semantics};

impl Memory {
    /// Loads the elements of an access into `values`, which has room for those of this thread, or of it and the next ones,
    /// whose accesses follow its own one and are performed with it as one. Returns the bytes of private memory that
    /// nothing has stored, the first byte at bit 0.
    pub(crate) fn load(
        &mut self,
        choices: &mut Choices,
        access: &MemoryAccess,
        (thread, place): (Thread, u32),
        address: u64,
        values: &mut [u64],
    ) -> Result<u32, Refusal> {
        let each = u64::from(access.ty.bytes());
        let (of_thread, elements) = (u64::from(access.elements), values.len() as u64);
        let target = self.target(thread, access.space, address, each * elements)?;
        let used = u64::from(access.used_bytes) & (u64::MAX >> (64 - each * of_thread));
        let is_used =
            |element: u64| used >> (element % of_thread * each) & (u64::MAX >> (64 - each)) != 0;
        let clocks = &mut self.clocks;
        let waits = choices.waiting_load().is_some();
        let mut relaxed = false;
        let region = match target {
            Target::Private(offset) => {
                for (element, value) in (0..elements).zip(values) {
                    *value = self.private.load(thread, offset + element * each, each);
                }
                return Ok(self.private.without_value(thread, offset, used) as u32);
            }
            Target::Const(offset) => {
                let rank = clocks.home(thread).rank as usize;
                for (element, value) in (0..elements).zip(values) {
                    let at = (offset + element * each) as usize;
                    let bytes = &self.constants[rank][at..at + each as usize];
                    *value = bytes.iter().rev().fold(0, |value, &b| value << 8 | u64::from(b));
                }
                return Ok(0);
            }
            Target::Global(global, _) => {
                let Global { region, weak_is_relaxed, .. } = &mut self.globals[global];
                relaxed = *weak_is_relaxed;
                region
            }
            Target::Shared(block, _) => &mut self.shared[block],
        };
        let (Target::Global(_, first) | Target::Shared(_, first)) = target else { return Ok(0) };
        for element in (0..elements).filter(|&element| is_used(element)) {
            if !region.has_value(first + element * each, each) {
                return Err(Refusal::NoValue(element * each));
            }
        }
        let scope = strength(access).or_else(|| relaxed.then_some(Scope::Sys));
        let strong = scope.map(|scope| Strong {
            stamp: clocks.stamp(thread, place),
            scope,
            acquires: access.semantics == Semantics::Acquire
                || self.rules.has(Assumption::PollsAcquire),
            acquires_counts: self.rules.has(Assumption::CountedBlocks),
            releases: false,
            whole: 0,
        });
        let together = match scope {
            Some(_) if elements > of_thread => values.len(),
            Some(_) if !waits => self.rules.together(access),
            _ => 1,
        };
        for (at, values) in (0..).step_by(together).zip(values.chunks_mut(together)) {
            let offset = first + at * each;
            let range = (offset, each);
            let by = (&mut *choices, &mut self.races);
            let loaded = match &strong {
                _ if !(at..at + together as u64).any(is_used) => continue,
                None => {
                    let stamp = clocks.stamp(thread, place);
                    if access.non_coherent && !self.rules.has(Assumption::NcOnPeers) {
                        region.load_constant(clocks, by.1, stamp, offset, each)
                    } else {
                        region.load(clocks, by.1, stamp, offset, each)
                    }
                }
                Some(strong) if values.len() > 1 => {
                    let by_thread = (strong, of_thread as usize);
                    let loaded = region.load_whole(clocks, by, by_thread, range, values);
                    loaded.map(|()| values[0])
                }
                Some(strong) => region.load_strong(clocks, by, strong, offset, each),
            };
            values[0] = loaded.map_err(Refusal::Unordered)?;
        }
        Ok(0)
    }

    /// Whether all stores have come that a waiting strong load of that number reads; or the load is an error.
    pub(crate) fn has_come(
        &mut self,
        access: &MemoryAccess,
        thread: Thread,
        address: u64,
        load: u64,
    ) -> bool {
        let each = u64::from(access.ty.bytes());
        let elements = u64::from(access.elements);
        let (region, first) = match self.target(thread, access.space, address, each * elements) {
            Ok(Target::Global(global, offset)) => (&mut self.globals[global].region, offset),
            Ok(Target::Shared(block, offset)) => (&mut self.shared[block], offset),
            _ => return true,
        };
        let mut places = (0..elements).map(|element| (first + element * each, each));
        places.all(|place| region.has_come(&self.clocks, thread, place, load))
    }

    /// Stores the elements of an access, or of it and of those of the next threads, which follow it and are performed with
    /// it as one. In private memory the bytes of `missing`, the first one at bit 0, have no value then.
    pub(crate) fn store(
        &mut self,
        choices: &mut Choices,
        access: &MemoryAccess,
        (thread, place): (Thread, u32),
        address: u64,
        (values, missing): (&[u64], u32),
    ) -> Result<(), Refusal> {
        let each = u64::from(access.ty.bytes());
        let (of_thread, elements) = (usize::from(access.elements), values.len() as u64);
        let target = self.target(thread, access.space, address, each * elements)?;
        let clocks = &mut self.clocks;
        let waits = choices.waiting_load().is_some();
        let mut relaxed = false;
        let region = match target {
            Target::Private(offset) => {
                for (element, &value) in (0..elements).zip(values) {
                    self.private.store(thread, offset + element * each, each, value);
                }
                for byte in (0..each * elements).filter(|byte| missing >> byte & 1 == 1) {
                    self.private.clear(thread, offset + byte, 1);
                }
                return Ok(());
            }
            Target::Const(_) => return Err(Refusal::Constant),
            Target::Global(..) | Target::Shared(..) if missing != 0 => {
                return Err(Refusal::Missing);
            }
            Target::Global(global, _) => {
                let Global { region, weak_is_relaxed, .. } = &mut self.globals[global];
                relaxed = *weak_is_relaxed;
                region
            }
            Target::Shared(block, _) => &mut self.shared[block],
        };
        let (Target::Global(_, first) | Target::Shared(_, first)) = target else { return Ok(()) };
        let scope = strength(access).or_else(|| relaxed.then_some(Scope::Sys));
        let together = match scope {
            Some(_) if values.len() > of_thread => values.len(),
            Some(_) if !waits => self.rules.together(access),
            _ => 1,
        };
        for (at, values) in (0..).step_by(together).zip(values.chunks(together)) {
            let range = (first + at * each, each);
            let by = (&mut *choices, &mut self.races);
            let stamp = clocks.stamp(thread, place);
            self.wholes += u64::from(values.len() > 1);
            let strong = scope.map(|scope| Strong {
                stamp,
                scope,
                acquires: false,
                acquires_counts: false,
                releases: access.semantics == Semantics::Release
                    || self.rules.has(Assumption::FlagsRelease),
                whole: if values.len() > 1 { self.wholes } else { 0 },
            });
            let stored = match &strong {
                None => region.store(clocks, by.1, stamp, range, values[0]),
                Some(strong) if values.len() > 1 => {
                    region.store_whole(clocks, by, (strong, of_thread), range, values)
                }
                Some(strong) => region.store_strong(clocks, by, strong, range, values[0]),
            };
            stored.map_err(Refusal::Unordered)?;
        }
        Ok(())
    }
}

impl Rules {
    #[expect(clippy::needless_pass_by_value, reason = "the names alone are given")]
    pub(super) fn has(&self, assumption: Assumption) -> bool {
        self.0 & assumption.bit() != 0
    }

    /// The number of elements of an access that are performed as one.
    fn together(&self, access: &MemoryAccess) -> usize {
        let (each, elements) = (access.ty.bytes(), usize::from(access.elements));
        match each * u32::from(access.elements) {
            16 if self.has(Assumption::Vec16) => elements,
            8.. if self.has(Assumption::Vec8) && each == 4 => 2,
            _ => 1,
        }
    }
}

/// The scope of a strong access; none of a plain one.
pub(crate) fn strength(access: &MemoryAccess) -> Option<Scope> {
    match access.semantics {
        Semantics::Weak => None,
        Semantics::Volatile => Some(Scope::Sys),
        _ => Some(access.scope.unwrap_or(Scope::Gpu)),
    }
}

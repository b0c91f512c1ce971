//! The record that errors of calls are made from: the names of shapes, the last refused calls, and the reason for which all calls ended.

use roundelay_core::ids::RankId;

use crate::call_numbers::{LOW, WINDOW};
use crate::error::{Differ, Error};

/// The most shapes at once: the number of a shape is published in the low bits of a call's word.
const SHAPES: usize = 1 << LOW;

/// The record of calls, kept under a lock, off the path of calls that go well.
#[derive(Default)]
pub(super) struct Record {
    pub(super) shapes: Shapes,
    /// The last calls that were refused.
    refused: Vec<Differ>,
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

impl Record {
    /// Records a call that was refused.
    pub(super) fn refuse(&mut self, differ: Differ) {
        // No rank comes back to a call that lies two windows behind it.
        self.refused.retain(|before| before.number + 4 * WINDOW > differ.number);
        self.refused.push(differ);
    }

    /// Returns the record of call `number`, if it was refused.
    pub(super) fn differ(&self, number: u64) -> Option<&Differ> {
        self.refused.iter().find(|differ| differ.number == number)
    }
}

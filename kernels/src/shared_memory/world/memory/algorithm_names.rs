//! The names of the algorithms that ranks run, with the places of their statements, for processes that look from
//! outside: no rank reads them.

use roundelay_core::ids::SpanId;
use roundelay_core::schedule::Schedule;

use super::arena::{NAME, NAMES};
use super::shared_state::SharedState;
use crate::sync::{MODELLED, Ordering};

/// The position of the number of names for which there was no room, in the arena's first page.
const UNNAMED: usize = 256;
/// Bytes before the text: the identity, and the length of the text, which is 0 until the text is written.
const BEFORE: usize = 16;

/// The name of an algorithm, and the places of its statements.
pub(crate) struct AlgorithmName(String);

impl AlgorithmName {
    pub(crate) fn name(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    /// Returns the place of statements of the schedule as words, counted from 1; `None` if it is not known.
    pub(crate) fn place(&self, at: u32) -> Option<&str> {
        self.0.lines().skip(1).nth(at.checked_sub(1)? as usize).filter(|place| !place.is_empty())
    }
}

impl SharedState {
    /// Writes the name of the schedule that calls with this identity run, unless a rank has written it.
    pub(crate) fn name_algorithm(&self, identity: u64, schedule: &Schedule) {
        // In a model no process looks from outside; 0 is no identity.
        if MODELLED || identity == 0 {
            return;
        }
        for nth in 0..NAMES {
            let at = self.arena.layout.name(nth);
            let (done, known) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.arena.word(at).compare_exchange(0, identity, done, known) {
                Ok(_) => {
                    let text = text_of(schedule);
                    self.arena.store_text(at + BEFORE, text.as_bytes());
                    self.arena.word(at + 8).store(text.len() as u64, Ordering::Release);
                    return;
                }
                Err(other) if other == identity => return,
                Err(_) => {}
            }
        }
        self.arena.word(UNNAMED).fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of times that there was no room for a name.
    pub(crate) fn unnamed(&self) -> u64 {
        self.arena.word(UNNAMED).load(Ordering::Relaxed)
    }

    /// Returns all names, with the identities of the calls.
    pub(crate) fn algorithm_names(&self) -> Vec<(u64, AlgorithmName)> {
        let places = (0..NAMES).map(|nth| self.arena.layout.name(nth));
        let identities = places.map(|at| (at, self.arena.word(at).load(Ordering::Relaxed)));
        let written = identities.take_while(|(_, identity)| *identity != 0);
        let name = |(at, identity): (usize, u64)| {
            let len = self.arena.word(at + 8).load(Ordering::Acquire) as usize;
            let text = self.arena.load_text(at + BEFORE, len.min(NAME - BEFORE));
            (identity, AlgorithmName(String::from_utf8_lossy(&text).into_owned()))
        };
        written.map(name).collect()
    }
}

/// Returns the name of an algorithm, and then the place of each of its statements in a line, as far as there is room.
fn text_of(schedule: &Schedule) -> String {
    let mut text = schedule.algorithm.clone();
    for at in 0..schedule.locations.len() + schedule.origins.len() {
        let place = schedule.place(SpanId(at as u32));
        if text.len() + 1 + place.len() > NAME - BEFORE {
            break;
        }
        text.push('\n');
        text.push_str(&place);
    }
    if text.len() > NAME - BEFORE { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::shared_memory::World;
    use roundelay_core::schedule::text;

    #[test]
    fn names_are_written_once_and_as_long_as_there_is_room() {
        let worlds = World::together(2, Options::new()).expect("a world");
        let [first, second] = &worlds[..] else { panic!("two ranks") };
        let schedule = text::parse("schedule Mine AllReduce nranks 2 root 0\n");
        let schedule = schedule.unwrap_or_else(|why| panic!("{why:?}"));
        for identity in (1..=NAMES as u64).chain(1..=NAMES as u64) {
            first.shared.name_algorithm(identity, &schedule);
            second.shared.name_algorithm(identity, &schedule);
        }
        assert_eq!((first.shared.algorithm_names().len(), first.shared.unnamed()), (NAMES, 0));
        first.shared.name_algorithm(1000, &schedule);
        let names = second.shared.algorithm_names();
        assert_eq!((names.len(), second.shared.unnamed()), (NAMES, 1));
        assert!(names.iter().all(|(_, name)| name.name() == "Mine" && name.place(0).is_none()));
    }

    #[test]
    fn a_text_of_any_length_and_bytes_is_read() {
        let worlds = World::together(2, Options::new()).expect("a world");
        let shared = &worlds[0].shared;
        let at = shared.arena.layout.name(0);
        for word in 0..NAME / 8 {
            shared.arena.word(at + 8 * word).store(u64::MAX, Ordering::Relaxed);
        }
        let names = shared.algorithm_names();
        assert_eq!(names.len(), 1);
        assert!(names[0].1.name().len() >= NAME - BEFORE && names[0].1.place(u32::MAX).is_none());
    }
}

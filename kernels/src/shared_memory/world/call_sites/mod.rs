//! The places of a program from which its calls come, for processes that look from outside: no rank reads them.
//!
//! A site is a line of Python, or an address in a file of machine code. A world whose options ask for sites keeps a
//! table of them for each rank in the arena, and the record of a call has a number in this table.

#[cfg(target_os = "linux")]
mod native;
#[cfg(target_os = "linux")]
mod python;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::memory::arena::{SITE, SITES};
use super::memory::shared_state::SharedState;
use crate::sync::Ordering;

/// The text in the place of a part that found no room.
const ELLIPSIS: &str = "…";

thread_local! {
    /// The site of the calls that this thread makes.
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Returns the site of the calls that this thread makes.
pub fn current_site() -> Option<Arc<str>> {
    // While a thread ends it has no site.
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Runs `call`, whose calls come from `site`, if there is one.
pub fn at_site<R>(site: Option<Arc<str>>, call: impl FnOnce() -> R) -> R {
    if site.is_none() {
        return call();
    }
    struct Before(Option<Arc<str>>);
    impl Drop for Before {
        fn drop(&mut self) {
            set(self.0.take());
        }
    }
    let _before = Before(set(site));
    call()
}

/// Sets the site of the calls that this thread makes, and returns the one before.
fn set(site: Option<Arc<str>>) -> Option<Arc<str>> {
    CURRENT.try_with(|current| current.replace(site)).ok().flatten()
}

/// Returns the place in the program that called the library of which this is a part: the line of Python that the thread
/// is in, or else the address of the code.
pub(crate) fn caller() -> Option<Arc<str>> {
    #[cfg(target_os = "linux")]
    let text = python::line().or_else(native::address);
    #[cfg(not(target_os = "linux"))]
    let text: Option<String> = None;
    text.map(Arc::from)
}

/// The numbers of the sites in the table of this process's rank.
#[derive(Default)]
pub(crate) struct CallSites(HashMap<Arc<str>, u64>);

impl CallSites {
    /// Returns the number of the site of the calls that this thread makes: 0 where it has none, more than [`SITES`]
    /// where there is no room.
    pub(crate) fn number(&mut self, shared: &SharedState, rank: usize) -> u64 {
        let Some(site) = current_site() else { return 0 };
        if let Some(number) = self.0.get(&site) {
            return *number;
        }
        let number = self.0.len() as u64 + 1;
        if number <= SITES {
            let at = shared.arena.layout.site(rank, number);
            let text = end_of(&site, SITE - 8);
            shared.arena.store_text(at + 8, text.as_bytes());
            shared.arena.word(at).store(text.len() as u64, Ordering::Release);
            self.0.insert(site, number);
        }
        number
    }
}

impl SharedState {
    /// Returns the site of this number in the table of a rank; `None` for 0.
    pub(crate) fn site(&self, rank: usize, number: u64) -> Option<String> {
        match number {
            0 => None,
            1..=SITES => {
                let at = self.arena.layout.site(rank, number);
                let len = self.arena.word(at).load(Ordering::Acquire) as usize;
                let text = self.arena.load_text(at + 8, len.min(SITE - 8));
                Some(String::from_utf8_lossy(&text).into_owned())
            }
            _ => Some(ELLIPSIS.to_owned()),
        }
    }
}

/// Returns the end of a text that has `most` bytes at most: the number of a line stands at the end.
fn end_of(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let first = text.len() - (most - ELLIPSIS.len());
    let first = (first..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{ELLIPSIS}{}", &text[first..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::shared_memory::World;

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        assert_eq!(end_of("train.py:88", 11), "train.py:88");
        assert_eq!(end_of("a/train.py:88", 12), "…ain.py:88");
        assert_eq!(end_of("ä/train.py:8", 11), "…ain.py:8");
        assert_eq!(end_of("aää", 4), "…");
    }

    #[test]
    fn the_site_of_a_thread_is_that_of_the_innermost_call() {
        let of = |text: &str| Some(Arc::from(text));
        at_site(of("outer"), || {
            at_site(of("inner"), || assert_eq!(current_site().as_deref(), Some("inner")));
            let panicked = std::panic::catch_unwind(|| at_site(of("inner"), || panic!("a test")));
            assert!(panicked.is_err());
            assert_eq!(current_site().as_deref(), Some("outer"));
        });
        assert_eq!(current_site(), None);
    }

    #[test]
    fn a_table_is_never_full_twice() {
        let worlds = World::together(2, Options::new().sites(true)).expect("a world");
        let (shared, mut sites) = (&worlds[0].shared, CallSites::default());
        let mut number = |site: u64| {
            let site = format!("program.py:{site}");
            at_site(Some(Arc::from(site)), || sites.number(shared, 1))
        };
        for site in (1..=SITES).chain(1..=SITES) {
            assert_eq!(number(site), site);
        }
        assert_eq!((number(1000), number(1001), number(7)), (SITES + 1, SITES + 1, 7));
        assert_eq!(sites.number(shared, 1), 0, "no site");
        let seen = [0, 1, SITES, SITES + 1, u64::MAX].map(|number| shared.site(1, number));
        let last = format!("program.py:{SITES}");
        let expected = [None, Some("program.py:1"), Some(&last), Some("…"), Some("…")];
        assert_eq!(seen.each_ref().map(Option::as_deref), expected);
        assert_eq!(shared.site(0, 1).as_deref(), Some(""), "another rank has another table");
    }
}

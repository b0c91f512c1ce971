//! The memory that the ranks of a world share: the places of its parts, the words that ranks publish there for each
//! other, and the words that only a process from outside reads.

pub(crate) mod algorithm_names;
pub(crate) mod arena;
pub(crate) mod call_record;
pub(crate) mod clock;
pub(crate) mod head;
pub(crate) mod heap;
pub(crate) mod shared_state;
pub(crate) mod words;

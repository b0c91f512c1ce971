//! Pages of the book of Roundelay, for programs that show them.

/// A code such as `E0306`, and its page as text of Markdown.
type Page = (&'static str, &'static str);

/// The pages of all codes, in the order of the codes.
pub const ERRORS: &[Page] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code, such as `E0306`; `None` where no error and no warning has the code.
///
/// ```
/// let page = roundelay_book::error("E0306").expect("a code of an error");
/// assert!(page.starts_with("# E0306: "));
/// assert!(roundelay_book::error("E9999").is_none());
/// ```
#[must_use]
pub fn error(code: &str) -> Option<&'static str> {
    let at = ERRORS.binary_search_by_key(&code, |(known, _)| known).ok()?;
    Some(ERRORS[at].1)
}

/// The pages that have a name of their own, such as `order`, in the order of the names.
pub const TOPICS: &[Page] = include!(concat!(env!("OUT_DIR"), "/topics.rs"));

/// The page of a topic, such as `order`; `None` for a name that no page has.
///
/// ```
/// let page = roundelay_book::topic("order").expect("a topic");
/// assert!(page.starts_with("# The order of a reduction"));
/// assert!(roundelay_book::topic("disorder").is_none());
/// ```
#[must_use]
pub fn topic(name: &str) -> Option<&'static str> {
    TOPICS.iter().find(|(known, _)| *known == name).map(|(_, page)| *page)
}

/// The words of the glossary, each with its meaning.
const WORDS: &[Page] = include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// The meaning of a word by the glossary, as one paragraph of Markdown; `None` for a word that the glossary lacks.
///
/// ```
/// let meaning = roundelay_book::word("scratch").expect("a word of the glossary");
/// assert!(meaning.starts_with("Memory that belongs to the plan"));
/// assert!(roundelay_book::word("sonnet").is_none());
/// ```
#[must_use]
pub fn word(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
}

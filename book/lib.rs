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

//! Words of the environment.

use std::env;

/// The variable that asks for the report of calls.
pub const REPORT: &str = "ROUNDELAY_REPORT";

/// Returns which of the words a variable has; the first where it has none.
///
/// # Errors
/// The variable has another word.
pub fn one_of(name: &str, said: Option<String>, words: &[&str]) -> Result<usize, String> {
    let Some(said) = said.filter(|said| !said.is_empty()) else { return Ok(0) };
    words.iter().position(|word| *word == said).ok_or_else(|| {
        format!("{name} is `{}`; it is one of {}", said.escape_debug(), words.join(", "))
    })
}

/// Whether a variable that is `0` or `1` is `1`.
pub fn is_on(name: &str) -> bool {
    env::var_os(name).is_some_and(|said| said == "1")
}

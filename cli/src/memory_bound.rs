//! The bound of the memory of runs, by the environment.

use std::env;

use roundelay_runner::memory::{Room, VARIABLE};

use crate::report::Failure;
use crate::values;

/// Returns the bound of the runs of this process.
///
/// # Errors
/// E0501 where the environment's bound is no number of bytes.
pub(crate) fn room() -> Result<Room, Failure> {
    let Some(text) = env::var_os(VARIABLE) else { return Ok(Room::Half) };
    let text = text.to_string_lossy();
    let wrong = |refused: values::RefusedValue| {
        Failure::usage(refused.code, format!("{VARIABLE}: `{text}` {refused}"))
            .with_help("give the bytes that a run may take, such as 8G, or leave it out")
    };
    values::bytes(&text).map(Room::Given).map_err(wrong)
}

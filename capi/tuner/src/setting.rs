//! The setting of the plugin: the variable `ROUNDELAY_TUNER`.

/// The work of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It corrects the table, and reports.
    On,
    /// It reports what it would do.
    Log,
}

/// Returns the mode that is set: on, unless it is set; `None` where it is off.
///
/// # Errors
/// The values that there are, in words.
pub(crate) fn mode() -> Result<Option<Mode>, String> {
    let Some(value) = std::env::var_os("ROUNDELAY_TUNER") else { return Ok(Some(Mode::On)) };
    match value.to_str() {
        Some("on" | "") => Ok(Some(Mode::On)),
        Some("log") => Ok(Some(Mode::Log)),
        Some("off") => Ok(None),
        _ => {
            let value = value.display();
            Err(format!("ROUNDELAY_TUNER is `{value}`: set it to on, log or off"))
        }
    }
}

//! The process that started the ranks, which names the job where no variable does.

use std::fs;

/// Returns a text for the nearest ancestor of this process that was started without the variable `mark`: the ancestor's
/// process id and its start time, which no other process of this host has.
///
/// A script between a rank and the starter may be the rank's parent, and not the parent of other ranks; but such a
/// script has the rank's variables.
pub(super) fn starter(mark: &str) -> Result<String, String> {
    let mut pid = std::process::id();
    loop {
        let (parent, _) = stat(pid)?;
        if parent == 0 {
            return Err(format!("the parent of process {pid} is not in this pid namespace"));
        }
        // A process whose environment cannot be read belongs to another user, and is no rank.
        let environment = fs::read(format!("/proc/{parent}/environ")).unwrap_or_default();
        let marked = environment.split(|byte| *byte == 0).any(|var| {
            var.strip_prefix(mark.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        });
        if !marked {
            return Ok(format!("{parent} started at {}", stat(parent)?.1));
        }
        pid = parent;
    }
}

/// Returns the parent of a process, and the process's start time in ticks since the boot.
fn stat(pid: u32) -> Result<(u32, u64), String> {
    let file = format!("/proc/{pid}/stat");
    let text =
        fs::read_to_string(&file).map_err(|error| format!("{file} cannot be read: {error}"))?;
    parse(&text).ok_or_else(|| format!("{file} is not as expected"))
}

/// Reads the parent and the start time. The program's name stands in parentheses, and may contain spaces and
/// parentheses.
fn parse(text: &str) -> Option<(u32, u64)> {
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_stat_are_found_behind_odd_names() {
        let text = "17 (a ) b (c) S 5 17 17 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7777 3 4 5";
        assert_eq!(parse(text), Some((5, 7777)));
        assert_eq!(parse("17 (a) S"), None);
    }

    #[test]
    fn the_starter_of_this_process_is_found() {
        let parent = stat(std::process::id()).expect("/proc is there").0;
        let text = starter("NO_PROCESS_HAS_THIS").expect("a parent");
        assert!(text.starts_with(&format!("{parent} started at ")), "{text}");
        // If the parent has the variable, the search goes on to its parent.
        let marked = fs::read(format!("/proc/{parent}/environ"))
            .is_ok_and(|vars| vars.split(|byte| *byte == 0).any(|var| var.starts_with(b"PATH=")));
        if marked {
            assert_ne!(starter("PATH"), Ok(text));
        }
    }
}

//! Gloo, as `PyTorch` brings it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{GRACE, Launch, NO_TIMES, Time};
use crate::command::{output, within};
use crate::peers::library::read;

/// Prints the version, if there is a `PyTorch` that has Gloo.
const ASK: &str = "\
import torch, torch.distributed as d
assert d.is_available() and d.is_gloo_available(), 'its PyTorch has no Gloo'
print(torch.__version__)";

pub(super) struct Gloo {
    name: String,
    script: PathBuf,
}

impl Gloo {
    /// Finds Gloo, or returns why it is missing. It is never installed, as `PyTorch` is large.
    pub(super) fn find(root: &Path) -> Result<Self, String> {
        let version = output(Command::new("python3").args(["-c", ASK]))
            .map_err(|why| reason(&why).to_owned())?;
        let name = format!("Gloo of PyTorch {}", version.trim());
        Ok(Self { name, script: root.join("xtask/peers/gloo.py") })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes one launch, and returns the times of each size.
    pub(super) fn time(&self, launch: Launch<'_>) -> Result<Vec<Time>, String> {
        let Launch { op, nranks, sizes, rewritten, longest } = launch;
        let mut command = Command::new("python3");
        command.arg(&self.script).args(["--seconds", &longest.as_secs().to_string()]);
        command.args(rewritten.then_some("--rewritten"));
        command.arg(op).arg(nranks.to_string()).args(sizes.iter().map(u64::to_string));
        let printed = within(&mut command, longest + GRACE)
            .map_err(|why| format!("{}\n{why}", reason(&why)))?;
        read(&printed.stdout, sizes)
            .ok_or_else(|| format!("{NO_TIMES}\n{}{}", printed.stdout, printed.stderr))
    }
}

/// Returns the last line that Python says, which names the error.
fn reason(why: &str) -> &str {
    why.trim_end().lines().next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn the_reason_is_the_last_line_of_a_traceback() {
        let why = "\"python3\" ended with 1:\nTraceback:\n  import torch\nModuleNotFoundError: No module named 'torch'\n";
        assert_eq!(reason(why), "ModuleNotFoundError: No module named 'torch'");
    }
}

//! `--rehearse`: the same steps without a GPU. Our programs find the test driver in place of libcuda, and its compiler
//! in place of NVRTC, which makes each kernel for that driver, too (`tests/driver`).

use std::path::Path;
use std::process::Command;

use super::places::Programs;
use super::plan::Setup;
use crate::command::{output, root};

/// In place of compute-sanitizer: runs the program without checks.
const SANITIZER: &str = "\
#!/bin/sh
# Takes the flags of compute-sanitizer, each with its value.
while [ \"${1#--}\" != \"$1\" ]; do shift 2; done
echo '# no sanitizer took part'
exec \"$@\"
";

pub(super) fn setup(programs: Programs, out: &Path) -> Result<Setup, String> {
    println!(
        "== rehearsal: no GPU takes part; kernels run on CPU threads, below a driver of our own"
    );
    let root = root();
    let folder = root.join("target/driver");
    let mut make = Command::new("sh");
    make.arg(root.join("tests/driver/make.sh")).arg("all").arg(folder);
    let said = output(&mut make)?;
    let variable = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let variables = said.lines().filter_map(variable).collect();
    let sanitizer = out.join("compute-sanitizer");
    let failed = |why: std::io::Error| format!("{}: {why}", sanitizer.display());
    std::fs::write(&sanitizer, SANITIZER).map_err(failed)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&sanitizer, mode).map_err(failed)?;
    }
    // The number of ranks that the driver has room for.
    let (device, quick, rehearsal, nranks) = (0, false, true, 4);
    Ok(Setup { programs, device, quick, rehearsal, nranks, variables, sanitizer: Ok(sanitizer) })
}

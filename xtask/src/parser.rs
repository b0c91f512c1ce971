//! The parser and the lexer of the language, which the package `xtask/parser` generates. Beside them is a list of digests,
//! of the generator's inputs and of its outputs: whether the two are fresh costs no build of the generator.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{root, run};
use crate::green::hex;

/// The list, as `sha256sum` has it.
const SUMS: &str = "core/src/syntax/generated.sha256";

/// The files of which the generator makes the two, and these two.
const FILES: [&str; 6] = [
    "core/src/syntax/grammar.lalrpop",
    "core/src/syntax/grammar.rs",
    "core/src/syntax/lexer_generated.rs",
    "core/src/syntax/token.rs",
    "xtask/parser/Cargo.lock",
    "xtask/parser/src/main.rs",
];

/// Generates both files anew, or, for the argument `--check`, compares them with the committed ones.
pub(crate) fn generate(args: &[&str]) -> Result<(), String> {
    let root = root();
    let folder = root.join("xtask/parser");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(&folder).args(["run", "--quiet", "--locked", "--target-dir"]);
    run(cargo.arg(root.join("target/parser")).arg("--").args(args))?;
    if args.is_empty() {
        let path = root.join(SUMS);
        return fs::write(&path, sums(&root)?).map_err(|why| format!("{}: {why}", path.display()));
    }
    check()
}

/// Fails if a file differs from the one of the last generation.
pub(crate) fn check() -> Result<(), String> {
    let root = root();
    let kept = fs::read_to_string(root.join(SUMS)).map_err(|why| format!("{SUMS}: {why}"))?;
    let now = sums(&root)?;
    match now.lines().find(|line| !kept.lines().any(|kept| kept == *line)) {
        None => Ok(()),
        Some(line) => {
            let file = line.rsplit(' ').next().unwrap_or(line);
            Err(format!("{file} is not as it was when the parser was made: `cargo xtask parser`"))
        }
    }
}

fn sums(root: &Path) -> Result<String, String> {
    FILES.iter().map(|file| Ok(format!("{}  {file}\n", hex(&root.join(file))?))).collect()
}

//! The parser and the lexer of the language, which the package `xtask/parser` generates. Beside them is a list of digests,
//! of the generator's inputs and of its outputs: whether the two are fresh costs no build of the generator.

use std::path::Path;

use crate::command::{cargo, read, root, run, write};
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
    let mut generator = cargo(&["run", "--quiet", "--locked", "--target-dir"]);
    generator.current_dir(root.join("xtask/parser")).arg(root.join("target/parser"));
    run(generator.arg("--").args(args))?;
    if args.is_empty() {
        return write(&root.join(SUMS), &sums(&root)?);
    }
    check()
}

/// Fails if a file differs from the one of the last generation.
pub(crate) fn check() -> Result<(), String> {
    let root = root();
    let kept = read(&root.join(SUMS))?;
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

//! The repository's own tasks: `cargo xtask parser [--check]`.

use std::process::ExitCode;

mod parser;

const USAGE: &str = "usage: cargo xtask parser [--check]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["parser"] => parser::write(),
        ["parser", "--check"] => parser::check(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

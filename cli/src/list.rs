//! `roundelay list`: what there is to run.

use roundelay_core::check::hir::{Algorithm, Program};

use serde::Serialize;

use crate::flags::{Format, ListFlags};
use crate::program::{compile, library_programs, read};
use crate::report::{Failure, print, print_json, refuse};

#[derive(Serialize)]
struct Listed {
    name: String,
    collective: &'static str,
    parameters: Vec<String>,
    summary: String,
    file: String,
}

pub(crate) fn main(flags: &ListFlags) -> Result<bool, Failure> {
    let programs: Vec<(String, Program)> = match &flags.source {
        None => library_programs().map(|(file, _, program)| (file.to_owned(), program)).collect(),
        Some(name) => {
            let source = read(name)?;
            match compile(&source) {
                Ok(program) => vec![(source.name().to_owned(), program)],
                Err(errors) => {
                    return Err(refuse(
                        flags.format,
                        &errors,
                        &source,
                        |diagnostics| serde_json::json!({ "ok": false, "diagnostics": diagnostics }),
                    ));
                }
            }
        }
    };
    let listed: Vec<Listed> = programs
        .iter()
        .flat_map(|(file, program)| program.algorithms.iter().map(|a| list(file, a)))
        .collect();
    match flags.format {
        Format::Json => print_json(&listed),
        Format::Human => {
            let width = listed.iter().map(|l| l.name.len()).max().unwrap_or(0);
            for Listed { name, collective, parameters, summary, .. } in &listed {
                let parameters = parameters.join(", ");
                print(&format!("{name:width$}  {collective:13}  ({parameters})  {summary}"));
            }
        }
    }
    Ok(true)
}

fn list(file: &str, algorithm: &Algorithm) -> Listed {
    let parameter = |p: &roundelay_core::check::hir::Param| {
        format!("{}: {}", algorithm.vars[p.var.0 as usize].name, p.ty.name())
    };
    Listed {
        name: algorithm.name.clone(),
        collective: algorithm.collective.name(),
        parameters: algorithm.params.iter().map(parameter).collect(),
        summary: first_sentence(&algorithm.docs),
        file: file.to_owned(),
    }
}

/// The first sentence of a doc comment, on one line.
fn first_sentence(docs: &[String]) -> String {
    let paragraph: Vec<&str> =
        docs.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    match text.split_once(". ") {
        Some((sentence, _)) => format!("{sentence}."),
        None => text,
    }
}

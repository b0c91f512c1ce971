//! Files that describe a topology: NCCL's, the table of `nvidia-smi topo -m`, links for ns-3, and lists of links.
//!
//! [`read`] tells them apart by their content. What comes out is a `Fabric`, with the machine where the file has one.

mod file_words;
pub mod here;
pub mod links;
pub mod nccl;
mod ns3;

use nccl::Assumption;
use roundelay_base::diagnostics::Code;
use roundelay_base::foreign;
use roundelay_topology::file::File;
use roundelay_topology::nccl::System;
use roundelay_topology::{Fabric, Problem};

/// A topology that was read from a file.
#[derive(Clone, Debug)]
pub struct TopologyFile {
    /// The graph.
    pub topology: Fabric,
    /// The machine, where the file describes one.
    pub system: Option<System>,
    /// Sentences without a full stop about a file that describes no machine.
    pub notes: Vec<String>,
    /// Whether the file has so few facts that most bandwidths are assumptions.
    pub is_sketch: bool,
}

/// Reads the file `name`, by its content; `is_xml` tells that its name is that of XML.
///
/// # Errors
/// E0601 to E0609 for a file that is wrong, or that an assumption does not fit, E0610 for a file of another program.
pub fn read(
    name: &str,
    bytes: &[u8],
    is_xml: bool,
    assume: Option<Assumption>,
) -> Result<TopologyFile, Problem> {
    let begin = bytes.trim_ascii_start();
    if is_xml || begin.starts_with(b"<") || begin.starts_with(b"\xEF\xBB\xBF<") {
        return Ok(of_system(nccl::read(name, bytes, assume)?, false));
    }
    let text = plain(&String::from_utf8_lossy(bytes));
    let file = File { name, text: &text };
    let mut lines = file_words::lines(&file).skip_while(|line| line.words[0].text == "$");
    let first = lines.next();
    if let Some(head) = first.as_ref().filter(|head| nccl::is_matrix(head)) {
        return Ok(of_system(nccl::read_matrix(file, head, lines, assume)?, true));
    }
    let of_ranks = |topology| match &assume {
        Some(assumption) => assumption.of_ranks(topology),
        None => Ok(topology),
    };
    if first.as_ref().is_some_and(ns3::begins) {
        let (topology, notes) = ns3::read(file)?;
        let topology = of_ranks(topology)?;
        return Ok(TopologyFile { topology, system: None, notes, is_sketch: false });
    }
    if let Some(found) = foreign::recognize(&text) {
        return Err(of_another(&found));
    }
    let topology = of_ranks(links::read(name, &text)?)?;
    Ok(TopologyFile { topology, system: None, notes: Vec::new(), is_sketch: false })
}

fn of_system(system: System, is_sketch: bool) -> TopologyFile {
    let topology = system.topology.clone();
    TopologyFile { topology, system: Some(system), notes: Vec::new(), is_sketch }
}

/// Returns the problem of another program's file.
fn of_another(found: &foreign::Foreign) -> Problem {
    let problem =
        Problem::new(Code::ForeignFile, format!("the file is {}, and no topology", found.what));
    let problem = match found.taker {
        Some(command) => problem.note(format!("`{command}` takes it")),
        None => problem,
    };
    problem.help(
        "a topology is a file of NCCL's, the table of `nvidia-smi topo -m`, links for ns-3, a list of links that begins \
        with `ranks 8`, or a text such as `full_mesh(8, 25GB/s, 2us)`",
    )
}

/// Returns a text without a mark of its encoding, and with blanks in place of the escapes that underline the head of a
/// table.
fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut escape = false;
    let blank = |c: char| {
        let was = escape;
        escape = if escape { !c.is_ascii_alphabetic() && c != '\n' } else { c == '\x1b' };
        if (was || escape) && c != '\n' { ' ' } else { c }
    };
    text.chars().map(blank).collect()
}

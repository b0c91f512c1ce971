//! The texts that the class of the contest and an operator share: the functions of each size class, and tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Export;
use super::interface::Interface;
use super::part::SizeClassPart;
use crate::loops::cpp::{comment_line, list};
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::schedule::Schedule;

/// The functions of numbers and pieces, and the parts of memory, which every text contains.
pub(super) const NUMBERS: &str = include_str!("numbers.h");

/// The alignment of slots, in bytes.
const ALIGNMENT: u64 = 512;

/// The parts of all size classes.
pub(super) struct SizeClassParts<'t> {
    export: &'t Export<'t>,
    pub(super) all: Vec<SizeClassPart>,
}

impl<'t> SizeClassParts<'t> {
    pub(super) fn new(
        export: &'t Export<'t>,
        interface: Interface,
    ) -> Result<Self, Vec<(usize, Finding)>> {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (at, class) in export.classes.iter().enumerate() {
            match SizeClassPart::new(class, interface) {
                Ok(part) => all.push(part),
                Err(findings) => wrong.extend(findings.into_iter().map(|finding| (at, finding))),
            }
        }
        let first = &export.classes[0].schedule;
        for (at, class) in export.classes.iter().enumerate() {
            let schedule = class.schedule;
            if (schedule.collective, schedule.nranks) != (first.collective, first.nranks) {
                let of = |s: &Schedule| format!("an {} of {} ranks", s.collective, s.nranks);
                let title = format!("{} beside {}", of(schedule), of(first));
                wrong.push((at, Finding::new(Code::NotExportable, SpanId(0), title)));
            }
        }
        if wrong.is_empty() { Ok(Self { export, all }) } else { Err(wrong) }
    }

    /// Returns the comment of the export.
    pub(super) fn docs(&self) -> String {
        let mut text = String::new();
        for line in self.export.docs {
            let line = comment_line(line.trim());
            let _ = writeln!(text, "//{}{line}", if line.is_empty() { "" } else { " " });
        }
        let first = self.export.classes[0].schedule;
        if first.collective.is_rooted() {
            let _ = writeln!(text, "// The root is rank {}.", first.root);
        }
        text
    }

    /// Returns the functions of all classes.
    pub(super) fn sections(&self) -> String {
        let mut text = String::new();
        for (at, (part, class)) in self.all.iter().zip(&self.export.classes).enumerate() {
            let below = class.below.map(|below| format!("below {below} bytes"));
            let sizes = below.unwrap_or_else(|| "what is left".to_owned());
            let _ = writeln!(
                text,
                "\n// ---- {sizes}: {} -----\n\nnamespace class_{at} {{\n\nconstexpr u64 PIECES = {};\n{}\n}} // namespace class_{at}",
                part.algorithm, part.pieces, part.functions
            );
        }
        text
    }

    /// Returns the lines of all classes.
    pub(super) fn lines(&self, line: impl Fn(usize, &SizeClassPart) -> String) -> String {
        self.all.iter().enumerate().map(|(at, part)| line(at, part)).collect()
    }

    /// Returns the most streams of a rank beside its main one.
    pub(super) fn slaves(&self) -> u32 {
        self.all.iter().map(|part| part.slaves).max().unwrap_or(0)
    }

    /// Fills the places of a text that all interfaces have.
    pub(super) fn fill(&self, text: &str) -> String {
        let schedule = self.export.classes[0].schedule;
        let (nranks, collective) = (schedule.nranks, schedule.collective);
        let units = collective.max_input_units(nranks).max(collective.max_output_units(nranks));
        let per_rank = |units: &dyn Fn(RankId) -> u32| list((0..nranks).map(|r| units(RankId(r))));
        let inputs = per_rank(&|rank| collective.input_units(rank, nranks, schedule.root));
        let outputs = per_rank(&|rank| collective.output_units(rank, nranks, schedule.root));
        let limit = |below: Option<u64>| below.map_or("~u64(0)".to_owned(), |b| b.to_string());
        let limits: Vec<_> = self.export.classes.iter().map(|c| limit(c.below)).collect();
        let scratch = self.lines(|at, part| {
            let one = |(slots, (num, den)): &(u32, (u64, u64))| {
                format!("    {{{at}, {slots}, {num}, {den}}},\n")
            };
            part.scratch.iter().map(one).collect()
        });
        let links = self.lines(|at, part| {
            let one = |peers: &BTreeSet<RankId>| format!("{{{}}}", list(peers));
            format!("    {{{}}}, // class {at}\n", list(part.peers.iter().map(one)))
        });
        text.replace("@TABLES@", include_str!("tables.h"))
            .replace("@NAME@", self.export.name)
            .replace("@RANKS@", &nranks.to_string())
            .replace("@UNITS@", &units.to_string())
            .replace("@INPUTS@", &inputs)
            .replace("@OUTPUTS@", &outputs)
            .replace("@LIMITS@", &limits.join(", "))
            .replace("@CLASSES@", &self.all.len().to_string())
            .replace("@ALIGN@", &ALIGNMENT.to_string())
            .replace("@SCRATCH@", &scratch)
            .replace("@LINKS@", &links)
    }
}

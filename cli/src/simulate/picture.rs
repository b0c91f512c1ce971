//! The flags of `simulate` for its pictures: the files, and the part of the run that is drawn.

use std::ops::RangeInclusive;

use clap::{Args, ValueEnum};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::trace::{Data, TraceText};
use roundelay_pictures::spacetime::{self, Drawing, Units, View};
use roundelay_pictures::topology_svg;
use roundelay_simulate::Timeline;
use roundelay_simulate::trace::add_simulation;

use super::Run;
use crate::output;
use crate::report::Failure;
use crate::streams::say;
use crate::values::{RefusedValue, bytes};

/// Pixels that a picture may be wide.
const WIDTHS: RangeInclusive<u32> = 240..=20_000;

#[derive(Args)]
pub(crate) struct PictureFlags {
    /// Write a diagram of the ranks over time, with messages as arrows, or as colors if there are many; for several
    /// rank counts, the curves of time over ranks
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<String>,
    /// Write the topology with the load of each link
    #[arg(long, value_name = "FILE")]
    links: Option<String>,
    /// Write a page that steps through the rounds of the diagram, and zooms
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<String>,
    /// Write a trace of the run for Perfetto and Chrome: a row for each stream of each rank, and for its messages
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Draw only these ranks: 0..8, 0..=7, or a list such as 0,2,4
    #[arg(long, value_name = "RANKS", value_parser = numbers)]
    ranks: Option<Numbers>,
    /// Draw only these rounds, counted from 1: 1..5, 1..=4 or 4
    #[arg(long, value_name = "ROUNDS", value_parser = rounds)]
    rounds: Option<(u32, u32)>,
    /// Width of the picture
    #[arg(long, value_name = "PIXELS", value_parser = width)]
    width: Option<u32>,
    /// Draw messages as arrows, or as colors: what each rank sends over time, and what goes between which ranks
    /// [default: by the number of messages]
    #[arg(long, value_enum)]
    view: Option<ViewFlag>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ViewFlag {
    Arrows,
    Matrix,
}

/// Ranks as written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbers(Vec<u32>);

/// A size as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    /// `64 MiB`, for `64M` and `64MiB`.
    pub(crate) text: String,
    pub(super) units: Units,
}

/// Reads a size, with the form in which it is shown.
pub(crate) fn size(text: &str) -> Result<Size, RefusedValue> {
    let bytes = bytes(text)?;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (unit, units) = match unit.trim() {
        "K" | "k" => ("KiB", Units::Binary),
        "M" | "m" => ("MiB", Units::Binary),
        "G" | "g" => ("GiB", Units::Binary),
        "" => ("B", Units::Binary),
        "KB" => ("kB", Units::Decimal),
        unit if unit.ends_with("iB") || unit == "B" => (unit, Units::Binary),
        unit => (unit, Units::Decimal),
    };
    Ok(Size { bytes, text: format!("{number} {unit}"), units })
}

/// Reads a range of numbers, whose end is included after `=`; returns the first and the last.
fn range(text: &str) -> Option<(u32, u32)> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let (first, last) = text.split_once("..")?;
    let last = match last.strip_prefix('=') {
        Some(last) => number(last)?,
        None => number(last)?.checked_sub(1)?,
    };
    number(first).filter(|first| *first <= last).map(|first| (first, last))
}

fn numbers(text: &str) -> Result<Numbers, RefusedValue> {
    /// More than any run has ranks.
    const MOST: u32 = 1 << 20;
    let wrong =
        || RefusedValue::new("is no list of ranks").help("ranks are such as 0..8, 0..=7 or 0,2,4");
    if text.contains("..") {
        let (first, last) = range(text).filter(|(_, last)| *last < MOST).ok_or_else(wrong)?;
        return Ok(Numbers((first..=last).collect()));
    }
    let list = text.split(',').map(|rank| rank.trim().parse().ok());
    Ok(Numbers(list.collect::<Option<_>>().ok_or_else(wrong)?))
}

fn rounds(text: &str) -> Result<(u32, u32), RefusedValue> {
    let one = || text.trim().parse().ok().map(|round: u32| (round, round));
    let found = if text.contains("..") { range(text) } else { one() };
    found.filter(|(first, _)| *first > 0).ok_or_else(|| {
        let help = "rounds are such as 1..5, 1..=4 or 4, and the first is 1";
        RefusedValue::new("are no rounds").help(help)
    })
}

fn width(text: &str) -> Result<u32, RefusedValue> {
    let width = text.trim().parse().ok().filter(|width| WIDTHS.contains(width));
    let (least, most) = (WIDTHS.start(), WIDTHS.end());
    width.ok_or_else(|| {
        let help = format!("a picture is {least} to {most} pixels wide");
        RefusedValue::new("is not a width in pixels").help(help)
    })
}

impl PictureFlags {
    /// Returns the flags that name files, and the names.
    pub(super) fn files(&self) -> [(&'static str, Option<&str>); 4] {
        let files = [
            ("--svg", &self.svg),
            ("--html", &self.html),
            ("--links", &self.links),
            ("--trace", &self.trace),
        ];
        files.map(|(flag, file)| (flag, file.as_deref()))
    }

    /// Whether the activity of the ranks over time is wanted.
    pub(super) fn over_time(&self) -> bool {
        self.any() || self.trace.is_some()
    }

    /// Whether any picture of the ranks over time is wanted.
    fn any(&self) -> bool {
        self.svg.is_some() || self.html.is_some()
    }

    /// Returns the first flag that is for the picture of one run.
    pub(super) fn for_one_run(&self) -> Option<&'static str> {
        let given = [
            (self.html.is_some(), "--html"),
            (self.links.is_some(), "--links"),
            (self.trace.is_some(), "--trace"),
            (self.ranks.is_some(), "--ranks"),
            (self.rounds.is_some(), "--rounds"),
            (self.width.is_some(), "--width"),
            (self.view.is_some(), "--view"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }

    /// Refuses ranks that the run does not have, and wishes for a picture that is not drawn, before it is simulated.
    pub(super) fn check(&self, nranks: u32) -> Result<(), Failure> {
        let wishes = [
            (self.ranks.is_some(), "--ranks"),
            (self.rounds.is_some(), "--rounds"),
            (self.width.is_some(), "--width"),
            (self.view.is_some(), "--view"),
        ];
        if let Some((_, flag)) = wishes.iter().find(|(given, _)| *given && !self.any()) {
            let title = format!("{flag} is for a picture, and none is drawn");
            return Err(Failure::usage(Code::BadFlag, title)
                .with_help("say where it goes: --svg FILE or --html FILE"));
        }
        let Some(Numbers(ranks)) = &self.ranks else { return Ok(()) };
        match ranks.iter().find(|rank| **rank >= nranks) {
            None => Ok(()),
            Some(rank) => {
                let title = format!("--ranks names rank {rank}, and the run has {nranks} ranks");
                Err(Failure::usage(Code::BadFlag, title)
                    .with_help(format!("ranks count from 0: all of them are 0..{nranks}")))
            }
        }
    }

    /// Draws the topology with the load of its links, if that is wanted.
    pub(super) fn write_links(&self, run: &Run<'_>) -> Result<(), Failure> {
        let Some(path) = &self.links else { return Ok(()) };
        let topology = &run.machine.topology;
        let marks = topology_svg::load(topology, &run.simulated.links, run.title());
        output::write(path, &topology_svg::svg(topology, &marks))
    }

    /// Draws the wanted pictures.
    pub(super) fn write(&self, run: &Run<'_>, timeline: &Timeline) -> Result<(), Failure> {
        let schedule = run.schedule;
        if let Some(path) = &self.trace {
            let data = Data { count: run.count, dtype: run.dtype };
            let mut text = TraceText::default();
            add_simulation(&mut text, (schedule, timeline), data, Some(run.source), 0);
            output::write(path, &text.file())?;
        }
        if !self.any() {
            return Ok(());
        }
        if let Some((_, last)) = self.rounds {
            let count = spacetime::rounds(schedule, timeline);
            if last > count {
                let title = format!("--rounds names round {last}, and the run has {count} rounds");
                return Err(Failure::usage(Code::BadFlag, title)
                    .with_help(format!("rounds count from 1: all of them are 1..={count}")));
            }
        }
        let title = run.title();
        let drawing = Drawing {
            title: &title,
            source: Some(run.source),
            ranks: self.ranks.iter().flat_map(|Numbers(all)| all).copied().map(RankId).collect(),
            rounds: self.rounds.map(|(first, last)| first..=last),
            critical: &run.simulated.critical,
            width: self.width,
            view: self.view.map(|view| match view {
                ViewFlag::Arrows => View::Arrows,
                ViewFlag::Matrix => View::Matrix,
            }),
            units: run.size.units,
        };
        if let Some(path) = &self.svg {
            output::write(path, &spacetime::svg(schedule, timeline, &drawing))?;
        }
        if let Some(path) = &self.html {
            output::write(path, &spacetime::html(schedule, timeline, &drawing))?;
        }
        if self.view.is_none()
            && let (View::Matrix, messages) = spacetime::view(schedule, timeline, &drawing)
        {
            say(format!(
                "note: {messages} messages are too many for arrows, and the picture has colors instead: \
                 it says how to get arrows, and --view matrix says that this is meant"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbers, numbers, rounds, size, width};

    #[test]
    fn ranges_and_lists() {
        assert_eq!(numbers("0..3"), Ok(Numbers(vec![0, 1, 2])));
        assert_eq!(numbers("2..=3"), Ok(Numbers(vec![2, 3])));
        assert_eq!(numbers("4, 0,2"), Ok(Numbers(vec![4, 0, 2])));
        assert_eq!(rounds("1..5"), Ok((1, 4)));
        assert_eq!(rounds("3..=3"), Ok((3, 3)));
        assert_eq!(rounds("7"), Ok((7, 7)));
        assert_eq!(width("1200"), Ok(1200));
        for wrong in ["", "3..3", "0..0", "4..2", "1,", "-1", "x", "..4", "1..", "0..=9999999999"] {
            assert!(numbers(wrong).unwrap_err().help.unwrap().starts_with("ranks are"), "{wrong}");
        }
        for wrong in ["", "0", "0..3", "2..2", "3..=2", "1,2", "x"] {
            assert!(rounds(wrong).unwrap_err().help.unwrap().starts_with("rounds are"), "{wrong}");
        }
        for wrong in ["", "0", "20001", "1e3", "100px"] {
            assert!(width(wrong).unwrap_err().help.unwrap().starts_with("a picture is"), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_as_they_were_given() {
        for (given, shown) in [
            ("64M", "64 MiB"),
            ("64MiB", "64 MiB"),
            ("64 MiB", "64 MiB"),
            ("64MB", "64 MB"),
            ("1.5GB", "1.5 GB"),
            ("4096", "4096 B"),
            ("64k", "64 KiB"),
            ("8KB", "8 kB"),
        ] {
            assert_eq!(size(given).unwrap().text, shown, "{given}");
        }
    }
}

//! `roundelay man --markdown`: every subcommand with its flags in a table, for the book.
//!
//! Flags that several subcommands have are in a table of their own. Each table stands between two comments that
//! `mdBook` cuts it out by.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

/// The flags that several subcommands share: the struct that declares them, the heading of the page over their table,
/// and their names where the struct holds other structs, because clap's group of the struct is then empty.
const SHARED: &[(&str, &str, &[&str])] = &[
    ("SourceFlags", "Flags of a source", &["algorithm", "settings"]),
    ("TopologyFlags", "Flags of a topology", &[]),
    ("LintFlags", "Flags of warnings", &[]),
    ("EngineFlags", "Flags of the engine", &[]),
    ("DeviceFlags", "Flags of a device", &[]),
    ("DataFlags", "Flags of an executor's data", &["dtype", "op", "seed", "ccl_buffer"]),
];

/// The flags that every subcommand has.
const GLOBAL: [&str; 5] = ["color", "help", "quiet", "verbose", "version"];

/// Documents all subcommands of `root`, which is built.
pub(crate) fn document(root: &Command) -> String {
    let mut commands = Vec::new();
    collect(root, "", &mut commands);
    let mut shared: BTreeMap<usize, String> = BTreeMap::new();
    let mut text = String::new();
    for (name, command) in &commands {
        let own = |arg: &&Arg| arg.is_positional() || group(command, arg).is_none();
        let mut own: Vec<&Arg> = command.get_arguments().filter(own).collect();
        own.sort_by_key(|arg| !arg.is_positional());
        let mut lines = rows(own.into_iter());
        for (which, (id, heading, _)) in SHARED.iter().enumerate() {
            let of_group = |arg: &&Arg| group(command, arg) == Some(which) && !arg.is_positional();
            let flags: Vec<&Arg> = command.get_arguments().filter(of_group).collect();
            if flags.is_empty() {
                continue;
            }
            let names: Vec<_> = flags.iter().copied().map(short_name).collect();
            let slug: String = heading.to_lowercase().replace('\'', "").replace(' ', "-");
            let _ = writeln!(lines, "| {} | | [{heading}](#{slug}) |", unbroken(&names));
            let table = shared.entry(which).or_default();
            if table.is_empty() {
                *table = section(id, &rows(flags.into_iter()));
            }
        }
        text.push_str(&section(name, &lines));
    }
    text.extend(shared.into_values());
    text
}

/// Collects the subcommands that run, by their names.
fn collect<'c>(command: &'c Command, path: &str, found: &mut Vec<(String, &'c Command)>) {
    for sub in command.get_subcommands() {
        let name = format!("{path}{}", sub.get_name());
        if sub.has_subcommands() {
            collect(sub, &format!("{name}-"), found);
        } else {
            found.push((name, sub));
        }
    }
}

/// Returns which of the shared groups `arg` is in.
fn group(command: &Command, arg: &Arg) -> Option<usize> {
    let of = |id: &str| command.get_groups().find(|group| group.get_id() == id);
    SHARED.iter().position(|(id, _, names)| {
        let named = || names.contains(&arg.get_id().as_str());
        of(id).is_some_and(|group| named() || group.get_args().any(|a| a == arg.get_id()))
    })
}

fn section(name: &str, rows: &str) -> String {
    let head = "| flag | default | what it does |\n|---|---|---|\n";
    format!("<!-- ANCHOR: {name} -->\n{head}{rows}<!-- ANCHOR_END: {name} -->\n")
}

fn rows<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = String::new();
    for arg in args {
        if arg.is_hide_set() || GLOBAL.contains(&arg.get_id().as_str()) {
            continue;
        }
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        let help = help.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        // Where the default is no value, the help text describes it.
        let (help, told) = match help.rsplit_once(" [default: ") {
            Some((help, told)) => (help.to_owned(), told.trim_end_matches(']').to_owned()),
            None => (help, String::new()),
        };
        let values: Vec<_> =
            arg.get_default_values().iter().map(|v| format!("`{}`", v.to_string_lossy())).collect();
        let default = if values.is_empty() || !takes(arg) { told } else { values.join(", ") };
        let mut what = help.replace('|', "\\|").replace('<', "&lt;");
        let possible = arg.get_possible_values();
        let of_values = possible.iter().filter(|value| !value.is_hide_set() && takes(arg));
        let of_values: Vec<_> = of_values
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}`: {help}", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !of_values.is_empty() {
            let _ = write!(what, "<br>{}", of_values.join("<br>"));
        }
        let cells = [names(arg), default, what];
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| if cell.is_empty() { " ".into() } else { format!(" {cell} ") })
            .collect();
        let _ = writeln!(text, "|{}|", cells.join("|"));
    }
    text
}

fn takes(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Returns every spelling and the value's name, or the name of an argument that has no flag.
fn names(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name);
    let value = value.replace('|', "\\|");
    if arg.is_positional() {
        let more = if arg.get_num_args().is_some_and(|n| n.max_values() > 1) { " …" } else { "" };
        return if arg.is_required_set() {
            format!("`{value}`{more}")
        } else {
            format!("[`{value}`{more}]")
        };
    }
    let short = arg.get_short().map(|c| format!("-{c}"));
    let longs = arg.get_long().into_iter().chain(arg.get_visible_aliases().unwrap_or_default());
    let mut names: Vec<_> =
        short.into_iter().chain(longs.map(|name| format!("--{name}"))).collect();
    if let Some(last) = names.last_mut().filter(|_| takes(arg)) {
        *last = format!("{last} {value}");
    }
    unbroken(&names)
}

/// Marks flags as unbreakable: a browser would break a flag behind its hyphens.
fn unbroken(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("<nobr>`{name}`</nobr>")).collect();
    names.join(", ")
}

fn short_name(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => String::new(),
    }
}

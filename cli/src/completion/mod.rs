//! `roundelay completions`: what a shell needs to complete a call. The shell's script asks this command for the words that
//! may stand at the cursor, so that names of the library, of files and of flags are those of the command that is installed.

mod candidates;

use clap::{Arg, Args, Command, ValueEnum};

use crate::streams::{print, put};
use candidates::values;

#[derive(Args)]
pub(crate) struct CompletionsFlags {
    /// The shell to write them for
    #[arg(value_enum)]
    shell: Shell,
    /// Print what the word of this number may be, among the words of a call
    #[arg(long, hide = true, requires = "words")]
    at: Option<usize>,
    #[arg(last = true, hide = true)]
    words: Vec<String>,
}

/// A shell that can ask.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Shell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("roundelay.bash"),
            Self::Elvish => include_str!("roundelay.elv"),
            Self::Fish => include_str!("roundelay.fish"),
            Self::Powershell => include_str!("roundelay.ps1"),
            Self::Zsh => include_str!("_roundelay"),
        }
    }
}

/// A word that may stand at the cursor, and what it means.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CompletedWord {
    word: String,
    about: String,
}

impl CompletedWord {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        let about: String = about.into();
        let about = about.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
        Self { word: word.into(), about }
    }
}

/// Prints the script of a shell, or answers it.
pub(crate) fn main(flags: &CompletionsFlags, mut command: Command) {
    let Some(at) = flags.at else { return print(flags.shell.script().trim_end()) };
    command.build();
    for CompletedWord { word, about } in candidates(&command, &flags.words, at) {
        put(&format!("{word}\t{about}\n"));
    }
}

/// Returns what the word of number `at` may be in a call, whose first word is the command. A call may have no such word yet.
fn candidates(root: &Command, words: &[String], at: usize) -> Vec<CompletedWord> {
    let (before, current, joined) = split(words, at);
    let mut place =
        CallPlace { command: root, open: None, positionals: 0, only_positionals: false };
    for word in &before {
        place.pass(word);
    }
    let CallPlace { command, open, positionals, only_positionals } = place;
    // A value that a flag is joined to stands alone where the shell has split them.
    let (flag, typed) = match current.split_once('=') {
        Some((flag, typed)) if flag.starts_with("--") && !only_positionals => (Some(flag), typed),
        _ => (None, current.as_str()),
    };
    if let Some(arg) = flag.and_then(|flag| long(command, flag)).or(open) {
        let head = flag.filter(|_| !joined).map_or_else(String::new, |flag| format!("{flag}="));
        return values(arg, typed)
            .into_iter()
            .map(|found| CompletedWord { word: format!("{head}{}", found.word), ..found })
            .collect();
    }
    let named = |all: Vec<CompletedWord>| {
        all.into_iter().filter(|found| found.word.starts_with(current.as_str())).collect()
    };
    if current.starts_with('-') && !only_positionals {
        return named(flags(command));
    }
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let about = |of: &Command| of.get_about().map(ToString::to_string).unwrap_or_default();
    let mut all: Vec<_> = match positionals {
        0 if !only_positionals => {
            named(subcommands.map(|sub| CompletedWord::new(sub.get_name(), about(sub))).collect())
        }
        _ => Vec::new(),
    };
    let takes_more = |arg: &&Arg| arg.get_num_args().is_some_and(|n| n.max_values() > 1);
    let mut positional = command.get_positionals();
    let arg = command.get_positionals().nth(positionals);
    if let Some(arg) = arg.or_else(|| positional.by_ref().last().filter(takes_more)) {
        all.extend(values(arg, typed));
    }
    if all.is_empty() && current.is_empty() && !only_positionals {
        all = flags(command);
    }
    all
}

/// Returns the words before the cursor without the command, the word at the cursor, and whether the shell has split that
/// word at an equals sign, as bash does.
fn split(words: &[String], at: usize) -> (Vec<String>, String, bool) {
    let mut all: Vec<String> = Vec::new();
    let mut joined = false;
    let last = words.get(at).map_or("", String::as_str);
    for word in words.iter().take(at).skip(1).map(String::as_str).chain([last]) {
        let flag = all.last_mut().filter(|flag| flag.starts_with("--"));
        joined = true;
        match flag {
            Some(flag) if word == "=" && !flag.contains('=') => flag.push('='),
            Some(flag) if flag.ends_with('=') => flag.push_str(word),
            _ => {
                joined = false;
                all.push(word.to_owned());
            }
        }
    }
    let current = all.pop().unwrap_or_default();
    // A quote that is still open.
    let current = current.strip_prefix(['"', '\'']).map(str::to_owned).unwrap_or(current);
    (all, current, joined)
}

/// A place in a call.
struct CallPlace<'a> {
    command: &'a Command,
    /// The flag whose value comes next.
    open: Option<&'a Arg>,
    /// The number of arguments without a flag so far.
    positionals: usize,
    only_positionals: bool,
}

impl CallPlace<'_> {
    /// Moves behind a word.
    fn pass(&mut self, word: &str) {
        if self.open.take().is_some() {
            return;
        }
        if self.only_positionals || !word.starts_with('-') || word == "-" {
            match self.command.find_subcommand(word).filter(|_| self.positionals == 0) {
                Some(sub) if !self.only_positionals => self.command = sub,
                _ => self.positionals += 1,
            }
        } else if word == "--" {
            self.only_positionals = true;
        } else if word.starts_with("--") {
            self.open = long(self.command, word).filter(|_| !word.contains('='));
        } else {
            // Of several letters, a value may follow the first that takes one.
            let mut letters = word.chars().skip(1);
            let taking = letters.find_map(|letter| {
                let has = |arg: &&Arg| arg.get_short() == Some(letter) && takes(arg);
                self.command.get_arguments().find(has)
            });
            self.open = taking.filter(|_| letters.next().is_none());
        }
    }
}

fn takes(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// Returns the argument that a long flag sets to a value.
fn long<'a>(command: &'a Command, flag: &str) -> Option<&'a Arg> {
    let name = flag.trim_start_matches('-').split('=').next()?;
    let has = |arg: &&Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        takes(arg) && (arg.get_long() == Some(name) || aliases.contains(&name))
    };
    command.get_arguments().find(has)
}

/// Returns the flags of a command.
fn flags(command: &Command) -> Vec<CompletedWord> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let flag = |arg: &Arg| {
        let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let word = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, short) => format!("-{}", short?),
        };
        Some(CompletedWord::new(word, about))
    };
    shown.filter_map(flag).collect()
}

#[cfg(test)]
mod tests;

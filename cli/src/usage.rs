//! Calls that cannot be read, in the words and the look of the command's other errors. Clap finds the errors; its own
//! texts have no codes, and less advice.

use std::error::Error as _;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use roundelay_core::diagnostics::Code;
use roundelay_topology::Problem;

use crate::command::Cli;
use crate::values::RefusedValue;

/// Returns the error of a call.
pub(crate) fn problem(error: &clap::Error) -> Problem {
    let call = UsageError { error };
    match error.kind() {
        ErrorKind::ValueValidation => call.refused(),
        ErrorKind::InvalidValue => call.unknown_value(),
        ErrorKind::UnknownArgument => call.unknown_argument(),
        ErrorKind::InvalidSubcommand => call.unknown_subcommand(),
        ErrorKind::MissingRequiredArgument => call.missing(),
        ErrorKind::ArgumentConflict => call.conflict(),
        _ => call.with_usage(Problem::new(Code::BadCall, call.first_line())),
    }
}

/// Returns the subcommands beside `command` that have a flag, such as `roundelay emit goal` beside `roundelay emit
/// mpi`.
fn having(command: &str, flag: &str) -> Vec<String> {
    let mut words: Vec<&str> = command.split(' ').collect();
    let own = words.pop();
    let mut beside = &Cli::command();
    for word in &words[words.len().min(1)..] {
        match beside.find_subcommand(word) {
            Some(inner) => beside = inner,
            None => return Vec::new(),
        }
    }
    let flag = flag.split('=').next().unwrap_or_default().trim_start_matches('-');
    let has = |sub: &&clap::Command| {
        let mut long = sub.get_arguments().filter_map(clap::Arg::get_long);
        Some(sub.get_name()) != own && long.any(|name| name == flag)
    };
    let names = beside.get_subcommands().filter(has).map(clap::Command::get_name);
    names.map(|name| format!("`{} {name}`", words.join(" "))).collect()
}

struct UsageError<'a> {
    error: &'a clap::Error,
}

impl UsageError<'_> {
    /// Returns the problem of a value that a parser of ours refuses.
    fn refused(&self) -> Problem {
        let given = self.given();
        match self.error.source().and_then(|why| why.downcast_ref::<RefusedValue>()) {
            Some(refused) => {
                let mut problem = Problem::new(refused.code, format!("{given} {refused}"));
                problem.help.clone_from(&refused.help);
                problem
            }
            // A parser of clap's.
            None => {
                let why = self.error.source().map(ToString::to_string).unwrap_or_default();
                Problem::new(Code::BadFlag, format!("{given}: {why}"))
            }
        }
    }

    /// Returns the problem of a word that is not among the allowed ones.
    fn unknown_value(&self) -> Problem {
        let words = self.all(ContextKind::ValidValue).join(", ");
        let flag = self.flag();
        if self.text(ContextKind::InvalidValue).is_empty() {
            let problem = Problem::new(Code::BadCall, format!("{flag} is given without a value"));
            return match &words[..] {
                "" => self.with_usage(problem),
                _ => problem.help(format!("its values are {words}")),
            };
        }
        let given = self.given();
        let title = if flag.starts_with('-') {
            format!("{given} is not one of its values")
        } else {
            format!("{given} is not one of the values of {flag}")
        };
        let meant = self.text(ContextKind::SuggestedValue);
        let meant = if meant.is_empty() { meant } else { format!("did you mean {meant}? ") };
        Problem::new(Code::BadFlag, title).help(format!("{meant}the values of {flag} are {words}"))
    }

    fn unknown_argument(&self) -> Problem {
        let (argument, command) = (self.text(ContextKind::InvalidArg), self.command());
        let meant = self.text(ContextKind::SuggestedArg);
        if !argument.starts_with('-') {
            let title = format!("`{command}` has no place for `{argument}`");
            return self.with_usage(Problem::new(Code::BadCall, title));
        }
        let problem = Problem::new(Code::BadCall, format!("`{command}` has no flag {argument}"));
        if argument[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let help =
                format!("a value that begins with a hyphen is joined to its flag: FLAG={argument}");
            return problem.help(help);
        }
        let others = having(&command, &argument);
        let first = match (&others[..], &meant[..]) {
            ([], "") => String::new(),
            ([], meant) => format!("did you mean {meant}? "),
            ([other], _) => format!("{other} has it; "),
            (others, _) => format!("{} have it; ", others.join(", ")),
        };
        problem.help(format!("{first}`{command} --help` lists its flags"))
    }

    fn unknown_subcommand(&self) -> Problem {
        let (word, command) = (self.text(ContextKind::InvalidSubcommand), self.command());
        let meant = self.all(ContextKind::SuggestedSubcommand).join(" or ");
        let problem =
            Problem::new(Code::BadCall, format!("`{command}` has no subcommand `{word}`"));
        let meant = if meant.is_empty() { meant } else { format!("did you mean {meant}? ") };
        problem.help(format!("{meant}`{command} --help` lists its subcommands"))
    }

    fn missing(&self) -> Problem {
        let missing = self.all(ContextKind::InvalidArg);
        let is = if missing.len() == 1 { "is" } else { "are" };
        let title = format!("`{}`: {} {is} missing", self.command(), missing.join(" and "));
        self.with_usage(Problem::new(Code::BadCall, title))
    }

    fn conflict(&self) -> Problem {
        let flag = self.flag();
        let others: Vec<_> =
            self.all(ContextKind::PriorArg).iter().map(|other| name(other).to_owned()).collect();
        let title = match &others[..] {
            [other] if *other == flag => format!("{flag} is given twice"),
            [] => format!("{flag} does not go with what else is given"),
            others => format!("{flag} does not go with {}", others.join(", ")),
        };
        self.with_usage(Problem::new(Code::BadCall, title))
    }

    /// Returns the flag and its value, as they were written.
    fn given(&self) -> String {
        let (flag, value) = (self.flag(), self.text(ContextKind::InvalidValue));
        let value = if value.is_empty() { "\"\"".to_owned() } else { value };
        // An argument without a flag is called by its value alone.
        if flag.starts_with('-') { format!("{flag} {value}") } else { value }
    }

    /// Returns the flag without the name of its value.
    fn flag(&self) -> String {
        name(&self.text(ContextKind::InvalidArg)).to_owned()
    }

    fn text(&self, kind: ContextKind) -> String {
        self.all(kind).into_iter().next().unwrap_or_default()
    }

    fn all(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the usage of the command, from clap's line of usage.
    fn usage(&self) -> Option<String> {
        let Some(ContextValue::StyledStr(usage)) = self.error.get(ContextKind::Usage) else {
            return None;
        };
        let usage = usage.to_string();
        usage.lines().next()?.strip_prefix("Usage: ").map(str::to_owned)
    }

    /// Returns the command with its subcommands, such as `roundelay executor run`.
    fn command(&self) -> String {
        let usage = self.usage().unwrap_or_else(|| "roundelay".to_owned());
        let words = usage.split(' ').take_while(|word| !word.starts_with(['<', '[', '-']));
        words.collect::<Vec<_>>().join(" ")
    }

    fn with_usage(&self, problem: Problem) -> Problem {
        let command = self.command();
        match self.usage() {
            Some(usage) => problem
                .note(format!("usage: {usage}"))
                .help(format!("`{command} --help` says more")),
            None => problem,
        }
    }

    /// Returns the first line of clap's own text.
    fn first_line(&self) -> String {
        let text = self.error.render().to_string();
        let line = text.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    }
}

/// Returns `--nranks` of `--nranks <N>`, or of a short and a long form of it.
fn name(argument: &str) -> &str {
    argument.split([' ', '=']).next().unwrap_or(argument)
}

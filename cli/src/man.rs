//! `roundelay man`: pages for `man`, and tables for the book, made from the flags.

use std::path::Path;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::report::Failure;
use crate::streams::print;
use crate::{markdown, output};

#[derive(Args)]
pub(crate) struct ManFlags {
    /// Write the page, and one for each subcommand, into a folder; the folder is made if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// Print tables of the flags of all subcommands, in Markdown
    #[arg(long, conflicts_with = "dir")]
    markdown: bool,
}

pub(crate) fn man(flags: &ManFlags, command: Command) -> Result<bool, Failure> {
    if flags.markdown {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        print(markdown::document(&command).trim_end());
        return Ok(true);
    }
    let Some(dir) = &flags.dir else {
        print(page(command).trim_end());
        return Ok(true);
    };
    std::fs::create_dir_all(dir).map_err(|error| output::unwritable(dir, &error))?;
    let mut command = command.disable_help_subcommand(true);
    // The names of subcommands' pages are made when the command is.
    command.build();
    pages(&command, Path::new(dir))?;
    Ok(true)
}

/// Writes the page of a command, and the pages of its subcommands.
fn pages(command: &Command, dir: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = dir.join(format!("{name}.1"));
    output::write(&path.to_string_lossy(), &page(command.clone()))?;
    command.get_subcommands().try_for_each(|subcommand| pages(subcommand, dir))
}

fn page(command: Command) -> String {
    let mut roff = Vec::new();
    Man::new(command).render(&mut roff).expect("a write to a vector cannot fail");
    String::from_utf8_lossy(&roff).into_owned()
}

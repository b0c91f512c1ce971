//! The arguments of the command.

use std::path::PathBuf;

use super::OPS;
use super::ours::RankSetup;
use crate::sizes::{list, size};

const USAGE: &str = "\
usage: cargo xtask peers --processes [OPTION]...
  --quick            one launch of each instead of three
  --launches N       so many
  --sizes LIST       bytes, such as 1K,32K,1M (the default goes on with 16M,64M)
  --ops LIST         of AllReduce,AllGather,ReduceScatter,Broadcast,Reduce
  --nranks LIST      2,4,8 if not given
  --forced SIZE      the size at which the MPIs' own algorithms are tried one by one: 16M, or none
  --ours LIST        of private,alloc,threads: processes with private buffers, with allocated ones, and threads
  --program FILE     a release build of roundelay to use instead of building one
  --json FILE        write all figures as JSON, too
  --markdown FILE    write the table for the book, too";

#[derive(Debug)]
pub(super) struct ProcessOptions {
    pub(super) launches: u32,
    pub(super) sizes: Vec<u64>,
    pub(super) ops: Vec<&'static str>,
    pub(super) nranks: Vec<u32>,
    pub(super) forced: Option<u64>,
    pub(super) ours: Vec<RankSetup>,
    pub(super) program: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    pub(super) markdown: Option<PathBuf>,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self {
            launches: 3,
            sizes: vec![1 << 10, 32 << 10, 1 << 20, 16 << 20, 64 << 20],
            ops: OPS.iter().map(|op| op.name).collect(),
            nranks: vec![2, 4, 8],
            forced: Some(16 << 20),
            ours: RankSetup::ALL.to_vec(),
            program: None,
            json: None,
            markdown: None,
        }
    }
}

impl ProcessOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            if arg == "--quick" {
                options.launches = 1;
                continue;
            }
            let value = args.next().ok_or(USAGE)?;
            options.set(arg, value).ok_or_else(|| format!("{arg} {value}\n{USAGE}"))?;
        }
        Ok(options)
    }

    /// Sets an option; returns `None` if there is no such option or no such value.
    fn set(&mut self, arg: &str, value: &str) -> Option<()> {
        match arg {
            "--launches" => self.launches = value.parse().ok().filter(|launches| *launches > 0)?,
            "--sizes" => self.sizes = list(value, size)?,
            "--ops" => self.ops = list(value, op)?,
            "--nranks" => {
                self.nranks = list(value, |one| one.parse().ok().filter(|nranks| *nranks > 1))?;
            }
            "--forced" if value == "none" => self.forced = None,
            "--forced" => self.forced = Some(size(value)?),
            "--ours" => self.ours = list(value, RankSetup::named)?,
            "--program" => self.program = Some(value.into()),
            "--json" => self.json = Some(value.into()),
            "--markdown" => self.markdown = Some(value.into()),
            _ => return None,
        }
        Some(())
    }
}

fn op(name: &str) -> Option<&'static str> {
    OPS.iter().map(|op| op.name).find(|op| *op == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_replace_what_is_not_given() {
        let options = ProcessOptions::read(&[
            "--quick",
            "--sizes",
            "1K,3,2M",
            "--ops",
            "Reduce",
            "--nranks",
            "2,8",
            "--forced",
            "none",
            "--ours",
            "threads,private",
            "--json",
            "a.json",
        ])
        .expect("valid options");
        assert_eq!((options.launches, options.forced), (1, None));
        assert_eq!(options.sizes, [1024, 3, 2 << 20]);
        assert_eq!((options.ops, options.nranks), (vec!["Reduce"], vec![2, 8]));
        assert_eq!(options.ours, [RankSetup::Threads, RankSetup::Private]);
        assert_eq!(options.json, Some("a.json".into()));
        assert_eq!((options.markdown, options.program), (None, None));
        let default = ProcessOptions::read(&[]).expect("no option is needed");
        assert_eq!((default.launches, default.ours.len(), default.ops.len()), (3, 3, 5));
    }

    #[test]
    fn what_is_no_option_is_refused_with_the_usage() {
        let wrong: [&[&str]; 8] = [
            &["--sizes"],
            &["--sizes", "1K,"],
            &["--sizes", "0"],
            &["--ops", "AllToAll"],
            &["--nranks", "1"],
            &["--launches", "0"],
            &["--ours", "fibres"],
            &["--fast", "1"],
        ];
        for args in wrong {
            let why = ProcessOptions::read(args).expect_err("no such option");
            assert!(why.contains("usage: cargo xtask peers --processes"), "{args:?}: {why}");
        }
    }
}

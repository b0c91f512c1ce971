//! The flags of `topo`.

use clap::{Args, ValueEnum};

use crate::flags::{assume_help, topology_help};
use crate::values::at_least;

#[derive(Args)]
pub(crate) struct TopoFlags {
    #[arg(value_name = "FILE|TEXT", help = topology_help!("What to describe, in place of a list of machines; several files are one job's hosts"))]
    pub(crate) topology: Vec<String>,
    /// Describe this machine, as the files of its system tell it; short for here in place of a file
    #[arg(long, conflicts_with = "topology")]
    pub(crate) here: bool,
    #[arg(long, value_name = "ASSUMPTION", help = assume_help!())]
    pub(crate) assume: Option<String>,
    /// The root of rooted collectives and of the tree
    #[arg(long, value_name = "RANK", default_value_t = 0, value_parser = at_least(0_u32))]
    pub(crate) root: u32,
    /// Write a picture, in addition to what is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<String>,
    /// The form of the output
    #[arg(long, value_enum, default_value_t = TopoFormat::Human)]
    pub(crate) format: TopoFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopoFormat {
    /// Tables, for people
    Human,
    /// One document, for programs
    Json,
    /// A picture
    Svg,
    /// A topology file for NCCL
    Xml,
}

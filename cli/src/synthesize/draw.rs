//! `--draw`: a picture of the trees over the topology.

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_pictures::topology_svg::{Marks, TreeMarks, cut, svg};
use roundelay_synthesis::packing::Packing;

use super::{Synthesis, SynthesizeFlags};
use crate::output;
use crate::report::{Failure, Format};

/// Checks before the search that the picture can be written.
pub(super) fn reserve(flags: &SynthesizeFlags) -> Result<(), Failure> {
    output::reserve(&[("--draw", flags.draw.as_deref())], flags.format == Format::Json)
}

/// Writes the picture of a packing, if it is asked for; of an AllReduce that goes up other trees than down, those down.
pub(super) fn write(run: &Synthesis<'_>, packing: &Packing) -> Result<(), Failure> {
    let Synthesis { flags, topology, .. } = run;
    let Some(path) = &flags.draw else { return Ok(()) };
    let same = packing.up.is_empty();
    let collective = if same { flags.collective } else { Collective::AllGather };
    let trees = TreeMarks::from_packing(packing, collective, RankId(flags.root));
    output::write(path, &svg(topology, &Marks { cut: cut(topology), trees, ..Marks::default() }))
}

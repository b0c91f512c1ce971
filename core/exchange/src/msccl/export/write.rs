//! Writes the XML, with all attributes that any of the runtimes reads.

use std::fmt::Write as _;

use super::super::program::OperationKind;
use super::chunks::{Grid, Span};
use super::thread_blocks::{BlockStep, Plan, ThreadBlock};
use super::{Options, Sizes};
use roundelay_core::messages::TwoSided;

pub(super) fn write(
    form: &TwoSided,
    grid: &Grid,
    plan: &Plan,
    channels: u32,
    options: Options,
    sizes: Sizes,
) -> String {
    let mut text = format!(
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" \
         inplace=\"{}\" outofplace=\"1\" minBytes=\"{}\" maxBytes=\"{}\">\n",
        form.schedule().algorithm,
        options.protocol.name(),
        channels * options.instances,
        grid.chunks(),
        grid.nranks,
        grid.coll,
        u8::from(grid.in_place),
        sizes.min,
        sizes.max,
    );
    let [input, output] = grid.units.map(|units| units * grid.unit * options.instances);
    for (rank, blocks) in plan.blocks.iter().enumerate() {
        let scratch = plan.scratch[rank];
        let _ = writeln!(
            text,
            "  <gpu id=\"{rank}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{}\">",
            scratch * options.instances
        );
        for instance in 0..options.instances {
            let first = instance as usize * blocks.len();
            let writer = XmlWriter { grid, instance, scratch, first };
            for (id, block) in blocks.iter().enumerate() {
                writer.block(&mut text, first + id, block, channels * instance);
            }
        }
        text.push_str("  </gpu>\n");
    }
    text + "</algo>\n"
}

/// Writes one instance of a rank's blocks.
struct XmlWriter<'g> {
    grid: &'g Grid,
    instance: u32,
    /// Chunks of the instance's scratch.
    scratch: u32,
    /// The number of the instance's first block.
    first: usize,
}

impl XmlWriter<'_> {
    fn block(&self, text: &mut String, id: usize, block: &ThreadBlock, channel: u32) {
        let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
        let _ = writeln!(
            text,
            "    <tb id=\"{id}\" send=\"{}\" recv=\"{}\" chan=\"{}\">",
            peer(block.send),
            peer(block.receive),
            channel + block.channel
        );
        for (s, step) in block.steps.iter().enumerate() {
            self.step(text, s, step);
        }
        text.push_str("    </tb>\n");
    }

    fn step(&self, text: &mut String, s: usize, step: &BlockStep) {
        let (block, level) = match step.wait {
            Some((block, level)) => ((self.first + block) as i64, level as i64),
            None => (-1, -1),
        };
        let _ = writeln!(
            text,
            "      <step s=\"{s}\" type=\"{}\" {} {} cnt=\"{}\" depid=\"{block}\" deps=\"{level}\" hasdep=\"{}\"/>",
            step.kind.map_or("nop", OperationKind::name),
            self.place("src", step.src),
            self.place("dst", step.dst),
            step.dst.count,
            u8::from(step.posts),
        );
    }

    fn place(&self, end: &str, span: Span) -> String {
        let at = self.grid.place(span, self.instance, self.scratch);
        format!("{end}buf=\"{}\" {end}off=\"{at}\"", span.memory.letter())
    }
}

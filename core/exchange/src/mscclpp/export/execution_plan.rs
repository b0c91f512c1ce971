//! A plan to be written, and its text: one op in each line.

use std::fmt::Write as _;

use crate::terms::Memory;

/// A plan to be written.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) collective: &'static str,
    pub(super) in_place: bool,
    /// The most bytes of a call.
    pub(super) max_bytes: u64,
    pub(super) gpus: Vec<PlanGpu>,
}

/// The blocks and resources of one rank.
pub(super) struct PlanGpu {
    pub(super) chunks: [u32; 3],
    pub(super) blocks: Vec<PlanBlock>,
    /// The peer of each channel.
    pub(super) channels: Vec<u32>,
    pub(super) remotes: Vec<(u32, Memory)>,
    /// The ranks of each channel of the switch, and their buffer.
    pub(super) switches: Vec<(Vec<u32>, Memory)>,
    pub(super) semaphores: u32,
}

/// A thread block, with its own numbers for channels and buffers of peers.
#[derive(Default)]
pub(super) struct PlanBlock {
    pub(super) ops: Vec<PlanOp>,
    pub(super) channels: Vec<u32>,
    pub(super) remotes: Vec<u32>,
    pub(super) switches: Vec<u32>,
}

/// Chunks of a buffer of some rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) rank: u32,
    pub(super) memory: Memory,
    pub(super) index: u32,
    pub(super) size: u32,
}

/// An op that moves data: its name, sources and destinations.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) name: &'static str,
    pub(super) srcs: Vec<Chunk>,
    pub(super) dsts: Vec<Chunk>,
}

impl Data {
    /// Whether a switch makes the move, of which a side with several chunks has one of each rank.
    pub(super) fn by_switch(&self) -> bool {
        matches!(self.name, "glres" | "gstore")
    }
}

/// The owner of chunks: the block's own rank, a remote buffer by the block's number, or all ranks of a channel of the
/// switch by the block's number.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Own(Memory),
    Peer(u32),
    All(u32),
}

/// An op. Channels and remote buffers have the block's own numbers.
pub(super) enum PlanOp {
    Nop,
    Data { name: &'static str, srcs: Vec<(Side, Chunk)>, dsts: Vec<(Side, Chunk)> },
    Words(PlanWord, Vec<u32>),
}

/// A post or a wait: on channels of the rank, or on semaphores between its blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanWord {
    Signal,
    Wait,
    Release,
    Acquire,
}

impl Plan {
    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let Self { name, collective, in_place, max_bytes, gpus } = self;
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let mut text = format!(
            "{{\"name\": \"{name}\", \"collective\": \"{collective}\", \"protocol\": \"Simple\", \
             \"inplace\": {in_place}, \"reuse_resources\": false,\n \"gpus\": [\n"
        );
        for (id, gpu) in gpus.iter().enumerate() {
            gpu.write(id, &mut text);
            text.push_str(if id + 1 < gpus.len() { ",\n" } else { "],\n" });
        }
        let _ = writeln!(
            text,
            " \"num_threads_per_block\": 1024, \"use_double_scratch_buffer\": false, \
             \"buffer_alignment\": 16, \"min_message_size\": 0, \"max_message_size\": {max_bytes}}}"
        );
        text
    }
}

impl PlanGpu {
    fn write(&self, id: usize, text: &mut String) {
        let [input, output, scratch] = self.chunks;
        let _ = writeln!(
            text,
            "  {{\"id\": {id}, \"input_chunks\": {input}, \"output_chunks\": {output}, \
             \"scratch_chunks\": {scratch},\n   \"threadblocks\": ["
        );
        for (id, block) in self.blocks.iter().enumerate() {
            block.write(id, text);
            text.push_str(if id + 1 < self.blocks.len() { ",\n" } else { "" });
        }
        let peers = (!self.channels.is_empty()).then(|| {
            format!("{{\"channel_type\": \"memory\", \"connected_to\": {}}}", list(&self.channels))
        });
        let switches = self.switches.iter().map(|(ranks, memory)| {
            let (letter, size, ranks) = (memory.letter(), ranks.len(), list(ranks));
            format!(
                "{{\"channel_type\": \"switch\", \"buffer_type\": \"{letter}\", \
                 \"rank_groups\": [{{\"size\": {size}, \"ranks\": {ranks}}}]}}"
            )
        });
        let channels = peers.into_iter().chain(switches).collect::<Vec<_>>().join(", ");
        let remotes = self.remotes.iter().map(|(rank, memory)| {
            let letter = memory.letter();
            format!(
                "{{\"rank\": {rank}, \"type\": \"{letter}\", \"access_channel_types\": [\"memory\"]}}"
            )
        });
        let remotes: Vec<_> = remotes.collect();
        let semaphores = vec!["{\"init_value\": 0}"; self.semaphores as usize];
        let _ = write!(
            text,
            "],\n   \"channels\": [{channels}],\n   \"remote_buffers\": [{}],\n   \"semaphores\": [{}]}}",
            remotes.join(", "),
            semaphores.join(", ")
        );
    }
}

impl PlanBlock {
    fn write(&self, id: usize, text: &mut String) {
        let _ = writeln!(text, "    {{\"id\": {id}, \"ops\": [");
        for (at, op) in self.ops.iter().enumerate() {
            let _ = write!(text, "      {}", op.text());
            text.push_str(if at + 1 < self.ops.len() { ",\n" } else { "],\n" });
        }
        let channels = |kind: &str, ids: &[u32]| {
            let ids = (!ids.is_empty()).then(|| list(ids));
            ids.map(|ids| format!("{{\"channel_type\": \"{kind}\", \"channel_ids\": {ids}}}"))
        };
        let of_switch = channels("switch", &self.switches);
        let channels = channels("memory", &self.channels).into_iter().chain(of_switch);
        let channels = channels.collect::<Vec<_>>().join(", ");
        let remotes = if self.remotes.is_empty() {
            String::new()
        } else {
            format!(
                "{{\"access_channel_type\": \"memory\", \"remote_buffer_ids\": {}}}",
                list(&self.remotes)
            )
        };
        let _ =
            write!(text, "     \"channels\": [{channels}], \"remote_buffer_refs\": [{remotes}]}}");
    }
}

impl PlanOp {
    fn text(&self) -> String {
        match self {
            Self::Nop => "{\"name\": \"nop\"}".to_owned(),
            Self::Words(word, ids) => {
                let (name, key, more) = match word {
                    PlanWord::Signal => ("signal", "channel_ids", ", \"channel_type\": \"memory\""),
                    PlanWord::Wait => ("wait", "channel_ids", ", \"channel_type\": \"memory\""),
                    PlanWord::Release => ("sem_release", "semaphore_ids", ""),
                    PlanWord::Acquire => ("sem_acquire", "semaphore_ids", ""),
                };
                format!("{{\"name\": \"{name}\", \"{key}\": {}{more}}}", list(ids))
            }
            Self::Data { name, srcs, dsts } => {
                let kind = match *name {
                    "copy" => "",
                    "gstore" => ", \"channel_type\": \"switch\"",
                    "glres" => ", \"channel_type\": \"switch\", \"reduce_op\": \"sum\"",
                    "put" | "get" => ", \"channel_type\": \"memory\"",
                    _ => ", \"channel_type\": \"memory\", \"reduce_op\": \"sum\"",
                };
                let (srcs, dsts) = (chunks(srcs), chunks(dsts));
                format!(
                    "{{\"name\": \"{name}\", \"src_buff\": [{srcs}], \"dst_buff\": [{dsts}]{kind}}}"
                )
            }
        }
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<_> = items.iter().map(T::to_string).collect();
    format!("[{}]", items.join(", "))
}

fn chunks(chunks: &[(Side, Chunk)]) -> String {
    let one = |(side, chunk): &(Side, Chunk)| {
        let whose = match side {
            Side::Own(memory) => format!("\"type\": \"{}\"", memory.letter()),
            Side::Peer(id) => format!("\"buffer_id\": {id}"),
            Side::All(id) => format!("\"switch_channel_id\": {id}"),
        };
        format!("{{{whose}, \"index\": {}, \"size\": {}}}", chunk.index, chunk.size)
    };
    chunks.iter().map(one).collect::<Vec<_>>().join(", ")
}

//! The memory of a job, as ranges of addresses.

use roundelay_ptx::machine::{Alias, Window};

use crate::grid::{GridLayout, Launch, Placement, RankMemory, Stage};
use crate::shim::{Error, ShimJob};

/// The address of the first range of memory.
const FIRST: u64 = 1 << 20;
/// The bytes at least between two ranges, and the alignment of each.
const APART: u64 = 256;
/// The byte that memory holds before it is written.
const FILL: u8 = 0xa5;

/// The launches that copy the buffers of their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Staging {
    None,
    Always,
    /// Those of the even ranks in the first launch, of the odd ones in the next, and so on.
    InTurns,
}

impl Staging {
    /// Returns the sizes of the memory of a job.
    pub(super) fn layout(self, job: &ShimJob) -> Result<GridLayout, Error> {
        let layout = job.layout()?;
        if self != Self::InTurns {
            return Ok(layout);
        }
        let layout = layout.with_tables(2, job.schedule.nranks as usize);
        layout
            .map_err(|_| Error::BadJob { what: "its memory has more bytes than addresses".into() })
    }
}

/// The memory of a job.
pub(super) struct Ranges {
    pub(super) windows: Vec<Window>,
    /// The addresses by which a switch reaches the memory of all ranks of a group: of input, output and scratch, group by
    /// group.
    pub(super) aliases: Vec<Alias>,
    /// The first address that is free.
    free: u64,
    control: usize,
    devices: Vec<DeviceRanges>,
    ranks: Vec<RankRanges>,
    staging: Staging,
    launches: usize,
}

/// The ranges of a device.
struct DeviceRanges {
    facts: usize,
    table: usize,
    launches: usize,
    first_group: usize,
}

/// The ranges of a rank: of its buffers, of which the input's is the output's in place, and of its own memory.
struct RankRanges {
    input: usize,
    output: usize,
    scratch: usize,
    posted: usize,
    waited: usize,
    /// The stages of input and output, where launches copy the buffers.
    stages: Option<[usize; 2]>,
}

impl Ranges {
    pub(super) fn of(
        job: &ShimJob,
        layout: &GridLayout,
        placement: Placement,
        (aligned, staging): (bool, Staging),
    ) -> Self {
        let mut ranges = Self {
            windows: Vec::new(),
            aliases: Vec::new(),
            free: FIRST,
            control: 0,
            devices: Vec::new(),
            ranks: Vec::new(),
            staging,
            launches: 0,
        };
        let words = |words: usize| vec![0; 8 * words];
        ranges.control = ranges.add("the control block".into(), words(layout.control_words), 0);
        for (rank, buffers) in job.buffers().enumerate() {
            // No kernel may rely on more than the alignment of an element.
            let shift = if aligned { 0 } else { rank % 2 * job.element_size };
            let mut named = |what: &str, bytes, shift| {
                ranges.add(format!("rank {rank}'s {what}"), bytes, shift)
            };
            let (input, output) = if job.in_place {
                let both = named("buffer", vec![FILL; buffers.shared], shift);
                (both, both)
            } else {
                (
                    named("input", vec![FILL; buffers.input], shift),
                    named("output", vec![FILL; buffers.output], shift),
                )
            };
            let mut stage = |what, bytes| named(what, vec![FILL; bytes], 0);
            let stages = (staging != Staging::None).then(|| {
                [stage("stage of input", buffers.input), stage("stage of output", buffers.output)]
            });
            let rank = RankRanges {
                stages,
                input,
                output,
                scratch: named("scratch", vec![FILL; layout.scratch_bytes], 0),
                posted: named("counters of posts", words(layout.posted_words), 0),
                waited: named("counters of waits", words(layout.waited_words), 0),
            };
            ranges.ranks.push(rank);
        }
        for group in &job.facts.switches {
            let of_group = |window: &dyn Fn(&RankRanges) -> usize| -> Vec<usize> {
                group.iter().map(|rank| window(&ranges.ranks[rank.index()])).collect()
            };
            let input = of_group(&|rank| rank.stages.map_or(rank.input, |[input, _]| input));
            let output = of_group(&|rank| rank.stages.map_or(rank.output, |[_, output]| output));
            let scratch = of_group(&|rank| rank.scratch);
            for (what, windows) in [("input", input), ("output", output), ("scratch", scratch)] {
                ranges.add_alias(format!("{what} of all ranks"), &windows);
            }
        }
        for device in 0..placement.devices {
            let mut named = |what: &str, bytes| {
                let on = if placement.devices == 1 {
                    String::new()
                } else {
                    format!(" on device {device}")
                };
                ranges.add(format!("{what}{on}"), bytes, 0)
            };
            let groups = placement.groups(device, &job.facts.groups);
            let facts = bytes_of(job.facts.words.iter().map(|word| *word as u64));
            let device = DeviceRanges {
                facts: named("the facts", facts),
                table: named(
                    "the table of ranks",
                    words(
                        5 * (placement.nranks as usize * layout.tables + job.facts.switches.len()),
                    ),
                ),
                launches: named("the numbers of launches", words(layout.launches_words)),
                first_group: groups.start,
            };
            ranges.devices.push(device);
        }
        ranges
    }

    /// Adds a range that begins `shift` bytes behind an aligned address; returns its number.
    pub(super) fn add(&mut self, name: String, bytes: Vec<u8>, shift: usize) -> usize {
        let address = self.free + shift as u64;
        self.free = (address + bytes.len() as u64 + APART).next_multiple_of(APART);
        self.windows.push(Window { name, address, bytes });
        self.windows.len() - 1
    }

    /// Adds an address that stands for the windows.
    fn add_alias(&mut self, name: String, windows: &[usize]) {
        let of: Vec<u64> = windows.iter().map(|window| self.address(*window)).collect();
        let bytes = windows.iter().map(|window| self.windows[*window].bytes.len() as u64);
        let (address, bytes) = (self.free, bytes.min().unwrap_or(0));
        self.free = (address + bytes + APART).next_multiple_of(APART);
        self.aliases.push(Alias { name, address, bytes, of, multicast: true });
    }

    pub(super) fn address(&self, window: usize) -> u64 {
        self.windows[window].address
    }

    /// The addresses of each rank's input and output.
    pub(super) fn buffers(&self, job: &ShimJob) -> Vec<[u64; 2]> {
        let offsets = job.buffers().map(|buffers| {
            if job.in_place { (buffers.input_at, buffers.output_at) } else { (0, 0) }
        });
        let ranks = self.ranks.iter().zip(offsets);
        ranks
            .map(|(rank, (input, output))| {
                [self.address(rank.input) + input as u64, self.address(rank.output) + output as u64]
            })
            .collect()
    }

    /// Writes the addresses of all ranks' memory into the table of each device, with those of buffers if there are any.
    pub(super) fn write_tables(&mut self, buffers: Option<&[[u64; 2]]>) {
        let memory = |(at, rank): (usize, &RankRanges), lent: bool| {
            let stages = rank.stages.map(|stages| stages.map(|window| self.address(window)));
            let stages = stages.filter(|_| !lent);
            let [input, output] = stages.or(buffers.map(|all| all[at])).unwrap_or_default();
            let [scratch, posted, waited] =
                [rank.scratch, rank.posted, rank.waited].map(|window| self.address(window));
            RankMemory { input, output, scratch, posted, waited }.words()
        };
        let tables: &[bool] =
            if self.staging == Staging::InTurns { &[false, true] } else { &[false] };
        let rows = tables.iter().flat_map(|lent| {
            self.ranks.iter().enumerate().flat_map(move |rank| memory(rank, *lent))
        });
        let of_groups = self.aliases.chunks(3).flat_map(|all| {
            let [input, output, scratch] = [0, 1, 2].map(|at| all[at].address);
            RankMemory { input, output, scratch, ..RankMemory::default() }.words()
        });
        let table = bytes_of(rows.chain(of_groups));
        for device in &self.devices {
            self.windows[device.table].bytes.copy_from_slice(&table);
        }
    }

    /// Sets the memory that each launch finds anew: inputs, outputs, and scratch, which carries nothing from one launch to
    /// the next but the flags of lines.
    pub(super) fn fill(&mut self, job: &ShimJob) {
        self.launches += 1;
        // A flag is the upper half of each word of 8 bytes, or the last one of 128.
        let keeps_flags = job.facts.counts_launches;
        for rank in &self.ranks {
            for (at, byte) in self.windows[rank.scratch].bytes.iter_mut().enumerate() {
                if !keeps_flags {
                    *byte = FILL;
                } else if at % 8 < 4 && at % 128 < 120 {
                    *byte ^= FILL;
                }
            }
        }
        for ((rank, buffers), input) in self.ranks.iter().zip(job.buffers()).zip(job.inputs) {
            self.windows[rank.output].bytes.fill(FILL);
            let at = if job.in_place { buffers.input_at } else { 0 };
            self.windows[rank.input].bytes[at..at + input.len()].copy_from_slice(input);
        }
    }

    /// The argument of the launch on a device.
    pub(super) fn launch(&self, job: &ShimJob, device: usize) -> Launch {
        let DeviceRanges { facts, table, launches, first_group } = self.devices[device];
        Launch {
            facts: self.address(facts),
            ranks: self.address(table),
            control: self.address(self.control),
            launches: self.address(launches),
            count: job.count,
            parts: job.parts.into(),
            first_group: first_group as u64,
            poll_limit_ns: u64::try_from(job.poll_limit.as_nanos()).unwrap_or(u64::MAX),
            finish_scale: job.facts.scale_outputs.into(),
            stage: self.stage(job, device),
        }
    }

    /// The buffers that the launch of a device copies, which has one rank then. A second kernel that divides the output
    /// finds it in the stage.
    fn stage(&self, job: &ShimJob, device: usize) -> Stage {
        if self.ranks[device.min(self.ranks.len() - 1)].stages.is_none() {
            return Stage::default();
        }
        let [input, output] = self.buffers(job)[device];
        let buffers = job.buffers().nth(device).expect("a rank on each device");
        let elements = |bytes: usize| (bytes / job.element_size) as u64;
        let late = job.facts.scale_outputs;
        if self.lends(device) {
            return Stage { table: 1, ..Stage::default() };
        }
        Stage {
            input,
            input_length: elements(buffers.input),
            output,
            output_length: if late { 0 } else { elements(buffers.output) },
            table: 0,
        }
    }

    /// Whether all ranks use the buffers of this one where they are, in this launch.
    fn lends(&self, rank: usize) -> bool {
        self.staging == Staging::InTurns && (rank + self.launches).is_multiple_of(2)
    }

    pub(super) fn control(&self) -> Vec<u64> {
        words_of(&self.windows[self.control].bytes).collect()
    }

    pub(super) fn outputs(&self, job: &ShimJob) -> Vec<Vec<u8>> {
        let ranks = self.ranks.iter().zip(job.buffers()).enumerate();
        ranks
            .map(|(at, (rank, buffers))| {
                let late = job.facts.scale_outputs && !self.lends(at);
                if let Some([_, output]) = rank.stages.filter(|_| late) {
                    return self.windows[output].bytes.clone();
                }
                let at = if job.in_place { buffers.output_at } else { 0 };
                self.windows[rank.output].bytes[at..at + buffers.output].to_vec()
            })
            .collect()
    }
}

pub(super) fn bytes_of(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(u64::to_le_bytes).collect()
}

pub(super) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

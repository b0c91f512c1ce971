//! The job of a process, as words.

use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;
use roundelay_export::cuda::{Facts, Kernel};

use super::Error;
use crate::grid::{Buffers, GridLayout};

const MAGIC: u64 = 0x4a_4f42;
/// The most threads: the CPU would only switch between more.
const MOST_THREADS: u32 = 4;

/// A run of a kernel on data.
#[derive(Clone, Debug)]
pub struct ShimJob<'a> {
    /// The schedule that the kernel performs.
    pub schedule: &'a Schedule,
    /// The kernel's facts for this count.
    pub facts: Facts,
    /// Bytes of an element.
    pub element_size: usize,
    /// Elements a unit.
    pub count: u64,
    /// All ranks' inputs, as bytes; empty where a rank has none.
    pub inputs: &'a [Vec<u8>],
    /// CTAs a stream.
    pub parts: u32,
    /// Threads a CTA, 4 at most.
    pub threads: u32,
    /// Whether input and output share memory, by NCCL's rules.
    pub in_place: bool,
    /// Consecutive launches, whose counters go on.
    pub repeats: u32,
    /// Whether the kernel writes a trace of its ops.
    pub trace: bool,
    /// Random delays before ops and in polls; 0 for none.
    pub delay_seed: u64,
    /// A rank whose CTAs end at once.
    pub stuck_rank: Option<RankId>,
    /// The longest time of a wait.
    pub poll_limit: Duration,
}

impl<'a> ShimJob<'a> {
    /// One launch of `kernel`, one CTA a stream and two threads a CTA, out of place; waits may last ten seconds.
    pub fn new(kernel: &'a Kernel, count: u64, inputs: &'a [Vec<u8>]) -> Self {
        Self {
            schedule: &kernel.schedule,
            facts: kernel.facts(count),
            element_size: kernel.spec.element.size(),
            count,
            inputs,
            parts: 1,
            threads: 2,
            in_place: false,
            repeats: 1,
            trace: false,
            delay_seed: 0,
            stuck_rank: None,
            poll_limit: Duration::from_secs(10),
        }
    }

    pub(crate) fn buffers(&self) -> impl Iterator<Item = Buffers> + '_ {
        let ranks = (0..self.schedule.nranks).map(RankId);
        ranks.map(|rank| Buffers::new(self.schedule, rank, self.count, self.element_size))
    }

    pub(crate) fn layout(&self) -> Result<GridLayout, Error> {
        GridLayout::new(&self.facts, self.parts, self.element_size)
            .map_err(|_| Error::BadJob { what: "its memory has more bytes than addresses".into() })
    }

    /// Returns the time after which the process is given up: every launch may wait once until the limit, and compute
    /// meanwhile.
    pub(super) fn process_limit(&self) -> Duration {
        Duration::from_secs(120) + 2 * self.poll_limit
    }

    fn check(&self) -> Result<(), Error> {
        let nranks = self.schedule.nranks as usize;
        let bad = |what: String| Err(Error::BadJob { what });
        if self.inputs.len() != nranks {
            return bad(format!("{} inputs for {nranks} ranks", self.inputs.len()));
        }
        for (rank, (input, buffers)) in self.inputs.iter().zip(self.buffers()).enumerate() {
            let (given, expected) = (input.len(), buffers.input);
            if given != expected {
                return bad(format!("{given} bytes of input for rank {rank}, not {expected}"));
            }
        }
        if self.threads == 0 || self.threads > MOST_THREADS {
            return bad(format!("{} threads a CTA, not 1..={MOST_THREADS}", self.threads));
        }
        if self.parts == 0 || self.repeats == 0 {
            return bad("no CTAs, or no launches".into());
        }
        Ok(())
    }

    /// Returns the words, little-endian.
    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        self.check()?;
        let layout = self.layout()?;
        let head = [
            MAGIC,
            self.trace.into(),
            self.parts.into(),
            self.threads.into(),
            self.element_size as u64,
            self.count,
            self.schedule.nranks.into(),
            layout.groups as u64,
            self.repeats.into(),
            self.delay_seed,
            u64::try_from(self.poll_limit.as_nanos()).unwrap_or(u64::MAX),
            self.stuck_rank.map_or(u64::MAX, |rank| rank.0.into()),
            layout.posted_words as u64,
            layout.waited_words as u64,
            layout.launches_words as u64,
            layout.scratch_bytes as u64,
            self.in_place.into(),
            self.facts.scale_outputs.into(),
            self.facts.words.len() as u64,
        ];
        let facts = self.facts.words.iter().map(|word| *word as u64);
        let buffers = self.buffers().flat_map(|rank| {
            [rank.input, rank.output, rank.input_at, rank.output_at, rank.shared].map(|n| n as u64)
        });
        let words = head.into_iter().chain(facts).chain(buffers);
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        for input in self.inputs {
            bytes.extend_from_slice(input);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use roundelay_export::cuda::Group;

    use super::*;

    pub(in super::super) fn schedule() -> Schedule {
        let text = "schedule Empty AllGather nranks 2 root 0\n";
        roundelay_core::schedule::text::parse(text).expect("a schedule")
    }

    pub(in super::super) fn job<'a>(schedule: &'a Schedule, inputs: &'a [Vec<u8>]) -> ShimJob<'a> {
        let facts = Facts {
            words: vec![-1, 2],
            groups: [0, 1].map(|rank| Group { rank: RankId(rank), stream: 0 }).to_vec(),
            lanes: vec![Vec::new()],
            posted_words: 16,
            counts_launches: true,
            scratch_elements: 6,
            scale_outputs: true,
            switches: Vec::new(),
        };
        ShimJob {
            schedule,
            facts,
            element_size: 2,
            count: 3,
            inputs,
            parts: 2,
            threads: 2,
            in_place: true,
            repeats: 7,
            trace: true,
            delay_seed: 9,
            stuck_rank: None,
            poll_limit: Duration::from_millis(1),
        }
    }

    #[test]
    fn a_job_is_the_words_of_the_contract() {
        let schedule = schedule();
        let inputs = [vec![1; 6], vec![2; 6]];
        let bytes = job(&schedule, &inputs).encode().expect("a good job");
        let words: Vec<u64> =
            bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().expect("8"))).collect();
        let head = [MAGIC, 1, 2, 2, 2, 3, 2, 2, 7, 9, 1_000_000, u64::MAX, 32, 32, 4, 12, 1, 1, 2];
        assert_eq!(words[..19], head);
        assert_eq!(words[19..21], [u64::MAX, 2], "the facts");
        assert_eq!(words[21..31], [6, 12, 0, 0, 12, 6, 12, 6, 0, 12], "the buffers");
        assert_eq!(words[31..], [0x0101_0101_0101, 0x0202_0202_0202], "the inputs, padded");
    }

    #[test]
    fn a_job_that_makes_no_sense_is_not_run() {
        let schedule = schedule();
        let good = [vec![1; 6], vec![2; 6]];
        let short = [vec![1; 6], vec![2; 5]];
        let refused = |job: ShimJob| job.encode().expect_err("a bad job").to_string();
        assert!(refused(job(&schedule, &short)).contains("5 bytes of input for rank 1, not 6"));
        assert!(refused(job(&schedule, &good[..1])).contains("1 inputs for 2 ranks"));
        assert!(refused(ShimJob { threads: 5, ..job(&schedule, &good) }).contains("5 threads"));
        assert!(refused(ShimJob { parts: 0, ..job(&schedule, &good) }).contains("no CTAs"));
    }
}

//! The results that a process left.

use super::{Error, ShimJob};
use crate::grid;
use crate::stuck::Stuck;

/// The results of a run of a kernel on CPU threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether a wait gave up.
    pub aborted: bool,
    /// The control block.
    pub control: Vec<u64>,
    /// All ranks' outputs, as bytes.
    pub outputs: Vec<Vec<u8>>,
    /// The trace of every group's ops, if the job asked for it.
    pub trace: String,
}

impl Outcome {
    /// The wait to blame, if the run gave up.
    pub fn stuck(&self, job: &ShimJob) -> Option<Stuck> {
        grid::stuck(job.schedule, &job.facts.groups, &self.control, job.poll_limit)
    }

    pub(super) fn decode(bytes: &[u8], job: &ShimJob) -> Result<Self, Error> {
        let mut rest = Rest(bytes);
        let status = rest.word()?;
        let groups = job.layout()?.control_words;
        let control = (0..groups).map(|_| rest.word()).collect::<Result<_, _>>()?;
        let outputs =
            job.buffers().map(|rank| rest.padded(rank.output)).collect::<Result<_, _>>()?;
        let len = rest.word()? as usize;
        let trace = String::from_utf8(rest.bytes(len)?.to_vec())
            .map_err(|_| Error::BadResult { what: "a trace that is no text".into() })?;
        match status {
            0 | 1 => Ok(Self { aborted: status == 1, control, outputs, trace }),
            _ => Err(Error::BadResult { what: format!("status {status}") }),
        }
    }
}

/// The bytes that have not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(|| Error::BadResult {
            what: format!("{len} bytes expected, {} left", self.0.len()),
        })?;
        self.0 = rest;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, Error> {
        let bytes = self.bytes(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    fn padded(&mut self, len: usize) -> Result<Vec<u8>, Error> {
        Ok(self.bytes(len.next_multiple_of(8))?[..len].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::{job, schedule};
    use super::*;

    #[test]
    fn a_result_is_read_to_its_end_or_refused() {
        let schedule = schedule();
        let inputs = [vec![1; 6], vec![2; 6]];
        let job = job(&schedule, &inputs);
        let control = 8 + 8 * 2;
        let mut words = vec![1];
        words.extend((0..control).map(|at| if at == 0 { 2 } else { 0 }));
        // Two outputs of 12 bytes, padded; then a trace of 3.
        words.extend([0x0a0b, 0x0c, 0x0d0e, 0, 3, 0x63_6261]);
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let outcome = Outcome::decode(&bytes, &job).expect("a good result");
        assert!(outcome.aborted);
        assert_eq!((outcome.control[0], outcome.control.len()), (2, control));
        assert_eq!(outcome.outputs[0], [0x0b, 0x0a, 0, 0, 0, 0, 0, 0, 0x0c, 0, 0, 0]);
        assert_eq!(outcome.outputs[1].len(), 12);
        assert_eq!(outcome.trace, "abc");
        for len in [0, 7, 200, bytes.len() - 6] {
            let cut = Outcome::decode(&bytes[..len], &job);
            assert!(matches!(cut, Err(Error::BadResult { .. })), "{len} bytes are not all");
        }
    }
}

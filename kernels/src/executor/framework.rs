//! The loop around an executor: data that fits the CCL buffers is processed in the caller's memory; larger data goes
//! through the buffers in parts, the last of which may be smaller.

use std::ops::Range;
use std::time::{Duration, Instant};

use roundelay_core::dtype::ReduceOp;
use roundelay_core::executor::holds_no_element;
use roundelay_core::ids::RankId;

use super::executor_memory::{CallBuffers, ExecMem, Granted};
use super::{Executor, OpParam};
use crate::element::Element;
use crate::error::Error;

/// The alignment of every CCL buffer: for all element types, and for cache lines.
const ALIGN: usize = 64;

/// Runs executors: data that fits the CCL buffers in the caller's memory, larger data in parts through these buffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Framework {
    ccl_buffer: Option<u64>,
}

/// The facts of one call of [`Framework::run`] or of its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The number of runs of the executor's kernel: one for each part of the data.
    pub loops: u64,
    /// Whether data went through the CCL buffers.
    pub staged: bool,
    /// The time that the call took.
    pub elapsed: Duration,
}

impl Framework {
    /// A framework whose CCL buffers have the size that each executor asks for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes CCL buffers of `bytes` bytes, for all executors.
    #[must_use]
    pub fn ccl_buffer(mut self, bytes: u64) -> Self {
        self.ccl_buffer = Some(bytes);
        self
    }

    /// Runs `executor` for `count` elements a unit (NCCL's count) on an input and an output per rank, empty where a
    /// rank lacks one. After an error the outputs are undefined.
    ///
    /// # Errors
    /// E0315 where a plan takes more than the executor asked for; E0431 for a bitwise or a logical op, which the
    /// contest's framework does not have; otherwise the errors of [`Plan::run`](crate::Plan::run).
    pub fn run<T: Element, E: Executor + ?Sized>(
        &self,
        executor: &E,
        count: u64,
        op: ReduceOp,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<Ran, Error> {
        let inputs: Vec<_> = inputs.iter().map(|input| bytes(input)).collect();
        let mut outputs: Vec<_> = outputs.iter_mut().map(|output| bytes_mut(output)).collect();
        self.run_bytes(executor, &OpParam::new(count, T::DTYPE, op), &inputs, &mut outputs)
    }

    /// Runs `executor` in place, for `count` elements a unit (NCCL's count), on one buffer per rank, as long as the
    /// larger of the rank's input and output.
    ///
    /// # Errors
    /// E0408 where there is no in-place form; otherwise the errors of [`Self::run`].
    pub fn run_in_place<T: Element, E: Executor + ?Sized>(
        &self,
        executor: &E,
        count: u64,
        op: ReduceOp,
        buffers: &mut [&mut [T]],
    ) -> Result<Ran, Error> {
        let mut buffers: Vec<_> = buffers.iter_mut().map(|buffer| bytes_mut(buffer)).collect();
        self.run_bytes_in_place(executor, &OpParam::new(count, T::DTYPE, op), &mut buffers)
    }

    /// Runs `executor` as [`Self::run`] does, on bytes that are aligned for the element type of `param`.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned; otherwise the errors of [`Self::run`].
    pub fn run_bytes<E: Executor + ?Sized>(
        &self,
        executor: &E,
        param: &OpParam,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<Ran, Error> {
        ExecutorCall::new(self, executor, *param).run(&mut CallBuffers::Apart(inputs, outputs))
    }

    /// Runs `executor` as [`Self::run_in_place`] does, on bytes that are aligned for the element type of `param`.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned; otherwise the errors of [`Self::run_in_place`].
    pub fn run_bytes_in_place<E: Executor + ?Sized>(
        &self,
        executor: &E,
        param: &OpParam,
        buffers: &mut [&mut [u8]],
    ) -> Result<Ran, Error> {
        ExecutorCall::new(self, executor, *param).run(&mut CallBuffers::InPlace(buffers))
    }
}

/// One call of an executor.
struct ExecutorCall<'e, E: ?Sized> {
    executor: &'e E,
    param: OpParam,
    ccl_buffer: u64,
    granted: Granted,
}

/// The sizes of a rank's buffers, in units.
#[derive(Clone, Copy)]
struct Units {
    input: u64,
    output: u64,
    /// The offsets of input and output in the one buffer of a run in place.
    starts: (u64, u64),
}

impl<'e, E: Executor + ?Sized> ExecutorCall<'e, E> {
    fn new(framework: &Framework, executor: &'e E, param: OpParam) -> Self {
        let ccl_buffer = framework.ccl_buffer.unwrap_or_else(|| executor.ccl_buffer_size());
        Self { executor, param, ccl_buffer, granted: Granted::new(executor, ccl_buffer) }
    }

    fn size(&self) -> u64 {
        self.param.dtype.size() as u64
    }

    fn units(&self, rank: RankId) -> Units {
        let (collective, n) = (self.executor.collective(), self.executor.nranks());
        let root = self.executor.root_rank();
        let starts = collective.alias(rank, root).starts();
        Units {
            input: collective.input_units(rank, n, root).into(),
            output: collective.output_units(rank, n, root).into(),
            starts: (starts.0.into(), starts.1.into()),
        }
    }

    fn ranks(&self) -> impl Iterator<Item = RankId> + use<E> {
        (0..self.executor.nranks()).map(RankId)
    }

    fn run(&self, memory: &mut CallBuffers<'_, '_>) -> Result<Ran, Error> {
        let started = Instant::now();
        self.check(memory)?;
        let total = self.param.total;
        let most = self.executor.calc_loop_max_count(self.ccl_buffer, self.size());
        if most == 0 && total > 0 {
            return Err(Error::Exceeded { what: holds_no_element(self.ccl_buffer, self.size()) });
        }
        let loops = if most == 0 { 0 } else { total.div_ceil(most) };
        let whole = self.ranks().all(|rank| {
            let Units { input, output, .. } = self.units(rank);
            input <= 1 && output <= 1
        });
        let staged = loops > 1 && !(self.executor.flags().dma_reduce && whole);
        if loops == 1 {
            self.kernel(total, memory)?;
        } else if staged {
            let mut ccl = Ccl::new(self, most);
            for part in parts(total, most) {
                ccl.run(self, part, memory)?;
            }
        } else {
            for part in parts(total, most) {
                self.advanced(part, memory)?;
            }
        }
        Ok(Ran { loops, staged, elapsed: started.elapsed() })
    }

    /// Runs the executor on `count` elements a unit.
    fn kernel(&self, count: u64, memory: &mut CallBuffers<'_, '_>) -> Result<(), Error> {
        let memory = match memory {
            CallBuffers::Apart(inputs, outputs) => CallBuffers::Apart(inputs, outputs),
            CallBuffers::InPlace(buffers) => CallBuffers::InPlace(buffers),
        };
        let mut mem = ExecMem { memory, granted: &self.granted };
        self.executor.kernel_run(&OpParam { count, ..self.param }, &mut mem).map(|_| ())
    }

    /// Runs the executor on `part` of the caller's memory, without a copy.
    fn advanced(&self, part: Range<u64>, memory: &mut CallBuffers<'_, '_>) -> Result<(), Error> {
        let size = self.size();
        let at = (part.start * size) as usize..(part.end * size) as usize;
        // A rank without a buffer has an empty part of it.
        let of = |len: usize| if len == 0 { 0..0 } else { at.clone() };
        match memory {
            CallBuffers::Apart(inputs, outputs) => {
                let inputs: Vec<_> = inputs.iter().map(|input| &input[of(input.len())]).collect();
                let mut outputs: Vec<_> = outputs
                    .iter_mut()
                    .map(|buffer| {
                        let at = of(buffer.len());
                        &mut buffer[at]
                    })
                    .collect();
                self.kernel(part.end - part.start, &mut CallBuffers::Apart(&inputs, &mut outputs))
            }
            CallBuffers::InPlace(buffers) => {
                let mut buffers: Vec<_> = buffers
                    .iter_mut()
                    .map(|buffer| {
                        let at = of(buffer.len());
                        &mut buffer[at]
                    })
                    .collect();
                self.kernel(part.end - part.start, &mut CallBuffers::InPlace(&mut buffers))
            }
        }
    }

    /// Checks that executors have the op, and that the caller's buffers have the sizes that the call demands.
    fn check(&self, memory: &CallBuffers<'_, '_>) -> Result<(), Error> {
        let op = self.param.op;
        if op.is_for_integers() {
            return Err(Error::NotForExecutors { op });
        }
        let nranks = self.executor.nranks();
        let counted = |what: &'static str, given: usize| {
            let right = given == nranks as usize;
            if right { Ok(()) } else { Err(Error::WrongBufferCount { what, given, nranks }) }
        };
        let long = |what: &'static str, rank: RankId, given: usize, units: u64| {
            let size = self.size();
            let expected =
                self.param.total.checked_mul(units).filter(|e| e.checked_mul(size).is_some());
            let given = given as u64 / size;
            match expected {
                Some(expected) if expected == given => Ok(()),
                _ => Err(Error::WrongBufferLength {
                    what,
                    rank,
                    given,
                    expected: expected.unwrap_or(u64::MAX),
                    unit: "elements",
                }),
            }
        };
        match memory {
            CallBuffers::Apart(inputs, outputs) => {
                counted("inputs", inputs.len())?;
                counted("outputs", outputs.len())?;
                for ((rank, input), output) in self.ranks().zip(*inputs).zip(&**outputs) {
                    let units = self.units(rank);
                    long("input", rank, input.len(), units.input)?;
                    long("output", rank, output.len(), units.output)?;
                }
                Ok(())
            }
            CallBuffers::InPlace(buffers) => {
                if !self.executor.collective().has_in_place() {
                    return Err(Error::NoInPlace { why: "AllToAll has no in-place form" });
                }
                counted("buffers", buffers.len())?;
                self.ranks().zip(&**buffers).try_for_each(|(rank, buffer)| {
                    let units = self.units(rank);
                    long("buffer", rank, buffer.len(), units.input.max(units.output))
                })
            }
        }
    }
}

/// Returns the elements of each loop.
fn parts(total: u64, most: u64) -> impl Iterator<Item = Range<u64>> {
    (0..total.div_ceil(most)).map(move |i| i * most..total.min((i + 1) * most))
}

/// The CCL buffers of all ranks: `CCL_IN` and `CCL_OUT`.
struct Ccl {
    inputs: Vec<Window>,
    outputs: Vec<Window>,
}

impl Ccl {
    /// Allocates buffers for runs of at most `most` elements a unit.
    fn new<E: Executor + ?Sized>(call: &ExecutorCall<'_, E>, most: u64) -> Self {
        let bytes = most * call.size();
        let window = |units: u64| Window::new((units * bytes) as usize);
        Self {
            inputs: call.ranks().map(|rank| window(call.units(rank).input)).collect(),
            outputs: call.ranks().map(|rank| window(call.units(rank).output)).collect(),
        }
    }

    /// Copies `part` in, runs, and copies the result out.
    fn run<E: Executor + ?Sized>(
        &mut self,
        call: &ExecutorCall<'_, E>,
        part: Range<u64>,
        memory: &mut CallBuffers<'_, '_>,
    ) -> Result<(), Error> {
        let len = part.end - part.start;
        // The ranges of unit `unit`: in a caller's buffer that begins with unit `start`, and in a window.
        let size = call.size();
        let there = |start: u64, unit: u64| {
            let at = (start + unit) * call.param.total + part.start;
            (at * size) as usize..((at + len) * size) as usize
        };
        let here = |unit: u64| (unit * len * size) as usize..((unit + 1) * len * size) as usize;
        for (i, rank) in call.ranks().enumerate() {
            let Units { input, starts, .. } = call.units(rank);
            let window = self.inputs[i].bytes();
            for unit in 0..input {
                let from = match &*memory {
                    CallBuffers::Apart(inputs, _) => &inputs[i][there(0, unit)],
                    CallBuffers::InPlace(buffers) => &buffers[i][there(starts.0, unit)],
                };
                window[here(unit)].copy_from_slice(from);
            }
        }
        let inputs = self.inputs.iter_mut().zip(call.ranks());
        let inputs: Vec<&[u8]> = inputs
            .map(|(window, rank)| &window.bytes()[..(call.units(rank).input * len * size) as usize])
            .collect();
        let outputs = self.outputs.iter_mut().zip(call.ranks());
        let mut outputs: Vec<&mut [u8]> = outputs
            .map(|(window, rank)| {
                &mut window.bytes()[..(call.units(rank).output * len * size) as usize]
            })
            .collect();
        call.kernel(len, &mut CallBuffers::Apart(&inputs, &mut outputs))?;
        for (i, rank) in call.ranks().enumerate() {
            let Units { output, starts, .. } = call.units(rank);
            for unit in 0..output {
                let into = match memory {
                    CallBuffers::Apart(_, outputs) => &mut outputs[i][there(0, unit)],
                    CallBuffers::InPlace(buffers) => &mut buffers[i][there(starts.1, unit)],
                };
                into.copy_from_slice(&outputs[i][here(unit)]);
            }
        }
        Ok(())
    }
}

/// A buffer that is aligned for elements of every type.
struct Window {
    memory: Vec<u8>,
    at: usize,
    len: usize,
}

impl Window {
    fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGN];
        let at = memory.as_ptr().align_offset(ALIGN);
        Self { memory, at, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.at..self.at + self.len]
    }
}

fn bytes<T: Element>(slice: &[T]) -> &[u8] {
    // SAFETY: the bytes are the slice's memory, borrowed for the slice's lifetime; an element has no byte that is not
    // initialized.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) }
}

fn bytes_mut<T: Element>(slice: &mut [T]) -> &mut [u8] {
    // SAFETY: the bytes are the slice's memory, borrowed for the slice's lifetime, all initialized; every bit pattern
    // is an element.
    unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), size_of_val(slice)) }
}

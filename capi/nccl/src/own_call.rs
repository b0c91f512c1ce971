//! An operation that runs here, by the plan of its shape.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use roundelay::cuda::ProcessPlan;
use roundelay::{Call, Collective, DType, ReduceOp};
use roundelay_kernels::cuda::nccl_dtype;

use crate::mode::is_alone;
use crate::name::Name;
use crate::operation::{Left, Operation, Taken};
use crate::own_comm::OwnComm;
use crate::process::process;
use crate::refusal::{Refusal, answer, caught, guard, wrong};
use crate::seats;
use crate::settings::settings;
use crate::stream_order::in_own_context;
use crate::types::{Code, Comm, Stream};
use crate::why::Why;

/// An operation on a communicator that has a world.
pub(crate) struct OwnCall {
    name: Name,
    own: Arc<OwnComm>,
    call: Call,
    io: [u64; 2],
    stream: Stream,
    /// The plan, once the operation is prepared; `None` for an operation on nothing.
    plan: Option<Arc<ProcessPlan>>,
}

/// Why an operation cannot be made.
enum Unmade {
    /// The real library may make it, on all ranks.
    Left(Why),
    Failed(Refusal),
}

impl From<Refusal> for Unmade {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal)
    }
}

/// Returns the collective of a function.
fn collective(name: Name) -> Option<Collective> {
    Some(match name {
        Name::AllReduce | Name::AllReduceConfig => Collective::AllReduce,
        Name::Reduce | Name::ReduceConfig => Collective::Reduce,
        Name::ReduceScatter | Name::ReduceScatterConfig => Collective::ReduceScatter,
        Name::Broadcast | Name::BroadcastConfig | Name::Bcast => Collective::Broadcast,
        Name::AllGather | Name::AllGatherConfig => Collective::AllGather,
        Name::AlltoAll | Name::AlltoAllConfig => Collective::AllToAll,
        Name::Gather | Name::GatherConfig => Collective::Gather,
        Name::Scatter | Name::ScatterConfig => Collective::Scatter,
        _ => return None,
    })
}

/// Whether a function has a configuration for its call, which may ask for what a plan does not have.
fn is_configured(name: Name) -> bool {
    matches!(
        name,
        Name::AllReduceConfig
            | Name::ReduceConfig
            | Name::ReduceScatterConfig
            | Name::BroadcastConfig
            | Name::AllGatherConfig
            | Name::AlltoAllConfig
            | Name::GatherConfig
            | Name::ScatterConfig
    )
}

impl OwnCall {
    fn new(operation: &Operation, own: Arc<OwnComm>) -> Result<Self, Refusal> {
        let name = operation.name;
        let collective = collective(name).ok_or_else(|| {
            let text = format!("{name} is not there without an NCCL behind the library");
            Refusal(Code::INVALID_USAGE, text)
        })?;
        let dtype: DType = nccl_dtype(operation.dtype)
            .ok_or_else(|| wrong(format!("there is no data type {}", operation.dtype)))?;
        let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Avg];
        let op = usize::try_from(operation.op).ok().and_then(|at| ops.get(at).copied());
        let op = op.ok_or_else(|| wrong(format!("there is no operator {}", operation.op)))?;
        let root = u32::try_from(operation.root).ok().filter(|root| *root < own.nranks());
        let root = root.ok_or_else(|| wrong(format!("there is no rank {}", operation.root)))?;
        // `ncclBcast` has one buffer.
        let send = if name == Name::Bcast { operation.recv.cast() } else { operation.send };
        let io = [send.addr() as u64, operation.recv.addr() as u64];
        let call = Call { collective, root, count: operation.count as u64, dtype, op };
        Ok(Self { name, own, call, io, stream: operation.stream, plan: None })
    }

    /// Takes an operation over the real NCCL, where an algorithm is selected for it. Ranks decide by what NCCL demands to
    /// be equal on all.
    fn over(operation: &Operation) -> Result<Self, Why> {
        if !settings().take_any() {
            return Err(Why::NoWorld);
        }
        let seat = seats::find(operation.comm).ok_or(Why::NoWorld)?;
        let own = seat.own().clone().map_err(Why::Unmet)?;
        if is_configured(operation.name) {
            return Err(Why::Config);
        }
        let taken = caught(|| Self::new(operation, own)).map_err(|_| Why::Argument)?;
        let selected = settings().select(&taken.call, taken.own.nranks());
        if selected { Ok(taken) } else { Err(Why::Unselected) }
    }

    /// Finds the plan, which all ranks make at the first call of its shape.
    fn plan(&mut self) -> Result<(), Unmade> {
        let Self { own, call, .. } = self;
        if let Some(failure) = &*own.failure() {
            return Err(failure.clone().into());
        }
        if call.count == 0 {
            return Ok(());
        }
        self.plan = own.calls.planned(*call);
        if self.plan.is_some() {
            return Ok(());
        }
        if let Some(why) = own.unfit().get(call) {
            return Err(Unmade::Left(Why::Unfit(why.clone())));
        }
        if own.order.captures(self.stream).map_err(Refusal::from)? {
            if !is_alone() {
                return Err(Unmade::Left(Why::Captured));
            }
            let why = format!(
                "a graph captures the first {} of its shape, whose plan cannot be made then: make one call before",
                self.name
            );
            return Err(Refusal(Code::INVALID_USAGE, why).into());
        }
        let made = caught(|| {
            own.calls.plan(*call).map_err(|error| {
                let is_unfit =
                    !is_alone() && !is_of_program(&error) && own.calls.rank().check().is_ok();
                let Refusal(code, text) = error.into();
                // No code is 0 for a refusal: it stands for what the algorithm cannot run.
                Refusal(if is_unfit { Code::SUCCESS } else { code }, text)
            })
        });
        match made {
            Ok(plan) => {
                self.plan = Some(plan);
                Ok(())
            }
            Err(Refusal(Code::SUCCESS, text)) => {
                let why = text.lines().next().unwrap_or_default().to_owned();
                own.unfit().insert(*call, why.clone());
                Err(Unmade::Left(Why::Unfit(why)))
            }
            Err(refusal) => Err(own.keep(refusal).into()),
        }
    }

    fn issue(&self) -> Result<(), Refusal> {
        let begun = Instant::now();
        let Some(plan) = &self.plan else {
            process().took(self.name, "nothing", begun.elapsed());
            return Ok(());
        };
        let Self { own, stream, .. } = self;
        let issued = (|| {
            own.order.enter(*stream)?;
            // SAFETY: the arguments are the program's, which promises that they are valid.
            unsafe { plan.launch_at(stream.cast(), self.io) }?;
            own.order.leave(*stream)?;
            process().took(self.name, &plan.kernel().name, begun.elapsed());
            Ok(())
        })();
        issued.map_err(|refusal| {
            process().refused(self.name);
            own.keep(refusal)
        })
    }
}

/// Whether an error is one of the program's, which the real library would not make right: ranks make different calls, or
/// an algorithm breaks a promise that the user demands.
fn is_of_program(error: &roundelay::Error) -> bool {
    use roundelay::Code::{CallsDiffer, OrderDiffers, TooManyRoundings};
    [CallsDiffer, OrderDiffers, TooManyRoundings].contains(&error.code())
}

/// Returns the communicators of a group, each with its operations.
fn by_comm(group: &mut [OwnCall]) -> Vec<Vec<&mut OwnCall>> {
    let mut all: Vec<Vec<&mut OwnCall>> = Vec::new();
    for call in group {
        match all.iter_mut().find(|of| Arc::ptr_eq(&of[0].own, &call.own)) {
            Some(of) => of.push(call),
            None => all.push(vec![call]),
        }
    }
    all
}

/// Returns the streams of a communicator's operations, in the order of their last operations.
fn streams(of: &[&mut OwnCall]) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    for call in of {
        streams.retain(|stream| *stream != call.stream);
        streams.push(call.stream);
    }
    streams
}

impl Taken for OwnCall {
    fn take(operation: &Operation) -> Result<Self, Left> {
        if !is_alone() {
            return Self::over(operation).map_err(Left::Passed);
        }
        guard(|| Self::new(operation, seats::world(operation.comm)?)).map_err(Left::Refused)
    }

    fn prepare(group: &mut [Self]) -> Result<(), Left> {
        let mut comms = by_comm(group);
        let each = |of: &mut Vec<&mut Self>| of.iter_mut().try_for_each(|call| call.plan());
        let prepared = if comms.len() == 1 {
            in_own_context(|| comms.iter_mut().try_for_each(each))
        } else {
            // Other ranks may have the communicators in another order, or be of this thread: none waits for another.
            // An address is shared with a thread as long as this call.
            struct Shared<T>(T);
            // SAFETY: each thread has operations of its own, whose streams are addresses that any thread may use.
            unsafe impl<T> Send for Shared<T> {}
            thread::scope(|threads| {
                let begun: Vec<_> = comms
                    .iter_mut()
                    .map(Shared)
                    .map(|of| {
                        threads.spawn(move || {
                            let Shared(of) = { of };
                            each(of)
                        })
                    })
                    .collect();
                let done: Vec<_> = begun.into_iter().map(thread::ScopedJoinHandle::join).collect();
                done.into_iter().try_for_each(|done| {
                    let panicked = || Refusal(Code::INTERNAL, "a thread panicked".to_owned());
                    done.unwrap_or_else(|_| Err(panicked().into()))
                })
            })
        };
        prepared.map_err(|unmade| match unmade {
            Unmade::Left(why) => Left::Passed(why),
            Unmade::Failed(refusal) => Left::Refused(answer(|| Err(refusal))),
        })
    }

    fn run(mut group: Vec<Self>) -> Code {
        answer(|| {
            in_own_context(|| {
                for of in by_comm(&mut group) {
                    of[0].own.order.fork(&streams(&of))?;
                }
                group.iter().try_for_each(Self::issue)?;
                for of in by_comm(&mut group) {
                    of[0].own.order.join(&streams(&of))?;
                }
                Ok(())
            })
        })
    }

    fn pass(on: &[(Comm, Stream)], call: impl FnOnce() -> Code) -> Code {
        if is_alone() || !settings().take_any() {
            return call();
        }
        let known = on.iter().filter_map(|(comm, stream)| {
            let seat = seats::find(*comm)?;
            Some((seat.known()?.clone().ok()?, *stream))
        });
        let known: Vec<_> = known.collect();
        // Where the driver refuses these, it refuses NCCL's calls, too, which says so.
        in_own_context(|| known.iter().for_each(|(own, stream)| _ = own.order.enter(*stream)));
        let code = call();
        in_own_context(|| known.iter().for_each(|(own, stream)| _ = own.order.leave(*stream)));
        code
    }
}

//! An operation that runs here, by the plan of its shape.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use roundelay::cuda::ProcessPlan;
use roundelay::{Call, Collective, DType};
use roundelay_interposer::CallMaker;
use roundelay_kernels::cuda::nccl_dtype;

use crate::call_config::CallConfig;
use crate::call_errors::{Refusal, answer, caught, guard, wrong};
use crate::contest::contest;
use crate::lanes::{Ends, Lane};
use crate::mode::is_alone;
use crate::name::Name;
use crate::operation::{Left, Operation, Taken};
use crate::own_comm::OwnComm;
use crate::own_operators::Multiples;
use crate::process::process;
use crate::seats::{self, CommSeat};
use crate::settings::{Selector, settings};
use crate::stream_order::in_own_context;
use crate::trial::Trial;
use crate::types::{Code, Comm, Stream};
use crate::why::Why;

/// An operation on a communicator that has a world.
pub(crate) struct OwnCall {
    name: Name,
    seat: Arc<CommSeat>,
    own: Arc<OwnComm>,
    call: Call,
    /// The multiples of the input whose sum it is, if it is one.
    multiples: Option<Multiples>,
    io: [u64; 2],
    stream: Stream,
    config: CallConfig,
    way: DataWay,
    /// The trial that it is for, with the call of the real library.
    trial: Option<(Trial, Operation)>,
    /// The plan, once the operation is prepared; `None` for an operation on nothing.
    plan: Option<Arc<ProcessPlan>>,
}

/// The way of an operation's data.
enum DataWay {
    /// Among all ranks.
    All,
    /// To another rank, or from one, by a lane, once it is open.
    Lane(Ends, Option<Arc<Lane>>),
    /// From this rank to itself: `None` for a send, and for a receive the buffer and the stream of its send once the group
    /// is prepared.
    Itself(Option<(u64, Stream)>),
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
        // The sender is the root of a lane.
        Name::Broadcast | Name::BroadcastConfig | Name::Bcast | Name::Send | Name::Recv => {
            Collective::Broadcast
        }
        Name::AllGather | Name::AllGatherConfig => Collective::AllGather,
        Name::AlltoAll | Name::AlltoAllConfig => Collective::AllToAll,
        Name::Gather | Name::GatherConfig => Collective::Gather,
        Name::Scatter | Name::ScatterConfig => Collective::Scatter,
        _ => return None,
    })
}

impl OwnCall {
    fn new(operation: &Operation, seat: Arc<CommSeat>, own: Arc<OwnComm>) -> Result<Self, Refusal> {
        let name = operation.name;
        let collective = collective(name).ok_or_else(|| {
            let text = format!("{name} is not there without an NCCL behind the library");
            Refusal(Code::INVALID_USAGE, text)
        })?;
        let dtype: DType = nccl_dtype(operation.dtype)
            .ok_or_else(|| wrong(format!("there is no data type {}", operation.dtype)))?;
        let (op, multiples) = own.operators.find(operation.op, dtype, own.nranks())?;
        // SAFETY: the argument is the program's, which promises that it is valid.
        let config = unsafe { CallConfig::read(operation.config) }?;
        let root = u32::try_from(operation.root).ok().filter(|root| *root < own.nranks());
        let root = root.ok_or_else(|| wrong(format!("there is no rank {}", operation.root)))?;
        let me = own.calls.rank().rank().0;
        let ends = match name {
            Name::Send => Some(Ends { from: me, to: root }),
            Name::Recv => Some(Ends { from: root, to: me }),
            _ => None,
        };
        let (root, way) = match ends {
            None => (root, DataWay::All),
            Some(Ends { from, to }) if from == to => (0, DataWay::Itself(None)),
            Some(ends) => (0, DataWay::Lane(ends, None)),
        };
        let [send, recv] = [operation.send.addr(), operation.recv.addr()];
        let io = match name {
            // These have one buffer.
            Name::Bcast | Name::Recv => [recv, recv],
            Name::Send => [send, send],
            _ => [send, recv],
        };
        let io = io.map(|at| at as u64);
        let (count, stream) = (operation.count as u64, operation.stream);
        let call = Call { collective, root, count, dtype, op };
        let (trial, plan) = (None, None);
        Ok(Self { name, seat, own, call, multiples, io, stream, config, way, trial, plan })
    }

    /// Takes an operation over the real NCCL, where an algorithm is selected for it. Ranks decide by what NCCL demands to
    /// be equal on all.
    fn over(operation: &Operation, in_group: bool) -> Result<Self, Why> {
        if !settings().take_any() {
            return Err(Why::NoWorld);
        }
        let seat = seats::find(operation.comm).ok_or(Why::NoWorld)?;
        let own = seat.own().clone().map_err(Why::Unmet)?;
        if matches!(operation.name, Name::Send | Name::Recv) {
            return Err(Why::Message);
        }
        let taken = caught(|| Self::new(operation, seat.clone(), own));
        let mut taken = taken.map_err(|_| Why::Argument)?;
        if taken.config.tunes {
            return Err(Why::Config);
        }
        match settings().select(&taken.call, taken.own.nranks()) {
            Selector::User => Ok(taken),
            Selector::Nothing => Err(Why::Unselected),
            Selector::Contest => {
                let trial = contest(&taken.own, &taken.call, taken.stream, in_group)?;
                taken.trial = trial.map(|trial| (trial, *operation));
                Ok(taken)
            }
        }
    }

    /// The world of the operation: that of its lane, if it has one that is open.
    fn world(&self) -> &Arc<OwnComm> {
        match &self.way {
            DataWay::Lane(_, Some(lane)) => &lane.own,
            _ => &self.own,
        }
    }

    /// Finds the plan, and says whether the operation is ready.
    fn find(&mut self) -> Result<bool, Refusal> {
        if let Some(failure) = &*self.own.failure() {
            return Err(failure.clone());
        }
        if self.call.count == 0 || matches!(self.way, DataWay::Itself(_)) || self.is_theirs() {
            return Ok(true);
        }
        if let DataWay::Lane(ends, lane) = &mut self.way {
            *lane = self.seat.lanes.find(*ends);
            if lane.is_none() {
                return Ok(false);
            }
        }
        self.plan = self.world().calls.find(self.call);
        Ok(self.plan.is_some())
    }

    /// Whether it is on trial in the real library.
    fn is_theirs(&self) -> bool {
        self.trial.is_some_and(|(trial, _)| trial.maker == CallMaker::Theirs)
    }

    /// Makes the plan, as all ranks do at the first call of its shape.
    fn make(&mut self) -> Result<(), Unmade> {
        // An operation before it in the group may have the same shape.
        if self.find()? {
            return Ok(());
        }
        if let DataWay::Lane(ends, lane @ None) = &mut self.way {
            *lane = Some(self.seat.open_lane(&self.own, *ends)?);
        }
        let (own, call) = (self.world().clone(), &self.call);
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
            Ok(own.calls.plan(*call).map_err(|error| {
                let is_unfit =
                    !is_alone() && !is_of_program(&error) && own.calls.rank().check().is_ok();
                (is_unfit, Refusal::from(error))
            }))
        });
        match made.unwrap_or_else(|panicked| Err((false, panicked))) {
            Ok(plan) => {
                self.plan = Some(plan);
                Ok(())
            }
            // The algorithm cannot run it.
            Err((true, Refusal(_, text))) => {
                let why = text.lines().next().unwrap_or_default().to_owned();
                own.unfit().insert(*call, why.clone());
                if let Some((trial, _)) = self.trial {
                    own.trials.give_up(trial.shape);
                }
                Err(Unmade::Left(Why::Unfit(why)))
            }
            Err((false, refusal)) => Err(own.keep(refusal).into()),
        }
    }

    /// Starts the operation.
    fn issue(&self) -> Result<(), Refusal> {
        let begun = Instant::now();
        let issued = self.start();
        match &issued {
            Ok(by) => process().took(self.name, by, begun.elapsed()),
            Err(_) => process().refused(self.name),
        }
        issued.map(drop).map_err(|refusal| self.own.keep(refusal))
    }

    /// Starts the operation, and returns what makes it.
    fn start(&self) -> Result<&str, Refusal> {
        let Self { own, stream, io, .. } = self;
        let stream = *stream;
        let launch = |on: Stream| {
            let Some(plan) = &self.plan else { return Ok("nothing") };
            own.order.record(self.config.launched, on)?;
            let at = |input| {
                // SAFETY: the arguments are the program's, which promises that they are valid.
                unsafe { plan.launch_at(on.cast(), [input, io[1]]) }
            };
            match &self.multiples {
                None => at(io[0])?,
                Some(Multiples { number, .. }) => {
                    let products = own.operators.products(own.calls.rank(), self.call.dtype)?;
                    let input = (io[0], plan.input_len());
                    // SAFETY: as before.
                    unsafe { products.multiply(on.cast(), input, *number, at) }?;
                }
            }
            Ok::<&str, Refusal>(
                plan.kernel().map_or("a call through the hosts", |kernel| &kernel.name),
            )
        };
        match &self.way {
            DataWay::All if self.plan.is_none() => Ok("nothing"),
            DataWay::All => {
                own.order.enter(stream)?;
                let by = launch(stream)?;
                own.order.leave(stream)?;
                Ok(by)
            }
            DataWay::Lane(_, None) | DataWay::Itself(None) => Ok("nothing"),
            DataWay::Lane(_, Some(lane)) => {
                own.order.enter(stream)?;
                own.order.follow(&lane.stream, stream)?;
                launch(lane.stream.cu_stream().cast())
            }
            DataWay::Itself(Some((from, sent_on))) => {
                own.order.enter(stream)?;
                let bytes = self.call.count as usize * self.call.dtype.size();
                // SAFETY: the arguments are the program's, which promises that they are valid.
                unsafe { own.order.copy(stream, *sent_on, (*from, io[1]), bytes) }?;
                own.order.leave(stream)?;
                Ok("a copy")
            }
        }
    }

    /// Makes an operation on trial, here or by the real library, and keeps its time.
    fn try_out(&self, trial: Trial, operation: &Operation) -> Code {
        let Self { own, stream, .. } = self;
        let begun = in_own_context(|| own.order.mark(*stream));
        let code = match trial.maker {
            CallMaker::Ours => answer(|| in_own_context(|| self.issue())),
            CallMaker::Theirs => {
                process().passed(self.name, Why::Trial);
                Self::pass(&[(operation.comm, *stream)], || operation.pass())
            }
        };
        // Where the driver refuses an event, the operation has said why; its shape is not decided by this trial.
        if let (Ok(begun), Ok(ended)) = (begun, in_own_context(|| own.order.mark(*stream))) {
            own.trials.note(trial, [begun, ended]);
        }
        code
    }

    /// Has the stream wait for the operation, if it runs beside it.
    fn end(&self) -> Result<(), Refusal> {
        let DataWay::Lane(_, Some(lane)) = &self.way else { return Ok(()) };
        self.own.order.wait_for(&lane.stream, self.stream)?;
        Ok(self.own.order.leave(self.stream)?)
    }

    /// Whether the plans of two operations are made side by side: the ranks of a world make theirs in one order.
    fn is_beside(&self, other: &Self) -> bool {
        let ends = |call: &Self| match &call.way {
            DataWay::Lane(ends, _) => Some(*ends),
            _ => None,
        };
        !Arc::ptr_eq(&self.own, &other.own) || ends(self) != ends(other)
    }
}

/// Whether an error is one of the program's, which the real library would not make right: ranks make different calls, or
/// an algorithm breaks a promise that the user demands.
fn is_of_program(error: &roundelay::Error) -> bool {
    use roundelay::Code::{CallsDiffer, OrderDiffers, TooManyRoundings};
    [CallsDiffer, OrderDiffers, TooManyRoundings].contains(&error.code())
}

/// Returns the operations of a group in parts, such that no operation `is_beside` another one of its part.
fn apart<'a>(
    group: impl IntoIterator<Item = &'a mut OwnCall>,
    is_beside: impl Fn(&OwnCall, &OwnCall) -> bool,
) -> Vec<Vec<&'a mut OwnCall>> {
    let mut all: Vec<Vec<&mut OwnCall>> = Vec::new();
    for call in group {
        match all.iter_mut().find(|of| !is_beside(of[0], call)) {
            Some(of) => of.push(call),
            None => all.push(vec![call]),
        }
    }
    all
}

/// Returns the communicators of a group, each with its operations.
fn by_comm(group: &mut [OwnCall]) -> Vec<Vec<&mut OwnCall>> {
    apart(group, |a, b| !Arc::ptr_eq(&a.own, &b.own))
}

/// Gives each receive of a rank from itself its send, in their order.
fn match_own_messages(of: Vec<&mut OwnCall>) -> Result<(), Refusal> {
    let own = |call: &&mut OwnCall| matches!(call.way, DataWay::Itself(_));
    let (sends, receives): (Vec<_>, Vec<_>) =
        of.into_iter().filter(own).partition(|call| call.name == Name::Send);
    let usage = |what: &str| Err(Refusal(Code::INVALID_USAGE, what.to_owned()));
    if sends.len() != receives.len() {
        return usage("a rank sends to itself and receives from itself equally often in a group");
    }
    for (send, receive) in sends.iter().zip(receives) {
        if (send.call.count, send.call.dtype) != (receive.call.count, receive.call.dtype) {
            return usage(
                "a rank receives from itself what it sends: as many elements of one type",
            );
        }
        receive.way = DataWay::Itself(Some((send.io[0], send.stream)));
    }
    Ok(())
}

/// Makes the plans of parts of a group, each part in its order. Other ranks may have the parts in another order, or be of
/// this thread: no part waits for another.
fn make_all(parts: Vec<Vec<&mut OwnCall>>) -> Result<(), Unmade> {
    /// Operations of a thread of their own, as long as this call.
    struct Shared<'a>(Vec<&'a mut OwnCall>);
    // SAFETY: streams are addresses, which any thread may use.
    unsafe impl Send for Shared<'_> {}
    impl Shared<'_> {
        fn make(self) -> Result<(), Unmade> {
            self.0.into_iter().try_for_each(OwnCall::make)
        }
    }
    let mut parts: Vec<_> = parts.into_iter().map(Shared).collect();
    let Some(first) = parts.pop() else { return Ok(()) };
    thread::scope(|threads| {
        let begun: Vec<_> =
            parts.into_iter().map(|part| threads.spawn(move || part.make())).collect();
        let first = first.make();
        let done: Vec<_> = begun.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let panicked = |_| Err(Refusal(Code::INTERNAL, "a thread panicked".to_owned()).into());
        done.into_iter().fold(first, |all, done| all.and(done.unwrap_or_else(panicked)))
    })
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
    fn take(operation: &Operation, in_group: bool) -> Result<Self, Left> {
        if !is_alone() {
            return Self::over(operation, in_group).map_err(Left::Passed);
        }
        let taken = guard(|| {
            let (seat, own) = seats::seat(operation.comm)?;
            let taken = Self::new(operation, seat, own)?;
            taken.config.without_nccl()?;
            Ok(taken)
        });
        taken.map_err(Left::Refused)
    }

    fn prepare(group: &mut [Self]) -> Result<(), Left> {
        let prepare = || {
            for of in by_comm(group) {
                match_own_messages(of)?;
            }
            let mut unmade = Vec::new();
            for call in group {
                if !call.find()? {
                    unmade.push(call);
                }
            }
            make_all(apart(unmade, Self::is_beside))
        };
        let prepared = caught(|| Ok(in_own_context(prepare)));
        let prepared = prepared.unwrap_or_else(|refusal| Err(refusal.into()));
        prepared.map_err(|unmade| match unmade {
            Unmade::Left(why) => Left::Passed(why),
            Unmade::Failed(refusal) => Left::Refused(answer(|| Err(refusal))),
        })
    }

    fn run(mut group: Vec<Self>) -> Code {
        // There are trials in no group.
        if let [one @ Self { trial: Some((trial, operation)), .. }] = &group[..] {
            return one.try_out(*trial, operation);
        }
        answer(|| {
            in_own_context(|| {
                for of in by_comm(&mut group) {
                    of[0].own.order.fork(&streams(&of))?;
                }
                group.iter().try_for_each(Self::issue)?;
                group.iter().try_for_each(Self::end)?;
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
        if known.is_empty() {
            return call();
        }
        // Where the driver refuses these, it refuses NCCL's calls, too, which says so.
        in_own_context(|| known.iter().for_each(|(own, stream)| _ = own.order.enter(*stream)));
        let code = call();
        in_own_context(|| known.iter().for_each(|(own, stream)| _ = own.order.leave(*stream)));
        code
    }
}

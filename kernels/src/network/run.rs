//! Calls of a plan on the caller's buffers.

use super::form::{HostsRank, HostsStep, PeerLocation, Transfer};
use super::transfers::OpenTransfers;
use crate::Error;
use crate::lowering::{AnyRankPlan, RankCall, RankPart, UserBuffers};
use crate::shared_memory::ActiveCall;

impl RankCall for HostsRank {
    fn part(&self) -> &RankPart {
        &self.part
    }

    fn exchange(&self) -> Result<Box<AnyRankPlan>, Error> {
        self.hosts.exchange()
    }

    unsafe fn make(&self, outside: UserBuffers) -> Result<(), Error> {
        let _turn = self.hosts.call()?;
        // SAFETY: the caller's promise; the call ends here.
        let mut in_flight = unsafe { self.set_out(outside)? };
        let done = in_flight.run();
        let done = in_flight.end(done);
        if let Err(error @ Error::CallsDiffer(_)) = &done
            && self.hosts.are_several()
        {
            _ = self.hosts.world.give_up_for(error.clone());
        }
        done
    }
}

impl HostsRank {
    /// Begins a call on this input and output.
    ///
    /// # Safety
    /// Both addresses are valid for the rank's buffers, aligned and initialized, the output's writable, and lent until
    /// the returned call is gone.
    pub(super) unsafe fn set_out(&self, outside: UserBuffers) -> Result<CallInFlight<'_>, Error> {
        let UserBuffers { check, .. } = outside;
        let (active, met) = self.hosts.world.enter_call(self.identity, &self.part.call, check)?;
        // No other thread is in a call of this rank. Lowering refuses to write an input.
        let [input, output] = self.outside;
        self.memory.bases.set(input, outside.input.cast_mut());
        self.memory.bases.set(output, outside.output);
        let open = met.map(|counter| OpenTransfers::new(self, &active, counter, check));
        Ok(CallInFlight { plan: self, active, open, step: 0 })
    }
}

/// The progress of a call since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Nowhere,
    Further,
    /// All steps are done.
    Through,
}

/// A call under way, and this rank's next step in it.
pub(super) struct CallInFlight<'p> {
    plan: &'p HostsRank,
    /// Dropped before the active call: no message is under way when the call ends.
    open: Result<OpenTransfers<'p>, Error>,
    active: ActiveCall<'p>,
    /// The next of the plan's steps.
    step: usize,
}

impl<'p> CallInFlight<'p> {
    /// Does all steps that are left, and waits where it must.
    fn run(&mut self) -> Result<(), Error> {
        while self.go_on()? != Progress::Through {
            let Some(HostsStep::End(transfer)) = self.plan.steps.get(self.step) else { continue };
            self.until_done(*transfer)?;
        }
        Ok(())
    }

    /// Does steps up to one that has to wait, and returns the progress.
    pub(super) fn go_on(&mut self) -> Result<Progress, Error> {
        let mut moved = false;
        let (plan, active) = (self.plan, &self.active);
        let open = self.open.as_mut().map_err(|error| error.clone())?;
        while let Some(what) = plan.steps.get(self.step) {
            match *what {
                // SAFETY: the bases point at buffers that are lent for the call, which `open` does not outlive; by the
                // proof no step touches a message's memory before the step at which the message ends.
                HostsStep::Begin(transfer) => unsafe { open.begin(transfer)? },
                HostsStep::End(transfer) => {
                    if !open.is_done(transfer) {
                        moved |= open.go_on(active)?;
                    }
                    if !open.is_done(transfer) {
                        return Ok(if moved { Progress::Further } else { Progress::Nowhere });
                    }
                }
                HostsStep::Move(segment, at) => {
                    let _step = active.step_at(self.step as u32, at);
                    // SAFETY: the bases point at buffers that are lent for the call; by the proof moves touch no
                    // message under way.
                    unsafe { one(plan, active, open, segment)? };
                }
            }
            self.step += 1;
            moved = true;
        }
        Ok(Progress::Through)
    }

    /// Goes on with all messages until the message `transfer` is done.
    fn until_done(&mut self, transfer: u32) -> Result<(), Error> {
        let (active, message) = (&self.active, self.plan.transfers[transfer as usize]);
        let open = self.open.as_mut().map_err(|error| error.clone())?;
        while !open.is_done(transfer) {
            if open.go_on(active)? {
                continue;
            }
            active.stand_at(self.step as u32, message.at);
            let what = || words(message);
            let on = match message.place {
                PeerLocation::Nearby(rank) => Ok(rank),
                PeerLocation::Far(_) => Err(&what as &dyn Fn() -> String),
            };
            let mut moved = Ok(false);
            // After any progress the deadline counts anew. The closure keeps its result, as it may be called again
            // after progress.
            active.await_message(on, open.polls(), || {
                if moved == Ok(false) {
                    moved = open.go_on(active);
                }
                moved != Ok(false)
            })?;
            moved?;
        }
        Ok(())
    }

    /// Returns the text of the event that the call waits for.
    pub(super) fn awaited(&self) -> impl Fn() -> String + use<'p> {
        let (plan, step) = (self.plan, self.step);
        move || match plan.steps.get(step) {
            Some(HostsStep::End(transfer)) => {
                let Transfer { number, peer, sends, bytes, at, .. } =
                    plan.transfers[*transfer as usize];
                let done = if sends { "received" } else { "sent" };
                let place = plan.part.call.schedule.place(at);
                format!(
                    "rank {peer} of another host has not {done} message {number}, of {bytes} bytes ({place}); it may be in another call, or gone"
                )
            }
            _ => "has not gone on by itself".to_owned(),
        }
    }

    /// Ends the call, and returns its result.
    pub(super) fn end(self, done: Result<(), Error>) -> Result<(), Error> {
        let Self { open, active, .. } = self;
        let done = match (done, open) {
            (Ok(()), Ok(open)) => open.close(&active),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        active.end(done)
    }
}

/// Does a move, and goes on with messages meanwhile.
///
/// # Safety
/// The bases point at the rank's buffers; the move writes no bytes of a message under way that is sent, and touches no
/// bytes of one that is received.
unsafe fn one(
    plan: &HostsRank,
    active: &ActiveCall<'_>,
    open: &mut OpenTransfers<'_>,
    segment: u32,
) -> Result<(), Error> {
    let segment = plan.data.all[segment as usize];
    let mut failed = Ok(());
    let stops = || {
        failed = open.go_on(active).map(drop);
        failed.is_err() || active.stops()
    };
    let partials = plan.memory.partials(0);
    let elements = 0..segment.elements;
    // SAFETY: the caller's promise; the partials are this process's alone.
    let whole = unsafe { plan.data.run(segment, elements, &plan.memory.bases, partials, stops) };
    failed?;
    if whole { Ok(()) } else { active.goes_on() }
}

/// Returns the text of a wait for the end of a message of another host.
fn words(transfer: Transfer) -> String {
    let Transfer { number, peer, sends, bytes, .. } = transfer;
    let does = if sends { "receive" } else { "send" };
    format!(
        "rank {peer} of another host to {does} message {number}, of {bytes} bytes; it may be in another call, or gone"
    )
}

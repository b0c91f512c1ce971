//! A call of the program: ours or MPI's, and if it is ours, made.

use std::ffi::c_int;
use std::sync::PoisonError;
use std::time::Instant;

use roundelay::{Call, Code, EngineError, Error};
use roundelay_interposer::{CallMaker, Shape, Turn};
use roundelay_kernels::mpi::Mpi;
use roundelay_kernels::shared_memory::at_site;

use crate::call::{MpiCall, MpiCollective};
use crate::call_buffers::{Copied, Side};
use crate::contests::agree;
use crate::decide::{Chosen, Ours, decide};
use crate::faults::{hand_over, raise};
use crate::last_passes;
use crate::pass::pass;
use crate::process::{Process, process};
use crate::progress;
use crate::seats::{Joined, Ready, Seat, gone, seat};
use crate::settings::TakeoverMode;
use crate::verify;
use crate::why::{Why, Wrong};
use crate::worlds;

/// Makes the call, here or in MPI; MPI's code.
pub(crate) fn collective(asked: &MpiCall, large: bool) -> c_int {
    let process = process();
    let Some(functions) = process.functions() else { return 16 };
    let all = process.mpi().zip(process.job()).filter(|_| !process.has_ended());
    let Some((mpi, job)) = all else { return pass(functions, asked, large) };
    let gone = gone();
    // A report counts all.
    if !process.settings.report && last_passes::is_again(mpi, asked, gone) {
        return pass(functions, asked, large);
    }
    let outcome = match seat(mpi, job, asked.comm) {
        None => Err(Why::Argument),
        Some(seat) => {
            let taking = |ours| Taking { process, mpi, seat: &seat, asked, ours, large };
            match decide(mpi, job, &process.settings, &seat, asked) {
                Ok(Chosen::Ours(ours)) => taking(ours).take(),
                Ok(Chosen::Contest { ours, shape, by_table }) => {
                    taking(ours).compete(shape, by_table)
                }
                Err(why) => Err(why),
            }
        }
    };
    match outcome {
        Ok(code) => code,
        Err(why) => {
            if process.settings.report {
                process.report().calls.add_pass(asked.what, why);
            } else if matches!(why, Why::Size | Why::Arithmetic) {
                last_passes::remember(mpi, asked, gone);
            }
            pass(functions, asked, large)
        }
    }
}

/// A call that is ours.
struct Taking<'a> {
    process: &'a Process,
    mpi: &'static Mpi,
    seat: &'a Seat,
    asked: &'a MpiCall,
    ours: Ours,
    large: bool,
}

impl Taking<'_> {
    /// Makes it, or leaves it to MPI, as the contest of its shape says.
    fn compete(&self, shape: Shape<MpiCollective>, by_table: bool) -> Result<c_int, Why> {
        let Self { process, mpi, seat, asked, large, .. } = self;
        let contests = &seat.contests;
        let mut turn = contests.turn(shape, by_table);
        if turn == Turn::Due {
            turn = Turn::Settled(self.agree(shape, by_table));
        }
        match turn {
            Turn::Settled(CallMaker::Theirs) if contests.is_settled(shape) => Err(Why::Size),
            Turn::Settled(CallMaker::Theirs) => Err(Why::Table),
            Turn::Settled(CallMaker::Ours) | Turn::Due => self.take(),
            Turn::Tried(CallMaker::Ours) => {
                let since = Instant::now();
                let done = self.take();
                match &done {
                    Ok(_) => contests.note(shape, CallMaker::Ours, since.elapsed()),
                    // All ranks found this alike.
                    Err(_) => contests.settle(shape, CallMaker::Theirs),
                }
                done
            }
            Turn::Tried(CallMaker::Theirs) => {
                if process.settings.report {
                    process.report().calls.add_pass(asked.what, Why::Trial);
                }
                let since = Instant::now();
                let code = pass(mpi.functions(), asked, *large);
                contests.note(shape, CallMaker::Theirs, since.elapsed());
                Ok(code)
            }
        }
    }

    /// Has the ranks agree on the times of a contest, and returns the maker of all further calls.
    fn agree(&self, shape: Shape<MpiCollective>, by_table: bool) -> CallMaker {
        let mut joined = self.seat.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let Joined::World(ready) = &mut *joined else {
            self.seat.contests.settle(shape, CallMaker::Theirs);
            return CallMaker::Theirs;
        };
        let agreed = at_site(ready.world.caller_site(), || {
            progress::calling(|| agree(&self.seat.contests, shape, by_table, &mut ready.rank))
        });
        match agreed {
            Ok(verdict) => {
                if self.process.settings.report {
                    self.process.report().decided(shape, verdict);
                }
                if verdict.taken { CallMaker::Ours } else { CallMaker::Theirs }
            }
            // The next call of the world has the error, too.
            Err(_) => CallMaker::Ours,
        }
    }

    /// Makes it; MPI's code, or why it is MPI's after all, on all ranks.
    fn take(&self) -> Result<c_int, Why> {
        let Self { process, mpi, seat, asked, ours, .. } = self;
        let mut joined = seat.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*joined, Joined::NotYet) {
            *joined = worlds::meet(mpi, &process.settings, seat);
        }
        let ready = match &mut *joined {
            Joined::World(ready) => ready,
            Joined::Refused(why) => return Err(Why::All(why.clone())),
            Joined::NotYet => unreachable!("the ranks have just met"),
        };
        if let Some((_, why)) = ready.unfit.iter().find(|(call, _)| *call == ours.call) {
            return Err(Why::Unfit(why.clone()));
        }
        let since = process.settings.report.then(Instant::now);
        let verifies = process.settings.mode == TakeoverMode::Verify;
        let made =
            at_site(ready.world.caller_site(), || progress::calling(|| self.made(ready, verifies)));
        let copy = match made {
            Ok(copy) => copy,
            // All ranks found this alike, before data moved.
            Err(Wrong::Error(error)) if is_unfit(&error) => {
                let why = unfit(ready, &ours.call, &error);
                ready.unfit.push((ours.call, why.clone()));
                return Err(Why::Unfit(why));
            }
            Err(wrong) => {
                if let Wrong::Packing(code) = wrong {
                    // The other ranks are in the call, and would wait.
                    let why = mpi.error("a copy of its data", code);
                    _ = ready.world.abort(&format!("MPI_{}: {why}", asked.what));
                }
                return Ok(self.failed(wrong));
            }
        };
        if let Some(since) = since {
            let algorithm = ready.world.algorithm_of(&ours.call);
            process.report().calls.add_take(asked.what, &algorithm, since.elapsed());
        }
        drop(joined);
        let code = if verifies { self.verified(copy) } else { Ok(0) };
        Ok(code.unwrap_or_else(|wrong| self.failed(wrong)))
    }

    /// Hands an error to the communicator's handler, unless it has heard of it, and returns MPI's code.
    fn failed(&self, wrong: Wrong) -> c_int {
        let Self { process, mpi, seat, asked, .. } = self;
        if process.settings.report {
            process.report().calls.add_failure(asked.what);
        }
        match wrong {
            Wrong::Code(code) => code,
            Wrong::Packing(code) | Wrong::Unpacking(code) => hand_over(mpi, seat.comm, code),
            Wrong::Error(error) => raise(mpi, seat.comm, &format!("MPI_{}: {error}", asked.what)),
        }
    }

    /// Makes the call by MPI as well, whose results the program gets, and compares the results; MPI's code.
    fn verified(&self, ours: Option<Copied>) -> Result<c_int, Wrong> {
        let Self { mpi, asked, large, .. } = self;
        let bound = verify::bound(mpi, asked, &self.ours)?;
        let code = pass(mpi.functions(), asked, *large);
        if code != 0 {
            return Ok(code);
        }
        let theirs = match (&self.ours.blocks, self.ours.output.map(|output| self.side(output))) {
            // SAFETY: MPI has written it, and the call is not over.
            (Some(blocks), _) => unsafe {
                blocks.output.as_ref().map(|output| output.packed(mpi)).transpose()
            },
            // SAFETY: MPI has written it, and the call is not over.
            (None, Some(side)) => unsafe { side.packed() }.map(Some),
            (None, None) => Ok(None),
        };
        let theirs = theirs.map_err(Wrong::Unpacking)?;
        Ok(self.compared(ours, theirs, bound.as_deref()))
    }

    /// Compares results; MPI's code.
    fn compared(
        &self,
        ours: Option<Copied>,
        theirs: Option<Copied>,
        bound: Option<&[u8]>,
    ) -> c_int {
        let Self { mpi, seat, asked, .. } = self;
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return 0 };
        match verify::differs(&self.ours.call, seat.size, &ours, &theirs, bound) {
            None => 0,
            Some(what) => {
                let text = format!("MPI_{}, rank {}: {what}", asked.what, seat.rank);
                raise(mpi, seat.comm, &text)
            }
        }
    }

    fn side(&self, (values, kind): (crate::call::Values, crate::types::TypeLayout)) -> Side<'_> {
        Side { mpi: self.mpi, values, kind }
    }

    /// Makes the call in the program's buffers; or, `apart`, with its output in a copy.
    fn made(&self, ready: &mut Ready, apart: bool) -> Result<Option<Copied>, Wrong> {
        let Self { ours: Ours { call, input, output, in_place, blocks }, asked, .. } = self;
        let wrong = Wrong::Error;
        if let Some(blocks) = blocks {
            return blocks.make(self.mpi, self.seat, ready, *call, apart);
        }
        if asked.what == MpiCollective::Barrier {
            ready.rank.call_bytes_in_place(*call, &mut [0]).map_err(wrong)?;
            return Ok(None);
        }
        let align = call.dtype.size();
        let input = input.map(|input| self.side(input));
        let output = output.map(|output| self.side(output));
        // A rank without an output has no output elsewhere.
        let there = output.filter(|side| side.is_dense(align) && !apart);
        let mut copy = match output.filter(|_| there.is_none()) {
            // SAFETY: the program's values, during its call.
            Some(side) if *in_place => Some(unsafe { side.packed() }.map_err(Wrong::Packing)?),
            Some(side) => Some(Copied::new(side.bytes())),
            None => None,
        };
        // An input that is read in place must not overlap the output, which is written meanwhile.
        let dense = input.filter(|side| {
            side.is_dense(align) && there.is_none_or(|there| !side.overlaps(&there))
        });
        let copied_input = match input.filter(|_| dense.is_none()) {
            // SAFETY: the program's values, during its call.
            Some(side) => Some(unsafe { side.packed() }.map_err(Wrong::Packing)?),
            None => None,
        };
        let input: &[u8] = match (dense, &copied_input) {
            // SAFETY: it is dense, the program's during the call, and apart from the output.
            (Some(side), _) => unsafe { side.there() },
            (None, Some(copied)) => copied,
            (None, None) => &[],
        };
        {
            let output: &mut [u8] = match (there, &mut copy) {
                // SAFETY: it is dense, the program's during the call, and apart from the input.
                (Some(side), _) => unsafe { side.there_mut() },
                (None, Some(copied)) => copied,
                (None, None) => &mut [],
            };
            if *in_place {
                ready.rank.call_bytes_in_place(*call, output).map_err(wrong)?;
            } else if self.needs_output() && output.is_empty() {
                // The root's own block of a scatter in place, which is where it is.
                let mut nowhere = Copied::new((call.count as usize) * call.dtype.size());
                ready.rank.call_bytes(*call, input, &mut nowhere).map_err(wrong)?;
            } else {
                ready.rank.call_bytes(*call, input, output).map_err(wrong)?;
            }
        }
        match (output, copy) {
            (Some(side), Some(copied)) if !apart => {
                // SAFETY: the program's values, during its call, and as many bytes.
                unsafe { side.unpack(&copied) }.map_err(Wrong::Unpacking)?;
                Ok(None)
            }
            (_, copy) => Ok(copy),
        }
    }

    /// Whether this rank has an output in the collective that the program does not want.
    fn needs_output(&self) -> bool {
        self.asked.what == MpiCollective::Scatter && self.ours.output.is_none()
    }
}

/// Whether an error says that the algorithm cannot run such calls. An algorithm that breaks a promise about order is
/// refused, for MPI would break the promise, too.
fn is_unfit(error: &Error) -> bool {
    match error {
        _ if [Code::OrderDiffers, Code::TooManyRoundings].contains(&error.code()) => false,
        Error::Unproved(_) | Error::WrongRoot { .. } => true,
        Error::Engine(error) => matches!(error, EngineError::EqualCounts { .. }),
        _ => false,
    }
}

/// Returns why the algorithm cannot run the call, in a line.
fn unfit(ready: &Ready, call: &Call, error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    format!("{} cannot run it: {first}", ready.world.algorithm_of(call))
}

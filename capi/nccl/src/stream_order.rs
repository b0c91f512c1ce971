//! The order of a communicator's work on several streams: the work of one call begins when that of the call before is
//! over. Kernels of the library and of NCCL that hold a GPU while they wait for other ranks would else stop each other.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use roundelay::cuda::cudarc::driver::sys::{self, CUstreamCaptureStatus};
use roundelay::cuda::cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

use crate::types::Stream;

/// The end of the last work of a communicator.
pub(crate) struct StreamOrder {
    context: Arc<CudaContext>,
    done: CudaEvent,
    /// The address of its stream.
    last: Mutex<Option<usize>>,
}

impl StreamOrder {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let done = context.new_event(None)?;
        Ok(Self { context: context.clone(), done, last: Mutex::new(None) })
    }

    fn last(&self) -> MutexGuard<'_, Option<usize>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stream(&self, stream: Stream) -> Arc<CudaStream> {
        // SAFETY: the stream is the program's, and the value goes before the call returns.
        unsafe { self.context.wrap_borrowed_stream(stream.cast()) }
    }

    /// Has a stream wait for the last work. What a graph captures has the order of the graph's owner.
    pub(crate) fn enter(&self, stream: Stream) -> Result<(), DriverError> {
        let last = self.last();
        if last.is_none_or(|last| last == stream.addr()) {
            return Ok(());
        }
        let stream = self.stream(stream);
        if is_captured(&stream)? { Ok(()) } else { stream.wait(&self.done) }
    }

    /// Returns an event with the time at which a stream has come so far.
    pub(crate) fn mark(&self, stream: Stream) -> Result<CudaEvent, DriverError> {
        let event = self.context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))?;
        event.record(&self.stream(stream))?;
        Ok(event)
    }

    /// Records an event of the program's on a stream; null is none.
    pub(crate) fn record(&self, event: sys::CUevent, stream: Stream) -> Result<(), DriverError> {
        if event.is_null() {
            return Ok(());
        }
        self.context.bind_to_thread()?;
        // SAFETY: the event and the stream are the program's, which promises that they are valid.
        unsafe { result::event::record(event, stream.cast()) }
    }

    /// Whether a graph captures the work of a stream.
    pub(crate) fn captures(&self, stream: Stream) -> Result<bool, DriverError> {
        is_captured(&self.stream(stream))
    }

    /// Makes the work of a stream so far the last.
    pub(crate) fn leave(&self, stream: Stream) -> Result<(), DriverError> {
        let mut last = self.last();
        let borrowed = self.stream(stream);
        if !is_captured(&borrowed)? {
            self.done.record(&borrowed)?;
            *last = Some(stream.addr());
        }
        Ok(())
    }

    /// Has a stream of the library's wait for a stream.
    pub(crate) fn follow(&self, ours: &CudaStream, stream: Stream) -> Result<(), DriverError> {
        ours.join(&self.stream(stream))
    }

    /// Has a stream wait for one of the library's.
    pub(crate) fn wait_for(&self, ours: &CudaStream, stream: Stream) -> Result<(), DriverError> {
        self.stream(stream).join(ours)
    }

    /// Copies bytes on a stream, when another one has come so far; that one waits for the end.
    ///
    /// # Safety
    /// The addresses are those of as many bytes of the device, until the streams are done.
    pub(crate) unsafe fn copy(
        &self,
        stream: Stream,
        sent_on: Stream,
        (from, to): (u64, u64),
        bytes: usize,
    ) -> Result<(), DriverError> {
        let [on, sent] = [stream, sent_on].map(|stream| self.stream(stream));
        if stream != sent_on {
            on.join(&sent)?;
        }
        if bytes > 0 {
            self.context.bind_to_thread()?;
            // SAFETY: the caller's promise.
            unsafe { result::memcpy_dtod_async(to, from, bytes, on.cu_stream()) }?;
        }
        if stream == sent_on { Ok(()) } else { sent.join(&on) }
    }

    /// Has the first stream wait for the work of all.
    pub(crate) fn fork(&self, streams: &[Stream]) -> Result<(), DriverError> {
        let Some((first, others)) = streams.split_first() else { return Ok(()) };
        let first = self.stream(*first);
        others.iter().try_for_each(|other| first.join(&self.stream(*other)))
    }

    /// Has all streams wait for the work of the last.
    pub(crate) fn join(&self, streams: &[Stream]) -> Result<(), DriverError> {
        let Some((last, others)) = streams.split_last() else { return Ok(()) };
        let last = self.stream(*last);
        others.iter().try_for_each(|other| self.stream(*other).join(&last))
    }
}

fn is_captured(stream: &CudaStream) -> Result<bool, DriverError> {
    Ok(stream.capture_status()? != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// Makes calls of the driver, and leaves the thread in the context that was current in it.
pub(crate) fn in_own_context<R>(call: impl FnOnce() -> R) -> R {
    /// Whether there is a driver: to look for it takes longer than a call.
    static DRIVER: LazyLock<bool> = LazyLock::new(|| {
        // SAFETY: the function of the library's loader has no conditions.
        unsafe { sys::is_culib_present() }
    });
    // Without a driver there is no context.
    let before = DRIVER.then(|| result::ctx::get_current().ok());
    let done = call();
    if let Some(Some(Some(context))) = before {
        // SAFETY: the context was current, and the call destroyed none.
        _ = unsafe { result::ctx::set_current(context) };
    }
    done
}

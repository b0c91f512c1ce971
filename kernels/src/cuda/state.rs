//! The order of a plan's launches: after one another, and on all devices as on the caller's stream.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream};

use super::device::{Device, failed};
use super::error::Error;

/// The last launch that no graph replays, as far as the next launch must know it.
#[derive(Default)]
pub(super) struct LastLaunch {
    /// The stream of the launch.
    pub(super) stream: Option<Arc<CudaStream>>,
    /// The buffers that the table of direct launches holds.
    pub(super) bound: Option<Vec<[u64; 2]>>,
}

/// A caller's stream, and the index of its device.
pub(super) type Caller<'a> = (usize, &'a Arc<CudaStream>);

/// One stream for each device, to order the devices' work by the caller's stream; empty where there is one device.
pub(super) struct StreamOrder(Vec<ForkedStream>);

/// A device's own stream, forked from the caller's and joined to it.
struct ForkedStream {
    stream: Arc<CudaStream>,
    forked: CudaEvent,
    joined: CudaEvent,
}

impl StreamOrder {
    pub(super) fn new(devices: &[Device]) -> Result<Self, Error> {
        let side = |device: &Device| {
            let what = || format!("making a stream on device {}", device.ordinal);
            Ok(ForkedStream {
                stream: device.context.new_stream().map_err(failed(what()))?,
                forked: device.context.new_event(None).map_err(failed(what()))?,
                joined: device.context.new_event(None).map_err(failed(what()))?,
            })
        };
        // A context with a stream of its own tracks the use of every slice; one device needs no such stream.
        let several = if devices.len() > 1 { devices } else { &[] };
        several.iter().map(side).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the stream of a device: the caller's own stream on the caller's device.
    pub(super) fn stream<'a>(
        &'a self,
        device: usize,
        (at, caller): Caller<'a>,
    ) -> &'a Arc<CudaStream> {
        if device == at { caller } else { &self.0[device].stream }
    }

    fn others(&self, at: usize) -> impl Iterator<Item = &ForkedStream> {
        self.0.iter().enumerate().filter_map(move |(device, side)| (device != at).then_some(side))
    }

    /// Orders the other devices' streams after the caller's.
    pub(super) fn fork(&self, (at, caller): Caller<'_>) -> Result<(), Error> {
        let Some(mine) = self.0.get(at) else { return Ok(()) };
        mine.forked.record(caller).map_err(failed("forking streams"))?;
        self.others(at)
            .try_for_each(|side| side.stream.wait(&mine.forked))
            .map_err(failed("forking streams"))
    }

    /// Orders the caller's stream after the other devices'.
    pub(super) fn join(&self, (at, caller): Caller<'_>) -> Result<(), Error> {
        let join = |side: &ForkedStream| {
            side.joined.record(&side.stream)?;
            caller.wait(&side.joined)
        };
        self.others(at).try_for_each(join).map_err(failed("joining streams"))
    }
}

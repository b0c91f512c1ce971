//! The check of a plan on devices: one launch on known data, when the plan is made. At the first launch of a caller it
//! would be too late, as a graph that captures it can wait for nothing.

use roundelay_core::ids::RankId;

use super::error::Error;
use super::plan::CudaPlan;
use super::rooms::Rooms;
use crate::buffers::Buffers;
use crate::reference::KnownRank;

impl CudaPlan {
    /// Launches the plan on known data in buffers of its own, and compares the results of all ranks.
    ///
    /// # Errors
    /// E0433 for data that is wrong; E0419 where a device has no room; the errors of a launch.
    pub(super) fn check_first(&self) -> Result<(), Error> {
        let call = &self.call;
        let (nranks, size) = (call.schedule.nranks, call.dtype.size());
        let known: Vec<KnownRank> = call.ranks().map(|rank| call.known(nranks, rank)).collect();
        let buffers = |rank: RankId| Buffers::new(&call.schedule, rank, call.count, size);
        let input = |known: &KnownRank| {
            let mut bytes = vec![0; buffers(known.rank).input];
            known.fill(&mut bytes, 0);
            bytes
        };
        let inputs: Vec<Vec<u8>> = known.iter().map(input).collect();
        let mut rooms = Rooms::new(&self.world, call.ranks().map(buffers).collect(), &inputs)?;
        rooms.clear()?;
        rooms.launch(self, &self.world.stream(), false)?;
        self.wait()?;
        for (known, output) in known.iter().zip(rooms.results(false)?) {
            if let Some(wrong) = known.wrong(&output, 0) {
                let wrong = Box::new(call.wrong_data(known.rank, wrong));
                return Err(crate::Error::WrongData(wrong).into());
            }
        }
        Ok(())
    }
}

//! The number of CTAs that share a stream: all CTAs of a device must be resident at once, since they wait for each
//! other.

use roundelay_core::schedule::{OpKind, Schedule};

/// Bytes of a move for which one more CTA pays: the bytes that a CTA has in flight at once.
const BYTES_PER_PART: u64 = 16 << 10;

/// A device that cannot hold its CTAs all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowded {
    /// The number of the device, in the order of the world's devices.
    pub device: usize,
    /// The number of streams on it.
    pub streams: u64,
    /// The number of CTAs of each stream.
    pub ctas: u64,
    /// The number of CTAs that the device holds at once.
    pub holds: u64,
}

/// Returns the CTAs of a stream: the `wanted` number, or as many as all devices hold and the work is `worth`. `devices`
/// has the streams of each device, and the CTAs that it holds at once.
pub fn parts(devices: &[(u64, u64)], wanted: Option<u32>, worth: u32) -> Result<u32, Crowded> {
    let fits = |(streams, holds): &(u64, u64)| holds.checked_div(*streams).unwrap_or(u64::MAX);
    let most = devices.iter().map(fits).min().unwrap_or(u64::MAX);
    let ctas = wanted.unwrap_or_else(|| u64::from(worth).min(most).max(1) as u32);
    match devices.iter().position(|device| fits(device) < u64::from(ctas)) {
        None => Ok(ctas),
        Some(device) => {
            let (streams, holds) = devices[device];
            Err(Crowded { device, streams, ctas: ctas.into(), holds })
        }
    }
}

/// Returns the number of CTAs of a stream that the largest move pays for.
pub fn worth(schedule: &Schedule, count: u64, element_size: usize) -> u32 {
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let elements = moves.map(|op| {
        let region = schedule.region(schedule.dsts(op)[0]);
        schedule.extent(region, count).1
    });
    let bytes = elements.max().unwrap_or(0).saturating_mul(element_size as u64);
    u32::try_from(bytes.div_ceil(BYTES_PER_PART)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ctas_as_fit_and_pay() {
        // 8 streams on a device that holds 264 CTAs.
        assert_eq!(parts(&[(8, 264)], None, 1000), Ok(33));
        assert_eq!(parts(&[(8, 264)], None, 5), Ok(5));
        assert_eq!(parts(&[(8, 264)], None, 0), Ok(1));
        assert_eq!(parts(&[(8, 264)], Some(33), 1), Ok(33), "the wanted number is not changed");
    }

    #[test]
    fn the_fullest_device_decides() {
        assert_eq!(parts(&[(4, 264), (12, 264), (0, 264)], None, 1000), Ok(22));
    }

    #[test]
    fn what_is_not_resident_is_refused_and_says_where() {
        let crowded = |device, streams, ctas| Err(Crowded { device, streams, ctas, holds: 100 });
        assert_eq!(parts(&[(101, 100)], None, 9), crowded(0, 101, 1));
        assert_eq!(parts(&[(10, 100), (50, 100)], Some(3), 9), crowded(1, 50, 3));
        assert_eq!(parts(&[(0, 0)], None, 9), Ok(9), "no streams, no CTAs");
    }

    #[test]
    fn the_largest_move_says_what_pays() {
        let text = "\
schedule Two AllReduce nranks 1 root 0
rank 0 stream 0
  copy 0.input[0..1/2] -> 0.output[0..1/2] @0
  copy 0.input[0..1] -> 0.output[0..1] @0
";
        let schedule = roundelay_core::schedule::text::parse(text).expect("a schedule");
        assert_eq!(worth(&schedule, 0, 4), 1);
        assert_eq!(worth(&schedule, 4096, 4), 1);
        assert_eq!(worth(&schedule, 4097, 4), 2);
        assert_eq!(worth(&schedule, 1 << 40, 8), 1 << 29);
    }
}

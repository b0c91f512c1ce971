//! A clock of the processor, which all processes of a host read in a few nanoseconds and which the system does not
//! adjust: for the records of calls.

use std::thread;
use std::time::{Duration, Instant};

/// Returns the time in ticks of the clock; never 0.
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction; it only reads the time stamp counter.
    let ticks = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    let ticks = {
        let ticks: u64;
        // SAFETY: the system lets every process read the virtual counter; the instruction has no other effect.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let ticks = crate::recorder::now();
    ticks.max(1)
}

/// How long the rate of the clock is measured: for an error far below a thousandth.
const MEASURED: Duration = Duration::from_millis(5);

/// A moment, and the rate of the clock: the time between that moment and earlier ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    ticks: u64,
    seconds_a_tick: f64,
}

impl Now {
    /// Measures the rate of the clock, for some milliseconds, and returns the moment at their end.
    pub(crate) fn measured() -> Self {
        let (began, since) = (ticks(), Instant::now());
        thread::sleep(MEASURED);
        let (took, ticks) = (since.elapsed(), ticks());
        let seconds_a_tick = took.as_secs_f64() / ticks.saturating_sub(began).max(1) as f64;
        Self { ticks, seconds_a_tick }
    }

    /// Returns how long ago a moment was; zero for a moment that is yet to come, as another core's clock may be ahead.
    pub(crate) fn since(&self, moment: u64) -> Duration {
        let seconds = self.ticks.saturating_sub(moment) as f64 * self.seconds_a_tick;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_rate_is_that_of_the_systems_clock() {
        let (began, since) = (ticks(), Instant::now());
        thread::sleep(Duration::from_millis(40));
        let now = Now::measured();
        let (told, took) = (now.since(began).as_secs_f64(), since.elapsed().as_secs_f64());
        // A machine with other work may take this thread's core between the two looks at the clocks.
        assert!(told > 0.8 * took && told < 1.2 * took, "{told} of {took}");
        assert_eq!(now.since(u64::MAX), Duration::ZERO);
        assert!(now.since(0) > Duration::ZERO);
    }
}

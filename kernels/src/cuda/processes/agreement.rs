//! Steps that succeed on all ranks or fail on all.

use super::super::error::Error;
use crate::shared_memory::World;

/// The most bytes of an error's text that other ranks get.
const TEXT: usize = 2048;

/// Tells all ranks whether this rank's step succeeded, and returns the step's value with the bytes that each rank told
/// beside.
///
/// # Errors
/// This rank's error, or E0413 with that of another rank; the errors of an exchange.
pub(super) fn agree<T>(
    world: &World,
    step: Result<T, Error>,
    beside: impl FnOnce(&T) -> Vec<u8>,
) -> Result<(T, Vec<Vec<u8>>), Error> {
    let mut mine = vec![u8::from(step.is_ok())];
    match &step {
        Ok(value) => mine.extend(beside(value)),
        Err(error) => {
            let text = error.to_string();
            mine.extend_from_slice(&text.as_bytes()[..text.len().min(TEXT)]);
        }
    }
    let all = world.exchange(&mine);
    // This rank's own error says more than that of an exchange which failed after it.
    let value = step?;
    let mut told = Vec::new();
    for (by, bytes) in (0_u32..).zip(all?) {
        match bytes.split_first() {
            Some((1, beside)) => told.push(beside.to_vec()),
            Some((_, why)) => {
                let why = String::from_utf8_lossy(why).into_owned();
                let (rank, by) = (world.rank().into(), by.into());
                return Err(crate::Error::Abandoned { rank, by, why }.into());
            }
            None => return Err(world.corrupt(format!("rank {by} tells nothing")).into()),
        }
    }
    Ok((value, told))
}

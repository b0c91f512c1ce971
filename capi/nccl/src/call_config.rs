//! The configuration of a call, `ncclCollConfig_t`: what it asks of NCCL's kernels, and of the stream.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use roundelay::cuda::cudarc::driver::sys::CUevent;

use crate::call_errors::{Refusal, wrong};
use crate::types::{Code, In};

/// `NCCL_API_MAGIC`
const MAGIC: c_uint = 0xcafe_beef;
/// `NCCL_CONFIG_UNDEF_INT`
const UNSET: c_int = c_int::MIN;

/// `ncclCollConfig_t` of NCCL 2.32. Later versions have more at its end.
#[derive(Clone, Copy)]
#[repr(C)]
struct CollConfig {
    size: usize,
    magic: c_uint,
    version: c_uint,
    /// Options of vendors, which NVIDIA's library ignores, too.
    extensions: *mut c_void,
    least_ctas: c_int,
    most_ctas: c_int,
    nvls_ctas: c_int,
    cluster: c_int,
    selection: *const c_char,
    forces_selection: c_int,
    cta_policy: c_int,
    profiler_tag: u64,
    launched: CUevent,
}

/// The demands of a call's configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallConfig {
    /// NCCL's kernels: their CTAs, or which algorithm runs.
    pub(crate) tunes: bool,
    /// One of NCCL's algorithms, and no other.
    forces: bool,
    /// The event that is recorded when the call is launched; null for none.
    pub(crate) launched: CUevent,
}

/// Returns the bytes of a configuration, whose first words are its size and the mark of NCCL's initializers; 0 for null.
///
/// # Errors
/// It was not initialized.
///
/// # Safety
/// The address is null, or that of a structure of as many bytes as its first word says.
unsafe fn initialized(at: In, what: &str) -> Result<usize, Refusal> {
    if at.is_null() {
        return Ok(0);
    }
    let words = at.cast::<(usize, c_uint)>();
    let is_aligned = words.is_aligned();
    // SAFETY: it is aligned, and begins with its size.
    let size = if is_aligned { unsafe { at.cast::<usize>().read() } } else { 0 };
    // SAFETY: the caller's promise; the mark stands behind the size.
    let mark =
        (size >= 12).then(|| unsafe { at.byte_add(size_of::<usize>()).cast::<c_uint>().read() });
    if mark != Some(MAGIC) {
        return Err(wrong(format!("{what} was not initialized by NCCL's initializer")));
    }
    Ok(size)
}

/// Checks the configuration of a communicator, `ncclConfig_t`, whose values are about NCCL's channels and networks.
///
/// # Errors
/// It was not initialized.
///
/// # Safety
/// The address is null, or that of a structure of as many bytes as its first word says.
pub(crate) unsafe fn check_comm(config: In) -> Result<(), Refusal> {
    // SAFETY: the caller's promise.
    unsafe { initialized(config, "the configuration of the communicator") }.map(drop)
}

impl CallConfig {
    /// Reads a configuration; null asks for nothing.
    ///
    /// # Errors
    /// It was not initialized.
    ///
    /// # Safety
    /// The address is null, or that of a structure of as many bytes as its first word says.
    pub(crate) unsafe fn read(at: In) -> Result<Self, Refusal> {
        // SAFETY: the caller's promise.
        let size = unsafe { initialized(at, "the configuration of the call") }?;
        if size == 0 {
            return Ok(Self::default());
        }
        let mut config = CollConfig {
            size: 0,
            magic: 0,
            version: 0,
            extensions: null_mut(),
            least_ctas: UNSET,
            most_ctas: UNSET,
            nvls_ctas: UNSET,
            cluster: UNSET,
            selection: std::ptr::null(),
            forces_selection: 1,
            cta_policy: UNSET,
            profiler_tag: 0,
            launched: null_mut(),
        };
        let size = size.min(size_of::<CollConfig>());
        // SAFETY: the caller's promise; fields that an older structure lacks stay unset.
        unsafe {
            at.cast::<u8>().copy_to_nonoverlapping((&raw mut config).cast(), size);
        }
        let selects = !config.selection.is_null() && {
            // SAFETY: the caller's promise: a text of C.
            !unsafe { CStr::from_ptr(config.selection) }.is_empty()
        };
        let numbers = [
            config.least_ctas,
            config.most_ctas,
            config.nvls_ctas,
            config.cluster,
            config.cta_policy,
        ];
        Ok(Self {
            tunes: selects || numbers.iter().any(|number| *number != UNSET),
            forces: selects && config.forces_selection != 0,
            launched: config.launched,
        })
    }

    /// Refuses what cannot be had without NCCL: its algorithms. Counts of CTAs are NCCL's, and change nothing.
    ///
    /// # Errors
    /// The configuration demands an algorithm of NCCL.
    pub(crate) fn without_nccl(self) -> Result<Self, Refusal> {
        if self.forces {
            let why = "algSelection names algorithms of NCCL, which is not there: leave it unset, or unset forceAlgSelection";
            return Err(Refusal(Code::INVALID_USAGE, why.to_owned()));
        }
        Ok(self)
    }
}

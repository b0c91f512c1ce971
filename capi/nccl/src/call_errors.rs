//! Failures of the library's own calls: NCCL's code, and the text for `ncclGetLastError`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use roundelay::{EngineError, Error, cuda};

use crate::last_error;
use crate::types::Code;

/// The failure of a call, told to the program.
#[derive(Clone, Debug)]
pub(crate) struct Refusal(pub(crate) Code, pub(crate) String);

impl Refusal {
    /// Keeps the text for `ncclGetLastError`, and returns the code.
    pub(crate) fn tell(self) -> Code {
        last_error::tell(&self.1);
        self.0
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = error.code().as_str();
        let answer = match code {
            "E0402" | "E0404" | "E0409" | "E0411" | "E0431" => Code::INVALID_ARGUMENT,
            "E0413" | "E0405" | "E0428" => Code::REMOTE,
            "E0414" | "E0427" => Code::INVALID_USAGE,
            "E0415" | "E0429" => Code::SYSTEM,
            "E0419" | "E0421" => Code::CUDA,
            _ => Code::INTERNAL,
        };
        Self(answer, error.to_string())
    }
}

impl From<cuda::Error> for Refusal {
    fn from(error: cuda::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<cuda::cudarc::driver::DriverError> for Refusal {
    fn from(error: cuda::cudarc::driver::DriverError) -> Self {
        Self(Code::CUDA, format!("the driver refuses: {error}"))
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Error::from(error).into()
    }
}

/// Returns the refusal of a wrong argument.
pub(crate) fn wrong(what: impl Into<String>) -> Refusal {
    Refusal(Code::INVALID_ARGUMENT, what.into())
}

/// Makes a call, whose panic is a failure.
pub(crate) fn caught<R>(call: impl FnOnce() -> Result<R, Refusal>) -> Result<R, Refusal> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(Refusal(Code::INTERNAL, "the library panicked, which is a defect of it".into()))
    })
}

/// Returns the code of a call's failure, whose text is kept for `ncclGetLastError`.
pub(crate) fn guard<R>(call: impl FnOnce() -> Result<R, Refusal>) -> Result<R, Code> {
    caught(call).map_err(Refusal::tell)
}

/// Has a call answer by its code.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Refusal>) -> Code {
    guard(call).err().unwrap_or(Code::SUCCESS)
}

/// Writes a result of a function.
///
/// # Safety
/// `to` is null or has room for the value.
pub(crate) unsafe fn write<T>(to: *mut T, what: &str, value: T) -> Result<(), Refusal> {
    if to.is_null() {
        return Err(wrong(format!("{what} is null")));
    }
    // SAFETY: the caller's promise; it need not be aligned.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

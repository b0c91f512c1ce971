//! NVRTC's functions, loaded when they are needed. Not through cudarc, which takes the first library that the
//! loader finds and panics if there is none: the library that compiles must be the one that was named.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use super::error::{Error, Part};
use super::find::{self, Found, Hints};
use super::symbols::functions;

/// `nvrtcProgram`.
type Handle = *mut c_void;

// The same since CUDA 11.2.
functions! {
    version: nvrtcVersion(*mut c_int, *mut c_int) -> c_int;
    error_string: nvrtcGetErrorString(c_int) -> *const c_char;
    arch_count: nvrtcGetNumSupportedArchs(*mut c_int) -> c_int;
    archs: nvrtcGetSupportedArchs(*mut c_int) -> c_int;
    create: nvrtcCreateProgram(*mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
    compile: nvrtcCompileProgram(Handle, c_int, *const *const c_char) -> c_int;
    destroy: nvrtcDestroyProgram(*mut Handle) -> c_int;
    log_size: nvrtcGetProgramLogSize(Handle, *mut usize) -> c_int;
    log: nvrtcGetProgramLog(Handle, *mut c_char) -> c_int;
    ptx_size: nvrtcGetPTXSize(Handle, *mut usize) -> c_int;
    ptx: nvrtcGetPTX(Handle, *mut c_char) -> c_int;
    cubin_size: nvrtcGetCUBINSize(Handle, *mut usize) -> c_int;
    cubin: nvrtcGetCUBIN(Handle, *mut c_char) -> c_int;
}

/// A size, or bytes of that size, of a program.
type Asks<T> = unsafe extern "C" fn(Handle, *mut T) -> c_int;

/// NVRTC.
pub(super) struct Nvrtc {
    functions: Functions,
    /// The numbers of the architectures that it knows.
    pub(super) archs: Vec<u32>,
    /// Such as `13.0`.
    pub(super) version: String,
    /// The library's size, which tells builds of a version apart.
    pub(super) size: u64,
    /// Where CUDA's headers are.
    pub(super) headers: Option<PathBuf>,
    /// Where they were looked for.
    pub(super) header_folders: Vec<PathBuf>,
    _libraries: Vec<Library>,
}

/// What a text became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) cubin: Vec<u8>,
    pub(super) ptx: String,
    pub(super) log: String,
}

/// Why a text became nothing: NVRTC's word for it, and its log.
pub(super) struct Failure {
    pub(super) word: String,
    pub(super) log: String,
}

impl Nvrtc {
    /// The one of this process. Looked for again until it is found, then kept.
    pub(super) fn of_process() -> Result<&'static Self, Error> {
        static FOUND: OnceLock<Nvrtc> = OnceLock::new();
        static SEARCH: Mutex<()> = Mutex::new(());
        let _search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
        if FOUND.get().is_none() {
            let found = Self::find(&Hints::here())?;
            return Ok(FOUND.get_or_init(|| found));
        }
        Ok(FOUND.get().expect("it was found before"))
    }

    /// Finds and loads it.
    pub(super) fn find(hints: &Hints) -> Result<Self, Error> {
        let Found { libraries, path } = hints.find()?;
        let place = path.as_deref().unwrap_or(Path::new("the loader's NVRTC"));
        let unfit =
            |why: String| Error::missing(Part::Nvrtc, [format!("{} {why}", place.display())]);
        let functions = Functions::of(&libraries[0])
            .map_err(|error| unfit(format!("is not it, or older than CUDA 11.2: {error}")))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both point to integers.
        let code = unsafe { (functions.version)(&raw mut major, &raw mut minor) };
        if code != 0 {
            return Err(unfit(format!("does not say its version: error {code}")));
        }
        let size = path.as_deref().and_then(|path| path.metadata().ok()).map_or(0, |m| m.len());
        let (headers, header_folders) = find::headers(path.as_deref());
        Ok(Self {
            archs: archs(&functions).ok_or_else(|| unfit("knows no architecture".to_owned()))?,
            version: format!("{major}.{minor}"),
            size,
            functions,
            headers,
            header_folders,
            _libraries: libraries,
        })
    }

    /// Compiles a text. `headers` are names and texts that it may include.
    pub(super) fn build(
        &self,
        text: &str,
        name: &str,
        headers: &[(&str, &str)],
        options: &[String],
    ) -> Result<Built, Failure> {
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        for (name, text) in headers {
            names.push(c_string(name)?);
            texts.push(c_string(text)?);
        }
        let options = options.iter().map(|o| c_string(o)).collect::<Result<Vec<_>, _>>()?;
        let mut program = NvrtcProgram { nvrtc: self, handle: ptr::null_mut() };
        let (text, name) = (c_string(text)?, c_string(name)?);
        let (names, texts) = (pointers(&names), pointers(&texts));
        // SAFETY: all strings end in NUL and live until the call is over; there are as many names as texts.
        let code = unsafe {
            (self.functions.create)(
                &raw mut program.handle,
                text.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        self.check(code, String::new)?;
        let options = pointers(&options);
        // SAFETY: the program was created; the options end in NUL and live until the call is over.
        let code = unsafe {
            (self.functions.compile)(program.handle, options.len() as c_int, options.as_ptr())
        };
        let log = || program.text(self.functions.log_size, self.functions.log).unwrap_or_default();
        self.check(code, log)?;
        Ok(Built {
            cubin: program.bytes(self.functions.cubin_size, self.functions.cubin)?,
            ptx: program.text(self.functions.ptx_size, self.functions.ptx)?,
            log: log(),
        })
    }

    fn check(&self, code: c_int, log: impl FnOnce() -> String) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC has a text for every number, which lasts.
        let word = unsafe { CStr::from_ptr((self.functions.error_string)(code)) };
        Err(Failure { word: word.to_string_lossy().into_owned(), log: log() })
    }
}

/// A program of NVRTC, which is destroyed when it is dropped.
struct NvrtcProgram<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

impl NvrtcProgram<'_> {
    fn bytes(&self, size: Asks<usize>, fill: Asks<c_char>) -> Result<Vec<u8>, Failure> {
        let mut len = 0;
        // SAFETY: the program was created, and `len` is a size.
        self.nvrtc.check(unsafe { size(self.handle, &raw mut len) }, String::new)?;
        let mut bytes = vec![0_u8; len];
        // SAFETY: there is room for as many bytes as it said.
        let code = unsafe { fill(self.handle, bytes.as_mut_ptr().cast()) };
        self.nvrtc.check(code, String::new)?;
        Ok(bytes)
    }

    /// Without the NUL at its end.
    fn text(&self, size: Asks<usize>, fill: Asks<c_char>) -> Result<String, Failure> {
        let bytes = self.bytes(size, fill)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl Drop for NvrtcProgram<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it was created, and nobody has it after this.
            unsafe { (self.nvrtc.functions.destroy)(&raw mut self.handle) };
        }
    }
}

fn archs(functions: &Functions) -> Option<Vec<u32>> {
    let mut count = 0;
    // SAFETY: it points to an integer.
    if unsafe { (functions.arch_count)(&raw mut count) } != 0 || count <= 0 {
        return None;
    }
    let mut archs: Vec<c_int> = vec![0; count as usize];
    // SAFETY: there is room for as many as it said.
    let code = unsafe { (functions.archs)(archs.as_mut_ptr()) };
    (code == 0).then(|| archs.into_iter().map(|arch| arch as u32).collect())
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|error| Failure {
        word: "NVRTC_ERROR_INVALID_INPUT".to_owned(),
        log: format!("a NUL byte at {}", error.nul_position()),
    })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

//! NVRTC by way of cudarc, which binds to the first library that the loader finds by NVRTC's names and panics if there
//! is none. So the named library is loaded first, the loader then returns it, and the bound library is compared with
//! it: the library that compiles must be the named one.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};
use libloading::Library;

use super::error::{Error, Part};
use super::find::{self, Hints, LoadedNvrtc};

/// NVRTC's functions that are called, the same since CUDA 11.2.
const FUNCTIONS: [&CStr; 15] = [
    c"nvrtcVersion",
    c"nvrtcGetErrorString",
    c"nvrtcGetNumSupportedArchs",
    c"nvrtcGetSupportedArchs",
    c"nvrtcCreateProgram",
    c"nvrtcCompileProgram",
    c"nvrtcDestroyProgram",
    c"nvrtcGetProgramLogSize",
    c"nvrtcGetProgramLog",
    c"nvrtcGetPTXSize",
    c"nvrtcGetPTX",
    c"nvrtcGetCUBINSize",
    c"nvrtcGetCUBIN",
    c"nvrtcAddNameExpression",
    c"nvrtcGetLoweredName",
];

/// A function of NVRTC that writes a size of a program, or bytes of that size.
type Asks<T> = unsafe fn(nvrtcProgram, *mut T) -> nvrtcResult;

/// NVRTC after it was loaded.
pub(super) struct Nvrtc {
    /// The numbers of the architectures that it knows.
    pub(super) archs: Vec<u32>,
    /// Such as `13.0`.
    pub(super) version: String,
    /// The library's size, which tells builds of a version apart.
    pub(super) size: u64,
    /// The folder of CUDA's headers.
    pub(super) headers: Option<PathBuf>,
    /// The folders that were searched for them.
    pub(super) header_folders: Vec<PathBuf>,
    /// Keeps the library and its parts loaded.
    _libraries: Vec<Library>,
}

/// The result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) cubin: Vec<u8>,
    pub(super) ptx: String,
    pub(super) log: String,
    /// The names in the PTX of the C++ expressions that were to be named.
    pub(super) names: Vec<String>,
}

/// The error of a compilation: NVRTC's word for it, and its log.
pub(super) struct Failure {
    pub(super) word: String,
    pub(super) log: String,
}

impl Nvrtc {
    /// Returns the library of this process. Searches for it until it is found, then keeps it.
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

    /// Finds and loads the library, and has cudarc bind to it.
    pub(super) fn find(hints: &Hints) -> Result<Self, Error> {
        let LoadedNvrtc { libraries, path } = hints.find()?;
        let place = path.as_deref().unwrap_or(Path::new("the loader's NVRTC"));
        let unfit =
            |why: String| Error::missing(Part::Nvrtc, [format!("{} {why}", place.display())]);
        bind(&libraries[0]).map_err(unfit)?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both point to integers.
        let code = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
        if code != nvrtcResult::NVRTC_SUCCESS {
            return Err(unfit(format!("does not say its version: {code:?}")));
        }
        let size = path.as_deref().and_then(|path| path.metadata().ok()).map_or(0, |m| m.len());
        let (headers, header_folders) = find::headers(path.as_deref());
        Ok(Self {
            archs: archs().ok_or_else(|| unfit("knows no architecture".to_owned()))?,
            version: format!("{major}.{minor}"),
            size,
            headers,
            header_folders,
            _libraries: libraries,
        })
    }

    /// Compiles a text with the library that cudarc is bound to; there is one. `headers` are the names and texts that
    /// the text may include, and `wanted` are C++ expressions that name kernels, whose templates are instantiated.
    pub(super) fn build(
        text: &str,
        name: &str,
        headers: &[(&str, &str)],
        options: &[String],
        wanted: &[String],
    ) -> Result<Built, Failure> {
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        for (name, text) in headers {
            names.push(c_string(name)?);
            texts.push(c_string(text)?);
        }
        let options = options.iter().map(|o| c_string(o)).collect::<Result<Vec<_>, _>>()?;
        let mut program = NvrtcProgram(ptr::null_mut());
        let (text, name) = (c_string(text)?, c_string(name)?);
        let (names, texts) = (pointers(&names), pointers(&texts));
        // SAFETY: all strings end in NUL and live until the call is over; there are as many names as texts.
        let code = unsafe {
            sys::nvrtcCreateProgram(
                &raw mut program.0,
                text.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        check(code, String::new)?;
        let wanted = wanted.iter().map(|name| c_string(name)).collect::<Result<Vec<_>, _>>()?;
        for name in &wanted {
            // SAFETY: the program was created and not compiled yet, and the expression ends in NUL.
            let code = unsafe { sys::nvrtcAddNameExpression(program.0, name.as_ptr()) };
            check(code, String::new)?;
        }
        let options = pointers(&options);
        // SAFETY: the program was created; the options end in NUL and live until the call is over.
        let code = unsafe {
            sys::nvrtcCompileProgram(program.0, options.len() as c_int, options.as_ptr())
        };
        let log = || {
            program.text(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog).unwrap_or_default()
        };
        check(code, log)?;
        Ok(Built {
            cubin: program.bytes(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN)?,
            ptx: program.text(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)?,
            log: log(),
            names: wanted.iter().map(|name| program.lowered(name)).collect::<Result<_, _>>()?,
        })
    }
}

/// Has cudarc bind to the library; the error says why it cannot, or that it is bound to another library.
fn bind(found: &Library) -> Result<(), String> {
    let address = |library: &Library, name: &CStr| {
        // SAFETY: the symbol is read as an address, which is not used.
        let symbol = unsafe { library.get::<*const ()>(name.to_bytes_with_nul()) };
        symbol.map(|symbol| (*symbol).addr()).map_err(|error| error.to_string())
    };
    for name in FUNCTIONS {
        address(found, name)
            .map_err(|error| format!("is not it, or older than CUDA 11.2: {error}"))?;
    }
    // SAFETY: NVRTC's initializers ask nothing of the caller; a library of one of the names is loaded already.
    let bound = unsafe {
        if !sys::is_culib_present() {
            return Err("is not found again by any of the names that cudarc knows".to_owned());
        }
        sys::culib()
    };
    let [here, there] = [found, bound].map(|library| address(library, FUNCTIONS[0]));
    match (here, there) {
        (Ok(here), Ok(there)) if here == there => Ok(()),
        (_, there) => {
            let other = there.ok().and_then(find::mapped_at);
            let other =
                other.map_or("another library".to_owned(), |path| path.display().to_string());
            Err(format!(
                "was found, but the loader answers NVRTC's name with {other}: \
                 take that one, or let the loader find only the one that you name"
            ))
        }
    }
}

fn check(code: nvrtcResult, log: impl FnOnce() -> String) -> Result<(), Failure> {
    if code == nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    // SAFETY: NVRTC has a static text for every number.
    let word = unsafe { CStr::from_ptr(sys::nvrtcGetErrorString(code)) };
    Err(Failure { word: word.to_string_lossy().into_owned(), log: log() })
}

/// A program of NVRTC, which is destroyed when it is dropped.
struct NvrtcProgram(nvrtcProgram);

impl NvrtcProgram {
    fn bytes(&self, size: Asks<usize>, fill: Asks<c_char>) -> Result<Vec<u8>, Failure> {
        let mut len = 0;
        // SAFETY: the program was created, and `len` is a size.
        check(unsafe { size(self.0, &raw mut len) }, String::new)?;
        let mut bytes = vec![0_u8; len];
        // SAFETY: the buffer has room for the bytes whose number NVRTC returned.
        let code = unsafe { fill(self.0, bytes.as_mut_ptr().cast()) };
        check(code, String::new)?;
        Ok(bytes)
    }

    /// Returns the name in the PTX of an expression that was added before the program was compiled.
    fn lowered(&self, name: &CStr) -> Result<String, Failure> {
        let mut lowered = ptr::null();
        // SAFETY: the program was compiled with this expression, and `lowered` is a pointer.
        let code = unsafe { sys::nvrtcGetLoweredName(self.0, name.as_ptr(), &raw mut lowered) };
        check(code, String::new)?;
        // SAFETY: the name ends in NUL, and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned())
    }

    /// Returns a text without the NUL at its end.
    fn text(&self, size: Asks<usize>, fill: Asks<c_char>) -> Result<String, Failure> {
        let bytes = self.bytes(size, fill)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the program was created, and no code uses it after this.
            unsafe { sys::nvrtcDestroyProgram(&raw mut self.0) };
        }
    }
}

fn archs() -> Option<Vec<u32>> {
    let mut count = 0;
    // SAFETY: it points to an integer.
    let code = unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) };
    if code != nvrtcResult::NVRTC_SUCCESS || count <= 0 {
        return None;
    }
    let mut archs: Vec<c_int> = vec![0; count as usize];
    // SAFETY: the buffer has room for the architectures whose number NVRTC returned.
    let code = unsafe { sys::nvrtcGetSupportedArchs(archs.as_mut_ptr()) };
    (code == nvrtcResult::NVRTC_SUCCESS)
        .then(|| archs.into_iter().map(|arch| arch as u32).collect())
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

//! The real library: found once, at the first call, and opened by its absolute path. It is local and bound to itself,
//! so that its calls of its own functions stay inside, as far as the loader does that.

use std::env;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use roundelay_kernels::library_files::{NCCL_STEM, NcclSearch};
use roundelay_kernels::loaded_library::LoadedLibrary;

use crate::name::Name;
use crate::own::{MARK, own_path};

/// NCCL's own library.
pub(crate) struct Real {
    path: PathBuf,
    /// As NCCL counts: 2.30.4 is 23004.
    version: c_int,
    /// The address of each function; null where the library has none.
    functions: [*mut c_void; Name::COUNT],
}

// SAFETY: the addresses are those of functions, which every thread may call.
unsafe impl Send for Real {}
// SAFETY: every thread may call the functions at once.
unsafe impl Sync for Real {}

/// Returns the real library of this process, or why there is none.
pub(crate) fn real() -> Result<&'static Real, &'static str> {
    static REAL: OnceLock<Result<Real, String>> = OnceLock::new();
    REAL.get_or_init(Real::open).as_ref().map_err(|why| &**why)
}

/// Returns the libraries of NCCL's name in this process that are not this one, nor a copy of it.
pub(crate) fn others() -> Vec<LoadedLibrary> {
    let mut all = LoadedLibrary::all(&[NCCL_STEM]);
    all.retain(|library| library.symbol(MARK).is_null());
    all
}

impl Real {
    fn open() -> Result<Self, String> {
        let own = own_path();
        // SAFETY: the function takes any number.
        let is_privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        // The environment of a program with more rights than its user does not say which code runs.
        let variable = |name: &str| env::var_os(name).filter(|_| !is_privileged);
        let program = env::current_exe().unwrap_or_default();
        let pythons: Vec<_> = program.ancestors().nth(2).map(Path::to_owned).into_iter().collect();
        let search = NcclSearch { variable: &variable, own: &own, pythons: &pythons };
        let path = match search.named_library() {
            Some(named) => named?,
            // A program that has one already would have two otherwise.
            None => match others().first() {
                Some(library) => library.path().to_owned(),
                None => search.first_library()?,
            },
        };
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
        // Where the loader was asked for the path and was given this library (see audit), that is what it knows by the
        // path. This spelling is another name of the same file.
        let folder = path.parent().unwrap_or(Path::new("/"));
        let spelled = folder.join(".").join(path.file_name().unwrap_or_default());
        let library = LoadedLibrary::open(&spelled, flags)
            .map_err(|why| format!("{} cannot be loaded: {why}", path.display()))?;
        if !library.symbol(MARK).is_null() {
            return Err(format!("{} is Roundelay's library itself", path.display()));
        }
        let functions = std::array::from_fn(|at| library.symbol(Name::ALL[at].symbol()));
        let get = functions[Name::GetVersion as usize];
        if get.is_null() {
            return Err(format!("{} is not NCCL: it has no ncclGetVersion", path.display()));
        }
        // SAFETY: the type is that of the function in NCCL's header.
        let get: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { std::mem::transmute(get) };
        let mut version = 0;
        // SAFETY: there is room for the answer.
        let code = unsafe { get(&raw mut version) };
        if code != 0 {
            return Err(format!("{} answers {code} for its version", path.display()));
        }
        Ok(Self { path, version, functions })
    }

    /// The library's function, as a function of this type; `None` where it has none.
    ///
    /// # Safety
    /// `F` is the type of the function in NCCL's header.
    pub(crate) unsafe fn function<F: Copy>(&self, name: Name) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.functions[name as usize];
        // SAFETY: the caller's promise; functions are as wide as addresses.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }

    /// The version and the path, in words.
    pub(crate) fn text(&self) -> String {
        format!("NCCL {} of {}", version_text(self.version as u32), self.path.display())
    }
}

/// Returns a version as words: 22809 is 2.28.9.
pub(crate) fn version_text(version: u32) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

//! The search for NVRTC. A place that the variable names is the only place; otherwise the search takes the loader's
//! path, then the folder `nvrtc` beside the program, or the one that `cargo xtask nvrtc` installs where cargo built the
//! program. What lies there is loaded only if this user and root alone can write it. The working directory is not
//! searched: another user who made one of the folders above it could choose the library.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::Library;

use super::error::{Error, Part};
use crate::library_files::newest;
use crate::trust::only_own;

/// The variable that names the library or its folder.
const VARIABLE: &str = "ROUNDELAY_NVRTC";
/// In the order in which cudarc asks for them, so that both get the same library.
const NAMES: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];
const STEM: &str = "libnvrtc.so";
/// The library that NVRTC loads by itself, by its bare name.
const BUILTINS: &str = "libnvrtc-builtins.so";
/// The folder beside the program, and in the folder of what cargo builds.
const FOLDER: &str = "nvrtc";

/// The places where the search begins.
pub(super) struct Hints {
    /// The variable's value.
    pub(super) named: Option<OsString>,
    /// The folders that may hold it.
    pub(super) beside: Vec<PathBuf>,
    /// Whether to ask the loader.
    pub(super) loader: bool,
}

/// NVRTC after it was loaded.
pub(super) struct LoadedNvrtc {
    /// NVRTC, and its builtins if the search had to find them. Both stay loaded.
    pub(super) libraries: Vec<Library>,
    /// The path of NVRTC, if it is known.
    pub(super) path: Option<PathBuf>,
}

impl Hints {
    /// Returns the hints of this process.
    pub(super) fn here() -> Self {
        Self {
            named: std::env::var_os(VARIABLE).filter(|value| !value.is_empty()),
            beside: own_file().map(|file| beside(&file)).unwrap_or_default(),
            loader: true,
        }
    }

    /// Loads NVRTC from the first place that has it.
    pub(super) fn find(&self) -> Result<LoadedNvrtc, Error> {
        if let Some(named) = &self.named {
            let named = Path::new(named);
            return at(named, |path| Ok(path.to_owned())).map_err(|why| {
                Error::missing(Part::Nvrtc, [format!("{VARIABLE} is set, and {why}")])
            });
        }
        let mut tried = vec![format!("{VARIABLE} is not set")];
        if self.loader {
            for name in NAMES {
                // SAFETY: NVRTC's initializers ask nothing of the caller.
                if let Ok(library) = unsafe { Library::new(name) } {
                    return Ok(LoadedNvrtc { libraries: vec![library], path: loaded_from(STEM) });
                }
            }
            tried.push(format!("the loader knows none of {}", NAMES.join(", ")));
        }
        for folder in &self.beside {
            if !folder.is_dir() {
                tried.push(format!("{} does not exist", folder.display()));
                continue;
            }
            match at(folder, only_own) {
                Ok(found) => return Ok(found),
                Err(why) => tried.push(why),
            }
        }
        Err(Error::missing(Part::Nvrtc, tried))
    }
}

/// Returns the program, or the library in a program, that holds this code.
fn own_file() -> Option<PathBuf> {
    mapped_at(own_file as *const () as usize).or_else(|| std::env::current_exe().ok())
}

/// Returns the folders that may hold NVRTC for a file: beside the file, and in the folder `target` in which cargo built
/// it.
fn beside(file: &Path) -> Vec<PathBuf> {
    let mut above = file.ancestors().skip(1);
    let own = above.next();
    let target = above.find(|folder| folder.file_name().is_some_and(|name| name == "target"));
    own.into_iter().chain(target).map(|folder| folder.join(FOLDER)).collect()
}

/// Loads the library at `place`, a file or a folder as the toolkit and the wheels lay it out, if each part of it is
/// admitted.
fn at(
    place: &Path,
    admitted: impl Fn(&Path) -> Result<PathBuf, String>,
) -> Result<LoadedNvrtc, String> {
    let path = if place.is_dir() {
        let inner = ["", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];
        let found = inner.iter().find_map(|inner| newest(&place.join(inner), STEM));
        found.ok_or_else(|| format!("{} holds no {STEM}", place.display()))?
    } else if place.exists() {
        place.to_owned()
    } else {
        return Err(format!("{} does not exist", place.display()));
    };
    let path = admitted(&path)?;
    if let Some(headers) = headers(Some(&path)).0 {
        admitted(&headers.join("cuda_fp16.h"))?;
    }
    let mut libraries = Vec::new();
    // NVRTC asks the loader for its builtins by their bare name, and the loader finds a library that is loaded already.
    let builtins = path.parent().and_then(|folder| newest(folder, BUILTINS));
    for path in builtins.iter().chain([&path]) {
        let path = &admitted(path)?;
        // SAFETY: NVRTC's initializers ask nothing of the caller.
        let library = unsafe { Library::new(path) };
        libraries.push(
            library.map_err(|error| format!("{} cannot be loaded: {error}", path.display()))?,
        );
    }
    libraries.reverse();
    Ok(LoadedNvrtc { libraries, path: Some(path) })
}

/// Returns the path of the library that the loader took.
fn loaded_from(stem: &str) -> Option<PathBuf> {
    mapped(|path, _| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(stem)))
}

/// Returns the file that is mapped at an address, where the system tells.
pub(super) fn mapped_at(address: usize) -> Option<PathBuf> {
    mapped(|_, addresses| {
        let ends = addresses.split_once('-');
        let ends = ends.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16)));
        matches!(ends, Some([Ok(from), Ok(to)]) if (from..to).contains(&address))
    })
}

/// Returns the first mapped file that `is_wanted` accepts, by its path and by its addresses as the system writes them.
fn mapped(is_wanted: impl Fn(&Path, &str) -> bool) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let rows = maps
        .lines()
        .filter_map(|line| Some((line.split(' ').next()?, Path::new(&line[line.find('/')?..]))));
    let mut wanted = rows.filter(|(addresses, path)| is_wanted(path, addresses));
    wanted.next().map(|(_, path)| path.to_owned())
}

/// Returns the folder of CUDA's headers, as the toolkit, the wheels of CUDA 13 and 12, and distributions lay them out
/// beside the library, and all folders that were searched.
pub(super) fn headers(library: Option<&Path>) -> (Option<PathBuf>, Vec<PathBuf>) {
    let folder = library.and_then(Path::parent);
    let folders = folder.map(|folder| {
        ["../include", "../../cuda_runtime/include", "../../include"]
            .map(|inner| folder.join(inner))
    });
    let folders: Vec<PathBuf> = folders.into_iter().flatten().collect();
    let found = folders.iter().find(|folder| folder.join("cuda_fp16.h").is_file()).cloned();
    (found, folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::compile::tests::{NVRTC, folder, hints};

    fn refused(hints: &Hints) -> String {
        match hints.find() {
            Ok(_) => panic!("something was found"),
            Err(error) => {
                assert_eq!(error.code().as_str(), "E0415");
                error.to_string()
            }
        }
    }

    #[test]
    fn a_named_place_is_the_only_one() {
        // The wheel exists, and is not taken instead.
        let nothing = Hints { named: Some("/nothing/here".into()), ..hints() };
        let why = refused(&nothing);
        assert!(why.contains("ROUNDELAY_NVRTC is set, and /nothing/here does not exist"), "{why}");
        assert!(why.contains("cargo xtask nvrtc"), "{why}");

        let folder = folder();
        let why = refused(&Hints { named: Some(folder.path().into()), ..hints() });
        assert!(why.contains("holds no libnvrtc.so"), "{why}");

        let file = folder.path().join("libnvrtc.so.13");
        fs::write(&file, "no library").unwrap();
        for named in [folder.path(), &file] {
            let why = refused(&Hints { named: Some(named.into()), ..hints() });
            assert!(why.contains("libnvrtc.so.13 cannot be loaded"), "{why}");
        }
    }

    #[test]
    fn the_wheel_is_found_from_below() {
        let found = hints().find().unwrap_or_else(|error| panic!("{error}; {NVRTC}"));
        let path = found.path.expect("a path");
        assert!(path.ends_with("libnvrtc.so.13"), "{}", path.display());
        assert!(headers(Some(&path)).0.is_some());
        // The library is also found by the name of its folder and by its own path.
        for named in [path.parent().unwrap(), &path] {
            let found = Hints { named: Some(named.into()), ..hints() }.find().unwrap();
            assert_eq!(found.path.as_ref(), Some(&path));
        }
    }

    /// Tests lie in `target/debug/deps`, and the command in `target/debug`.
    #[test]
    fn the_wheel_is_found_where_cargo_built_the_program() {
        let found = Hints { loader: false, ..Hints::here() }.find();
        let path = found.unwrap_or_else(|error| panic!("{error}; {NVRTC}")).path.expect("a path");
        assert!(path.ends_with("target/nvrtc/nvidia/cu13/lib/libnvrtc.so.13"), "{path:?}");
        let places = |file: &str| beside(Path::new(file));
        assert_eq!(places("/u/bin/roundelay"), [Path::new("/u/bin/nvrtc")]);
        let built = places("/w/target/x86/debug/deps/all-1f");
        assert_eq!(built[1..], [Path::new("/w/target/nvrtc")]);
    }

    #[test]
    fn nowhere_names_every_place() {
        let folder = folder();
        let beside = vec![folder.path().join("nvrtc"), folder.path().to_owned()];
        let why = refused(&Hints { named: None, beside, loader: false });
        assert!(why.contains("ROUNDELAY_NVRTC is not set"), "{why}");
        let shown = folder.path().display();
        assert!(why.contains(&format!("{shown}/nvrtc does not exist")), "{why}");
        assert!(why.contains(&format!("{shown} holds no libnvrtc.so")), "{why}");
    }

    /// The folder and the library are changed one by one: the file is no library, and is not even opened.
    #[cfg(unix)]
    #[test]
    fn a_library_that_others_can_write_is_not_loaded() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = folder();
        let lib = folder.path().join("lib");
        let file = lib.join("libnvrtc.so.99");
        fs::create_dir(&lib).unwrap();
        fs::write(&file, "no library").unwrap();
        let why = || {
            let beside = vec![folder.path().to_owned()];
            refused(&Hints { named: None, beside, loader: false })
        };
        assert!(why().contains("cannot be loaded"), "{}", why());
        for place in [&lib, &file] {
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
            let shown = format!("other users can write to {}", place.display());
            assert!(why().contains(&shown), "{}", why());
            fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn the_highest_version_is_taken() {
        let folder = folder();
        for name in [
            "libnvrtc.so.9",
            "libnvrtc.so.13",
            "libnvrtc.so.12.9",
            "libnvrtc.alt.so.14",
            "libnvrtc.so.x",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(newest(folder.path(), STEM), Some(folder.path().join("libnvrtc.so.13")));
    }
}

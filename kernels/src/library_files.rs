//! Files of shared libraries: the newest version in a folder, and the search for NCCL by what loads it by a path.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that names NCCL's library or its folder.
pub const NCCL: &str = "ROUNDELAY_NCCL";
/// The value of that variable with which there is no real NCCL: communicators are worlds of their own.
pub const ALONE: &str = "alone";
/// The name of NCCL's library, without the version behind.
pub const NCCL_STEM: &str = "libnccl.so";

/// The folders that hold NCCL in a folder that is named: packages and the wheel lay it out so.
const INNER: [&str; 4] = ["", "lib64", "lib", "nvidia/nccl/lib"];
/// The variables that name an environment of Python.
const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];
/// The folders of packages of the system.
const SYSTEM: [&str; 7] = [
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/opt/conda/lib",
];

/// Returns the file of a folder with that stem and the highest version.
pub(crate) fn newest(folder: &Path, stem: &str) -> Option<PathBuf> {
    newest_of(folder, stem, &|_| true)
}

fn newest_of(folder: &Path, stem: &str, is_wanted: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let version = |path: &PathBuf| -> Option<Vec<u32>> {
        let rest = path.file_name()?.to_str()?.strip_prefix(stem)?;
        rest.split('.').skip(1).map(|part| part.parse().ok()).collect()
    };
    let paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.is_file() && is_wanted(path))
        .filter_map(|path| Some((version(&path)?, path)))
        .max()
        .map(|(_, path)| path)
}

/// Returns the path of NCCL's library at `place`, a file or a folder as packages and the wheel lay it out.
///
/// # Errors
/// Why there is none.
pub fn nccl_at(place: &Path) -> Result<PathBuf, String> {
    if place.is_dir() {
        let found = INNER.iter().find_map(|inner| newest(&place.join(inner), NCCL_STEM));
        found.ok_or_else(|| format!("{} holds no {NCCL_STEM}", place.display()))
    } else if place.exists() {
        Ok(place.to_owned())
    } else {
        Err(format!("{} does not exist", place.display()))
    }
}

/// A search for the file of NCCL's library. What is found is not checked for who can write it: a user names the places
/// by variables, the others are those of the system and of the library that searches.
pub struct NcclSearch<'a> {
    /// The environment of the process.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The library that searches, which has NCCL's name itself and is not what it looks for.
    pub own: &'a Path,
    /// The environments of Python that are looked at first.
    pub pythons: &'a [PathBuf],
}

impl NcclSearch<'_> {
    /// Returns the library that the variable names, as an absolute path.
    ///
    /// # Errors
    /// Why it is not that one. A named library is the only one.
    pub fn named_library(&self) -> Option<Result<PathBuf, String>> {
        let named = (self.variable)(NCCL).filter(|named| !named.is_empty())?;
        let found = nccl_at(Path::new(&named)).and_then(|path| {
            path.canonicalize()
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))
        });
        let found = found.and_then(|path| {
            let own = is_same(&path, self.own);
            let why = || format!("{} is Roundelay's library itself", path.display());
            if own { Err(why()) } else { Ok(path) }
        });
        Some(found.map_err(|why| format!("{NCCL} is set, and {why}")))
    }

    /// Returns the library of the first place that has it.
    ///
    /// # Errors
    /// The places, in words.
    pub fn first_library(&self) -> Result<PathBuf, String> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for python in self.pythons.iter().cloned().chain(self.environments()) {
            folders.extend(packages(&python).into_iter().map(|at| at.join("nvidia/nccl/lib")));
            folders.push(python.join("lib"));
        }
        folders.extend(self.own.parent().map(Path::to_owned));
        let listed = (self.variable)("LD_LIBRARY_PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&listed).filter(|folder| folder.is_absolute()));
        folders.extend(SYSTEM.iter().map(PathBuf::from));
        let is_other = |path: &Path| !is_same(path, self.own);
        let found = folders.iter().find_map(|folder| newest_of(folder, NCCL_STEM, &is_other));
        found.ok_or_else(|| {
            let folders: Vec<_> =
                folders.iter().map(|folder| folder.display().to_string()).collect();
            format!("{NCCL} is not set, and no {NCCL_STEM} is in {}", folders.join(", "))
        })
    }

    fn environments(&self) -> impl Iterator<Item = PathBuf> {
        let named = ENVIRONMENTS.iter().filter_map(|name| (self.variable)(name));
        named.map(PathBuf::from).filter(|folder| folder.is_absolute())
    }
}

/// Returns the folders of packages of an environment of Python.
pub fn packages(environment: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).into_iter().flatten();
    let versions = versions.filter_map(|entry| Some(entry.ok()?.path()));
    let is_python = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"))
    };
    let kinds = |version: PathBuf| {
        ["site-packages", "dist-packages"].map(|kind| version.join(kind)).into_iter()
    };
    let mut found: Vec<_> =
        versions.filter(is_python).flat_map(kinds).filter(|at| at.is_dir()).collect();
    found.sort();
    found
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(file: &Path) -> PathBuf {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder of the tests");
        fs::write(file, "").expect("a file of the tests");
        file.canonicalize().expect("it is there")
    }

    #[test]
    fn nccl_is_searched_for_in_order_and_the_searcher_is_not_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let own = made(&root.join("own/libnccl.so.2"));
        let variables = |name: &str| match name {
            "LD_LIBRARY_PATH" => Some(root.join("listed").into_os_string()),
            "VIRTUAL_ENV" => Some(root.join("venv").into_os_string()),
            _ => None,
        };
        let pythons = [root.join("python")];
        let search = NcclSearch { variable: &variables, own: &own, pythons: &pythons };
        if let Err(why) = search.first_library() {
            assert!(why.contains("no libnccl.so is in") && why.contains("own, "), "{why}");
        }
        // Each place comes before those above it.
        for file in [
            "listed/libnccl.so.2",
            "own/libnccl.so.2.32.3",
            "venv/lib/libnccl.so.2",
            "venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2",
            "python/lib/python3.9/dist-packages/nvidia/nccl/lib/libnccl.so.2",
        ] {
            let file = made(&root.join(file));
            assert_eq!(search.first_library(), Ok(file));
        }
        assert!(search.named_library().is_none());
    }

    #[test]
    fn a_named_library_is_the_only_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = made(&folder.path().join("own.so"));
        let real = made(&folder.path().join("wheel/nvidia/nccl/lib/libnccl.so.2"));
        for (named, found) in [
            (folder.path().join("wheel"), Ok(&real)),
            (real.clone(), Ok(&real)),
            (own.clone(), Err("is Roundelay's library itself")),
            (folder.path().join("nothing"), Err("does not exist")),
            (folder.path().to_owned(), Err("holds no libnccl.so")),
        ] {
            let variable = |name: &str| (name == NCCL).then(|| named.clone().into_os_string());
            let search = NcclSearch { variable: &variable, own: &own, pythons: &[] };
            let got = search.named_library().expect("it is set");
            match found {
                Ok(path) => assert_eq!(got.as_ref(), Ok(path)),
                Err(words) => assert!(got.expect_err("none").contains(words), "{words}"),
            }
        }
    }
}

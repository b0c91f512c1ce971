//! Generated kernels on CPU threads: g++ compiles the text that NVRTC takes, with `device/host_shim.h`, and it runs in
//! a process of its own.
//!
//! For tests and for machines without a GPU: blocks and threads are OS threads, so only the results matter, not the
//! speed.

mod job;
mod outcome;
mod shim_error;

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use job::ShimJob;
pub use outcome::Outcome;
pub use shim_error::Error;

/// Flags of the compiler besides the paths. Without optimization it takes half of the time and less.
const FLAGS: &[&str] = &["-std=c++17", "-O0", "-pthread", "-DROUNDELAY_SHIM"];

/// A kernel as a program of this machine.
#[derive(Clone, Debug)]
pub struct Shim {
    program: PathBuf,
}

impl Shim {
    /// Compiles the text whose kernel is `name`, unless that was done before.
    pub fn compile(text: &str, name: &str) -> Result<Self, Error> {
        let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
        let folder = folder();
        fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
        let program = folder.join(format!("{name}-{:016x}", hash(text, name, &device)?));
        if program.exists() {
            return Ok(Self { program });
        }
        let main = main_object(&device, &folder)?;
        // The program has a name of its own until it is complete: other threads and processes may make the same
        // program.
        let making = unique(&program);
        let source = making.with_extension("cu");
        fs::write(&source, text).map_err(|error| Error::file(&source, error))?;
        let mut command = compiler(&device);
        command.arg(&source).args(["-x", "none"]).arg(main);
        // The text stays after an error, for inspection.
        made(command, &source, &making, &program)?;
        let kept = program.with_extension("cu");
        fs::rename(&source, &kept).map_err(|error| Error::file(&kept, error))?;
        Ok(Self { program })
    }

    /// Runs the program on a job.
    pub fn run(&self, job: &ShimJob) -> Result<Outcome, Error> {
        let stem = unique(&self.program);
        let files = ["job", "result", "log"].map(|end| stem.with_extension(end));
        let [input, output, log] = &files;
        fs::write(input, job.encode()?).map_err(|error| Error::file(input, error))?;
        let ran = self.wait_for(&files, job.process_limit());
        let result = ran.and_then(|status| {
            if !status.success() {
                let log = fs::read(log).map_or_else(|error| error.to_string(), |log| text_of(&log));
                return Err(Error::Run { status: status.to_string(), log });
            }
            let bytes = fs::read(output).map_err(|error| Error::file(output, error))?;
            Outcome::decode(&bytes, job)
        });
        // A file that cannot be removed costs disk space, not a result.
        for file in &files {
            let _ = fs::remove_file(file);
        }
        result
    }

    /// Waits for the process until `limit`: a kernel that never ends is a fault that the shim is to find.
    fn wait_for(&self, files: &[PathBuf; 3], limit: Duration) -> Result<ExitStatus, Error> {
        let [input, output, log] = files;
        let failed = |error| Error::file(&self.program, error);
        let log = fs::File::create(log).map_err(|error| Error::file(log, error))?;
        let mut child = Command::new(&self.program)
            .args([input, output])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let begun = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(status);
            }
            if begun.elapsed() > limit {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                return Err(Error::Hung { limit });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// Returns the folder where programs are kept.
/// Returns the part of a program that is the same for all texts, compiled.
fn main_object(device: &Path, folder: &Path) -> Result<PathBuf, Error> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let source = device.join("shim_main.cpp");
    let object = folder.join(format!("shim_main-{:016x}.o", hash("", "shim_main", device)?));
    if !object.exists() {
        let mut command = compiler(device);
        command.arg("-c").arg(&source);
        made(command, &source, &unique(&object), &object)?;
    }
    Ok(object)
}

/// Returns the command that compiles C++ for the shim.
fn compiler(device: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "g++".into()));
    command.args(FLAGS).arg("-I").arg(device).arg("-include").arg(device.join("host_shim.h"));
    command.args(["-x", "c++"]).stdin(Stdio::null());
    command
}

/// Makes a file by a compiler, under a name of its own until it is complete.
fn made(mut command: Command, source: &Path, making: &Path, file: &Path) -> Result<(), Error> {
    let done = command
        .arg("-o")
        .arg(making)
        .output()
        .map_err(|error| Error::NoCompiler { compiler: lossy(command.get_program()), error })?;
    if !done.status.success() {
        return Err(Error::Compile { source: source.to_owned(), log: text_of(&done.stderr) });
    }
    fs::rename(making, file).map_err(|error| Error::file(file, error))
}

fn folder() -> PathBuf {
    let workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace, PathBuf::from);
    target.join("shim")
}

/// Returns the hash of a program's sources.
fn hash(text: &str, name: &str, device: &Path) -> Result<u64, Error> {
    let read = |path: &Path| fs::read(path).map_err(|error| Error::file(path, error));
    let listed = fs::read_dir(device).map_err(|error| Error::file(device, error))?;
    let mut headers: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    headers.sort();
    let mut hasher = DefaultHasher::new();
    (text, name, FLAGS, std::env::var_os("CXX")).hash(&mut hasher);
    for header in headers.iter().filter(|path| path.is_file()) {
        (header.file_name(), read(header)?).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Returns a path beside `path` that no other thread or process uses.
fn unique(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, nth) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{process}-{nth}"));
    path.with_file_name(name)
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lossy(text: &std::ffi::OsStr) -> String {
    text.to_string_lossy().into_owned()
}

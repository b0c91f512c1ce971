//! The record of a rank's calls for a trace, and the file of the environment variable `ROUNDELAY_TRACE`, to which each
//! rank adds its events when it leaves its world.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;
use roundelay_core::trace::{Data, HEAD, TAIL, TraceText};

use super::memory::shared_state::CallHeader;
use crate::recorder::{CallRecordShape, RecordRows, Recorded, RecordedCall, Recorder, now};
use crate::shared_memory::meet::env::spans_hosts;
use crate::shared_memory::meet::system::{at_exit, host, without_waiting};

/// The environment variable with the name of the file.
const VARIABLE: &str = "ROUNDELAY_TRACE";
/// The most streams of a rank that have rows.
const STREAMS: usize = 1 << 10;

/// The record of a rank in its world.
#[derive(Default)]
pub(crate) struct WorldRecord {
    recorder: OnceLock<Recorder>,
    /// Whether calls are recorded now.
    on: AtomicBool,
    /// The name of the rank in the trace.
    name: AtomicU32,
    /// The file of the environment, and the process that writes it.
    file: OnceLock<(TraceFile, u32)>,
    kept: AtomicBool,
}

/// The records of worlds that may not be dropped before the process ends.
static OPEN: Mutex<Vec<Weak<WorldRecord>>> = Mutex::new(Vec::new());

/// Keeps the records of all worlds that were not dropped.
extern "C" fn keep_all() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for record in open.iter().filter_map(Weak::upgrade) {
        record.keep();
    }
}

/// The record of a call under way, if it is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Recording<'w>(Option<(&'w Recorder, RecordedCall)>);

/// An event that ends when this is dropped.
pub(crate) struct During<'w> {
    of: Option<(&'w Recorder, RecordedCall)>,
    begin: u64,
    what: Recorded,
}

impl WorldRecord {
    /// Records the calls of a rank from now on, or no longer.
    pub(crate) fn record(&self, rank: usize, on: bool) {
        let rows = RecordRows::StreamsOf(RankId(rank as u32));
        self.recorder.get_or_init(|| Recorder::new(rows, 1, STREAMS));
        self.on.store(on, Ordering::Relaxed);
    }

    /// Records the calls for a file, if there is one.
    pub(crate) fn record_for(self: &Arc<Self>, rank: usize, file: Option<TraceFile>) {
        static AT_EXIT: Once = Once::new();
        let Some(file) = file else { return };
        self.record(rank, true);
        _ = self.file.set((file, std::process::id()));
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(self));
        // Where it cannot be registered, only worlds that are dropped have traces.
        AT_EXIT.call_once(|| at_exit(keep_all));
    }

    /// Makes the record of a rank.
    pub(crate) fn of(rank: u32) -> Self {
        Self { name: AtomicU32::new(rank), ..Self::default() }
    }

    /// Sets the name of the rank in the trace.
    pub(crate) fn call(&self, name: RankId) {
        self.name.store(name.0, Ordering::Relaxed);
    }

    /// Takes the recorded calls of the rank, as lines of a trace.
    pub(crate) fn trace(&self) -> String {
        let name = RankId(self.name.load(Ordering::Relaxed));
        let mut text = TraceText::default();
        if let Some(recorder) = self.recorder.get() {
            recorder.write(&mut text, None, name);
        }
        text.lines().to_owned()
    }

    /// Begins the record of call `number`, if calls are recorded.
    pub(crate) fn recording(
        &self,
        number: u64,
        header: &CallHeader,
        schedule: &Schedule,
    ) -> Recording<'_> {
        if !self.on.load(Ordering::Relaxed) {
            return Recording(None);
        }
        let recorded = |recorder: &Recorder| {
            let (key, begin) = (header.words(), now());
            let shape = recorder.shape(key, || {
                let shape = header.call().map(|(_, (count, dtype, _))| (count.unwrap_or(0), dtype));
                let (count, dtype) = shape.unwrap_or((0, DType::U8));
                let (schedule, data) = (Arc::new(schedule.clone()), Data { count, dtype });
                let name = header.name().unwrap_or_default();
                CallRecordShape { key, schedule, data, name }
            });
            RecordedCall { number, shape, begin }
        };
        Recording(self.recorder.get().map(|recorder| (recorder, recorded(recorder))))
    }

    /// Adds the record to the file of the environment, once; not in a process that was forked off.
    pub(crate) fn keep(&self) {
        if let Some((file, process)) = self.file.get()
            && *process == std::process::id()
            && !self.kept.swap(true, Ordering::Relaxed)
            && let Err(error) = file.add(&self.trace())
        {
            file.tell(&error);
        }
    }
}

impl<'w> Recording<'w> {
    /// Notes an event from now on, until the returned value is dropped.
    pub(crate) fn during(self, what: Recorded) -> During<'w> {
        During { of: self.0, begin: if self.0.is_some() { now() } else { 0 }, what }
    }

    /// Whether the call is recorded.
    pub(crate) fn is_on(self) -> bool {
        self.0.is_some()
    }

    /// Returns the record and the call.
    pub(crate) fn parts(self) -> Option<(&'w Recorder, RecordedCall)> {
        self.0
    }

    /// Notes the end of the call.
    pub(crate) fn end(self, failed: bool) {
        if let Some((recorder, call)) = self.0 {
            recorder.in_call(0, call, call.begin, Recorded::Call { failed });
        }
    }
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        if let Some((recorder, call)) = self.of {
            recorder.in_call(0, call, self.begin, self.what);
        }
    }
}

/// The file of the environment.
pub(crate) struct TraceFile {
    path: PathBuf,
}

impl TraceFile {
    /// Returns the file of this process; `None` where none is wanted, or it cannot be written, which is told. Rank 0 of
    /// the first world of its process empties it.
    pub(crate) fn of_process(rank: u32) -> Option<Self> {
        /// Whether an earlier world of this process has begun the file.
        static BEGUN: AtomicBool = AtomicBool::new(false);
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty())?;
        // The program may change its working directory.
        let path = path(&named.to_string_lossy(), rank);
        let file = Self { path: std::path::absolute(&path).unwrap_or(path) };
        let own = named.to_string_lossy().contains("%r");
        let begins = !BEGUN.swap(true, Ordering::Relaxed) && (own || rank == 0);
        let tried = if begins { file.begin() } else { file.open().map(drop) };
        match tried {
            Ok(()) => Some(file),
            Err(error) => {
                file.tell(&error);
                None
            }
        }
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A queue would not be opened without the other end.
        let file = without_waiting(&mut options).open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        Ok(file)
    }

    /// Makes it a trace without events.
    fn begin(&self) -> io::Result<()> {
        let mut file = self.open()?;
        file.lock()?;
        file.set_len(0)?;
        file.write_all([HEAD, TAIL].concat().as_bytes())
    }

    /// Adds events. The file is a whole trace before and after.
    fn add(&self, lines: &str) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut file = self.open()?;
        // Until the file is closed.
        file.lock()?;
        let whole = file.metadata()?.len();
        let before = match whole.checked_sub(TAIL.len() as u64) {
            None if whole == 0 => HEAD,
            Some(end) => {
                let mut tail = String::new();
                file.seek(SeekFrom::Start(end))?;
                file.read_to_string(&mut tail)?;
                if tail != TAIL {
                    return Err(io::Error::other("another program has written it meanwhile"));
                }
                file.seek(SeekFrom::Start(end))?;
                if end == HEAD.len() as u64 { "" } else { ",\n" }
            }
            None => return Err(io::Error::other("another program has written it meanwhile")),
        };
        file.write_all([before, lines, TAIL].concat().as_bytes())
    }

    /// Tells that there is no trace.
    fn tell(&self, error: &io::Error) {
        let (path, code) = (self.path.display(), ErrorCode::Unwritable.as_str());
        // A process may have closed its standard error.
        _ = writeln!(
            io::stderr(),
            "roundelay: the trace `{path}` of {VARIABLE} cannot be written, and the job goes on without it: {error} [{code}]"
        );
    }
}

/// Returns the path of a rank, with `%r` for its number and `%h` for the name of the host. Hosts of one job have files
/// of their own, as their clocks differ.
fn path(named: &str, rank: u32) -> PathBuf {
    let [name, _] = host();
    let host = name.replace('/', "_");
    if named.contains("%h") || !spans_hosts().unwrap_or(false) {
        return named.replace("%r", &rank.to_string()).replace("%h", &host).into();
    }
    let path = PathBuf::from(named.replace("%r", &rank.to_string()));
    let end = path.extension().map(|end| end.to_string_lossy().into_owned());
    path.with_extension([Some(host), end].into_iter().flatten().collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_after_each_addition_and_no_other_file_is_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TraceFile { path: folder.path().join("trace.json") };
        let read = || std::fs::read_to_string(&file.path).expect("it is there");
        file.add("{\"a\":1}").expect("a new file");
        assert_eq!(read(), format!("{HEAD}{{\"a\":1}}{TAIL}"));
        file.begin().expect("it is emptied");
        assert_eq!(read(), format!("{HEAD}{TAIL}"));
        for lines in ["{\"a\":1}", "", "{\"b\":2},\n{\"c\":3}"] {
            file.add(lines).expect("it is a trace");
        }
        assert_eq!(read(), format!("{HEAD}{{\"a\":1}},\n{{\"b\":2}},\n{{\"c\":3}}{TAIL}"));
        for other in ["x", "something else altogether"] {
            std::fs::write(&file.path, other).expect("a file");
            let why = file.add("{}").expect_err("no trace").to_string();
            assert_eq!((&*why, &*read()), ("another program has written it meanwhile", other));
        }
        let folder = TraceFile { path: folder.path().to_owned() };
        assert!(folder.begin().is_err() && folder.add("{}").is_err());
    }

    #[test]
    fn a_name_may_have_the_rank_and_the_host() {
        let [host, _] = host();
        assert_eq!(path("/tmp/t.json", 3), PathBuf::from("/tmp/t.json"));
        assert_eq!(path("t-%h-%r.json", 3), PathBuf::from(format!("t-{host}-3.json")));
    }
}

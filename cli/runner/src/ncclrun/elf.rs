//! A file of machine code, as far as the loader's part of it is concerned.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A program or a library.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Elf {
    /// Whether it names a loader, which starts it.
    pub(super) has_loader: bool,
    /// The libraries that it is linked to.
    pub(super) needed: BTreeSet<String>,
    /// The symbols that it has for others, and those that it wants of others.
    pub(super) defined: BTreeSet<String>,
    pub(super) undefined: BTreeSet<String>,
}

const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', CLASS_64, LITTLE];
const CLASS_64: u8 = 2;
const LITTLE: u8 = 1;
const MACHINE: u64 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
/// The most bytes of a table: a file that is broken is not read into memory.
const MOST: u64 = 1 << 28;

/// Kinds of segments and sections, and a tag of the dynamic section.
const SEGMENT_LOADER: u64 = 3;
const SECTION_DYNAMIC: u64 = 6;
const SECTION_SYMBOLS: u64 = 11;
const TAG_NEEDED: u64 = 1;

/// A table of the file: its bytes, and the bytes of a row.
struct Table {
    bytes: Vec<u8>,
    row: usize,
}

impl Table {
    fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.row.max(1))
    }
}

/// Reads a number of a row.
fn number(row: &[u8], at: usize, size: usize) -> u64 {
    let mut bytes = [0; 8];
    if let Some(given) = row.get(at..at + size) {
        bytes[..size].copy_from_slice(given);
    }
    u64::from_le_bytes(bytes)
}

/// Reads a text of a table of texts.
fn text(texts: &[u8], at: u64) -> String {
    let rest = texts.get(at as usize..).unwrap_or_default();
    let text = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

impl Elf {
    /// Reads a file; `None` where it is no machine code of this machine.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let bytes = |at: u64, size: u64| {
            let mut bytes = vec![0; usize::try_from(size).ok().filter(|_| size <= MOST)?];
            file.read_exact_at(&mut bytes, at).ok()?;
            Some(bytes)
        };
        let header = bytes(0, 64)?;
        if header[..6] != MAGIC || number(&header, 18, 2) != MACHINE {
            return None;
        }
        let table = |at: usize, size: usize, count: usize| {
            let row = number(&header, size, 2);
            let bytes = bytes(number(&header, at, 8), row * number(&header, count, 2))?;
            Some(Table { bytes, row: row as usize })
        };
        let (segments, sections) = (table(32, 54, 56)?, table(40, 58, 60)?);
        let has_loader = segments.rows().any(|row| number(row, 0, 4) == SEGMENT_LOADER);
        let mut elf = Self { has_loader, ..Self::default() };
        let part = |section: &[u8]| bytes(number(section, 24, 8), number(section, 32, 8));
        for section in sections.rows() {
            let kind = number(section, 4, 4);
            if kind != SECTION_DYNAMIC && kind != SECTION_SYMBOLS {
                continue;
            }
            // A section names the section with its texts.
            let texts = part(sections.rows().nth(number(section, 40, 4) as usize)?)?;
            let row = number(section, 56, 8) as usize;
            let rows = Table { bytes: part(section)?, row };
            for row in rows.rows() {
                if kind == SECTION_DYNAMIC {
                    if number(row, 0, 8) == TAG_NEEDED {
                        elf.needed.insert(text(&texts, number(row, 8, 8)));
                    }
                } else {
                    let is_defined = number(row, 6, 2) != 0;
                    let symbols = if is_defined { &mut elf.defined } else { &mut elf.undefined };
                    symbols.insert(text(&texts, number(row, 0, 4)));
                }
            }
        }
        Some(elf)
    }
}

/// Whether a file has these bytes somewhere.
pub(super) fn contains(path: &Path, wanted: &[u8]) -> bool {
    const PART: usize = 1 << 20;
    let Ok(mut file) = File::open(path) else { return false };
    let mut bytes = vec![0; PART];
    // Bytes that may be the beginning of what is wanted.
    let mut kept = 0;
    while let Ok(size @ 1..) = file.read(&mut bytes[kept..]) {
        let filled = kept + size;
        if has(&bytes[..filled], wanted) {
            return true;
        }
        kept = filled.min(wanted.len() - 1);
        bytes.copy_within(filled - kept..filled, 0);
    }
    false
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    let first = wanted[0];
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        from += at;
        if bytes[from..].starts_with(wanted) {
            return true;
        }
        from += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn this_program_is_read() {
        let own = std::env::current_exe().expect("a test has a path");
        let elf = Elf::read(&own).expect("a program");
        assert!(elf.has_loader && elf.needed.iter().any(|name| name.starts_with("libc.so")));
        assert!(elf.undefined.contains("malloc") && !elf.defined.contains("malloc"));
        assert_eq!(Elf::read(Path::new(file!())), None);
    }

    /// No file makes the reader panic: each byte of the header, and each length, is wrong once.
    #[test]
    fn broken_files_are_read_without_harm() {
        let own = std::env::current_exe().expect("a test has a path");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        let mut whole = Vec::new();
        File::open(own).expect("it is there").take(1 << 16).read_to_end(&mut whole).expect("bytes");
        for at in 0..64 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                fs::write(&file, bytes).expect("a file of the tests");
                _ = Elf::read(&file);
            }
        }
        for size in 0..200 {
            fs::write(&file, &whole[..size]).expect("a file of the tests");
            assert_eq!(Elf::read(&file), None, "{size}");
        }
    }

    #[test]
    fn bytes_are_found_across_the_parts_that_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        for at in [0, 1 << 20, (1 << 20) - 3, (1 << 21) - 7, 3 << 20] {
            let mut bytes = vec![b' '; 4 << 20];
            assert!(!contains(Path::new("/nowhere"), b" NCCL"));
            bytes[at..at + 5].copy_from_slice(b" NCCL");
            fs::write(&file, &bytes).expect("a file of the tests");
            assert!(contains(&file, b" NCCL") && !contains(&file, b" NCCX"), "{at}");
        }
    }
}

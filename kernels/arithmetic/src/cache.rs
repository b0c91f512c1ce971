//! The size of the caches: for destinations beyond it, streaming stores pay.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The size that is assumed where the system gives none: the share of a core in a common server.
const DEFAULT: usize = 8 << 20;

/// Returns the bytes of the largest cache that the first core reads through, as Linux reports it; 8 MiB where it does
/// not.
pub fn last_level_cache() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES
        .get_or_init(|| largest(Path::new("/sys/devices/system/cpu/cpu0/cache")).unwrap_or(DEFAULT))
}

/// Returns the size of the largest cache described below `dir`, one subdirectory each.
fn largest(dir: &Path) -> Option<usize> {
    let sizes = fs::read_dir(dir).ok()?.flatten().filter_map(|cache| {
        let size = fs::read_to_string(cache.path().join("size")).ok()?;
        bytes(size.trim())
    });
    sizes.max()
}

/// Parses `32768K`, `32M` or plain bytes.
fn bytes(size: &str) -> Option<usize> {
    let (number, shift) = match size.as_bytes().last()? {
        b'K' => (&size[..size.len() - 1], 10),
        b'M' => (&size[..size.len() - 1], 20),
        b'G' => (&size[..size.len() - 1], 30),
        _ => (size, 0),
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_unit() {
        assert_eq!(bytes("32768K"), Some(32 << 20));
        assert_eq!(bytes("48M"), Some(48 << 20));
        assert_eq!(bytes("1G"), Some(1 << 30));
        assert_eq!(bytes("512"), Some(512));
        for not in ["", "K", "0K", "-1K", "many", "99999999999999999999K"] {
            assert_eq!(bytes(not), None, "{not}");
        }
    }

    #[test]
    fn the_largest_cache_of_all_levels_counts() {
        let dir = tempfile::tempdir().unwrap();
        for (index, size) in ["48K", "32M", "1024K"].iter().enumerate() {
            let cache = dir.path().join(format!("index{index}"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("size"), format!("{size}\n")).unwrap();
        }
        assert_eq!(largest(dir.path()), Some(32 << 20));
        assert_eq!(largest(&dir.path().join("none")), None);
        assert!(last_level_cache() > 0);
    }
}

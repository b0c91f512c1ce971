//! The files that sources may use.

use std::path::Path;

use roundelay_core::syntax::used_files::{UsedFiles, plain};

#[test]
fn the_words_of_a_path_lead_below_a_folder_or_not() {
    let below = |source: &str, path: &str| {
        UsedFiles::for_source(Path::new(source)).is_below(Path::new(path))
    };
    for path in ["b.coll", "./b.coll", "c/../b.coll", "c/d/b.coll"] {
        assert!(below("a.coll", path) && below("/p/a.coll", &format!("/p/{path}")), "{path}");
    }
    for path in ["../b.coll", "/b.coll", "c/../../b.coll"] {
        assert!(!below("a.coll", path), "{path}");
    }
    for path in ["/p/../b.coll", "/b.coll", "/pp/b.coll", "b.coll", "/p/c/../../p/b.coll"] {
        assert!(!below("/p/a.coll", path), "{path}");
    }
}

#[test]
fn a_path_loses_its_detours() {
    for (path, expected) in
        [("./a/../b.coll", "b.coll"), ("../b.coll", "../b.coll"), ("/a/./b/../c", "/a/c")]
    {
        assert_eq!(plain(Path::new(path)), Path::new(expected), "{path}");
    }
}

#[test]
fn only_programs_are_read() {
    let files = UsedFiles::for_source(Path::new("a.coll"));
    for path in ["/etc/passwd", "/dev/zero", "a.COLL", ".coll", "a.coll.txt", "/"] {
        let why = files.identity(Path::new(path)).unwrap_err();
        assert!(why.contains("`.coll`"), "{path}: {why}");
        assert_eq!(files.read(Path::new(path)), Err(why));
    }
}

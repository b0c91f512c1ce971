//! The proof for every nranks from outside: what it claims, the proof for given counts must find too.

#![allow(missing_docs)]
// expect-test writes its own quotes when it updates.
#![allow(clippy::needless_raw_string_hashes)]

#[test]
fn probe() {
    use roundelay_core::check::Door;
    use roundelay_core::source::Source;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for dir in ["stdlib", "examples"] {
        let mut all: Vec<_> = std::fs::read_dir(root.join(dir))
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.extension().is_some_and(|e| e == "coll"))
            .collect();
        all.sort();
        for path in all {
            let text = std::fs::read_to_string(&path).unwrap();
            let source = Source::from_text("x.coll", &text);
            let Ok(program) = roundelay_core::compile(&source, Door::File) else { continue };
            for a in &program.algorithms {
                let t = std::time::Instant::now();
                let r = roundelay_core::verify::parametric::prove(a);
                let r = r.map_err(|o| {
                    let l = source.location(o.at);
                    format!("{}:{} {}", l.line, l.column, o.what)
                });
                println!(
                    "{} {}: {r:?} {:?}",
                    path.file_name().unwrap().to_string_lossy(),
                    a.name,
                    t.elapsed()
                );
            }
        }
    }
}

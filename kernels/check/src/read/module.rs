//! The modules of a harness.

use crate::harness::{KernelModule, ModuleText};
use crate::node::{Field, Mistake, get};

pub(super) fn module(Field { key, node, .. }: &Field) -> Result<KernelModule, Mistake> {
    let fields = node.table(&[
        "file",
        "text",
        "ptx",
        "ptx_text",
        "compiler",
        "arch",
        "define",
        "include",
        "prelude",
        "slices",
        "options",
        "instantiate",
    ])?;
    type Make = fn(String) -> ModuleText;
    let origins: [(&str, Make); 4] = [
        ("file", ModuleText::File),
        ("text", ModuleText::Text),
        ("ptx", ModuleText::Ptx),
        ("ptx_text", ModuleText::PtxText),
    ];
    let mut found = None;
    for (name, origin) in origins {
        if let Some(text) = get(fields, name) {
            if found.is_some() {
                return Err(text.wrong("the module has two texts").help("leave one of them out"));
            }
            found = Some(origin(text.text()?));
        }
    }
    let origin = found.ok_or_else(|| {
        node.wrong(format!("the module `{key}` has no text"))
            .help("add `file`, `text`, `ptx` or `ptx_text`")
    })?;
    let mut module = KernelModule::new(key, origin);
    for Field { key, node, .. } in fields {
        match key.as_str() {
            "compiler" => module.compiler = node.text()?,
            "arch" => module.arch = node.text()?,
            "define" => module.defines = node.texts()?,
            "include" => module.includes = node.texts()?,
            "prelude" => module.preludes = node.texts()?,
            "options" => module.options = node.texts()?,
            "slices" => {
                for slice in node.list() {
                    let text = slice.text()?;
                    let lines = text.split_once("..").and_then(|(first, last)| {
                        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
                    });
                    let lines = lines.filter(|(first, last)| 0 < *first && first <= last);
                    module.slices.push(
                        lines.ok_or_else(|| {
                            slice.wrong("a slice is two lines, such as \"10..240\"")
                        })?,
                    );
                }
            }
            "instantiate" => {
                for Field { key, node, .. } in node.any_table()? {
                    module.instantiate.push((key.clone(), node.text()?));
                }
            }
            _ => {}
        }
    }
    Ok(module)
}

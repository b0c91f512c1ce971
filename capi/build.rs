//! The name by which the dynamic linker knows the library, and versions for its symbols.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let says = |name| std::env::var(name).unwrap_or_default();
    if says("CARGO_CFG_TARGET_OS") == "linux" {
        let major = says("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libroundelay.so.{major}");
        // Gives each symbol the version of that name; the linker that Rust ships does not know versions.
        println!("cargo::rustc-cdylib-link-arg=-fuse-ld=bfd");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--default-symver");
    }
    // A release is installed, preloaded and packed: without the symbols that only a debugger reads.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rustc-cdylib-link-arg=-s");
    }
}

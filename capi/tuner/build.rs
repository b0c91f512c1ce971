//! The name by which the dynamic linker knows the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnccl-tuner-roundelay.so");
    }
    // A release is installed: without the symbols that only a debugger reads.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rustc-cdylib-link-arg=-s");
    }
}

//! Tells the command how it is built: `bench` says so, as figures of an unoptimized command mislead.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let said = |name| std::env::var(name).expect("cargo says how it builds");
    let optimized = said("PROFILE") == "release" && said("OPT_LEVEL") != "0";
    println!("cargo::rustc-env=ROUNDELAY_BUILD={}", if optimized { "release" } else { "dev" });
}

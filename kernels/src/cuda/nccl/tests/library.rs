//! The places of the search for NCCL, and the errors where it is not found.

use super::super::library::Nccl;
use super::world::nccl;
use crate::cuda::compile::tests::folder;

fn refused(named: &std::path::Path) -> String {
    let error = Nccl::find(Some(named.into())).err().expect("nothing is found");
    assert_eq!(error.code().as_str(), "E0415");
    error.to_string()
}

#[test]
fn a_named_place_is_the_only_one() {
    let why = refused("/nothing/here".as_ref());
    assert!(why.contains("ROUNDELAY_NCCL is set, and /nothing/here does not exist"), "{why}");
    assert!(why.contains("install NCCL 2.14 or newer"), "{why}");
    let folder = folder();
    let why = refused(folder.path());
    assert!(why.contains("holds no libnccl.so"), "{why}");
    std::fs::write(folder.path().join("libnccl.so.2"), "no library").expect("a file");
    let why = refused(folder.path());
    assert!(why.contains("libnccl.so.2 cannot be loaded"), "{why}");
    let why = refused("libm.so.6".as_ref());
    assert!(why.contains("libm.so.6 does not exist"), "a name is a place here: {why}");
}

#[test]
fn a_library_in_a_folder_is_found() {
    assert_eq!(nccl().version, 23_004);
}

#[test]
fn without_a_name_the_loader_is_asked() {
    // Passes whether this machine has NCCL or not.
    if let Err(error) = Nccl::find(None) {
        assert_eq!(error.code().as_str(), "E0415");
        let why = error.to_string();
        assert!(why.contains("ROUNDELAY_NCCL is not set"), "{why}");
        assert!(why.contains("the loader knows none of libnccl.so.2, libnccl.so"), "{why}");
    }
}

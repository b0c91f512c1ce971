//! Ids of worlds, their bytes and their texts.

use crate::shared_memory::meet::unique::{BOOT, KIND, NET, UniqueId};

fn message(id: &UniqueId) -> String {
    id.check().expect_err("the id is wrong").to_string()
}

#[test]
fn ids_differ_and_are_found_whole() {
    let (a, b) = (UniqueId::new().expect("an id"), UniqueId::new().expect("an id"));
    assert!(a != b && a.socket() != b.socket() && a.secret() != b.secret());
    assert_ne!(a.secret(), [0; 32]);
    a.check().expect("the id of this host");
    assert_eq!(UniqueId::from_bytes(*a.as_bytes()), a);
    assert_eq!(UniqueId::from_hex(&a.to_hex()).expect("an id"), a);
    assert_eq!(UniqueId::from_hex(&a.to_hex().to_uppercase()).expect("an id"), a);
    assert_eq!(format!("{a:?}"), "UniqueId { .. }");
}

#[test]
fn an_id_of_a_job_follows_from_its_name() {
    let id = UniqueId::of_job("slurm 12.0");
    id.check().expect("the id of a job");
    assert_eq!(id, UniqueId::of_job("slurm 12.0"));
    assert_ne!(id.socket(), UniqueId::of_job("slurm 12.1").socket());
    assert_eq!(id.secret(), [0; 32]);
}

#[test]
fn bytes_that_are_no_id_are_refused() {
    let id = UniqueId::new().expect("an id");
    for at in 0..UniqueId::BYTES {
        let mut bytes = *id.as_bytes();
        bytes[at] ^= 0x10;
        assert!(message(&UniqueId::from_bytes(bytes)).ends_with("[E0427]"), "byte {at}");
    }
    let text = message(&UniqueId::from_bytes([0; UniqueId::BYTES]));
    assert!(text.contains("cut or never set"), "{text}");
    let text = message(&id.changed(KIND + 1).changed(KIND).changed(BOOT));
    assert!(text.contains("another host"), "{text}");
    let text = message(&id.changed(NET));
    assert!(text.contains("another network namespace"), "{text}");
}

#[test]
fn texts_that_are_no_id_are_refused() {
    let hex = UniqueId::new().expect("an id").to_hex();
    let refused = |text: &str| UniqueId::from_hex(text).expect_err("no id").to_string();
    assert!(refused("").contains("0 characters"));
    assert!(refused(&hex[1..]).contains("255 characters"));
    assert!(refused(&format!("{hex}0")).contains("257 characters"));
    assert!(refused(&format!("+f{}", &hex[2..])).contains("`+f`"));
    assert!(refused(&format!("é{}", &hex[2..])).contains("256 hexadecimal digits"));
}

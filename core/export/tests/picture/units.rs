//! Sizes as text.

use roundelay_pictures::spacetime::Units;

#[test]
fn sizes_have_the_units_of_their_kind() {
    for (bytes, binary, decimal) in [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (64 << 20, "64 MiB", "67.11 MB"),
        (64_000_000, "61.04 MiB", "64 MB"),
        ((64 << 20) / 7, "9.143 MiB", "9.587 MB"),
        (3 << 50, "3072 TiB", "3378 TB"),
    ] {
        assert_eq!(Units::Binary.text(bytes), binary);
        assert_eq!(Units::Decimal.text(bytes), decimal);
    }
}

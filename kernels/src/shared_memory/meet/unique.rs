//! The id of a world, for the processes that are to be its ranks.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};

use sha2::{Digest as _, Sha256};

use super::system::{boot, network, random, user};
use crate::Error;

/// The id of a world: 128 opaque bytes with a random secret, which one process makes and all ranks get.
///
/// A process that has the bytes, and runs as the same user, can join the world. An id serves once.
#[derive(Clone, PartialEq, Eq)]
pub struct UniqueId([u8; Self::BYTES]);

/// The first bytes of an id; the last of them is the version of the format.
const MAGIC: [u8; 8] = *b"rdlyid\0\x01";
/// The offset of an id's kind.
pub(crate) const KIND: usize = 8;
/// The offset of the socket's name: 16 bytes.
const NAME: usize = 16;
/// The offset of the secret: 32 bytes.
const SECRET: usize = 32;
/// The offset of the number of the host's boot: 16 bytes, zeros if it is not known.
pub(crate) const BOOT: usize = 64;
/// The offset of the number of the network namespace: 8 bytes, zeros if it is not known.
pub(crate) const NET: usize = 80;
/// The offset of the checksum of all bytes before it: 8 bytes, at the very end.
const CHECK: usize = UniqueId::BYTES - 8;

/// The kind of an id with a random name and a secret.
const RANDOM: u8 = 0;
/// The kind of an id that follows from the name of a job.
const OF_JOB: u8 = 1;
/// The kind of an id with the addresses at which ranks of several hosts meet.
const AT_ADDRESSES: u8 = 2;
/// The most addresses of an id: each has 16 bytes, from [`BOOT`] on, behind their number and their port.
const ADDRESSES: usize = 3;

/// Whether two secrets are equal, in a time that depends on their lengths alone.
#[doc(hidden)]
pub fn same_secret(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

impl UniqueId {
    /// The length of an id in bytes.
    pub const BYTES: usize = 128;

    /// Makes an id that no other process has.
    ///
    /// # Errors
    /// E0429 where the system gives no random bytes, or is not Linux.
    pub fn new() -> Result<Self, Error> {
        let mut bytes = [0; Self::BYTES];
        bytes[KIND] = RANDOM;
        random(&mut bytes[NAME..BOOT])?;
        // Without `/proc`, an id does not name the place where it was made.
        bytes[BOOT..NET].copy_from_slice(&boot().unwrap_or_default());
        bytes[NET..NET + 8].copy_from_slice(&network().unwrap_or_default().to_le_bytes());
        Ok(Self::sealed(bytes))
    }

    /// Returns the id of a job: all processes of one user that know the job's name get an equal id, under launchers
    /// that pass no id on.
    ///
    /// The id has no secret: other users cannot join, as all ranks must run as one user.
    pub fn of_job(text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"roundelay job\0");
        hash.update(user().to_le_bytes());
        hash.update(text.as_bytes());
        let mut bytes = [0; Self::BYTES];
        bytes[KIND] = OF_JOB;
        bytes[NAME..SECRET].copy_from_slice(&hash.finalize()[..SECRET - NAME]);
        Self::sealed(bytes)
    }

    /// Returns the id of a world whose ranks, on several hosts, meet at these addresses of one port, with this secret.
    ///
    /// # Errors
    /// E0427 where there is no address.
    #[doc(hidden)]
    pub fn of_addresses(
        addresses: &[SocketAddr],
        secret: &[u8; BOOT - SECRET],
    ) -> Result<Self, Error> {
        if addresses.is_empty() {
            let what = "this host has no address at which other hosts could reach it; ROUNDELAY_INTERFACE and ROUNDELAY_FAMILY choose among those of its interfaces".to_owned();
            return Err(Error::NotJoined { what });
        }
        let mut bytes = [0; Self::BYTES];
        bytes[KIND] = AT_ADDRESSES;
        bytes[SECRET..BOOT].copy_from_slice(secret);
        put_addresses(&mut bytes[BOOT..BOOT + 3 + 16 * ADDRESSES], addresses);
        Ok(Self::sealed(bytes))
    }

    /// Returns the addresses at which ranks of several hosts meet, if the id has such.
    #[doc(hidden)]
    pub fn addresses(&self) -> Option<Vec<SocketAddr>> {
        (self.0[KIND] == AT_ADDRESSES).then(|| addresses_in(&self.0[BOOT..]))
    }

    /// Returns the id with these bytes, which come from [`Self::as_bytes`] in another process. Bytes that are no id are
    /// found when a process joins.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, for the other ranks.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Reads the id that [`Self::to_hex`] wrote in another process.
    ///
    /// # Errors
    /// E0427 where the text is no id.
    pub fn from_hex(text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::NotJoined {
            what: format!(
                "{what}, and the id of a world is {} hexadecimal digits; give all ranks the id that one process made",
                2 * Self::BYTES
            ),
        };
        let text = text.trim();
        if text.len() != 2 * Self::BYTES {
            return Err(wrong(format!("the text of an id has {} characters", text.len())));
        }
        let mut bytes = [0; Self::BYTES];
        if let Err(digits) = read_hex(text, &mut bytes) {
            let found = String::from_utf8_lossy(digits).escape_debug().to_string();
            return Err(wrong(format!("the text of an id has `{found}` in it")));
        }
        Ok(Self(bytes))
    }

    /// Returns the bytes as hexadecimal digits, for an environment variable. They contain the secret.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Checks that these are the bytes of an id.
    ///
    /// # Errors
    /// E0427 where they are not.
    #[doc(hidden)]
    pub fn check_bytes(&self) -> Result<(), Error> {
        let known = [RANDOM, OF_JOB, AT_ADDRESSES].contains(&self.0[KIND]);
        if self.0[..8] != MAGIC || !known || self.0[CHECK..] != digest(&self.0)[..] {
            return Err(Error::NotJoined {
                what: "the id of the world is none that this version of Roundelay makes: its bytes were changed, cut or never set; give all ranks the bytes that `UniqueId::new` made in one process".to_owned(),
            });
        }
        Ok(())
    }

    /// Checks that these are the bytes of an id, made on this host.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_bytes()?;
        if self.0[KIND] == AT_ADDRESSES {
            let what = "the id of the world is for ranks of several hosts, and this build lacks the feature `tcp`".to_owned();
            return Err(Error::NotJoined { what });
        }
        let elsewhere = |what: &str| {
            let what = format!(
                "the id of the world was made {what}, and ranks must be processes of one host; start all of them on one"
            );
            Err(Error::NotJoined { what })
        };
        let (mut made_in, mut net) = ([0; NET - BOOT], [0; 8]);
        made_in.copy_from_slice(&self.0[BOOT..NET]);
        net.copy_from_slice(&self.0[NET..NET + 8]);
        if made_in != [0; NET - BOOT] && boot().is_some_and(|here| here != made_in) {
            return elsewhere("on another host, or before this one was started anew");
        }
        if net != [0; 8] && network().is_some_and(|here| here.to_le_bytes() != net) {
            return elsewhere("in another network namespace (another container)");
        }
        Ok(())
    }

    /// Returns the name of the abstract socket at which the ranks meet.
    pub(crate) fn socket(&self) -> String {
        format!("roundelay-{}", hex(&self.0[NAME..SECRET]))
    }

    /// Returns the secret that joining ranks show each other; zeros for an id of a job.
    #[doc(hidden)]
    pub fn secret(&self) -> [u8; BOOT - SECRET] {
        let mut secret = [0; BOOT - SECRET];
        secret.copy_from_slice(&self.0[SECRET..BOOT]);
        secret
    }

    /// Sets the first bytes and the checksum, which all ids have.
    fn sealed(mut bytes: [u8; Self::BYTES]) -> Self {
        bytes[..8].copy_from_slice(&MAGIC);
        let check = digest(&bytes);
        bytes[CHECK..].copy_from_slice(&check);
        Self(bytes)
    }

    /// Returns the id with one byte changed, and the right checksum.
    #[cfg(test)]
    pub(crate) fn changed(&self, at: usize) -> Self {
        let mut bytes = self.0;
        bytes[at] ^= 1;
        Self::sealed(bytes)
    }

    /// Returns the id with another secret.
    #[cfg(test)]
    pub(crate) fn with_another_secret(&self) -> Self {
        self.changed(SECRET)
    }
}

/// Returns the checksum of an id.
fn digest(bytes: &[u8; UniqueId::BYTES]) -> [u8; 8] {
    let mut check = [0; 8];
    check.copy_from_slice(&Sha256::digest(&bytes[..CHECK])[..8]);
    check
}

/// Writes addresses of one port: their number and their port, and then 16 bytes for each, as many as there is room for.
pub(crate) fn put_addresses(bytes: &mut [u8], addresses: &[SocketAddr]) {
    let (head, places) = bytes.split_at_mut(3);
    let port = addresses.first().map_or(0, SocketAddr::port);
    head[0] = addresses.len().min(places.len() / 16) as u8;
    head[1..].copy_from_slice(&port.to_le_bytes());
    for (place, address) in places.chunks_exact_mut(16).zip(addresses) {
        let ip = match address.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        place.copy_from_slice(&ip.octets());
    }
}

/// Returns the addresses that [`put_addresses`] wrote.
pub(crate) fn addresses_in(bytes: &[u8]) -> Vec<SocketAddr> {
    let (port, places) = (u16::from_le_bytes([bytes[1], bytes[2]]), bytes[3..].chunks_exact(16));
    let address = |place: &[u8]| {
        let mut octets = [0; 16];
        octets.copy_from_slice(place);
        SocketAddr::new(IpAddr::from(octets).to_canonical(), port)
    };
    places.take(bytes[0].into()).map(address).collect()
}

/// Reads hexadecimal digits, two for each byte; where two characters are none, returns them.
pub(crate) fn read_hex<'t>(text: &'t str, bytes: &mut [u8]) -> Result<(), &'t [u8]> {
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (Some(high), Some(low)) = (digit(digits[0]), digit(digits[1])) else {
            return Err(digits);
        };
        *byte = (high * 16 + low) as u8;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The text does not show the secret.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueId").finish_non_exhaustive()
    }
}

//! The addresses of this host, for connections of other hosts.

use std::env;
use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr::null_mut;

/// The variable with the interfaces that may be used: prefixes of names with commas between; `^` before the first excludes
/// them, `=` takes names as they are. And the variable with the family: `inet` or `inet6`.
const INTERFACE: &str = "ROUNDELAY_INTERFACE";
const FAMILY: &str = "ROUNDELAY_FAMILY";

/// Returns the addresses by which other hosts may reach this one, IPv4 before IPv6; those of the loopback interface only
/// where there are no others, or it is named. All are of this port.
pub(super) fn own(port: u16) -> Vec<SocketAddr> {
    let (named, family) = (env::var(INTERFACE).ok(), env::var(FAMILY).ok());
    let own = of(&all(), named.as_deref(), family.as_deref());
    own.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// Returns the name of the interface that has this address.
pub(super) fn interface(address: IpAddr) -> Option<String> {
    all().into_iter().find(|(_, own)| *own == address).map(|(name, _)| name)
}

/// An address of an interface with this name.
type Named = (String, IpAddr);

fn of(all: &[Named], named: Option<&str>, family: Option<&str>) -> Vec<IpAddr> {
    let in_family = |address: &IpAddr| match family {
        Some("inet") => address.is_ipv4(),
        Some("inet6") => address.is_ipv6(),
        _ => true,
    };
    // A link-local address means nothing on another host.
    let linked = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    let usable = |(name, address): &&Named| {
        in_family(address) && !linked(address) && named.is_none_or(|named| fits(name, named))
    };
    let mut found: Vec<IpAddr> = all.iter().filter(usable).map(|(_, address)| *address).collect();
    if named.is_none() && found.iter().any(|address| !address.is_loopback()) {
        found.retain(|address| !address.is_loopback());
    }
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    found
}

/// Whether an interface is one of those that the variable names.
fn fits(name: &str, named: &str) -> bool {
    let (named, excluded) = named.strip_prefix('^').map_or((named, false), |named| (named, true));
    let (named, exact) = named.strip_prefix('=').map_or((named, false), |named| (named, true));
    let mut names = named.split(',').map(str::trim).filter(|name| !name.is_empty());
    let one = names.any(|one| if exact { name == one } else { name.starts_with(one) });
    one != excluded
}

/// Returns the addresses of all interfaces that are up.
fn all() -> Vec<Named> {
    let mut first: *mut libc::ifaddrs = null_mut();
    // SAFETY: there is room for the list's first entry.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Vec::new();
    }
    let (mut found, mut next) = (Vec::new(), first);
    // SAFETY: the list's entries are valid until it is freed; an entry's address, where it has one, has the length of its
    // family, and its name ends in a zero.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let up = entry.ifa_flags & libc::IFF_UP as u32 != 0;
        if !up || entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: the entry's name ends in a zero, and its address has the length of its family.
        let (name, family) =
            unsafe { (CStr::from_ptr(entry.ifa_name), i32::from((*entry.ifa_addr).sa_family)) };
        let address: IpAddr = match family {
            libc::AF_INET => {
                // SAFETY: an address of this family is one of this type.
                let v4 = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into()
            }
            libc::AF_INET6 => {
                // SAFETY: an address of this family is one of this type.
                let v6 = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                Ipv6Addr::from(v6.sin6_addr.s6_addr).into()
            }
            _ => continue,
        };
        found.push((name.to_string_lossy().into_owned(), address));
    }
    // SAFETY: the list is the one that was made.
    unsafe { libc::freeifaddrs(first) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_chosen_by_name_and_family() {
        let named = |name: &str, address: &str| (name.to_owned(), address.parse().expect("one"));
        let all = [
            named("lo", "127.0.0.1"),
            named("eth0", "fd00::1"),
            named("eth0", "10.0.0.1"),
            named("eth0", "fe80::1"),
            named("eth1", "10.1.0.1"),
            named("docker0", "172.17.0.1"),
        ];
        let texts = |name: Option<&str>, family: Option<&str>| -> Vec<String> {
            of(&all, name, family).iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(None, None), ["10.0.0.1", "10.1.0.1", "172.17.0.1", "fd00::1"]);
        assert_eq!(texts(Some("eth"), Some("inet")), ["10.0.0.1", "10.1.0.1"]);
        assert_eq!(texts(Some("^docker,lo"), Some("inet6")), ["fd00::1"]);
        assert_eq!(texts(Some("=eth"), None), [""; 0]);
        assert_eq!(texts(Some("lo"), None), ["127.0.0.1"]);
        assert!(!super::own(1).is_empty(), "this host has an address");
    }
}

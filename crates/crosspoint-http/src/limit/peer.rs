//! Who is counted as one: an address. All programs of this machine have the same, and so have all callers behind a
//! proxy here. So the limits of an address do not hold for the loopback unless they are set.

use std::net::IpAddr;

/// Where a connection comes from. It is attached to every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// From this address.
    Address(IpAddr),
    /// Over a socket file, which only its user can open.
    Local,
}

impl Peer {
    /// Returns what the peer is counted by. A machine with one IPv6 address has all that begin with the same 64 bits,
    /// so these are one. No address of a sender begins with `ff`, so an IPv4 address has a number of its own.
    pub fn key(self) -> Option<u64> {
        match self {
            Peer::Local => None,
            Peer::Address(address) => Some(match address.to_canonical() {
                IpAddr::V4(address) => 0xffff << 48 | u64::from(address.to_bits()),
                IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
            }),
        }
    }

    fn is_loopback(self) -> bool {
        match self {
            Peer::Local => true,
            Peer::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

/// A limit that each address has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Each {
    /// The configured limit; 0 is none.
    pub set: Option<usize>,
    /// The limit of other machines, if none is configured.
    pub default: usize,
}

impl Each {
    /// Returns the key of this peer, and the most that it may have; `None` if there is no limit.
    pub fn of(self, peer: Peer) -> Option<(u64, usize)> {
        let key = peer.key()?;
        match self.set {
            Some(0) => None,
            Some(most) => Some((key, most)),
            None => (!peer.is_loopback()).then_some((key, self.default)),
        }
    }

    /// Returns the number that is in force for other machines.
    pub fn number(self) -> usize {
        self.set.unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Address(address.parse().expect("an address"))
    }

    #[test]
    fn an_ipv6_network_is_one_and_an_ipv4_address_is_one_however_it_is_written() {
        assert_eq!(peer("2001:db8:1:2::1").key(), peer("2001:db8:1:2:ffff::9").key());
        assert_ne!(peer("2001:db8:1:2::1").key(), peer("2001:db8:1:3::1").key());
        assert_eq!(peer("192.0.2.1").key(), peer("::ffff:192.0.2.1").key());
        assert_ne!(peer("192.0.2.1").key(), peer("192.0.2.2").key());
        assert_ne!(peer("192.0.2.1").key(), peer("::c000:201").key());
    }

    #[test]
    fn the_loopback_has_only_limits_that_are_set_and_a_socket_file_none() {
        let (unset, set, none) = (Each { set: None, default: 8 }, Some(3), Some(0));
        for here in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(unset.of(peer(here)), None, "{here}");
            assert_eq!(Each { set, ..unset }.of(peer(here)).map(|(_, most)| most), Some(3), "{here}");
        }
        let other = peer("192.0.2.1");
        assert_eq!(unset.of(other).map(|(_, most)| most), Some(8));
        assert_eq!((Each { set: none, ..unset }.of(other), Each { set, ..unset }.of(Peer::Local)), (None, None));
    }
}

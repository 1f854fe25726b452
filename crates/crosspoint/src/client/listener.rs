//! Which user listens on a port of this machine, according to the system's own tables.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::geteuid;

/// The tables, one for each kind of address.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// The state of a listening socket in a table.
const LISTENS: &str = "0A";

/// The owner of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Us,
    /// Another user than the one of this process.
    Another,
    None,
}

/// Returns which user listens at an address, on it alone or on all addresses.
pub(super) fn of(address: SocketAddr) -> io::Result<Owner> {
    let mut owners = Vec::new();
    for table in TABLES {
        match File::open(table) {
            Ok(table) => owners.extend(owners_in(BufReader::new(table), address)?),
            // A system without IPv6 has no second table.
            Err(error) if error.kind() == ErrorKind::NotFound && table != TABLES[0] => {}
            Err(error) => return Err(error),
        }
    }
    let us = geteuid().as_raw();
    Ok(match owners.as_slice() {
        [] => Owner::None,
        owners if owners.iter().all(|owner| *owner == us) => Owner::Us,
        _ => Owner::Another,
    })
}

/// Returns the users that listen there. Listening sockets come first in a table: the rest, which may be very long, is
/// not read.
fn owners_in(table: impl BufRead, address: SocketAddr) -> io::Result<Vec<u32>> {
    let mut owners = Vec::new();
    for line in table.lines().skip(1) {
        let line = line?;
        let Some(row) = Row::read(&line) else { break };
        if row.port == address.port() && (row.ip == address.ip().to_canonical() || row.ip.is_unspecified()) {
            owners.push(row.user);
        }
    }
    Ok(owners)
}

/// One listening socket.
struct Row {
    ip: IpAddr,
    port: u16,
    user: u32,
}

impl Row {
    /// `sl local_address rem_address st tx:rx tr:tm retrnsmt uid ...`
    fn read(line: &str) -> Option<Row> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (ip, port) = fields.next()?.split_once(':')?;
        fields.nth(1).filter(|state| *state == LISTENS)?;
        let user = fields.nth(3)?.parse().ok()?;
        Some(Row { ip: ip_of(ip)?.to_canonical(), port: u16::from_str_radix(port, 16).ok()?, user })
    }
}

/// Reads an address, which is written as words of 32 bits in the processor's byte order.
fn ip_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1CFC 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 00000000:1CFD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 00000000000000000000000001000000:1CFE 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 3 1 0 100 0 0 10 0
   3: 0100007F:1CFF 0100007F:A000 01 00000000:00000000 00:00000000 00000000     5        0 4 1 0 100 0 0 10 0
";

    #[test]
    fn a_row_of_the_table_says_who_listens_where() {
        let owners = |address: &str| {
            let address = address.parse().expect("it is an address");
            owners_in(TABLE.as_bytes(), address).expect("it is in memory")
        };
        assert_eq!(owners("127.0.0.1:7420"), [1000]);
        assert_eq!(owners("127.0.0.2:7420"), [0; 0]);
        assert_eq!(owners("127.0.0.2:7421"), [0], "who listens everywhere listens here");
        assert_eq!(owners("[::1]:7422"), [33]);
        assert_eq!(owners("127.0.0.1:7423"), [0; 0], "who is connected does not listen");
    }

    #[test]
    fn a_port_that_this_process_has_is_ours_until_it_is_closed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        assert_eq!(of(address).expect("there is a table"), Owner::Us);
        drop(listener);
        assert_eq!(of(address).expect("there is a table"), Owner::None);
    }
}

//! Steering: the choice of the worker that owns a query name. A keyed hash of the case-folded name decides, so that equal
//! questions meet at one worker, which asks an upstream once. The kernel applies the rule before it queues a datagram, by a
//! classic BPF program on the SO_REUSEPORT group, which needs no privilege. [`home_worker`] computes the same result in Rust.
//!
//! The hash is FNV-1a over octets | 0x20, from a secret start, with a final step that mixes in a second secret, because the
//! low bits of FNV alone are linear in those of the input. The hash spreads load. No security depends on it.

use crate::limits::STEERING_OCTETS;
use crate::listen::proxy_protocol;
use kernel::syscalls::{check, set_option};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Octets before the name: the DNS header (RFC 1035 section 4.1.1).
const HEADER: usize = 12;

/// The option that takes a steering program away (asm-generic/socket.h); the `libc` crate has it for Android only.
const SO_DETACH_REUSEPORT_BPF: libc::c_int = 68;

const PRIME: u32 = 0x0100_0193;
const FINISH: u32 = 0x9e37_79b1;

/// The way in which datagrams are steered to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Steer {
    /// The kernel picks the worker that owns the name.
    #[default]
    Name,
    /// The kernel picks by the addresses and ports. The worker forwards queries that another worker owns.
    Flow,
}

/// The secret of the hash, drawn at every start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    start: u32,
    finish: u32,
}

impl Seed {
    /// A seed from the system's generator.
    ///
    /// # Errors
    ///
    /// The error of getrandom(2): the system has no random numbers yet.
    pub fn random() -> io::Result<Seed> {
        getrandom::u64().map(Seed::from).map_err(|error| io::Error::other(error.to_string()))
    }
}

impl From<u64> for Seed {
    fn from(bits: u64) -> Seed {
        Seed { start: bits as u32, finish: (bits >> 32) as u32 }
    }
}

impl From<Seed> for u64 {
    fn from(seed: Seed) -> u64 {
        u64::from(seed.finish) << 32 | u64::from(seed.start)
    }
}

/// The worker that owns the name of a query: the worker that the kernel picks too. A message that ends within its name
/// belongs to worker 0.
#[inline]
pub fn home_worker(message: &[u8], seed: Seed, workers: usize) -> usize {
    find_home_worker(message, seed, workers).unwrap_or(0)
}

/// The worker that owns the name of a query, or `None` if the message ends within the name: any worker can reject it.
#[inline]
pub(crate) fn find_home_worker(message: &[u8], seed: Seed, workers: usize) -> Option<usize> {
    name_hash(message, seed).map(|hash| home_worker_of(hash, workers))
}

/// The worker that owns the names with a hash.
#[inline]
pub(crate) fn home_worker_of(hash: u32, workers: usize) -> usize {
    ((hash >> 12) % workers.max(1) as u32) as usize
}

/// The hash of the name of a query, or `None` if the message ends within the name.
#[inline]
pub(crate) fn name_hash(message: &[u8], seed: Seed) -> Option<u32> {
    let name = message.get(HEADER..)?;
    let mut hash = seed.start;
    for position in 0..STEERING_OCTETS {
        match *name.get(position)? {
            0 => break,
            octet => hash = (hash ^ u32::from(octet | 0x20)).wrapping_mul(PRIME),
        }
    }
    hash ^= seed.finish;
    Some((hash ^ (hash >> 15)).wrapping_mul(FINISH))
}

/// Words of the program's memory with a PROXY header: the offset of the message, and the hash.
const MESSAGE: u32 = 0;
const HASH: u32 = 1;

/// An instruction without a jump.
const fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// The BPF program, which returns the index of the socket in its group. A load beyond the end of the datagram ends it with 0.
/// `proxied`: a PROXY header may stand before the message. Then the offset of the message takes the register that otherwise
/// holds the hash, which costs two more instructions per octet. `popular`: hashes of names for any worker, picked at random.
fn program(workers: u32, seed: Seed, proxied: bool, popular: &[u32]) -> Vec<libc::sock_filter> {
    use libc::{
        BPF_A, BPF_ABS, BPF_ALU, BPF_IMM, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MEM, BPF_MISC,
        BPF_MOD, BPF_MUL, BPF_RET, BPF_RSH, BPF_TAX, BPF_TXA, BPF_W, BPF_X, BPF_XOR,
    };
    let mut code = Vec::new();
    if proxied {
        skip_proxy_header(&mut code, seed);
    } else {
        code.push(step(BPF_LDX | BPF_IMM, seed.start));
    }
    hash_name(&mut code, proxied);
    let hash = if proxied { step(BPF_LD | BPF_MEM, HASH) } else { step(BPF_MISC | BPF_TXA, 0) };
    code.extend([
        hash,
        step(BPF_ALU | BPF_XOR | BPF_K, seed.finish),
        step(BPF_MISC | BPF_TAX, 0),
        step(BPF_ALU | BPF_RSH | BPF_K, 15),
        step(BPF_ALU | BPF_XOR | BPF_X, 0),
        step(BPF_ALU | BPF_MUL | BPF_K, FINISH),
    ]);
    let pick = [step(BPF_ALU | BPF_MOD | BPF_K, workers.max(1)), step(BPF_RET | BPF_A, 0)];
    for (place, &hash) in popular.iter().enumerate() {
        // Over the other comparisons, and over the three instructions that pick the owner.
        let jt = (popular.len() - 1 - place + 3) as u8;
        code.push(libc::sock_filter { jt, ..step(BPF_JMP | BPF_JEQ | BPF_K, hash) });
    }
    code.push(step(BPF_ALU | BPF_RSH | BPF_K, 12));
    code.extend(pick);
    if !popular.is_empty() {
        code.push(step(BPF_LD | BPF_W | BPF_ABS, (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32));
        code.extend(pick);
    }
    code
}

/// Instructions that load the offset of the message into the index register, and the start of the hash into its word.
fn skip_proxy_header(code: &mut Vec<libc::sock_filter>, seed: Seed) {
    use libc::{
        BPF_ABS, BPF_ADD, BPF_ALU, BPF_H, BPF_IMM, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MEM, BPF_ST,
        BPF_W,
    };
    // After the signature the message begins behind 16 octets and as many more as the last two of these say.
    code.extend([step(BPF_LD | BPF_IMM, 0), step(BPF_ST, MESSAGE)]);
    let (words, _) = proxy_protocol::SIGNATURE.as_chunks::<4>();
    for (place, word) in words.iter().enumerate() {
        let last = 2 * (words.len() - 1 - place) as u8 + 3;
        code.push(step(BPF_LD | BPF_W | BPF_ABS, 4 * place as u32));
        let is_equal = step(BPF_JMP | BPF_JEQ | BPF_K, u32::from_be_bytes(*word));
        code.push(libc::sock_filter { jf: last, ..is_equal });
    }
    code.extend([
        step(BPF_LD | BPF_H | BPF_ABS, proxy_protocol::FIXED_OCTETS as u32 - 2),
        step(BPF_ALU | BPF_ADD | BPF_K, proxy_protocol::FIXED_OCTETS as u32),
        step(BPF_ST, MESSAGE),
        step(BPF_LD | BPF_IMM, seed.start),
        step(BPF_ST, HASH),
        step(BPF_LDX | BPF_MEM, MESSAGE),
    ]);
}

/// Instructions that hash the octets of the name, up to the root label or [`STEERING_OCTETS`].
fn hash_name(code: &mut Vec<libc::sock_filter>, proxied: bool) {
    use libc::{
        BPF_ABS, BPF_ALU, BPF_B, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MEM,
        BPF_MISC, BPF_MUL, BPF_OR, BPF_ST, BPF_TAX, BPF_X, BPF_XOR,
    };
    let per_octet = if proxied { 9 } else { 7 };
    let end = code.len() + STEERING_OCTETS * per_octet;
    for position in 0..STEERING_OCTETS {
        let mode = if proxied { BPF_IND } else { BPF_ABS };
        code.push(step(BPF_LD | BPF_B | mode, (HEADER + position) as u32));
        code.push(libc::sock_filter { jf: 1, ..step(BPF_JMP | BPF_JEQ | BPF_K, 0) });
        code.push(step(BPF_JMP | BPF_JA, (end - code.len() - 1) as u32));
        code.push(step(BPF_ALU | BPF_OR | BPF_K, 0x20));
        if proxied {
            code.push(step(BPF_LDX | BPF_MEM, HASH));
        }
        code.push(step(BPF_ALU | BPF_XOR | BPF_X, 0));
        code.push(step(BPF_ALU | BPF_MUL | BPF_K, PRIME));
        if proxied {
            code.extend([step(BPF_ST, HASH), step(BPF_LDX | BPF_MEM, MESSAGE)]);
        } else {
            code.push(step(BPF_MISC | BPF_TAX, 0));
        }
    }
}

/// Makes the kernel pick the socket of a SO_REUSEPORT group by the home worker of the name. `first` is any socket of the group. Its
/// sockets must have been bound in the order of their workers. `proxied`: a PROXY header may stand before the messages. `popular`: hashes
/// of names that any worker answers.
///
/// # Errors
///
/// The error of setsockopt(2) for SO_ATTACH_REUSEPORT_CBPF: ENOPROTOOPT before Linux 4.5, or ENOMEM.
pub fn attach(
    first: BorrowedFd<'_>,
    workers: usize,
    seed: Seed,
    proxied: bool,
    popular: &[u32],
) -> io::Result<()> {
    let mut code = program(workers as u32, seed, proxied, popular);
    let filter = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // SAFETY: `filter` points at `len` instructions in `code`, which lives through the call; the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            first.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    check(result).map(|_| ())
}

/// A change of the steering of a SO_REUSEPORT group, which takes effect when it is applied. Another process may use the group until
/// then.
#[derive(Debug)]
pub(crate) enum SteeringChange {
    /// The kernel picks the worker by the name.
    ByName {
        /// A handle of any socket of the group.
        first: OwnedFd,
        /// Number of workers, and of sockets.
        workers: usize,
        /// The secret of the hash.
        seed: Seed,
        /// True if datagrams may begin with a PROXY header.
        proxied: bool,
    },
    /// The kernel picks the worker by addresses and ports.
    ByFlow {
        /// A handle of any socket of the group.
        first: OwnedFd,
    },
}

impl SteeringChange {
    /// Tells the kernel.
    ///
    /// # Errors
    ///
    /// As [`attach`] for steering by name. A change to steering by flow does not fail.
    pub(crate) fn apply(&self) -> io::Result<()> {
        match self {
            SteeringChange::ByName { first, workers, seed, proxied } => {
                attach(first.as_fd(), *workers, *seed, *proxied, &[])
            }
            SteeringChange::ByFlow { first } => {
                detach(first.as_fd());
                Ok(())
            }
        }
    }
}

/// Takes the program away from a SO_REUSEPORT group: the kernel then picks by the addresses and ports. `first` is any socket of
/// the group. A kernel before Linux 5.3 cannot do that; a group without program needs nothing. Both are no error: the workers
/// forward the queries that others own.
pub(crate) fn detach(first: BorrowedFd<'_>) {
    let _ = set_option(first.as_raw_fd(), libc::SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::listen::listener::UdpListener;
    use std::net::UdpSocket;
    use std::time::Duration;

    pub(crate) fn question(name: &str) -> Vec<u8> {
        kit::query(0x0102, name, 28)
    }

    /// Queries for names of many lengths, some beyond [`STEERING_OCTETS`], in mixed case.
    fn questions() -> Vec<Vec<u8>> {
        let mut all: Vec<_> =
            (0..400).map(|i| question(&format!("010-000-{i:03}-Ab.Dns64perf.test"))).collect();
        all.extend((1..60).map(|i| question(&format!("{}.{}.example", "x".repeat(i), "Y".repeat(60 - i)))));
        all
    }

    #[test]
    fn letter_case_and_type_do_not_change_the_owner() {
        let seed = Seed::from(0x0123_4567_89ab_cdef);
        for i in 0..100 {
            let lower = question(&format!("www.example-{i}.com"));
            let mut upper = question(&format!("WWW.exAMPLE-{i}.com"));
            *upper.iter_mut().rev().nth(2).unwrap() = 1;
            assert_eq!(home_worker(&lower, seed, 7), home_worker(&upper, seed, 7));
        }
    }

    #[test]
    fn owners_are_spread_evenly() {
        for bits in [0, 1, 0xffff_ffff_ffff_ffff, 0x1234_5678_9abc_def0] {
            for workers in [2usize, 3, 4, 16] {
                let mut hits = vec![0usize; workers];
                for i in 0..16_000 {
                    let name = question(&format!(
                        "010-{:03}-{:03}-{:03}.dns64perf.test",
                        i / 4096,
                        i / 256 % 16,
                        i % 256
                    ));
                    hits[home_worker(&name, Seed::from(bits), workers)] += 1;
                }
                let fair = 16_000 / workers;
                assert!(
                    hits.iter().all(|&hit| hit > fair * 4 / 5 && hit < fair * 6 / 5),
                    "{workers}: {hits:?}"
                );
            }
        }
    }

    #[test]
    fn runts_have_no_owner_and_fall_to_the_first_worker() {
        let seed = Seed::from(5);
        let whole = question("www.example.com");
        for length in 0..whole.len() - 5 {
            assert_eq!(find_home_worker(&whole[..length], seed, 4), None);
            assert_eq!(home_worker(&whole[..length], seed, 4), 0);
        }
        assert!(find_home_worker(&whole[..whole.len() - 4], seed, 4).is_some());
    }

    #[test]
    fn the_kernel_and_this_function_agree() {
        let seed = Seed::from(0x9e37_79b9_7f4a_7c15);
        let addresses = ["127.0.0.1:0", "[::1]:0"];
        for (address, proxied) in [false, true].into_iter().flat_map(|p| addresses.map(|a| (a, p))) {
            let workers = 4;
            let listeners = UdpListener::bind_group(address.parse().unwrap(), workers, false).unwrap();
            // Programs with popular names, none of which is asked for, steer in the same way.
            let popular: &[u32] = if address.starts_with('[') { &[1, 2, 3] } else { &[] };
            attach(listeners[0].socket(), workers, seed, proxied, popular).unwrap();
            let sockets: Vec<UdpSocket> = listeners
                .iter()
                .map(|listener| {
                    let socket = UdpSocket::from(listener.socket().try_clone_to_owned().unwrap());
                    socket.set_nonblocking(false).unwrap();
                    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                    socket
                })
                .collect();
            // One source port: with steering by flow they would all arrive at one worker.
            let client = UdpSocket::bind(address).unwrap();
            client.connect(listeners[0].address()).unwrap();
            let mut messages = questions();
            let runts: Vec<_> = (0..30).map(|length| messages[0][..length].to_vec()).collect();
            messages.extend(runts);
            let mut buffer = [0; 1024];
            let mut seen = vec![0; workers];
            for message in messages {
                let expected = home_worker(&message, seed, workers);
                seen[expected] += 1;
                // With and without a header, of both families, and with more than the addresses in it.
                let headers: &[(u8, usize)] =
                    if proxied { &[(0, 0), (0x12, 12), (0x22, 36), (0x12, 300)] } else { &[(0, 0)] };
                for &(family, rest) in headers {
                    let mut datagram = Vec::new();
                    if family != 0 {
                        datagram.extend(proxy_protocol::SIGNATURE);
                        datagram.extend([0x21, family, (rest >> 8) as u8, rest as u8]);
                        datagram.extend((0..rest).map(|octet| octet as u8));
                    }
                    datagram.extend(&message);
                    client.send(&datagram).unwrap();
                    let length = sockets[expected].recv(&mut buffer).unwrap();
                    assert_eq!(&buffer[..length], datagram);
                }
            }
            assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
        }
    }

    #[test]
    fn popular_names_are_spread_over_all_workers_and_others_are_not() {
        let (seed, workers) = (Seed::from(0x9e37_79b9_7f4a_7c15), 4);
        let names: Vec<_> = (0..20).map(|number| question(&format!("n{number}.example"))).collect();
        let popular: Vec<u32> = names[..16].iter().map(|name| name_hash(name, seed).unwrap()).collect();
        for proxied in [false, true] {
            let listeners = UdpListener::bind_group("127.0.0.1:0".parse().unwrap(), workers, false).unwrap();
            attach(listeners[0].socket(), workers, seed, proxied, &popular).unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(listeners[0].address()).unwrap();
            let sockets: Vec<UdpSocket> = listeners
                .iter()
                .map(|listener| UdpSocket::from(listener.socket().try_clone_to_owned().unwrap()))
                .collect();
            for (number, name) in names.iter().enumerate() {
                (0..100).for_each(|_| assert_eq!(client.send(name).unwrap(), name.len()));
                let mut buffer = [0; 64];
                let received: Vec<usize> = sockets
                    .iter()
                    .map(|socket| std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count())
                    .collect();
                assert_eq!(received.iter().sum::<usize>(), 100);
                // 100 of four: a worker without any once in 10^12.
                match popular.get(number) {
                    Some(_) => assert!(received.iter().all(|&count| count > 0), "{number}: {received:?}"),
                    None => {
                        assert_eq!(received[home_worker(name, seed, workers)], 100, "{number}: {received:?}")
                    }
                }
            }
        }
    }
}

//! The program in the kernel: its maps, its way through the verifier, and its link to an interface. bpf(2) is called directly: four of
//! its commands are all that is needed, and the link is held by a descriptor alone, so that the program is gone with the process,
//! however that ends.

use crate::af_xdp::frame::EthernetAddress;
use crate::af_xdp::limits::{XDP_PLACES, XDP_VERIFIER_LOG};
use kernel::syscalls::check;
use std::ffi::CStr;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Instructions of `bpf/steer.c`.
static INSTRUCTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.bin"));

/// Licence of the program, as in its source.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// Stand-in of the map of sockets, as in the program's source: "sixfsckt".
const SOCKETS: u64 = 0x7369_7866_7363_6b74;
/// Stand-in of the map of places: "sixfplce".
const PLACES: u64 = 0x7369_7866_706c_6365;

/// Stand-ins of the packet cache: "sixfctrl", "sixfindx", "sixfansw", "sixfhits", "sixfscra".
const CONTROL: u64 = 0x7369_7866_6374_726c;
const INDEX: u64 = 0x7369_7866_696e_6478;
const ANSWERS: u64 = 0x7369_7866_616e_7377;
const HITS: u64 = 0x7369_7866_6869_7473;
const SCRATCH: u64 = 0x7369_7866_7363_7261;

/// Octets of `struct scratch` in `bpf/query.h`: question, length, zero, sum, hash; time and tick; two places with their values.
const SCRATCH_OCTETS: u32 = 72 + 4 + 4 + 8 + 8 + 2 * 8 + 2 * (PLACE as u32 + 8);

/// Octets of an instruction.
const INSTRUCTION: usize = 8;
/// First octet of the instruction that loads a constant of 64 bits: BPF_LD | BPF_IMM | BPF_DW.
const LOAD_CONSTANT: u8 = 0x18;
/// Source register of that instruction if the constant is the descriptor of a map: BPF_PSEUDO_MAP_FD.
const IS_MAP: u8 = 1;

// Commands, types and flags of include/uapi/linux/bpf.h and if_link.h.
const BPF_MAP_CREATE: u32 = 0;
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_PROG_LOAD: u32 = 5;
const BPF_LINK_CREATE: u32 = 28;
const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_PERCPU_ARRAY: u32 = 6;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_F_MMAPABLE: u32 = 1 << 10;
const BPF_F_ANY_ALIGNMENT: u32 = 1 << 1;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 2;
const XDP_FLAGS_DRV_MODE: u32 = 4;

/// Octets of the key of the map of places: address, Ethernet address, port.
const PLACE: usize = 16 + 6 + 2;

/// A place where the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// IPv4 as IPv4-mapped.
    pub(super) address: Ipv6Addr,
    /// Address of the interface.
    pub(super) ethernet: EthernetAddress,
    pub(super) port: u16,
}

/// The level at which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel makes its own record of a packet.
    Driver,
    /// In the kernel's own path for all drivers, which costs more.
    Generic,
}

/// The reason why the verifier refused the program, with its last words.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: io::Error,
    pub(super) log: String,
}

/// The program of one interface with its maps, loaded.
pub(super) struct Program {
    program: OwnedFd,
    sockets: OwnedFd,
    listed: OwnedFd,
    places: Vec<Place>,
}

/// Values of the map of places: all queries go to the AF_XDP sockets, or only plain ones (`ONLY_PLAIN` in the program's source).
const ALL_QUERIES: u32 = 1;
const ONLY_PLAIN: u32 = 2;

impl Program {
    /// Makes the maps and loads the program. `queues`: receive queues of the interface. `places`: at most [`XDP_PLACES`].
    ///
    /// # Errors
    ///
    /// The kernel takes no map (missing privileges, no memory), with an empty log, or no program.
    pub(super) fn load(queues: u32, places: &[Place], arrays: &SharedArrays) -> Result<Program, Refusal> {
        let plain = |error| Refusal { error, log: String::new() };
        let sockets = create_map(BPF_MAP_TYPE_XSKMAP, [4, 4, queues], 0).map_err(plain)?;
        let listed = create_map(BPF_MAP_TYPE_HASH, [PLACE as u32, 4, XDP_PLACES as u32], 0).map_err(plain)?;
        let scratch = create_map(BPF_MAP_TYPE_PERCPU_ARRAY, [4, SCRATCH_OCTETS, 1], 0).map_err(plain)?;
        let places: Vec<Place> = places.iter().take(XDP_PLACES).copied().collect();
        for place in &places {
            update(&listed, &key(place), ALL_QUERIES).map_err(plain)?;
        }
        let maps = [(SOCKETS, &sockets), (PLACES, &listed), (SCRATCH, &scratch)];
        let maps = maps.map(|(stand_in, map)| (stand_in, map.as_raw_fd()));
        let instructions = with_maps(&[&maps[..], &arrays.descriptors()].concat());
        let program = load(&instructions, &mut []).or_else(|error| {
            if error.raw_os_error() == Some(libc::EPERM) {
                return Err(plain(error));
            }
            // The verifier explains itself only if it is asked to.
            let mut log = vec![0; XDP_VERIFIER_LOG];
            load(&instructions, &mut log).map_err(|error| Refusal { error, log: last_lines(&log) })
        })?;
        Ok(Program { program, sockets, listed, places })
    }

    /// Attaches the program to an interface: in the driver if `in_driver` and if it can, else in generic mode. The program stays until the link is
    /// dropped, and its descriptor must not reach another process.
    ///
    /// # Errors
    ///
    /// The kernel refuses both modes: EBUSY or EEXIST if another program is there.
    pub(super) fn attach(&self, interface: u32, in_driver: bool) -> io::Result<(OwnedFd, Mode)> {
        match in_driver.then(|| self.link(interface, XDP_FLAGS_DRV_MODE)) {
            Some(Ok(link)) => Ok((link, Mode::Driver)),
            _ => {
                for place in &self.places {
                    update(&self.listed, &key(place), ONLY_PLAIN)?;
                }
                self.link(interface, XDP_FLAGS_SKB_MODE).map(|link| (link, Mode::Generic))
            }
        }
    }

    fn link(&self, interface: u32, flags: u32) -> io::Result<OwnedFd> {
        let mut attributes = Attributes::new();
        attributes.set32(0, self.program.as_raw_fd() as u32);
        attributes.set32(4, interface);
        attributes.set32(8, BPF_XDP);
        attributes.set32(12, flags);
        attributes.call_for_descriptor(BPF_LINK_CREATE)
    }

    /// Hands the frames of a queue to a socket from now on.
    ///
    /// # Errors
    ///
    /// The error of bpf(2): E2BIG if the interface has no such queue, EOPNOTSUPP if the descriptor is no AF_XDP socket.
    pub(super) fn give_queue(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        update(&self.sockets, &queue.to_ne_bytes(), socket.as_raw_fd() as u32)
    }
}

/// An array of words of 64 bits that this process can map.
pub(super) struct Array {
    pub(super) descriptor: OwnedFd,
    words: u32,
    pub(super) entries: u32,
}

impl Array {
    /// An array of `entries` values with `words` words each, all of them zero.
    ///
    /// # Errors
    ///
    /// The kernel makes no map: EPERM without CAP_BPF, EINVAL before Linux 5.5.
    pub(super) fn new(words: usize, entries: u32) -> io::Result<Array> {
        let words = words as u32;
        let descriptor = create_map(BPF_MAP_TYPE_ARRAY, [4, 8 * words, entries], BPF_F_MMAPABLE)?;
        Ok(Array { descriptor, words, entries })
    }

    /// Octets of all values.
    pub(super) fn octets(&self) -> usize {
        8 * self.words as usize * self.entries as usize
    }
}

/// The arrays of the packet cache, which the programs of all interfaces have in common.
pub(super) struct SharedArrays {
    pub(super) control: Array,
    pub(super) index: Array,
    pub(super) answers: Array,
    pub(super) hits: Array,
}

impl SharedArrays {
    /// Stand-ins and descriptors.
    fn descriptors(&self) -> [(u64, RawFd); 4] {
        let SharedArrays { control, index, answers, hits } = self;
        let arrays = [(CONTROL, control), (INDEX, index), (ANSWERS, answers), (HITS, hits)];
        arrays.map(|(stand_in, array)| (stand_in, array.descriptor.as_raw_fd()))
    }
}

/// The key of a place, laid out as `struct place` in the program's source.
fn key(place: &Place) -> [u8; PLACE] {
    let mut key = [0; PLACE];
    key[..16].copy_from_slice(&place.address.octets());
    key[16..22].copy_from_slice(&place.ethernet);
    key[22..].copy_from_slice(&place.port.to_be_bytes());
    key
}

/// The instructions with the descriptors of maps in the places of their stand-ins. The stand-in of 64 bits lies in two instructions: its
/// halves are their last four octets each.
fn with_maps(maps: &[(u64, RawFd)]) -> Vec<u64> {
    let words = INSTRUCTIONS.as_chunks::<INSTRUCTION>().0;
    let mut code = words.to_vec();
    for place in 1..code.len() {
        let [first, second] = [code[place - 1], code[place]];
        let half = |octets: [u8; 8]| u32::from_ne_bytes([octets[4], octets[5], octets[6], octets[7]]);
        let constant = u64::from(half(second)) << 32 | u64::from(half(first));
        if let Some(&(_, map)) =
            maps.iter().find(|(stand_in, _)| first[0] == LOAD_CONSTANT && constant == *stand_in)
        {
            // The second octet has both registers: the source is in the upper half, or in the lower one where the order of octets is
            // the other one.
            code[place - 1][1] |= if cfg!(target_endian = "little") { IS_MAP << 4 } else { IS_MAP };
            code[place - 1][4..].copy_from_slice(&map.to_ne_bytes());
            code[place][4..].fill(0);
        }
    }
    code.into_iter().map(u64::from_ne_bytes).collect()
}

/// Loads a program. An empty `log`: the verifier explains nothing.
fn load(instructions: &[u64], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new();
    attributes.set32(0, BPF_PROG_TYPE_XDP);
    attributes.set32(4, instructions.len() as u32);
    attributes.set_pointer(8, instructions.as_ptr());
    attributes.set_pointer(16, LICENSE.as_ptr());
    if !log.is_empty() {
        attributes.set32(24, 1);
        attributes.set32(28, log.len() as u32);
        attributes.set_pointer(32, log.as_mut_ptr());
    }
    // Some processors read words only from aligned places, and their kernels help. Others ignore the flag.
    attributes.set32(44, BPF_F_ANY_ALIGNMENT);
    attributes.set_name(48);
    attributes.call_for_descriptor(BPF_PROG_LOAD)
}

/// Makes a map. `sizes`: octets of a key, octets of a value, number of entries.
fn create_map(map_type: u32, sizes: [u32; 3], flags: u32) -> io::Result<OwnedFd> {
    let [key, value, entries] = sizes;
    let mut attributes = Attributes::new();
    for (place, value) in [map_type, key, value, entries, flags].into_iter().enumerate() {
        attributes.set32(4 * place, value);
    }
    attributes.set_name(28);
    attributes.call_for_descriptor(BPF_MAP_CREATE)
}

fn update(map: &OwnedFd, key: &[u8], value: u32) -> io::Result<()> {
    let mut attributes = Attributes::new();
    attributes.set32(0, map.as_raw_fd() as u32);
    attributes.set_pointer(8, key.as_ptr());
    attributes.set_pointer(16, &raw const value);
    attributes.call(BPF_MAP_UPDATE_ELEM).map(drop)
}

/// The last lines of the verifier's log, where it says what it minds.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|&octet| octet == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

/// The argument of bpf(2), a union of 128 octets or more of which each command uses a part; the rest is zero.
struct Attributes([u64; 16]);

impl Attributes {
    fn new() -> Attributes {
        Attributes([0; 16])
    }

    /// Sets four octets at an offset that is a multiple of four.
    fn set32(&mut self, offset: usize, value: u32) {
        let mut octets = self.0[offset / 8].to_ne_bytes();
        octets[offset % 8..offset % 8 + 4].copy_from_slice(&value.to_ne_bytes());
        self.0[offset / 8] = u64::from_ne_bytes(octets);
    }

    /// Sets a pointer at an offset that is a multiple of eight.
    fn set_pointer<T>(&mut self, offset: usize, pointer: *const T) {
        self.0[offset / 8] = pointer as usize as u64;
    }

    /// Sets the name of a program or of a map, which `bpftool` shows.
    fn set_name(&mut self, offset: usize) {
        for (place, part) in [*b"sixf", *b"old\0"].into_iter().enumerate() {
            self.set32(offset + 4 * place, u32::from_ne_bytes(part));
        }
    }

    fn call(&mut self, command: u32) -> io::Result<usize> {
        // SAFETY: the argument is as long as its size says. The pointers that the callers put into it lead to what the command reads or
        // writes there, of the sizes that stand beside them or that the map has, and live through the call.
        let result =
            unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), size_of_val(&self.0)) };
        check(result as libc::c_int)
    }

    fn call_for_descriptor(&mut self, command: u32) -> io::Result<OwnedFd> {
        let descriptor = self.call(command)?;
        // SAFETY: the command made the descriptor (close-on-exec, as all of bpf(2)) and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_map_is_put_where_its_stand_in_was() {
        let whole = INSTRUCTIONS.len().is_multiple_of(INSTRUCTION) && !INSTRUCTIONS.is_empty();
        assert!(whole, "{} octets", INSTRUCTIONS.len());
        let stand_ins = [SOCKETS, PLACES, CONTROL, INDEX, ANSWERS, HITS, SCRATCH];
        let maps: Vec<_> = (0x1234..).zip(stand_ins).map(|(map, stand_in)| (stand_in, map)).collect();
        let code = with_maps(&maps);
        assert_eq!(code.len() * INSTRUCTION, INSTRUCTIONS.len());
        for (stand_in, map) in maps {
            let map = map as u32;
            let half = |word: u64| (word >> 32) as u32;
            let uses = code.windows(2).filter(|pair| half(pair[0]) == map && half(pair[1]) == 0).count();
            assert!(uses > 0, "{map:x}");
            let left = |pair: &&[u64]| half(pair[0]) == stand_in as u32;
            assert_eq!(code.windows(2).filter(left).count(), 0);
        }
    }

    #[test]
    fn attributes_have_their_octets_in_place() {
        let mut attributes = Attributes::new();
        attributes.set32(4, 7);
        attributes.set32(8, 9);
        attributes.set_name(28);
        let octets: Vec<u8> = attributes.0.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(octets[..12], [[0; 4], 7u32.to_ne_bytes(), 9u32.to_ne_bytes()].concat());
        assert_eq!(&octets[28..36], b"sixfold\0");
    }

    #[test]
    fn the_words_of_the_verifier_are_its_last_lines() {
        let said = b"0: r0 = 1\n1: exit\nR1 bad\ninvalid access\nprocessed 2 insns\n\0\0";
        assert_eq!(last_lines(said), "1: exit; R1 bad; invalid access");
        assert_eq!(last_lines(b""), "");
    }
}

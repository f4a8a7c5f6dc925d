//! All parts of the crate. The folder gives their tests a name with `xdp`, by which `./test` picks or skips them.

mod frame;
#[allow(unsafe_code)]
mod interface;
pub mod limits;
mod open;
#[allow(unsafe_code)]
mod packet_cache;
mod packet_cache_writer;
#[allow(unsafe_code)]
mod program;
#[allow(unsafe_code)]
mod ring;
mod route;
#[allow(unsafe_code)]
mod socket;

pub use frame::{Addresses, Datagram, EthernetAddress, FrameError, LONGEST_HEADERS, parse, write_headers};
pub use open::{AttachError, Attached, Queues, open};
pub use packet_cache_writer::{PacketCacheWriter, Traffic};
pub use program::Mode;
pub use route::{Origins, Route};
pub use socket::{Place, Receiver, Sender};

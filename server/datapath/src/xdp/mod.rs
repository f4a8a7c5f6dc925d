//! Queries and answers past the kernel's network stack: a program at the interface (XDP) hands the datagrams for our addresses to
//! sockets of a special kind (AF_XDP), which share frames with the worker, and answers leave through them. Only with the feature `xdp`.
//!
//! The sockets of `listen` stay: they get everything that the program leaves to the kernel, and the answers that do not fit into a
//! frame leave through them ([`reply`]). Nothing here knows machines or upstreams. Read `bpf/steer.c` and `frame.rs` first.
//!
//! | file | contents |
//! | --- | --- |
//! | `bpf/steer.c`, `bpf/answer.h` | the program: which frames are ours, and hot answers |
//! | `frame` | frames as octets: parser, writer, checksums |
//! | `ring`, `socket` | rings and frames that are shared with the kernel |
//! | `packet_cache` | hot answers that the program gives itself |
//! | `interface`, `program` | facts about an interface; the program in the kernel, and its link |
//! | [`open`] | all of them for the interfaces of the configuration |
//! | `reply` | the way of an answer |

mod frame;
mod interface;
pub(crate) mod open;
pub(crate) mod packet_cache;
mod program;
pub(crate) mod reply;
mod ring;
mod socket;

pub(crate) use frame::{Datagram, FrameError, parse};
pub(crate) use open::Queues;
pub use open::{AttachError, Attached};
pub use program::Mode;
pub(crate) use socket::Receiver;

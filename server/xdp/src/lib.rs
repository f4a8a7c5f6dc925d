//! Queries and answers past the kernel's network stack: a program at the interface (XDP) hands the datagrams for our addresses to
//! sockets of a special kind (AF_XDP), which share frames with a worker of the datapath, and answers leave through them.
//!
//! The sockets of the datapath stay: they get everything that the program leaves to the kernel, and the answers that do not fit into a
//! frame leave through them. Nothing here knows machines or upstreams. Read `bpf/steer.c` and `frame.rs` first.
//!
//! | file | contents |
//! | --- | --- |
//! | `bpf/steer.c`, `bpf/answer.h` | the program: which frames are ours, and the answers that it gives itself |
//! | `frame` | frames as octets: parser, writer, checksums |
//! | `ring`, `socket` | rings and frames that are shared with the kernel |
//! | `route` | the way back to a client |
//! | `packet_cache`, `packet_cache_writer` | the packet cache in the kernel; the part of a worker that writes it |
//! | `interface`, `program` | facts about an interface; the program in the kernel, and its link |
//! | `open` | all of them for the interfaces of the configuration |
//!
//! Without the feature `program` the crate is empty: a build of the whole workspace then needs no clang. The datapath asks for it with its
//! feature `xdp`. Unsafe code is only in the modules that allow it; each block has the argument for its safety.
#![deny(unsafe_code)]

#[cfg(feature = "program")]
mod af_xdp;

#[cfg(feature = "program")]
pub use af_xdp::*;

//! DNS over T/TCP between two network namespaces.
//!
//! ```text
//!  left namespace                                            right namespace
//!  stub -- sixfold1 -- kernel -- sixfold0 == link == sixfold0 -- kernel -- sixfold1 -- relay -- UDP on loopback -- server
//! ```
//!
//! [`testbed::Testbed`] makes the namespaces, the interfaces and the routes, and moves packets over the link while an experiment
//! runs. [`stub::Stub`] asks over T/TCP; [`relay::Relay`] hands each question to a server over UDP, or TCP where the answer is
//! truncated ([`upstream`]), or over T/TCP ([`onward`]), and answers over T/TCP. Both put a `ttcp::Stack` on a TUN interface, so no kernel module takes part. The
//! namespaces have no names: they end with the process that made them, however it ends.

pub mod limits;
pub mod onward;
pub mod relay;
pub mod stub;
pub mod testbed;
pub mod upstream;

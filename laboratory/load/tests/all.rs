//! All tests of this crate from outside, in one program: it is linked once.

mod device;
mod load;
mod multiplexed;
mod real_servers;
mod streams;
mod streams_in_namespaces;
mod tls;
mod truth;
mod truth_of_options;

//! Client streams over loopback, with a server that answers from another thread.

mod exchange;
mod fixture;
mod patience;
mod scarcity;
mod stop;

//! Experiments of published papers, each in its short version, as the command runs them.

mod authorities;
mod command;
mod totd;
mod ttcp_completion;
mod ttcp_loss;
mod selftest;
mod ttcp_attacks;
mod ttcp_blocks;
mod ttcp_fallback;
mod mtd64;

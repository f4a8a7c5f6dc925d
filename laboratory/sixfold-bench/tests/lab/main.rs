//! Experiments of published papers, each in its short version, as the command runs them.

mod authorities;
mod command;
mod mtd64;
mod pacing;
mod selftest;
mod totd;
mod ttcp_attacks;
mod ttcp_blocks;
mod ttcp_completion;
mod ttcp_fallback;
mod ttcp_loss;
mod ttcp_table1;

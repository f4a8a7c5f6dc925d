//! Experiments of the published papers, each in its short version, as the command runs them.

mod command;
mod ttcp_table1;

//! Experiments of published papers, each in its short version, as the command runs them.

mod command;
mod selftest;

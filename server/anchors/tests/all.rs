//! Trust anchors: their files, their rollover, and its state on the disk.

mod file;
mod mutated;
mod saved;
mod schedules;
mod state_file;
mod support;
mod trust_point;
mod trust_points;

//! `ttcp-loss`: failed queries over UDP, TCP and T/TCP on a link that loses packets (the paper on T/TCP for DNS, figures 6
//! and 7).
//!
//! `sweep.rs` runs all points in virtual time, `presentation.rs` makes figures and charts of them, `claims.rs` tests the
//! sentences, `real_link.rs` repeats one point with sockets over a TUN link, and `real_servers.rs` puts Unbound and Sixfold themselves there.

mod claims;
mod presentation;
mod real_link;
mod real_servers;
mod sweep;

use super::context::Context;

/// Runs the experiment.
///
/// # Errors
///
/// As `real_link::run` and `real_servers::run`.
pub fn run(context: &mut Context) -> Result<(), String> {
    let points = sweep::run(context)?;
    presentation::add_figures(context, &points);
    presentation::add_charts(context, &points);
    claims::add(context, &points);
    real_link::run(context)?;
    real_servers::run(context)
}

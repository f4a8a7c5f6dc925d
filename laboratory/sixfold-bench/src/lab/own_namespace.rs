//! The network namespace of a check that an experiment makes for real beside its virtual time.

use super::context::Context;
use crate::link::own_namespace::OwnNamespace;

/// Makes a namespace. Where that is impossible, as without root, the check is left out: a warning says `left_out`, the
/// sentence about the check, and the reason.
pub fn for_check(context: &mut Context, left_out: &str) -> Option<OwnNamespace> {
    match OwnNamespace::make() {
        Ok(namespace) => Some(namespace),
        Err(error) => {
            context.warning(format!("{left_out}: {error}"));
            None
        }
    }
}

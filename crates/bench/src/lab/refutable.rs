//! Claims that say what would refute them.

use super::context::Context;

/// Enters a sentence that was tested, the observation that would refute it, and the observed values.
pub fn claim(
    context: &mut Context,
    sentence: &str,
    refuted_by: &str,
    observed: impl Into<String>,
    holds: bool,
) {
    context.claim(format!("{sentence}. Refuted by {refuted_by}"), observed, holds);
}

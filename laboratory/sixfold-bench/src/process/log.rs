//! Output of a device, kept for error messages.

use serde::{Deserialize, Serialize};

/// Last output of a device, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLog {
    /// Exit status as text; `None` while the device runs.
    pub ended: Option<String>,
    /// The last part of its standard output and standard error.
    pub text: String,
}

//! Capabilities (capabilities(7)): the server needs one to bind ports below 1024, and none afterwards.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Number of capabilities that the kernel's interface has room for. The kernel knows about 40 of them.
const CAPABILITIES: u32 = 64;

/// Empties the bounding set: no program that this process starts can get a capability from its file. Only a process with
/// CAP_SETPCAP may do that, so call it before root becomes another user. Without that right the set stays as it is, which
/// `no_new_privs` makes harmless.
pub fn drop_bounding_set() {
    for number in 0..CAPABILITIES {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // EINVAL: the kernel knows no capability of this number, and none above. EPERM: see above.
            Err(_) => return,
        }
    }
}

/// Gives up all capabilities and the ways to new ones.
///
/// # Errors
///
/// The error of prctl(2) or capset(2). A kernel without ambient capabilities is no error.
pub fn drop_all() -> Result<()> {
    drop_bounding_set();
    match clear_ambient_capability_set() {
        // A kernel before 4.3 has no such set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)
}

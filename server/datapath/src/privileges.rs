//! The privileges of the process: the user that it becomes once all sockets are bound, the number of files that it may open, and
//! the permissions of the files that it makes.

use crate::limits::USER_ENTRY_OCTETS;
use kernel::remedy::remedy;
use kernel::syscalls::check;
use std::ffi::CString;
use std::fmt;
use std::io;

/// The reason why the process could not become another user.
#[derive(Debug)]
pub enum PrivilegeError {
    /// There is no such user. Create it, or name another user in `server.user`.
    NoSuchUser(String),
    /// The system refused. The process still runs as the user that it was.
    Refused(String, io::Error),
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivilegeError::NoSuchUser(name) => write!(
                f,
                "no such user: {name}; create it (useradd --system --no-create-home {name}) or change `server.user`"
            ),
            PrivilegeError::Refused(name, error) => {
                write!(f, "cannot become {name}: {error}; {}", remedy_of_refusal(error))
            }
        }
    }
}

impl std::error::Error for PrivilegeError {}

/// The remedy for a change of user that the system refused: setgroups(2), setgid(2), setuid(2).
fn remedy_of_refusal(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            "this root lacks CAP_SETUID or CAP_SETGID: give it both, or start the server as this user (User= of the unit), or keep \
             root with `server.user = \"root\"`"
        }
        Some(libc::EINVAL) => {
            "the container does not map the numbers of this user: map them, or name a user in `server.user` that it maps"
        }
        _ => remedy(error),
    }
}

/// True if the process runs as root.
pub fn is_root() -> bool {
    // SAFETY: the call has no argument and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The numeric IDs of `user` and of its primary group.
///
/// # Errors
///
/// `PrivilegeError::NoSuchUser`: the system's user database has no such user, or cannot be read.
pub fn lookup(user: &str) -> Result<(u32, u32), PrivilegeError> {
    let unknown = || PrivilegeError::NoSuchUser(user.to_owned());
    let name = CString::new(user).map_err(|_| unknown())?;
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut octets = vec![0u8; USER_ENTRY_OCTETS];
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the buffer's length is given.
    let code = unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            octets.as_mut_ptr().cast(),
            octets.len(),
            &raw mut found,
        )
    };
    if code != 0 || found.is_null() {
        return Err(unknown());
    }
    // SAFETY: `found` is not null, so the entry was filled.
    Ok(unsafe { ((*found).pw_uid, (*found).pw_gid) })
}

/// Becomes `user` with its primary group and no other group, in all threads, for good. The C library changes all threads.
/// Call it before other threads start all the same, so that they open their files as `user`.
///
/// # Errors
///
/// As [`lookup`]. `PrivilegeError::Refused`: setgroups(2), setgid(2) or setuid(2) failed, because the process has neither root's rights
/// nor CAP_SETUID and CAP_SETGID. The process may then have lost its groups: end it.
pub fn become_user(user: &str) -> Result<(), PrivilegeError> {
    let (uid, gid) = lookup(user)?;
    // SAFETY: plain numbers; an empty list of groups needs no pointer.
    let steps: [&dyn Fn() -> i32; 3] =
        [&|| unsafe { libc::setgroups(0, std::ptr::null()) }, &|| unsafe { libc::setgid(gid) }, &|| unsafe {
            libc::setuid(uid)
        }];
    for step in steps {
        check(step()).map_err(|error| PrivilegeError::Refused(user.to_owned(), error))?;
    }
    Ok(())
}

/// Raises the soft limit of open files to the hard limit. Returns the limit that now holds.
///
/// # Errors
///
/// The error of getrlimit(2) or setrlimit(2). A process may always raise its soft limit to the hard one, so only a sandbox makes it
/// fail.
pub fn raise_file_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call fills.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid rlimit.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_cur)
}

/// Runs `action` with the umask `mask`: the files that it makes lack the permission bits in `mask`. The umask belongs to the whole
/// process, so no other thread should make files meanwhile.
pub fn with_umask<T>(mask: u32, action: impl FnOnce() -> T) -> T {
    /// Puts the old umask back, also when `action` panics.
    struct Restore(libc::mode_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: a plain number; the call cannot fail.
            unsafe { libc::umask(self.0) };
        }
    }
    // SAFETY: a plain number; the call cannot fail.
    let _restore = Restore(unsafe { libc::umask(mask as libc::mode_t) });
    action()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_user_is_named_with_the_remedy() {
        let error = become_user("no-such-user-here").unwrap_err().to_string();
        assert!(error.contains("no-such-user-here") && error.contains("useradd"), "{error}");
    }

    #[test]
    fn a_refused_change_of_user_has_the_remedy_for_its_cause() {
        let told = |number| {
            PrivilegeError::Refused("ann".to_owned(), io::Error::from_raw_os_error(number)).to_string()
        };
        assert!(told(libc::EPERM).contains("CAP_SETUID"));
        // setuid(2): the number is not valid in this user namespace; the user has too many processes.
        assert!(told(libc::EINVAL).contains("container"));
        assert!(told(libc::EAGAIN).contains("LimitNPROC="));
    }

    #[test]
    fn the_file_limit_can_be_raised_to_the_hard_one() {
        assert!(raise_file_limit().unwrap() >= 256);
    }
}

//! Remedies for errors of the system that many calls have: limits of the process, memory, and policies that forbid a call. The text of
//! an error ends with one, after a semicolon.

use std::io;

/// The remedy for a call that succeeds on a healthy system.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            "too many files are open: raise LimitNOFILE= of the unit, or the limit of `ulimit -n`"
        }
        Some(libc::ENFILE) => "the whole system has too many open files: raise the sysctl fs.file-max",
        // clone(2), and setuid(2) for a user with too many processes.
        Some(libc::EAGAIN) => {
            "too many threads or processes: raise TasksMax= and LimitNPROC= of the unit, or the limit of `ulimit -u`"
        }
        Some(libc::ENOMEM | libc::ENOBUFS) => {
            "memory is short: look at `free -m` and at MemoryMax= of the unit; lower `cache.size` or `server.workers`"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "a policy of this system forbids it: look for a denial of SELinux or AppArmor in `journalctl -k`, and at the \
             restrictions of the unit (`systemctl cat sixfold`) or of the container"
        }
        Some(libc::ENOSYS) => {
            "the kernel is too old, or a filter blocks the system call: compare `uname -r`, SystemCallFilter= of the unit and \
             the seccomp profile of the container"
        }
        Some(libc::EAFNOSUPPORT) => {
            "this system has no such addresses: enable IPv6 or IPv4 (RestrictAddressFamilies= of the unit needs AF_INET6 and \
             AF_INET), or remove the address"
        }
        Some(libc::EINVAL | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => {
            "this kernel (`uname -r`) or this container may lack it: try a newer kernel, or outside the container"
        }
        _ => REPORT,
    }
}

/// The error, and its remedy.
pub fn with_remedy(error: &io::Error) -> String {
    format!("{error}; {}", remedy(error))
}

/// The remedy for a system without random numbers: getrandom(2) fails only where it is not allowed.
pub const NO_RANDOM: &str = "the system call getrandom(2) must be allowed: look at SystemCallFilter= of the unit and the seccomp profile of the container";

/// The remedy for an error that nobody expects.
pub const REPORT: &str = "try again; if it stays, report it: the section BUGS of sixfold(8) says how";

/// The remedy for a port that the process may not listen on.
pub fn of_forbidden_port(port: u16) -> &'static str {
    // With port 0 the kernel takes one that needs no privilege.
    match port {
        1..1024 => "ports below 1024 need root or the capability CAP_NET_BIND_SERVICE",
        _ => {
            "the port needs no privilege, so a policy of this system forbids it: look for a denial of SELinux or AppArmor in \
             `journalctl -k`, and for SocketBindDeny= in the unit (`systemctl cat sixfold`)"
        }
    }
}

/// The remedy for an address family that the kernel does not give this process.
pub fn of_missing_family(is_ipv6: bool) -> &'static str {
    match is_ipv6 {
        true => {
            "enable it (boot parameter `ipv6.disable`, module `ipv6`; RestrictAddressFamilies= of the unit needs AF_INET6), or \
             remove the address"
        }
        false => "enable it (RestrictAddressFamilies= of the unit needs AF_INET), or remove the address",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_depends_on_the_error_number() {
        // The limit that each number stands for: setrlimit(2), open(2), clone(2), ip(7), seccomp(2).
        for (number, part) in [
            (libc::EMFILE, "LimitNOFILE="),
            (libc::ENFILE, "fs.file-max"),
            (libc::EAGAIN, "TasksMax="),
            (libc::ENOMEM, "MemoryMax="),
            (libc::EPERM, "SELinux"),
            (libc::EAFNOSUPPORT, "AF_INET6"),
            (libc::ENOSYS, "SystemCallFilter="),
            (libc::ENOPROTOOPT, "uname -r"),
            (libc::EIO, "BUGS of sixfold(8)"),
        ] {
            let told = remedy(&io::Error::from_raw_os_error(number));
            assert!(told.contains(part), "{number}: {told}");
        }
        assert_eq!(remedy(&io::Error::other("no number")), REPORT);
    }

    #[test]
    fn a_port_that_needs_no_privilege_is_not_blamed_on_privileges() {
        // ip(7): ports below 1024 are privileged; a bind to port 0 takes an ephemeral port.
        assert!([1, 53, 1023].iter().all(|&port| of_forbidden_port(port).contains("CAP_NET_BIND_SERVICE")));
        assert!([0, 1024, 5364].iter().all(|&port| of_forbidden_port(port).contains("SELinux")));
    }
}

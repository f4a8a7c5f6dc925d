//! The restriction of system calls (seccomp(2)) to those of `system_calls.rs`.
//!
//! Three filters stand one behind the other, and the strictest verdict counts:
//! 1. Calls in [`FATAL`] end the process: no part of the server makes them, so an attacker does.
//! 2. Calls in no list fail with ENOSYS, as on a kernel that is older than the call. The C library then takes an older call. So a
//!    new version of the C library does not end the server. Tests cannot see a call that fails, so in debug builds it
//!    ends the process (SIGSYS), too.
//! 3. clone3(2) fails with ENOSYS, as its flags are in memory, where a filter cannot read them. The C library then uses clone(2).
//!
//! The kernel keeps a table of the calls that the filters always allow (since Linux 5.11), so these calls run no filter.

use super::system_calls::{ALLOWED, Argument, FATAL, FATAL_IF, allowed_if};
use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// Treatment of a system call that is neither allowed nor fatal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// It fails with ENOSYS.
    Fails,
    /// It ends the process with SIGSYS.
    EndsTheProcess,
}

/// Restricts the calling thread, and the threads that it starts later. `writes`: files are written, where Landlock lets them be.
///
/// # Errors
///
/// The reason for the warning: the kernel has no seccomp filters, or another sandbox forbids them.
pub fn restrict(unlisted: Unlisted, writes: bool) -> Result<(), String> {
    let programs = programs(unlisted, writes).map_err(|error| error.to_string())?;
    programs.iter().try_for_each(|program| apply_filter(program)).map_err(|error| error.to_string())
}

/// The programs of the three filters. The process ID is part of one of them, so they are made for this process.
fn programs(unlisted: Unlisted, writes: bool) -> Result<[BpfProgram; 3], BackendError> {
    let refusal = SeccompAction::Errno(libc::ENOSYS as u32);
    let unlisted = match unlisted {
        Unlisted::Fails => refusal.clone(),
        Unlisted::EndsTheProcess => SeccompAction::KillProcess,
    };
    let always = |calls: &'static [c_long]| calls.iter().map(|&call| (call, Vec::new()));
    let fatal = rules(always(FATAL).chain(FATAL_IF.iter().map(|&(call, rule)| (call, vec![rule.to_vec()]))))?;
    let allowed =
        rules(ALLOWED.iter().flat_map(|calls| always(calls)).chain(allowed_if(std::process::id(), writes)))?;
    let clone3 = rules([(libc::SYS_clone3, Vec::new())].into_iter())?;
    // The last one forbids seccomp(2) itself.
    Ok([
        program(clone3, SeccompAction::Allow, refusal)?,
        program(fatal, SeccompAction::Allow, SeccompAction::KillProcess)?,
        program(allowed, unlisted, SeccompAction::Allow)?,
    ])
}

/// Rules of the library, by call. A call matches if all arguments of one of its rules match, or if it has no rule.
fn rules(
    calls: impl Iterator<Item = (c_long, Vec<Vec<Argument>>)>,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let rule = |arguments: Vec<Argument>| {
        SeccompRule::new(arguments.iter().map(condition).collect::<Result<Vec<_>, _>>()?)
    };
    calls.map(|(call, any)| Ok((call, any.into_iter().map(rule).collect::<Result<_, _>>()?))).collect()
}

fn condition(argument: &Argument) -> Result<SeccompCondition, BackendError> {
    // The upper half of a number is undefined, as the kernel does not look at it. Only a pointer has 64 bits.
    let is_number = argument.mask <= u64::from(u32::MAX);
    let length = if is_number { SeccompCmpArgLen::Dword } else { SeccompCmpArgLen::Qword };
    SeccompCondition::new(argument.index, length, SeccompCmpOp::MaskedEq(argument.mask), argument.value)
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, otherwise, matched, std::env::consts::ARCH.try_into()?)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::*;

    /// Verdict of a program on a call, as the kernel computes it: an interpreter for the instructions that the library uses.
    fn run(program: &BpfProgram, call: c_long, arguments: [u64; 6]) -> u32 {
        let architecture: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        // struct seccomp_data: number, architecture, instruction pointer, arguments; little-endian.
        let mut data = Vec::new();
        data.extend((call as u32).to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        let (mut accumulator, mut place) = (0u32, 0);
        loop {
            let step = &program[place];
            place += 1;
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    let at = step.k as usize;
                    accumulator = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => accumulator &= step.k,
                code if code == BPF_JMP | BPF_JA => place += step.k as usize,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => place += jump(accumulator == step.k),
                code if code == BPF_JMP | BPF_JGE | BPF_K => place += jump(accumulator >= step.k),
                code if code == BPF_JMP | BPF_JGT | BPF_K => place += jump(accumulator > step.k),
                code if code == BPF_RET | BPF_K => return step.k,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    /// Verdict of all filters in a release build: the strictest, which is the smallest number but for "end the process".
    fn verdict(call: c_long, arguments: &[u64], writes: bool) -> &'static str {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let verdicts = programs(Unlisted::Fails, writes).unwrap().map(|program| run(&program, call, all));
        if verdicts.contains(&SECCOMP_RET_KILL_PROCESS) {
            return "ends";
        }
        match verdicts.into_iter().min().unwrap() {
            SECCOMP_RET_ALLOW => "allowed",
            refusal if refusal == SECCOMP_RET_ERRNO | ENOSYS as u32 => "fails",
            other => panic!("verdict {other:#x}"),
        }
    }

    #[test]
    fn calls_are_judged_by_their_arguments() {
        let (inet, inet6, unix) = (AF_INET as u64, AF_INET6 as u64, AF_UNIX as u64);
        let (stream, datagram) = (SOCK_STREAM as u64, (SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC) as u64);
        let thread = (CLONE_VM | CLONE_THREAD | CLONE_SIGHAND) as u64;
        let own = u64::from(std::process::id());
        let at = AT_FDCWD as u64;
        let cases: &[(c_long, &[u64], &str)] = &[
            (SYS_recvmmsg, &[3, 1, 64, 0, 0], "allowed"),
            (SYS_sendmmsg, &[3, 1, 64, 0], "allowed"),
            (SYS_socket, &[inet, datagram, 0], "allowed"),
            (SYS_socket, &[inet6, stream, IPPROTO_TCP as u64], "allowed"),
            (SYS_socket, &[inet6, stream, IPPROTO_SCTP as u64], "fails"),
            (SYS_socket, &[inet, SOCK_RAW as u64, IPPROTO_ICMP as u64], "fails"),
            (SYS_socket, &[unix, datagram, 0], "allowed"),
            (SYS_socket, &[AF_PACKET as u64, SOCK_RAW as u64, 0], "fails"),
            (SYS_socket, &[AF_NETLINK as u64, datagram, NETLINK_ROUTE as u64], "allowed"),
            (SYS_socket, &[AF_NETLINK as u64, datagram, NETLINK_NETFILTER as u64], "fails"),
            (SYS_socket, &[AF_ALG as u64, SOCK_SEQPACKET as u64, 0], "fails"),
            (SYS_socketpair, &[unix, stream, 0], "allowed"),
            (SYS_listen, &[3, 128], "fails"),
            (SYS_openat, &[at, 1, (O_RDONLY | O_CLOEXEC) as u64], "allowed"),
            (SYS_openat, &[at, 1, O_WRONLY as u64], "fails"),
            (SYS_openat, &[at, 1, O_RDWR as u64], "fails"),
            (SYS_openat, &[at, 1, (O_RDONLY | O_CREAT) as u64], "fails"),
            (SYS_mmap, &[0, 4096, (PROT_READ | PROT_WRITE) as u64], "allowed"),
            (SYS_mmap, &[0, 4096, (PROT_READ | PROT_EXEC) as u64], "fails"),
            (SYS_mprotect, &[4096, 4096, PROT_EXEC as u64], "fails"),
            (SYS_clone, &[thread], "allowed"),
            (SYS_clone, &[thread | CLONE_NEWUSER as u64], "fails"),
            (SYS_clone, &[SIGCHLD as u64], "ends"),
            (SYS_clone3, &[1, 88], "fails"),
            (SYS_execve, &[1, 1, 1], "ends"),
            (SYS_ptrace, &[PTRACE_ATTACH as u64, 1], "ends"),
            (SYS_setuid, &[0], "ends"),
            (SYS_tgkill, &[own, own, SIGABRT as u64], "allowed"),
            (SYS_tgkill, &[own + 1, own + 1, SIGKILL as u64], "fails"),
            (SYS_kill, &[own, 0], "fails"),
            (SYS_prlimit64, &[0, RLIMIT_NOFILE as u64, 0, 1], "allowed"),
            // A pointer whose lower half is zero is not a null pointer.
            (SYS_prlimit64, &[0, RLIMIT_NOFILE as u64, 1 << 32, 1], "fails"),
            (SYS_ioctl, &[3, u64::from(FIONBIO as u32)], "allowed"),
            (SYS_ioctl, &[0, u64::from(TIOCSTI as u32)], "fails"),
            (SYS_prctl, &[PR_SET_NAME as u64], "allowed"),
            (SYS_prctl, &[PR_SET_DUMPABLE as u64, 1], "fails"),
            (SYS_seccomp, &[0, 0, 0], "fails"),
            // A call that no kernel has yet.
            (900, &[], "fails"),
        ];
        for &(call, arguments, expected) in cases {
            assert_eq!(verdict(call, arguments, false), expected, "call {call} with {arguments:?}");
        }
    }

    #[test]
    fn a_server_that_keeps_what_it_learns_writes_files_anew_and_renames_them_and_no_other_does() {
        let at = AT_FDCWD as u64;
        let anew = [at, 1, (O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC) as u64, 0o666];
        for (call, arguments) in [(SYS_openat, &anew[..]), (SYS_fsync, &[3]), (SYS_renameat, &[at, 1, at, 2])]
        {
            assert_eq!(verdict(call, arguments, true), "allowed", "call {call}");
            assert_eq!(verdict(call, arguments, false), "fails", "call {call}");
        }
        for flags in [O_WRONLY, O_RDWR, O_RDWR | O_CREAT | O_TRUNC, O_WRONLY | O_APPEND] {
            assert_eq!(verdict(SYS_openat, &[at, 1, flags as u64], true), "fails", "{flags:#o}");
        }
        assert_eq!(verdict(SYS_openat, &[at, 1, O_RDONLY as u64], true), "allowed");
    }

    #[test]
    fn no_call_is_both_allowed_and_fatal_and_none_stands_twice() {
        let plain: Vec<c_long> = ALLOWED.concat();
        let conditional: Vec<c_long> = allowed_if(1, true).into_iter().map(|(call, _)| call).collect();
        let mut all = [&plain[..], &conditional, FATAL].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}

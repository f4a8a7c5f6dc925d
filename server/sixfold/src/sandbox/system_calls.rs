//! The system calls of a server that runs, on x86-64 and 64-bit Arm: those that answering, reloading, logging and stopping make,
//! with the C libraries glibc and musl. `seccomp.rs` turns the lists into filters.
//!
//! To find the call that a new feature needs, run the server with `strace -f`: in a debug build the call ends the process
//! (`killed by SIGSYS`), in a release build it fails with ENOSYS.

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS,
    CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, CLONE_THREAD, IPPROTO_ICMPV6, IPPROTO_TCP, IPPROTO_UDP,
    NETLINK_ROUTE, O_ACCMODE, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY, PROT_EXEC, SOCK_DGRAM, SOCK_STREAM, c_long,
};

/// Condition on an argument of a system call: the bits in `mask` are those of `value`.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub index: u8,
    pub mask: u64,
    pub value: u64,
}

/// The argument, a number of 32 bits, has this value.
const fn is(index: u8, value: u32) -> Argument {
    Argument { index, mask: u32::MAX as u64, value: value as u64 }
}

/// The argument has none of these bits.
const fn lacks(index: u8, bits: i32) -> Argument {
    Argument { index, mask: bits as u32 as u64, value: 0 }
}

/// The argument has all of these bits.
const fn has(index: u8, bits: i32) -> Argument {
    Argument { index, mask: bits as u32 as u64, value: bits as u32 as u64 }
}

/// The argument is a null pointer.
const fn is_null(index: u8) -> Argument {
    Argument { index, mask: u64::MAX, value: 0 }
}

/// Calls that are allowed with all arguments.
pub const ALLOWED: &[&[c_long]] = &[DESCRIPTORS, SOCKETS, FILES, THREADS, MEMORY, TIME_AND_IDENTITY, OLD];

const DESCRIPTORS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    // A long line for the journal goes there in a file in memory.
    libc::SYS_memfd_create,
];

/// Without `listen`: every listener listens before the sandbox.
const SOCKETS: &[c_long] = &[
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
];

/// Files are read on a reload. At the end the control socket is removed.
const FILES: &[c_long] = &[
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_readlinkat,
    // The metric of open descriptors lists /proc/self/fd.
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_unlinkat,
];

/// Start, end and synchronization of threads; signals and their handlers.
const THREADS: &[c_long] = &[
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    // Another filter makes it fail; see `seccomp.rs`.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    // The server waits for the end of its launcher.
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
];

const MEMORY: &[c_long] = &[libc::SYS_brk, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise];

const TIME_AND_IDENTITY: &[c_long] = &[
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// Calls that newer ones have replaced. Only x86-64 has them; glibc still uses some, and musl all.
#[cfg(target_arch = "x86_64")]
const OLD: &[c_long] = &[
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_time,
    libc::SYS_getrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[c_long] = &[];

/// PR_GET_AUXV of prctl(2), Linux 6.4, as in include/uapi/linux/prctl.h: the auxiliary vector of the own process.
const PR_GET_AUXV: u32 = 0x4155_5856;

/// Types of sockets, without the flags SOCK_NONBLOCK and SOCK_CLOEXEC, which are outside this mask.
const SOCKET_TYPE: u64 = 0xf;

/// Requests of ioctl(2): non-blocking mode, octets that wait, the type of a terminal (C libraries ask before they write), the
/// names and numbers of network interfaces.
const IOCTLS: &[u32] = &[
    libc::FIONBIO as u32,
    libc::FIONREAD as u32,
    libc::FIOCLEX as u32,
    libc::TIOCOUTQ as u32,
    libc::TCGETS as u32,
    libc::TCGETS2 as u32,
    libc::TIOCGWINSZ as u32,
    libc::SIOCGIFNAME as u32,
    libc::SIOCGIFINDEX as u32,
];

/// Namespaces that clone(2) would make.
const NAMESPACES: i32 =
    CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/// Calls that bring a file to the disk and rename it.
const WRITING: &[c_long] = &[
    libc::SYS_fsync,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
];

/// Calls that are allowed with some arguments: the arguments of one of the lists match. `process` is the ID of this process; `writes`:
/// files are written anew and renamed.
pub fn allowed_if(process: u32, writes: bool) -> Vec<(c_long, Vec<Vec<Argument>>)> {
    let opens = |flags| {
        let reads = vec![lacks(flags, O_ACCMODE | O_CREAT | O_TRUNC)];
        let anew = vec![has(flags, O_WRONLY | O_CREAT | O_TRUNC), lacks(flags, O_RDWR)];
        if writes { vec![reads, anew] } else { vec![reads] }
    };
    let writing = WRITING.iter().filter(|_| writes).map(|&call| (call, Vec::new()));
    let data_only = || vec![vec![lacks(2, PROT_EXEC)]];
    let always = vec![
        (libc::SYS_socket, sockets()),
        (libc::SYS_socketpair, vec![vec![is(0, AF_UNIX as u32)]]),
        (libc::SYS_openat, opens(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, opens(1)),
        // No memory becomes executable: the program and its libraries are loaded.
        (libc::SYS_mmap, data_only()),
        (libc::SYS_mprotect, data_only()),
        (libc::SYS_clone, vec![vec![has(0, CLONE_THREAD), lacks(0, NAMESPACES)]]),
        // The process may end itself (abort(3)), and send no signal to another one.
        (libc::SYS_tgkill, vec![vec![is(0, process)]]),
        // Limits are read, not set.
        (libc::SYS_prlimit64, vec![vec![is(0, 0), is_null(2)]]),
        (libc::SYS_ioctl, IOCTLS.iter().map(|&request| vec![is(1, request)]).collect()),
        // The thread of a reload only gets processor time that no other thread wants.
        (libc::SYS_sched_setscheduler, vec![vec![is(0, 0), is(1, libc::SCHED_IDLE as u32)]]),
        // Names of threads, and of memory (glibc and the standard library label it).
        (
            libc::SYS_prctl,
            vec![
                vec![is(0, libc::PR_SET_NAME as u32)],
                vec![is(0, libc::PR_GET_NAME as u32)],
                vec![is(0, libc::PR_SET_VMA as u32)],
                // A library asks for the place of the vDSO, before it first reads a clock.
                vec![is(0, PR_GET_AUXV)],
            ],
        ),
    ];
    writing.chain(always).collect()
}

/// Sockets: UDP and TCP to upstreams; unprivileged ICMPv6 to gateways; Unix sockets to the service manager and the log; netlink for the addresses of the interfaces.
/// Other protocols would have the kernel load modules that few people test.
fn sockets() -> Vec<Vec<Argument>> {
    let kind = |value: i32| Argument { index: 1, mask: SOCKET_TYPE, value: value as u64 };
    let mut allowed =
        vec![vec![is(0, AF_UNIX as u32)], vec![is(0, AF_NETLINK as u32), is(2, NETLINK_ROUTE as u32)]];
    for family in [AF_INET, AF_INET6] {
        for (socket_type, protocol) in [(SOCK_DGRAM, IPPROTO_UDP), (SOCK_STREAM, IPPROTO_TCP)] {
            for protocol in [0, protocol] {
                allowed.push(vec![is(0, family as u32), kind(socket_type), is(2, protocol as u32)]);
            }
        }
    }
    // Probes of gateways by ICMP, with a reload that is the first to ask for them.
    allowed.push(vec![is(0, AF_INET6 as u32), kind(SOCK_DGRAM), is(2, IPPROTO_ICMPV6 as u32)]);
    allowed
}

/// Calls that end the process: they start programs, reach into other processes, change the view of files, extend the kernel, or
/// give the process other rights.
pub const FATAL: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_by_handle_at,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];

/// Calls that end the process with some arguments: clone(2) for a process, not a thread.
pub const FATAL_IF: &[(c_long, &[Argument])] = &[(libc::SYS_clone, &[lacks(0, CLONE_THREAD)])];

//! Seccomp filter of workers: the allow list of system calls, with arguments of `ioctl`, `fcntl` and `prctl`;
//! everything else fails.
//!
//! Allowed are memory, threads of this process, clocks, its own signals, and reading and writing of what is open or, as
//! far as landlock lets it, opened to be read. A known call that is not listed fails with EPERM, so a library that tries
//! one does without it; one that the list does not know yet fails with ENOSYS, as on an older kernel, and so does `clone3`,
//! whose flags no filter can see: the C library then takes `clone`. Calls of other architectures end the process, and
//! those of x32 are refused as a whole.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

/// Allowed whatever their arguments are.
const ALLOWED: &[c_long] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    // Threads.
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_getpriority,
    libc::SYS_ioprio_get,
    libc::SYS_getcpu,
    // Signals of this process.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Clocks.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // What is open.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_signalfd4,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    // Sockets that are there: the channel to the service, and those of the gateways. No process but the WebRTC gateway has one that
    // listens, and none can make one.
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    // Looking at files; `openat` has its rule below.
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    // Facts of this process and of the machine.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_umask,
];

/// The older calls that newer architectures never had.
#[cfg(target_arch = "x86_64")]
const ALLOWED_OLDER: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_alarm,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_select,
    libc::SYS_setrlimit,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_sync_file_range,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_OLDER: &[c_long] = &[];

/// Requests of ioctl(2) about descriptors, and those by which a library finds out whether one is a terminal.
const IOCTLS: [u64; 6] = [
    libc::FIONREAD,
    libc::FIONBIO,
    libc::FIOCLEX,
    libc::FIONCLEX,
    libc::TCGETS,
    libc::TIOCGWINSZ,
];
/// Commands of fcntl(2) that reach no other process.
const FCNTLS: [i32; 13] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
    libc::F_GETPIPE_SZ,
];
/// Options of prctl(2): names of threads, and questions.
const PRCTLS: [i32; 7] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_VMA,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_CAPBSET_READ,
    PR_GET_AUXV,
];
/// Linux 6.4; the libc crate has no name for it.
const PR_GET_AUXV: i32 = 0x4155_5856;
/// See ioprio_set(2).
const IOPRIO_WHO_PROCESS: u64 = 1;
/// The first number that is unknown here; the same on all architectures of today. The last known one is `mseal` of
/// Linux 6.10.
const UNKNOWN_FROM: u32 = 463;
/// Calls with this bit are those of the x32 ABI; see syscall(2).
const X32_BIT: u32 = 0x4000_0000;

/// Reason why the filter is not on.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    #[error("there is no filter for this processor")]
    Architecture,
    #[error(transparent)]
    Filter(#[from] Error),
    #[error(transparent)]
    Program(#[from] seccompiler::BackendError),
}

/// Allows nothing but the list from now on, in this thread and those it starts.
pub fn refuse() -> Result<(), CallsError> {
    Ok(apply_filter(&program()?)?)
}

fn program() -> Result<BpfProgram, CallsError> {
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|_| CallsError::Architecture)?;
    let listed: BpfProgram = SeccompFilter::new(
        rules(std::process::id())?,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        SeccompAction::Allow,
        architecture,
    )?
    .try_into()?;
    let mut program = not_there();
    program.extend(listed);
    Ok(program)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the rules of the process `own`.
fn rules(own: u32) -> Result<Rules, CallsError> {
    let any = ALLOWED.iter().chain(ALLOWED_OLDER);
    let mut rules: Rules = any.map(|call| (*call, Vec::new())).collect();
    let mut allow = |call: c_long, conditions: Vec<SeccompCondition>| {
        let rule = SeccompRule::new(conditions)?;
        rules.entry(call).or_default().push(rule);
        Ok::<_, CallsError>(())
    };
    // Threads; not a process.
    let thread = libc::CLONE_THREAD as u64;
    allow(libc::SYS_clone, vec![masked(0, thread, thread)?])?;
    // Two sockets that are connected to each other and to nothing else: GStreamer wakes its threads by them. A pair of
    // datagram sockets could send to any other of the machine.
    let options = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    let pair = vec![
        equal(0, libc::AF_UNIX as u64)?,
        masked(1, !options & u64::from(u32::MAX), libc::SOCK_STREAM as u64)?,
    ];
    allow(libc::SYS_socketpair, pair)?;
    // Files are opened to be read.
    let writing = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;
    let reading = libc::O_RDONLY as u64;
    allow(libc::SYS_openat, vec![masked(2, writing as u64, reading)?])?;
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_open, vec![masked(1, writing as u64, reading)?])?;
    // abort(3) sends this process a signal.
    allow(libc::SYS_tgkill, vec![equal(0, own.into())?])?;
    for request in IOCTLS {
        allow(libc::SYS_ioctl, vec![equal(1, request)?])?;
    }
    for command in FCNTLS {
        allow(libc::SYS_fcntl, vec![equal(1, command as u64)?])?;
    }
    for option in PRCTLS {
        allow(libc::SYS_prctl, vec![equal(0, option as u64)?])?;
    }
    // Limits and turns of this process and its calling thread. Of a group or a user, 0 means all of this one's processes.
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        allow(call, vec![equal(0, 0)?])?;
    }
    for (call, process) in [
        (libc::SYS_setpriority, libc::PRIO_PROCESS.into()),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ] {
        allow(call, vec![equal(0, process)?, equal(1, 0)?])?;
    }
    Ok(rules)
}

/// The kernel reads these arguments as 32 bits wide.
fn argument(index: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, CallsError> {
    Ok(SeccompCondition::new(
        index,
        SeccompCmpArgLen::Dword,
        operator,
        value,
    )?)
}

fn equal(index: u8, value: u64) -> Result<SeccompCondition, CallsError> {
    argument(index, SeccompCmpOp::Eq, value)
}

fn masked(index: u8, mask: u64, value: u64) -> Result<SeccompCondition, CallsError> {
    argument(index, SeccompCmpOp::MaskedEq(mask), value)
}

/// Answers ENOSYS to `clone3` and to what is not known yet, and leaves the rest to the program behind it. x32 calls come
/// with the architecture of x86-64 and a bit in their number: the rest refuses them, since no number of the list has it.
fn not_there() -> BpfProgram {
    let instruction = |code: u32, jt, jf, k| sock_filter {
        code: u16::try_from(code).expect("instructions of classic BPF have 16 bits"),
        jt,
        jf,
        k,
    };
    let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let is_at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let clone3 = u32::try_from(libc::SYS_clone3).expect("numbers of calls are small");
    vec![
        // The number of the call is the first word of what a filter sees.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(is_at_least, 3, 0, X32_BIT),
        instruction(is_at_least, 1, 0, UNKNOWN_FROM),
        instruction(is_equal, 0, 1, clone3),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    /// `linux/audit.h`.
    const AUDIT_ARCH_I386: u32 = 0x4000_0003;

    /// Builds the kernel's argument of a filter (`struct seccomp_data`) for a call by this architecture.
    fn call(number: c_long, arguments: &[u64]) -> [u32; 16] {
        let architecture: u32 = match std::env::consts::ARCH {
            "x86_64" => 0xc000_003e,
            "aarch64" => 0xc000_00b7,
            other => panic!("the filter knows nothing of {other}"),
        };
        let mut words = [0; 16];
        words[0] = number as u32;
        words[1] = architecture;
        for (index, value) in arguments.iter().enumerate() {
            words[4 + 2 * index] = *value as u32;
            words[5 + 2 * index] = (*value >> 32) as u32;
        }
        words
    }

    /// Interprets the instructions that filters are made of; see `Documentation/networking/filter.rst` of the kernel.
    fn run(program: &[sock_filter], words: &[u32; 16]) -> u32 {
        let (mut accumulator, mut at) = (0_u32, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            let code = u32::from(code);
            at += 1;
            let is_true = match code & 0xf0 {
                libc::BPF_JEQ => accumulator == k,
                libc::BPF_JGT => accumulator > k,
                libc::BPF_JGE => accumulator >= k,
                libc::BPF_JSET => accumulator & k != 0,
                _ => true,
            };
            match code & 0x07 {
                libc::BPF_LD => accumulator = words[k as usize / 4],
                libc::BPF_ALU if code & 0xf0 == libc::BPF_AND => accumulator &= k,
                libc::BPF_JMP if code & 0xf0 == libc::BPF_JA => at += k as usize,
                libc::BPF_JMP if is_true => at += usize::from(jt),
                libc::BPF_JMP => at += usize::from(jf),
                libc::BPF_RET => return k,
                _ => panic!("instruction {code:#x} is not interpreted"),
            }
        }
    }

    #[test]
    fn arguments_decide_where_a_call_can_do_both() {
        let program = program().unwrap();
        let own = u64::from(std::process::id());
        let (unix, inet) = (libc::AF_UNIX as u64, libc::AF_INET as u64);
        let (stream, datagram) = (libc::SOCK_STREAM as u64, libc::SOCK_DGRAM as u64);
        let options = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
        let thread = libc::CLONE_THREAD as u64;
        let at = libc::AT_FDCWD as u64;
        let flags = |flags: i32| [at, 0, flags as u64];
        for (number, arguments, action) in [
            (libc::SYS_read, &[][..], ALLOW),
            (libc::SYS_socketpair, &[unix, stream], ALLOW),
            (libc::SYS_socketpair, &[unix, stream | options], ALLOW),
            (libc::SYS_socketpair, &[unix, datagram], EPERM),
            (libc::SYS_socketpair, &[unix, datagram | options], EPERM),
            (
                libc::SYS_socketpair,
                &[unix, libc::SOCK_SEQPACKET as u64],
                EPERM,
            ),
            (libc::SYS_socketpair, &[inet, stream], EPERM),
            (libc::SYS_clone, &[thread | 0xff], ALLOW),
            (libc::SYS_clone, &[0], EPERM),
            (libc::SYS_clone3, &[], ENOSYS),
            (libc::SYS_openat, &flags(libc::O_CLOEXEC), ALLOW),
            (libc::SYS_openat, &flags(libc::O_WRONLY), EPERM),
            (libc::SYS_openat, &flags(libc::O_CREAT), EPERM),
            (
                libc::SYS_openat,
                &flags(libc::O_TMPFILE | libc::O_RDWR),
                EPERM,
            ),
            (libc::SYS_tgkill, &[own, 1, 6], ALLOW),
            (libc::SYS_tgkill, &[own + 1, 1, 6], EPERM),
            (libc::SYS_fcntl, &[0, libc::F_GETFL as u64], ALLOW),
            (libc::SYS_fcntl, &[0, libc::F_SETOWN as u64], EPERM),
            (libc::SYS_fcntl, &[0, libc::F_SETLEASE as u64], EPERM),
            (libc::SYS_ioctl, &[0, libc::TIOCSTI], EPERM),
            (libc::SYS_prctl, &[libc::PR_SET_NAME as u64], ALLOW),
            (libc::SYS_prctl, &[libc::PR_SET_PDEATHSIG as u64], EPERM),
            (libc::SYS_prctl, &[libc::PR_SET_DUMPABLE as u64], EPERM),
            (libc::SYS_prctl, &[libc::PR_SET_SECCOMP as u64], EPERM),
            (libc::SYS_prlimit64, &[0], ALLOW),
            (libc::SYS_prlimit64, &[own + 1], EPERM),
            (libc::SYS_setpriority, &[0, 0], ALLOW),
            (libc::SYS_setpriority, &[1, 0], EPERM),
        ] {
            let came = run(&program, &call(number, arguments));
            assert_eq!(came, action, "{number} with {arguments:x?}");
        }
    }

    #[test]
    fn what_is_not_listed_is_refused_and_what_is_unknown_is_not_there() {
        let program = program().unwrap();
        let rules = rules(1).unwrap();
        for number in 0..c_long::from(UNKNOWN_FROM) {
            if !rules.contains_key(&number) && number != libc::SYS_clone3 {
                assert_eq!(run(&program, &call(number, &[])), EPERM, "{number}");
            }
        }
        // setxattrat, getxattrat, listxattrat, removexattrat, open_tree_attr, file_getattr, file_setattr, and what may come.
        for number in (463..2_000).chain([c_long::from(X32_BIT) - 1]) {
            assert_eq!(run(&program, &call(number, &[])), ENOSYS, "{number}");
        }
        for call_of_x32 in [0, 39, 514, 547] {
            let number = c_long::from(X32_BIT) | call_of_x32;
            assert_eq!(run(&program, &call(number, &[])), EPERM, "{number:#x}");
        }
        for refused in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_execve,
            libc::SYS_kill,
            libc::SYS_ptrace,
            libc::SYS_setxattr,
            libc::SYS_fremovexattr,
            libc::SYS_unlinkat,
            libc::SYS_renameat2,
            libc::SYS_memfd_create,
            libc::SYS_seccomp,
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_openat2,
        ] {
            assert!(!rules.contains_key(&refused), "{refused}");
        }
    }

    #[test]
    fn calls_of_another_architecture_end_the_process() {
        let mut words = call(libc::SYS_read, &[]);
        words[1] = AUDIT_ARCH_I386;
        let came = run(&program().unwrap(), &words);
        assert_eq!(came, libc::SECCOMP_RET_KILL_PROCESS);
    }
}

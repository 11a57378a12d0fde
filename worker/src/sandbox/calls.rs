//! Seccomp: refuses sockets, programs, processes, signals to others, and what no codec asks of a kernel.
//!
//! Everything else is allowed: codecs and their allocators differ from release to release, and a call that is missing on a
//! list of allowed ones would show as a file that does not decode. Refused calls fail with EPERM, so a library that tries
//! one goes on without. Calls of other architectures end the process, and those of x32 are refused as a whole.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// Refused whatever their arguments are.
const REFUSED: &[c_long] = &[
    // Sockets. Messages over the one that is there are allowed.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_memfd_create,
    // Other processes.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // What landlock leaves open of files that this user owns, and early landlock of others.
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_flock,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // The kernel's own corners, where most of its holes were.
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_personality,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    // The way back to privileges.
    libc::SYS_capset,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
];

/// The older calls that newer architectures never had.
#[cfg(target_arch = "x86_64")]
const REFUSED_OLDER: &[c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_inotify_init,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLDER: &[c_long] = &[];

/// Linux 6.6; the same number everywhere. `libc` does not name it on every target.
const FCHMODAT2: c_long = 452;
/// `include/uapi/asm-generic/fcntl.h`; the libc crate has no name for it.
const F_SETOWN_EX: u64 = 15;
/// `F_SETOWN` of fcntl(2) by the names that sockets have for it; see `asm/sockios.h`.
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;
/// See ioprio_set(2).
const IOPRIO_WHO_PROCESS: u64 = 1;
/// Calls with this bit are those of the x32 ABI; see syscall(2).
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

/// Why the filters are not on.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    #[error("there are no filters for this processor")]
    Architecture,
    #[error(transparent)]
    Filter(#[from] Error),
    #[error(transparent)]
    Program(#[from] seccompiler::BackendError),
}

/// Refuses the calls from now on, in this thread and those it starts.
pub fn refuse() -> Result<(), CallsError> {
    for program in programs()? {
        apply_filter(&program)?;
    }
    Ok(())
}

fn programs() -> Result<Vec<BpfProgram>, CallsError> {
    let mut programs = vec![
        filter(not_there(), libc::ENOSYS)?,
        filter(not_allowed()?, libc::EPERM)?,
    ];
    #[cfg(target_arch = "x86_64")]
    programs.push(no_x32());
    Ok(programs)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn filter(rules: Rules, error: i32) -> Result<BpfProgram, CallsError> {
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|_| CallsError::Architecture)?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(error.unsigned_abs()),
        architecture,
    )?;
    Ok(filter.try_into()?)
}

/// Its flags stand in memory, where no filter sees them; the C library falls back to `clone`, whose flags can be seen.
fn not_there() -> Rules {
    BTreeMap::from([(libc::SYS_clone3, Vec::new())])
}

fn not_allowed() -> Result<Rules, CallsError> {
    let mut rules: Rules = REFUSED
        .iter()
        .chain(REFUSED_OLDER)
        .map(|call| (*call, Vec::new()))
        .collect();
    let thread = libc::CLONE_THREAD as u64;
    let own = u64::from(std::process::id());
    for (call, condition) in [
        // A new process; threads are allowed.
        (
            libc::SYS_clone,
            argument(0, SeccompCmpOp::MaskedEq(thread), 0)?,
        ),
        // Sockets that are connected to each other and to nothing else: GStreamer wakes its threads by them.
        (
            libc::SYS_socketpair,
            argument(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?,
        ),
        // Signals to others; abort(3) sends itself one.
        (libc::SYS_tgkill, argument(0, SeccompCmpOp::Ne, own)?),
        // Signals that the kernel sends, to whoever is named, when a descriptor is ready.
        (
            libc::SYS_fcntl,
            argument(1, SeccompCmpOp::Eq, libc::F_SETOWN as u64)?,
        ),
        (libc::SYS_fcntl, argument(1, SeccompCmpOp::Eq, F_SETOWN_EX)?),
        (libc::SYS_ioctl, argument(1, SeccompCmpOp::Eq, FIOSETOWN)?),
        (libc::SYS_ioctl, argument(1, SeccompCmpOp::Eq, SIOCSPGRP)?),
        // What makes another wait who opens or removes a file.
        (
            libc::SYS_fcntl,
            argument(1, SeccompCmpOp::Eq, libc::F_SETLEASE as u64)?,
        ),
        // Limits and turns of others; of a group or a user, 0 means this one's, with all its other processes.
        (libc::SYS_prlimit64, argument(0, SeccompCmpOp::Ne, 0)?),
        (
            libc::SYS_setpriority,
            argument(0, SeccompCmpOp::Ne, libc::PRIO_PROCESS.into())?,
        ),
        (libc::SYS_setpriority, argument(1, SeccompCmpOp::Ne, 0)?),
        (
            libc::SYS_ioprio_set,
            argument(0, SeccompCmpOp::Ne, IOPRIO_WHO_PROCESS)?,
        ),
        (libc::SYS_ioprio_set, argument(1, SeccompCmpOp::Ne, 0)?),
        (
            libc::SYS_sched_setaffinity,
            argument(0, SeccompCmpOp::Ne, 0)?,
        ),
        (libc::SYS_sched_setattr, argument(0, SeccompCmpOp::Ne, 0)?),
        (libc::SYS_sched_setparam, argument(0, SeccompCmpOp::Ne, 0)?),
        (
            libc::SYS_sched_setscheduler,
            argument(0, SeccompCmpOp::Ne, 0)?,
        ),
        // Outliving the service, and being looked into.
        (
            libc::SYS_prctl,
            argument(0, SeccompCmpOp::Eq, libc::PR_SET_PDEATHSIG as u64)?,
        ),
        (
            libc::SYS_prctl,
            argument(0, SeccompCmpOp::Eq, libc::PR_SET_DUMPABLE as u64)?,
        ),
        // Keys typed into the terminal of whoever started the service.
        (
            libc::SYS_ioctl,
            argument(1, SeccompCmpOp::Eq, libc::TIOCSTI)?,
        ),
    ] {
        let rule = SeccompRule::new(vec![condition])?;
        rules.entry(call).or_default().push(rule);
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

/// x32 calls come with the architecture of x86-64 and a bit in their number, so that no rule above meets them.
#[cfg(target_arch = "x86_64")]
fn no_x32() -> BpfProgram {
    let instruction = |code: u32, jt, k| seccompiler::sock_filter {
        code: u16::try_from(code).expect("instructions of classic BPF have 16 bits"),
        jt,
        jf: 0,
        k,
    };
    vec![
        // The number of the call is the first word of what a filter sees.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32_BIT),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs(),
        ),
    ]
}

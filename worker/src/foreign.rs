//! System calls by other ABIs (x32, `int 0x80`) and `F_SETOWN`, which a seccomp filter might forget. Only proofs use
//! them.
#![allow(unsafe_code, reason = "no library offers these calls")]

use std::io;

use rustix::process::Pid;

/// Names the process that the kernel is to signal when standard input is ready, by `F_SETOWN` of fcntl(2).
pub fn signal_when_ready(process: Pid) -> io::Result<()> {
    // SAFETY: all arguments are numbers, and a descriptor that is not open is an error.
    match unsafe {
        libc::fcntl(
            libc::STDIN_FILENO,
            libc::F_SETOWN,
            process.as_raw_pid() as libc::c_int,
        )
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `getpid` by the number that the x32 ABI gives it.
#[cfg(target_arch = "x86_64")]
pub fn x32() -> io::Result<()> {
    const X32_BIT: libc::c_long = 0x4000_0000;
    // SAFETY: the call takes no arguments and changes nothing.
    match unsafe { libc::syscall(X32_BIT | libc::SYS_getpid) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `getpid` by the interrupt of 32-bit programs.
#[cfg(target_arch = "x86_64")]
pub fn ia32() -> io::Result<()> {
    const GETPID: i32 = 20;
    let mut answer = GETPID;
    // SAFETY: the call takes no arguments; the kernel changes no register but the one it answers in, and these four.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("eax") answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    match answer {
        error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
        _ => Ok(()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn x32() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_arch = "x86_64"))]
pub fn ia32() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

//! Drops the privileges of a worker: root, groups, capabilities, `no_new_privs`.

use std::io;

use rustix::{
    process::{DumpableBehavior, Gid, Uid, getuid, set_dumpable_behavior},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    },
};

/// User and group that own nothing on any machine (Debian's `nobody` and `nogroup`).
const UNPRIVILEGED_ID: u32 = 65_534;

/// Drops everything, for good. A process that is not root keeps its user and has nothing else afterwards.
pub fn drop_all() -> io::Result<()> {
    if getuid().is_root() {
        become_unprivileged_user()?;
    }
    drop_capabilities()?;
    // No other process of the same user can look into this one, or be led into it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_no_new_privs(true)?;
    Ok(())
}

/// The thread's identity is the process's, since there is one thread.
fn become_unprivileged_user() -> io::Result<()> {
    let (user, group) = (
        Uid::from_raw(UNPRIVILEGED_ID),
        Gid::from_raw(UNPRIVILEGED_ID),
    );
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(())
}

fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // A service manager may refuse the call to those who have nothing to drop.
    if capabilities(None)? != none {
        clear_ambient_capability_set()?;
        set_capabilities(None, none)?;
    }
    Ok(())
}

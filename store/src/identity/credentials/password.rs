//! Password hashes: Argon2id and its parameters, concurrent hashes, length of passwords (`newPassword`).
//!
//! A hash works in 19 MiB. The allocator does not return blocks of that size to the system once threads start and end,
//! so this process has [`CONCURRENT_HASHES`] blocks at most; each is made at its first use. A further caller waits,
//! which bounds concurrent hashes whatever callers do. Call these functions on the blocking pool: they take tens of
//! milliseconds.

use std::{fmt, sync::LazyLock};

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::phc::{Output, ParamsString, PasswordHash as Phc, Salt},
};
use parking_lot::{Condvar, Mutex};
use subtle::ConstantTimeEq as _;

use super::{Secret, password, random_bytes};
use crate::Error;

/// Concurrent hashes, and so blocks of 19 MiB that are kept: as many as two cores can run beside live streams.
pub const CONCURRENT_HASHES: usize = 2;

/// The parameters of new hashes, 19 MiB, 2 passes and 1 lane, are those of OWASP's Password Storage Cheat Sheet.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Greatest number of passes of a stored hash.
const MAX_PASSES: u32 = 8;
const SALT_BYTES: usize = 16;
/// Longest accepted password, in bytes: bounds the work of a sign-in.
const MAX_PASSWORD_BYTES: usize = 1024;

/// Fewest characters of a password that a person chooses in the dashboard (NIST SP 800-63B).
pub const MIN_CHOSEN_CHARACTERS: usize = 8;

static MEMORY: Memory = Memory::new();

/// Argon2id hash in the PHC string format, as it is stored.
#[derive(Clone, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
pub struct PasswordHash(String);

impl PasswordHash {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(••••)")
    }
}

/// Rejects passwords that cannot be used: empty, or longer than 1024 bytes.
pub fn check_password(password: &Secret) -> Result<(), Error> {
    match password.expose().len() {
        0 => Err(Error::Invalid(
            "password: expected at least one character".into(),
        )),
        1..=MAX_PASSWORD_BYTES => Ok(()),
        _ => Err(Error::Invalid(format!(
            "password: expected at most {MAX_PASSWORD_BYTES} bytes"
        ))),
    }
}

/// Rejects passwords that a person must not choose in the dashboard: of fewer than eight characters, or unusable. An operator
/// may set others from the shell.
pub fn check_chosen_password(password: &Secret) -> Result<(), Error> {
    let password = password.expose();
    if password.chars().count() < MIN_CHOSEN_CHARACTERS {
        return Err(Error::Invalid(format!(
            "newPassword must have at least {MIN_CHOSEN_CHARACTERS} characters"
        )));
    }
    match password.len() {
        ..=MAX_PASSWORD_BYTES => Ok(()),
        _ => Err(Error::Invalid(format!(
            "newPassword must have at most {MAX_PASSWORD_BYTES} bytes"
        ))),
    }
}

/// Hashes a password with a fresh salt. Blocks for tens of milliseconds.
pub fn hash_password(password: &Secret) -> Result<PasswordHash, Error> {
    check_password(password)?;
    let failed = |error: &dyn fmt::Display| Error::Internal(format!("hashing a password: {error}"));
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|error| failed(&error))?;
    let salt = random_bytes::<SALT_BYTES>();
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    let phc = Phc {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(&params).map_err(|error| failed(&error))?,
        salt: Some(Salt::new(&salt).map_err(|error| failed(&error))?),
        hash: None,
    };
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    MEMORY
        .with_block(|block| {
            let password = password.expose().as_bytes();
            argon2.hash_password_into_with_memory(password, &salt, &mut output, block)
        })
        .map_err(|error| failed(&error))?;
    let hash = Some(Output::new(&output).map_err(|error| failed(&error))?);
    Ok(PasswordHash(Phc { hash, ..phc }.to_string()))
}

/// Returns whether the password matches the hash. Blocks for tens of milliseconds.
///
/// A hash that cannot be read, or that asks for more than 19 MiB or 8 passes, verifies no password.
pub fn verify_password(password: &Secret, hash: &PasswordHash) -> bool {
    check_password(password).is_ok() && matches(password, hash).unwrap_or(false)
}

fn matches(password: &Secret, hash: &PasswordHash) -> Option<bool> {
    let phc = Phc::new(&hash.0).ok()?;
    let (salt, expected) = (phc.salt?, phc.hash?);
    let params = Params::try_from(&phc).ok()?;
    if params.m_cost() > MEMORY_KIB || params.t_cost() > MAX_PASSES {
        tracing::warn!(
            memory_kib = params.m_cost(),
            passes = params.t_cost(),
            "a stored password hash asks for more than {MEMORY_KIB} KiB and {MAX_PASSES} passes: reset that password"
        );
        return None;
    }
    let algorithm = Algorithm::try_from(phc.algorithm.as_str()).ok()?;
    let version = phc
        .version
        .map_or(Ok(Version::default()), Version::try_from);
    let argon2 = Argon2::new(algorithm, version.ok()?, params);
    let mut output = [0; Output::MAX_LENGTH];
    let output = output.get_mut(..expected.len())?;
    MEMORY
        .with_block(|block| {
            let password = password.expose().as_bytes();
            argon2.hash_password_into_with_memory(password, &salt, &mut *output, block)
        })
        .ok()?;
    Some((*output).ct_eq(expected.as_bytes()).into())
}

/// Returns unused blocks to the system; the next hash allocates its own again. For the start, after which a service
/// may run for long before a password is checked.
pub fn release_memory() {
    MEMORY.release();
}

/// Takes the time of [`verify_password`] and returns false: for a user who does not exist, so that the time does not
/// reveal that.
pub fn verify_no_one(password: &Secret) -> bool {
    static DUMMY_HASH: LazyLock<Option<PasswordHash>> =
        LazyLock::new(|| hash_password(&self::password()).ok());
    if let Some(hash) = DUMMY_HASH.as_ref() {
        verify_password(password, hash);
    }
    false
}

/// The blocks of memory that hashes work in. Lives as long as the process.
struct Memory {
    /// Blocks not in use; an empty one has not been allocated.
    free: Mutex<[Option<Vec<Block>>; CONCURRENT_HASHES]>,
    returned: Condvar,
}

impl Memory {
    const fn new() -> Self {
        Self {
            free: Mutex::new([const { Some(Vec::new()) }; CONCURRENT_HASHES]),
            returned: Condvar::new(),
        }
    }

    /// Runs `work` in a block, after waiting for one when all are in use.
    fn with_block<T>(&self, work: impl FnOnce(&mut [Block]) -> T) -> T {
        let mut taken = Taken {
            memory: self,
            block: self.take(),
        };
        taken.block.resize(MEMORY_KIB as usize, Block::new());
        work(&mut taken.block)
    }

    fn release(&self) {
        let mut free = self.free.lock();
        for block in free.iter_mut().flatten() {
            *block = Vec::new();
        }
    }

    /// The first free block, so that blocks beyond those in use at a time are never allocated.
    fn take(&self) -> Vec<Block> {
        let mut free = self.free.lock();
        loop {
            if let Some(block) = free.iter_mut().find_map(Option::take) {
                return block;
            }
            self.returned.wait(&mut free);
        }
    }
}

/// Block in use; returned when it is dropped, so that a panic does not lose it.
struct Taken<'a> {
    memory: &'a Memory,
    block: Vec<Block>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let block = std::mem::take(&mut self.block);
        let mut free = self.memory.free.lock();
        // Allocated blocks come first, so that they are reused before one is made.
        if let Some(place) = free.iter().position(Option::is_none) {
            free[place] = Some(block);
            free.sort_by_key(|block| block.as_ref().is_none_or(Vec::is_empty));
        }
        drop(free);
        self.memory.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_password_is_verified_and_never_shown() {
        let password = Secret::new("correct horse 🐎");
        let hash = hash_password(&password).unwrap();
        assert!(
            hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{}",
            hash.0
        );
        assert_ne!(hash_password(&password).unwrap().0, hash.0, "salted");
        assert!(verify_password(&password, &hash));
        for wrong in ["", "correct horse", "Correct horse 🐎", &"x".repeat(2_000)] {
            assert!(!verify_password(&Secret::new(wrong), &hash), "{wrong}");
        }
        for broken in ["", "$argon2id$", "plain"] {
            assert!(
                !verify_password(&password, &PasswordHash(broken.into())),
                "{broken}"
            );
        }
        assert!(!verify_no_one(&password));
        let shown = format!("{password:?} {hash:?}");
        assert!(
            !shown.contains("horse") && !shown.contains("argon2"),
            "{shown}"
        );
    }

    #[test]
    fn only_usable_passwords_are_hashed() {
        for (length, is_usable) in [(0, false), (1, true), (1_024, true), (1_025, false)] {
            assert_eq!(
                check_password(&Secret::new("x".repeat(length))).is_ok(),
                is_usable,
                "{length}"
            );
        }
    }

    #[test]
    fn a_chosen_password_has_eight_characters() {
        for (password, is_accepted) in [
            ("", false),
            ("1234567", false),
            ("12345678", true),
            ("🐎🐎🐎🐎🐎🐎🐎", false),
            ("        ", true),
            (&"x".repeat(1_025), false),
        ] {
            assert_eq!(
                check_chosen_password(&Secret::new(password)).is_ok(),
                is_accepted,
                "{password}"
            );
        }
    }

    /// Compares with hashes that the `argon2` crate alone makes and checks, in memory of its own.
    #[test]
    fn hashes_are_those_of_the_library() {
        use argon2::{PasswordHasher as _, PasswordVerifier as _};
        let own = hash_password(&Secret::new("password")).unwrap();
        let library = Argon2::default();
        assert!(library.verify_password(b"password", own.0.as_str()).is_ok());
        for (memory, passes, lanes, length, version) in [
            (64, 1, 1, 32, Version::V0x13),
            (256, 3, 4, 16, Version::V0x13),
            (64, 2, 1, 64, Version::V0x10),
        ] {
            let params = Params::new(memory, passes, lanes, Some(length)).unwrap();
            let library = Argon2::new(Algorithm::Argon2i, version, params);
            let made: Phc = library.hash_password(b"password").unwrap();
            let made = PasswordHash(made.to_string());
            assert!(
                verify_password(&Secret::new("password"), &made),
                "{}",
                made.0
            );
            assert!(
                !verify_password(&Secret::new("passwort"), &made),
                "{}",
                made.0
            );
        }
    }

    #[test]
    fn a_hash_that_asks_for_too_much_verifies_no_password() {
        use argon2::PasswordHasher as _;
        for (memory, passes) in [(MEMORY_KIB + 1, 1), (64, MAX_PASSES + 1)] {
            let params = Params::new(memory, passes, 1, None).unwrap();
            let library = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            let made: Phc = library.hash_password(b"password").unwrap();
            assert!(!verify_password(
                &Secret::new("password"),
                &PasswordHash(made.to_string())
            ));
        }
    }

    #[test]
    fn blocks_are_reused_and_a_panic_loses_none() {
        let memory = Memory::new();
        let in_use = AtomicUsize::new(0);
        let in_order = || {
            memory.with_block(|block| {
                assert_eq!(block.len(), MEMORY_KIB as usize);
                assert!(in_use.fetch_add(1, Ordering::SeqCst) < CONCURRENT_HASHES);
                std::thread::yield_now();
                in_use.fetch_sub(1, Ordering::SeqCst);
            });
        };
        in_order();
        in_order();
        let allocated = || {
            let free = memory.free.lock();
            free.iter()
                .flatten()
                .filter(|block| !block.is_empty())
                .count()
        };
        assert_eq!(allocated(), 1, "one after the other work in one block");
        std::thread::scope(|scope| {
            for _ in 0..3 * CONCURRENT_HASHES {
                let _ = scope
                    .spawn(|| memory.with_block(|_| panic!("on purpose")))
                    .join();
                scope.spawn(in_order);
            }
        });
        assert!(memory.free.lock().iter().all(Option::is_some));
        assert!(allocated() <= CONCURRENT_HASHES);
    }
}

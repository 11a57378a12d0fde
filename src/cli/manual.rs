//! `sluice manual`: man pages and shell completions for the Debian package, written from the program's own arguments.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::Shell;

use super::Error;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder in which man1/ and completions/ are made
    folder: PathBuf,
}

/// Writes a man page for `program` and each of its sub-commands, and one file of completions for each shell.
pub(super) fn run(arguments: &Arguments, program: clap::Command) -> Result<ExitCode, Error> {
    write(&arguments.folder, program).map_err(|source| Error::Io {
        action: "cannot write the man pages and completions",
        source,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, mut program: clap::Command) -> io::Result<()> {
    let pages = folder.join("man1");
    fs::create_dir_all(&pages)?;
    // A copy, before completions add the `help` commands.
    clap_mangen::generate_to(without_help(program.clone()), &pages)?;
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut program, "sluice", &completions)?;
    }
    Ok(())
}

/// `help` repeats each command as its own; pages of these would say nothing more.
fn without_help(command: clap::Command) -> clap::Command {
    command
        .disable_help_subcommand(true)
        .mut_subcommands(without_help)
}

#[cfg(test)]
mod tests {
    use clap::{Command, Subcommand};

    use super::*;

    #[test]
    fn writes_a_page_for_each_command_that_help_lists_and_the_completions() {
        let program = crate::cli::Command::augment_subcommands(Command::new("sluice"));
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), program).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("man1/sluice.1").contains("sluice\\-doctor(1)"));
        assert!(read("man1/sluice-users-add.1").contains("password\\-stdin"));
        for hidden in ["worker", "srt-gateway", "manual", "users-help"] {
            let page = folder.path().join(format!("man1/sluice-{hidden}.1"));
            assert!(!page.exists(), "{hidden} has a page");
        }
        for file in ["sluice.bash", "_sluice", "sluice.fish"] {
            assert!(
                read(&format!("completions/{file}")).contains("reset-password"),
                "{file}"
            );
        }
    }
}

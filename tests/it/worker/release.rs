//! A release program has no switch by which a worker misbehaves or lays a layer of its sandbox aside.

use tokio::process::Command;

use crate::support::Failure;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switches_of_tests_are_unknown() -> Result<(), Failure> {
    for (command, switch) in [
        ("worker", "--faults"),
        ("worker", "--prove"),
        ("worker", "--attempt"),
        ("worker", "--folder"),
        ("srt-gateway", "--layers"),
    ] {
        let run = |argument| {
            let program = env!("CARGO_BIN_EXE_sluice");
            Command::new(program).args([command, argument]).output()
        };
        let help = run("--help").await?;
        assert!(
            !String::from_utf8_lossy(&help.stdout).contains(switch),
            "{command} {switch}"
        );
        let refused = run(switch).await?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            said.contains("unexpected argument"),
            "{command} {switch}: {said}"
        );
    }
    Ok(())
}

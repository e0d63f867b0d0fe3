//! The isolation of a test in its namespaces.

use std::{
    env, fs, io,
    net::{IpAddr, UdpSocket},
    panic::catch_unwind,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use pipeline_tests::{
    netns::{add_address, inside, isolated, mount_resolv_conf},
    test_name,
};

/// The variable of a test process that is started to be killed.
const VICTIM: &str = "PIPELINE_TESTS_VICTIM";

/// A server has port 53 of an address of its own.
#[test]
fn addresses_have_own_ports() {
    isolated(test_name!(), async || {
        for address in ["10.244.1.53", "fd00:244::53"] {
            let address: IpAddr = address.parse()?;
            UdpSocket::bind((address, 53)).expect_err("not there yet");
            add_address(address)?;
            UdpSocket::bind((address, 53))?;
        }
        Ok(())
    });
}

/// `resolv.conf` is replaced in the namespace only.
#[test]
fn resolv_conf_is_the_namespaces() {
    let text = "nameserver 10.244.1.53\n";
    isolated(test_name!(), async || {
        mount_resolv_conf(text)?;
        assert_eq!(fs::read_to_string("/etc/resolv.conf")?, text);
        Ok(())
    });
    if !inside() {
        assert_ne!(fs::read_to_string("/etc/resolv.conf").unwrap(), text);
        mount_resolv_conf(text).expect_err("this is the machine's own");
        add_address(IpAddr::from([10, 244, 1, 53])).expect_err("this is the machine's own");
    }
}

/// A body that fails fails the test.
#[test]
fn failing_body_fails() {
    let test = || isolated(test_name!(), async || bail!("the body has failed"));
    if inside() {
        return test();
    }
    let message = catch_unwind(test).unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(
        message.starts_with("it failed in its namespace"),
        "{message}"
    );
}

/// A name that is no test fails the test.
#[test]
fn unknown_test_fails() {
    let message = catch_unwind(|| isolated("no::such::test", async || Ok(()))).unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(
        message.starts_with("nothing ran in the namespace"),
        "{message}"
    );
}

/// A process that nobody ends goes away with the namespace.
#[test]
fn processes_end_with_the_namespace() {
    let mark = mark("left behind");
    isolated(test_name!(), async || leave_behind(&mark));
    if !inside() {
        assert_eq!(processes_with(&mark).unwrap(), 0);
    }
}

/// Everything goes away when the test is killed.
#[test]
fn killed_test_leaves_nothing() {
    let mark = mark("killed");
    if inside() || env::var_os(VICTIM).is_some() {
        return isolated(test_name!(), async || {
            leave_behind(&mark)?;
            std::future::pending().await
        });
    }
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", test_name!()])
        .env(VICTIM, "")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the victim runs", || processes_with(&mark).unwrap() > 0);
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("nothing is left", || processes_with(&mark).unwrap() == 0);
}

/// Starts a process that outlives its parent.
fn leave_behind(mark: &str) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 1000; true", mark]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn()?;
    Ok(())
}

/// Returns an argument that only processes of this test in this checkout have.
fn mark(name: &str) -> String {
    format!("{} {name}", env!("CARGO_TARGET_TMPDIR"))
}

/// Counts the processes with this argument on this machine, including its namespaces.
fn processes_with(argument: &str) -> io::Result<usize> {
    Ok(fs::read_dir("/proc")?
        .flatten()
        .filter(|process| {
            let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let mut arguments = arguments.split(|byte| *byte == 0);
            arguments.any(|found| found == argument.as_bytes())
        })
        .count())
}

/// Polls, because only children can be waited for.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "still not: {what}"
        );
        sleep(Duration::from_millis(10));
    }
}

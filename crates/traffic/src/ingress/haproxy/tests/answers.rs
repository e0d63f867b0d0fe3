use std::time::Duration;

use proptest::prelude::*;

use super::super::{Server, State, refusal};

/// The answer of HAProxy 2.6.12 to `show info; show backend; show servers state ns_i_s_80; show servers state nope; show
/// servers conn ns_i_s_80`, without most of the first.
const ANSWER: &str = "\
Name: HAProxy
Version: 2.6.12-1+deb12u4
Pid: 20615
Tainted: 0

# name
ns_i_s_80
empty

1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port
3 ns_i_s_80 1 m1_127.0.1.1_18090 127.0.1.1 2 8 1 1 21 1 0 0 6 0 0 0 - 18090 - 0 0 - - 0
3 ns_i_s_80 2 m1_::1_18090 ::1 0 1 0 10 0 1 0 0 2 0 0 0 - 18090 - 0 0 - - 0
3 ns_i_s_80 3 x - 0 37 1 1 0 1 0 0 0 0 0 0 host 80 - 0 0 - - 0

Can't find backend.

# bkname/svname bkid/svid addr port - purge_delay used_cur used_max need_est unsafe_nb safe_nb idle_lim idle_cur idle_per_thr[2]
ns_i_s_80/m1_127.0.1.1_18090 3/1 127.0.1.1 18090 - 5000 2 2 2 1 0 -1 1 1 0
ns_i_s_80/m1_::1_18090 3/2 ::1 18090 - 5000 0 0 0 0 0 100 0 0 0
ns_i_s_80/x 3/3 - 80 - 0 0 0 0 0 0 0 0

";

/// Servers are read with their addresses, bits and connections; a backend without servers is there.
#[test]
fn answer_tells_servers() {
    let state = State::read(ANSWER).unwrap();
    assert_eq!(state.pid, 20615);
    let names: Vec<&str> = state.backends.keys().map(String::as_str).collect();
    assert_eq!(names, ["empty", "ns_i_s_80"]);
    let servers = &state.backends["ns_i_s_80"];
    let expected = Server {
        address: Some("127.0.1.1:18090".parse().unwrap()),
        admin: 8,
        weight: 1,
        initial_weight: 1,
        since: Duration::from_secs(21),
        checks: 6,
        connections: 2,
    };
    assert_eq!(servers["m1_127.0.1.1_18090"], expected);
    let v6 = &servers["m1_::1_18090"];
    assert_eq!(v6.address, Some("[::1]:18090".parse().unwrap()));
    assert_eq!((v6.weight, v6.initial_weight), (0, 10));
    assert_eq!(servers["x"].address, None);
}

/// The bits tell maintenance and drain from the state in the configuration.
#[test]
fn bits_tell_state() {
    for (admin, state) in [
        (0, (false, false, true)),
        (4, (false, false, true)),
        (1, (true, false, false)),
        (5, (true, false, false)),
        (8, (false, true, false)),
        (9, (true, true, false)),
        (32, (false, false, false)),
    ] {
        let server = Server {
            admin,
            ..Server::default()
        };
        let found = (
            server.is_in_maintenance(),
            server.is_draining(),
            server.takes_requests(),
        );
        assert_eq!(found, state, "{admin}");
    }
}

/// Columns of a newer version stand where its header says, and a row that is cut off loses no other.
#[test]
fn columns_follow_header() {
    let answer = "Pid: 7\n\n# be_name new srv_name srv_admin_state srv_port srv_addr\nb ? one 1 80 10.0.0.1\nb ?\n";
    let state = State::read(answer).unwrap();
    let one = &state.backends["b"]["one"];
    assert_eq!(
        (one.address, one.admin),
        (Some("10.0.0.1:80".parse().unwrap()), 1)
    );
    assert_eq!(state.backends["b"].len(), 1);
}

/// An answer of something else is none.
#[test]
fn nonsense_is_no_answer() {
    for nonsense in [
        "",
        "\n",
        "HTTP/1.1 400 Bad request",
        "Pid: x",
        "Permission denied\n\n",
    ] {
        assert_eq!(State::read(nonsense), None, "{nonsense:?}");
    }
}

/// Only an answer that says no is a refusal.
#[test]
fn only_refusals_are_told() {
    let info = "Pid: 1\nTainted: 0\n\n";
    for (rest, told) in [
        ("\n\nNew server registered.\n\n\n\nServer deleted.\n", None),
        (
            "Permission denied\n\nPermission denied\n\n",
            Some("Permission denied"),
        ),
        (
            "Backend must use a dynamic load balancing to support dynamic servers.\n\nNo such server.\n\n",
            Some(
                "Backend must use a dynamic load balancing to support dynamic servers. No such server.",
            ),
        ),
    ] {
        assert_eq!(refusal(&format!("{info}{rest}")).as_deref(), told);
    }
    assert_eq!(refusal("nonsense"), None);
}

/// Answers of two processes are not one.
#[test]
fn processes_do_not_mix() {
    let of = |pid: u32, backend: &str| {
        State::read(&format!("Pid: {pid}\n\n# name\n{backend}\n")).unwrap()
    };
    assert_eq!(of(1, "a").joined(of(1, "b")).unwrap().backends.len(), 2);
    assert_eq!(of(1, "a").joined(of(2, "b")), None);
}

proptest! {
    /// Whatever comes is read without a panic.
    #[test]
    fn any_text_is_read(text in "(Pid: [0-9]{1,12}\n|# (name|be_id be_name srv_name srv_addr srv_admin_state|bkname/svname used_cur)\n|[a-z0-9:./# -]{0,20}\n|\\PC{0,10}){0,12}") {
        drop((State::read(&text), refusal(&text)));
    }
}

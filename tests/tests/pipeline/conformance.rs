//! A real kube-apiserver does what the conformance suite says.

mod real {
    use std::io::{Write, stderr};

    use anyhow::ensure;
    use api_conformance::{count, run};
    use pipeline_tests::{
        control_plane::{ControlPlane, Options},
        netns::{inside, isolated},
        test_name,
    };

    #[test]
    fn a_real_server_conforms() {
        isolated(test_name!(), async || {
            let api = ControlPlane::start(Options::named("api")).await?;
            let ran = run(api.client(), "").await?;
            ensure!(ran == count(), "only {ran} cases ran");
            Ok(())
        });
        if !inside() {
            // Past libtest, which shows only what failed tests print.
            writeln!(stderr(), "{} cases ran on kube-apiserver", count()).unwrap();
        }
    }
}

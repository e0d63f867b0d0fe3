use serde_json::json;

use super::*;

fn parsed(text: &str) -> Kubeconfig {
    parse(text.as_bytes()).unwrap()
}

fn cluster(text: &str) -> Cluster {
    let kubeconfig = format!("clusters:\n- name: c\n  cluster: {text}\n");
    let mut clusters = parsed(&kubeconfig).clusters;
    clusters.remove(0).cluster.unwrap()
}

fn user(text: &str) -> AuthInfo {
    let kubeconfig = format!("users:\n- name: u\n  user: {text}\n");
    let mut users = parsed(&kubeconfig).auth_infos;
    users.remove(0).auth_info.unwrap()
}

/// The last counts of a key that stands twice, in YAML as in JSON.
#[test]
fn last_of_two_keys_counts() {
    let twice = "current-context: one\ncurrent-context: two\n";
    assert_eq!(parsed(twice).current_context.as_deref(), Some("two"));
    let json = "{\n\t\"current-context\": \"one\",\n\t\"current-context\": \"two\"\n}";
    assert_eq!(parsed(json).current_context.as_deref(), Some("two"));
    let server = cluster(r#"{ server: "https://a", server: "https://b" }"#).server;
    assert_eq!(server.as_deref(), Some("https://b"));
}

/// An empty text is no value, wherever it stands.
#[test]
fn empty_text_is_absent() {
    assert_eq!(parsed("current-context: \"\"\n").current_context, None);
    let empty = cluster(
        r#"{ server: "https://a", certificate-authority: "", certificate-authority-data: "",
            tls-server-name: "", proxy-url: "", insecure-skip-tls-verify: null }"#,
    );
    let bare = Cluster {
        server: Some("https://a".to_owned()),
        ..Cluster::default()
    };
    assert_eq!(json!(empty), json!(bare));
    let empty = user(
        r#"{ token: "", tokenFile: "", username: "", password: "", as: "", client-key: "",
            as-groups: null, exec: null, auth-provider: null }"#,
    );
    assert_eq!(json!(empty), json!(AuthInfo::default()));
    let plugin = r#"{ exec: { command: c, args: [""], interactiveMode: "", provideClusterInfo: null,
        env: [{ name: A, value: "" }] } }"#;
    let plugin = user(plugin).exec.unwrap();
    // An argument may be empty.
    assert_eq!(plugin.args, Some(vec![String::new()]));
    assert_eq!(plugin.interactive_mode, None);
    let contexts = "contexts: [{ name: c, context: { cluster: c, user: '', namespace: '' } }]\n";
    let contexts = parsed(contexts).contexts;
    let context = contexts[0].context.as_ref().unwrap();
    assert_eq!((&context.user, &context.namespace), (&None, &None));
}

/// Contexts, clusters and users that are not whole are no trouble for the others.
#[test]
fn unused_entry_may_be_bare() {
    let text = "
clusters: [{ name: c, cluster: { server: https://a } }, { name: bare, cluster: null }]
users: [{ name: u, user: {} }, { name: bare }]
contexts:
- { name: c, context: { cluster: c, user: u, extensions: [{ name: minikube }] } }
- { name: bare, context: {} }
- { name: none, context: null }
current-context: c
preferences: {}
unknown: [1, 2]
";
    let kubeconfig = parsed(text);
    assert_eq!(kubeconfig.contexts.len(), 3);
    assert_eq!(kubeconfig.clusters.len(), 2);
    for nothing in ["", "# comment\n", "clusters: null\nusers:\ncontexts: []\n"] {
        assert_eq!(json!(parsed(nothing)), json!(Kubeconfig::default()));
    }
}

/// A second document is not read, and another encoding is, as by kubectl.
#[test]
fn first_document_is_read() {
    let two = "---\ncurrent-context: one\n---\ncurrent-context: two\n";
    assert_eq!(parsed(two).current_context.as_deref(), Some("one"));
    let text = "current-context: one\n".encode_utf16();
    let bytes: Vec<u8> = [0xFEFF]
        .into_iter()
        .chain(text)
        .flat_map(u16::to_le_bytes)
        .collect();
    let utf16 = parse(&bytes).unwrap();
    assert_eq!(utf16.current_context.as_deref(), Some("one"));
}

/// Base64 may have lines, and a server no scheme.
#[test]
fn values_are_those_of_go() {
    let data = cluster("\n      certificate-authority-data: |\n        QUJD\n        REVG\n");
    assert_eq!(data.certificate_authority_data.as_deref(), Some("QUJDREVG"));
    for (cluster_of, expected) in [
        ("{ server: localhost:8080 }", "http://localhost:8080"),
        (
            "{ server: 'a:6443', insecure-skip-tls-verify: true }",
            "https://a:6443",
        ),
        ("{ server: https://a }", "https://a"),
    ] {
        let server = cluster(cluster_of).server;
        assert_eq!(server.as_deref(), Some(expected), "{cluster_of}");
    }
}

/// A user's certificate tells of TLS, for the cluster that a context gives him.
#[test]
fn certificates_make_servers_https() {
    let kubeconfig = parsed(
        "
clusters: [{ name: a, cluster: { server: 'a:6443' } }, { name: b, cluster: { server: 'b:6443' } }]
users: [{ name: u, user: { client-certificate: u.crt, client-key: u.key } }, { name: t, user: { token: t } }]
contexts: [{ name: a, context: { cluster: a, user: u } }, { name: b, context: { cluster: b, user: t } }]
",
    );
    let clusters = kubeconfig.clusters.into_iter();
    let servers: Vec<_> = clusters.filter_map(|named| named.cluster?.server).collect();
    assert_eq!(servers, ["https://a:6443", "http://b:6443"]);
}

/// A path starts from the folder of its file, and a command only if it is a path.
#[test]
fn paths_start_from_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = json!({
        "clusters": [{ "name": "c", "cluster": { "certificate-authority": "ca.crt" } }],
        "users": [
            { "name": "u", "user": { "tokenFile": "/run/token", "client-key": "./k",
                "exec": { "command": "bin/login" } } },
            { "name": "v", "user": { "exec": { "command": "aws" } } },
        ],
    });
    fs::write(&path, text.to_string()).unwrap();
    let read = read(&path).unwrap();
    let here = |name: &str| folder.path().join(name).to_str().map(ToOwned::to_owned);
    let cluster = read.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.certificate_authority, here("ca.crt"));
    let [user, other] = [0, 1].map(|at| read.auth_infos[at].auth_info.as_ref().unwrap());
    assert_eq!(user.token_file.as_deref(), Some("/run/token"));
    assert_eq!(user.client_key, here("./k"));
    let [own, others] = [user, other].map(|user| user.exec.as_ref().unwrap().command.clone());
    assert_eq!(own, here("bin/login"));
    assert_eq!(others.as_deref(), Some("aws"));
}

/// An error says where, and quotes nothing.
#[test]
fn error_names_place_alone() {
    const MARKER: &str = "MARKER";
    for (text, said) in [
        ("a: b\n\"MARKER", "line "),
        ("MARKER", "it is no mapping"),
        ("users: MARKER", "it is no mapping with users"),
        (
            "users: [{ name: u, user: { password: [MARKER] } }]",
            "users: a field of \"u\" has another type",
        ),
        (
            "users: [{ name: u, user: MARKER }]",
            "users: a field of \"u\" has another type",
        ),
        (
            "users: [{ name: u, user: { token: MARKER } }, { name: u }]",
            "users: \"u\" stands there twice",
        ),
    ] {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains(MARKER), "{error}");
    }
}

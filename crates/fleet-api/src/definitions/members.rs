//! The definitions of the clusters of a fleet, with the rules of KubeFleet's.

use serde_json::{Value, json};

use super::amendments::{Amendment, amended, at, first_of, one_of, rules, with_names_up_to};
use super::columns;
use super::definition::Definition;
use crate::member::{InternalMemberClusterSpec, MemberClusterSpec, MemberClusterStatus};
use crate::{InternalMemberCluster, MemberCluster};
use objects::Scope;
use objects::schema::{age_column, structural};

/// Returns the definitions.
pub(super) fn definitions() -> Vec<Value> {
    let members = Definition {
        short_names: json!(["cluster"]),
        spec: member(),
        status: Some(structural::<MemberClusterStatus>()),
        columns: columns::of_members(),
    }
    .of::<MemberCluster>(Scope::Cluster);
    vec![
        with_names_up_to(63, members),
        Definition {
            short_names: json!(["imc"]),
            spec: internal_member(),
            status: Some(structural::<MemberClusterStatus>()),
            columns: vec![age_column()],
        }
        .of::<InternalMemberCluster>(Scope::Namespaced),
    ]
}

fn heartbeat_period() -> Amendment {
    let period = json!({ "minimum": 1, "maximum": 600, "default": 60 });
    at("heartbeatPeriodSeconds", period)
}

/// The rules of a taint: its key is a qualified name, and its value that of a label.
const TAINT: [(&str, &str); 5] = [
    (
        "self.key.substring(self.key.indexOf('/') + 1).matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
        "taint key name segment must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    ),
    (
        "self.key.substring(self.key.indexOf('/') + 1).size() <= 63",
        "taint key name segment must be 63 characters or less",
    ),
    (
        "!self.key.contains('/') \
         || self.key.substring(0, self.key.indexOf('/')).matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "taint key prefix must be a lowercase DNS subdomain",
    ),
    (
        "self.key.indexOf('/') <= 253",
        "taint key prefix must be 253 characters or less",
    ),
    (
        "!has(self.value) || self.value.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",
        "taint value must be a valid label value",
    ),
];
/// The rule that no taint is there twice. The time at which one was added makes no difference.
const UNIQUE_TAINTS: &str = "self.all(one, self.exists_one(other, other.key == one.key && other.effect == one.effect \
    && (has(other.value) ? other.value : '') == (has(one.value) ? one.value : '')))";

fn member() -> Value {
    amended(
        structural::<MemberClusterSpec>(),
        &[
            heartbeat_period(),
            at("", json!({ "required": ["identity"] })),
            at("identity", json!({ "required": ["kind", "name"] })),
            at("taints", json!({ "maxItems": 100 })),
            at("taints", rules(&[(UNIQUE_TAINTS, "taints must be unique")])),
            at("taints[].key", json!({ "minLength": 1, "maxLength": 317 })),
            at("taints[].value", json!({ "maxLength": 63 })),
            at("taints[]", rules(&TAINT)),
            at(
                "deleteOptions.validationMode",
                first_of(&["Strict", "Skip"]),
            ),
            at("taints[].effect", one_of(&["NoSchedule"])),
        ],
    )
}

fn internal_member() -> Value {
    amended(
        structural::<InternalMemberClusterSpec>(),
        &[heartbeat_period(), at("state", one_of(&["Join", "Leave"]))],
    )
}

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::networking::v1::{IngressClass, IngressSpec};

use super::facts::Facts;
use crate::cached::Cached;
use objects::qualified_name::{is_name, is_subdomain};

const DEFAULT_CLASS_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

/// The name of a controller in `IngressClass.spec.controller`, and of its finalizer: a qualified name,
/// `<DNS subdomain>/<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerName(String);

/// The error for a text that is no controller name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidControllerName;

impl fmt::Display for InvalidControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "must be a qualified name such as example.com/ingress-controller: a DNS name, a slash, and at most 63 letters, digits, '-', '_' or '.'",
        )
    }
}

impl std::error::Error for InvalidControllerName {}

impl ControllerName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ControllerName {
    type Err = InvalidControllerName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (domain, name) = text.split_once('/').ok_or(InvalidControllerName)?;
        if is_subdomain(domain) && is_name(name) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidControllerName)
        }
    }
}

/// The owner of an ingress, by its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The class names our controller.
    Ours,
    /// The class names another controller.
    Foreign,
    /// No class names a controller: it does not exist, or several are the default.
    Unclaimed,
    /// The class could not be read.
    Unclear,
}

/// Returns the owner of an ingress with `spec`: the controller of the class it names or, if it names none,
/// of the default class. Several default classes count as none.
pub fn ownership(spec: &IngressSpec, facts: &impl Facts, controller: &ControllerName) -> Ownership {
    let class = match &spec.ingress_class_name {
        Some(name) => facts.class(name),
        None => default_class(facts),
    };
    match class.map(controller_of) {
        Cached::Present(Some(name)) if name == controller.as_str() => Ownership::Ours,
        Cached::Present(Some(_)) => Ownership::Foreign,
        Cached::Present(None) | Cached::Absent => Ownership::Unclaimed,
        Cached::Unread => Ownership::Unclear,
    }
}

fn controller_of(class: &IngressClass) -> Option<&str> {
    class.spec.as_ref()?.controller.as_deref()
}

fn default_class(facts: &impl Facts) -> Cached<&IngressClass> {
    let mut found = Cached::Absent;
    let mut defaults = 0;
    for class in facts.classes() {
        match class {
            Cached::Present(class) if is_default(class) => {
                found = Cached::Present(class);
                defaults += 1;
            }
            Cached::Present(_) | Cached::Absent => {}
            // It may be the default class, or a second one.
            Cached::Unread => return Cached::Unread,
        }
    }
    if defaults == 1 { found } else { Cached::Absent }
}

fn is_default(class: &IngressClass) -> bool {
    let annotations = class.metadata.annotations.as_ref();
    annotations.and_then(|a| a.get(DEFAULT_CLASS_ANNOTATION)) == Some(&"true".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Fixture, class, default_class};
    use super::*;

    fn ours() -> ControllerName {
        "karmada-rs.io/ingress-controller".parse().unwrap()
    }

    fn spec(class: Option<&str>) -> IngressSpec {
        IngressSpec {
            ingress_class_name: class.map(ToOwned::to_owned),
            ..IngressSpec::default()
        }
    }

    #[track_caller]
    fn assert_ownership(named: Option<&str>, classes: &[IngressClass], expected: Ownership) {
        for classes in [classes.to_vec(), classes.iter().rev().cloned().collect()] {
            let fixture = Fixture {
                classes,
                ..Fixture::default()
            };
            assert_eq!(ownership(&spec(named), &fixture, &ours()), expected);
        }
    }

    /// An ingress is ours when the class it names has our controller.
    #[test]
    fn named_class_decides_ownership() {
        let classes = [
            class("a", ours().as_str()),
            class("b", "example.com/other"),
            IngressClass::default(),
        ];
        assert_ownership(Some("a"), &classes, Ownership::Ours);
        assert_ownership(Some("b"), &classes, Ownership::Foreign);
        assert_ownership(Some("c"), &classes, Ownership::Unclaimed);
        assert_ownership(Some(""), &classes, Ownership::Unclaimed);
        assert_ownership(None, &classes, Ownership::Unclaimed);
    }

    /// An ingress without a class belongs to the one default class.
    #[test]
    fn default_class_decides_ownership() {
        let our_default = default_class("a", ours().as_str());
        let other_default = default_class("b", "example.com/other");
        let plain = class("c", ours().as_str());
        let just_ours = [our_default.clone(), plain.clone()];
        assert_ownership(None, &just_ours, Ownership::Ours);
        assert_ownership(None, &[other_default.clone(), plain], Ownership::Foreign);
        let two = [our_default.clone(), other_default];
        assert_ownership(None, &two, Ownership::Unclaimed);
        let two_of_ours = [our_default, default_class("d", ours().as_str())];
        assert_ownership(None, &two_of_ours, Ownership::Unclaimed);
    }

    /// The default class annotation is exactly true.
    #[test]
    fn default_annotation_is_exactly_true() {
        let mut not_true = default_class("a", ours().as_str());
        let annotations = not_true.metadata.annotations.as_mut().unwrap();
        annotations.insert(DEFAULT_CLASS_ANNOTATION.to_owned(), "True".to_owned());
        assert_ownership(None, &[not_true], Ownership::Unclaimed);
    }

    /// An unreadable class leaves ownership unclear.
    #[test]
    fn unreadable_class_is_unclear() {
        let fixture = Fixture {
            classes: vec![default_class("a", ours().as_str())],
            unread_classes: ["b".to_owned()].into(),
            ..Fixture::default()
        };
        assert_eq!(
            ownership(&spec(Some("b")), &fixture, &ours()),
            Ownership::Unclear
        );
        assert_eq!(
            ownership(&spec(None), &fixture, &ours()),
            Ownership::Unclear
        );
        assert_eq!(
            ownership(&spec(Some("a")), &fixture, &ours()),
            Ownership::Ours
        );
    }

    /// A controller name is a qualified name.
    #[test]
    fn controller_name_is_qualified() {
        let long = "a".repeat(63);
        for good in [
            "karmada-rs.io/ingress-controller",
            "a/b",
            "1.example/A_b.c-9",
            &format!("x/{long}"),
        ] {
            assert_eq!(good.parse::<ControllerName>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "/",
            "a",
            "a/",
            "/b",
            "a/b/c",
            "A/b",
            "a..b/c",
            "-a/b",
            "a/-b",
            "a/b-",
            "a b/c",
            "a/ü",
            &format!("x/{long}a"),
        ] {
            assert_eq!(
                bad.parse::<ControllerName>(),
                Err(InvalidControllerName),
                "{bad}"
            );
        }
    }
}

//! The holdings of the load balancer's own program: as it was listed, and as our writes have left it since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::provider::{HeldIngress, IngressReport, ProviderIngress};
use objects::Key;

#[derive(Debug, Default)]
pub(super) struct Holdings {
    by_ingress: BTreeMap<Key, Holding>,
    /// The ingresses that were written since the last list began, which it may show as they were.
    written: BTreeSet<Key>,
    pub(super) is_listed: bool,
}

/// An ingress that the program holds, or may hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Holding {
    /// Its document; `None` if it is not known.
    pub(super) document: Option<Arc<ProviderIngress>>,
    pub(super) report: IngressReport,
}

impl Holding {
    /// Returns `true` if its document has this revision.
    fn is_of(&self, revision: &str) -> bool {
        let document = self.document.as_ref();
        document.is_some_and(|document| document.revision == revision)
    }
}

impl Holdings {
    pub(super) fn get(&self, key: &Key) -> Option<&Holding> {
        self.by_ingress.get(key)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.by_ingress.keys().cloned().collect()
    }

    /// Takes in that a document was stored.
    pub(super) fn stored(&mut self, document: Arc<ProviderIngress>, report: IngressReport) {
        let key = document.key();
        let document = Some(document);
        self.set(&key, Some(Holding { document, report }));
    }

    /// Takes in that the program holds nothing of an ingress.
    pub(super) fn removed(&mut self, key: &Key) {
        self.set(key, None);
    }

    /// Takes in that the document of an ingress is not known, if the program holds one.
    pub(super) fn unknown(&mut self, key: &Key) {
        self.set(key, Some(Holding::default()));
    }

    fn set(&mut self, key: &Key, holding: Option<Holding>) {
        self.written.insert(key.clone());
        match holding {
            Some(holding) => self.by_ingress.insert(key.clone(), holding),
            None => self.by_ingress.remove(key),
        };
    }

    /// Notes that a list begins.
    pub(super) fn begin_list(&mut self) {
        self.written.clear();
    }

    /// Returns those of the listed ingresses with documents that must be read.
    pub(super) fn unread(&self, listed: &[HeldIngress]) -> Vec<Key> {
        let unread = listed.iter().filter_map(|held| {
            let key = Key::new(&held.namespace, &held.name);
            let known = self.by_ingress.get(&key);
            let is_known = known.is_some_and(|known| known.is_of(&held.revision));
            (!is_known).then_some(key)
        });
        unread.collect()
    }

    /// Takes in a list, and the documents that were read since it, and returns the ingresses that are held otherwise
    /// than was known.
    pub(super) fn list(
        &mut self,
        listed: Vec<HeldIngress>,
        mut read: BTreeMap<Key, Arc<ProviderIngress>>,
    ) -> Vec<Key> {
        self.is_listed = true;
        let mut found: BTreeMap<Key, Holding> = BTreeMap::new();
        for held in listed {
            let key = Key::new(held.namespace, held.name);
            let known = self.by_ingress.get(&key);
            let known = known.filter(|known| known.is_of(&held.revision));
            let known = known.and_then(|known| known.document.clone());
            let holding = Holding {
                document: known.or_else(|| read.remove(&key)),
                report: held.report,
            };
            found.insert(key, holding);
        }
        let keys: BTreeSet<Key> = found
            .keys()
            .chain(self.by_ingress.keys())
            .cloned()
            .collect();
        let mut changed = Vec::new();
        for key in keys.difference(&self.written.clone()) {
            let now = found.remove(key);
            if self.by_ingress.get(key) != now.as_ref() {
                match now {
                    Some(now) => self.by_ingress.insert(key.clone(), now),
                    None => self.by_ingress.remove(key),
                };
                changed.push(key.clone());
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, revision: &str) -> Arc<ProviderIngress> {
        Arc::new(ProviderIngress {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            revision: revision.to_owned(),
            ..ProviderIngress::default()
        })
    }

    fn held(name: &str, revision: &str) -> HeldIngress {
        HeldIngress {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            revision: revision.to_owned(),
            ..HeldIngress::default()
        }
    }

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    /// Returns each known name, with the revision of its document.
    fn known(holdings: &Holdings) -> String {
        let all = holdings.by_ingress.iter().map(|(key, holding)| {
            let document = holding.document.as_ref();
            let revision = document.map_or("?", |document| &document.revision);
            format!("{}={revision}", key.name)
        });
        all.collect::<Vec<_>>().join(" ")
    }

    /// A list shows which documents are new, changed or gone; a known one is not read again.
    #[test]
    fn list_shows_differences() {
        let mut holdings = Holdings::default();
        for name in ["a", "b", "c"] {
            holdings.stored(document(name, "1"), IngressReport::default());
        }
        holdings.begin_list();
        let listed = vec![held("a", "1"), held("b", "2"), held("d", "1")];
        assert_eq!(holdings.unread(&listed), [key("b"), key("d")]);
        let read = [(key("b"), document("b", "2"))].into();
        let changed = holdings.list(listed.clone(), read);
        assert_eq!(changed, [key("b"), key("c"), key("d")]);
        assert_eq!(known(&holdings), "a=1 b=2 d=?");
        // An unread document is tried again.
        holdings.begin_list();
        assert_eq!(holdings.unread(&listed), [key("d")]);
        let read = [(key("d"), document("d", "1"))].into();
        assert_eq!(holdings.list(listed, read), [key("d")]);
        assert_eq!(known(&holdings), "a=1 b=2 d=1");
    }

    /// A list that began before a write does not undo it.
    #[test]
    fn older_list_undoes_no_write() {
        let mut holdings = Holdings::default();
        holdings.stored(document("a", "1"), IngressReport::default());
        holdings.stored(document("b", "1"), IngressReport::default());
        holdings.begin_list();
        holdings.stored(document("a", "2"), IngressReport::default());
        holdings.removed(&key("b"));
        holdings.unknown(&key("c"));
        let listed = vec![held("a", "1"), held("b", "1")];
        assert_eq!(holdings.list(listed, BTreeMap::new()), []);
        assert_eq!(known(&holdings), "a=2 c=?");
    }

    /// A problem that the program reports later is a difference.
    #[test]
    fn reports_are_differences() {
        let mut holdings = Holdings::default();
        holdings.stored(document("a", "1"), IngressReport::default());
        holdings.begin_list();
        let mut listed = held("a", "1");
        listed.report.problem = Some("no quota".to_owned());
        let changed = holdings.list(vec![listed], BTreeMap::new());
        assert_eq!(changed, [key("a")]);
        assert!(holdings.get(&key("a")).unwrap().report.problem.is_some());
    }
}

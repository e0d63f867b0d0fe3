//! Takes away the objects of a unit that goes.

use karmada_runtime::write::WriteMode;
use objects::ownership::Removal;
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::ownership::Ownership;
use crate::requests::ObjectPath;
use crate::unit::{ManifestRef, Unit};

impl<O: Ownership> Applier<O> {
    /// Deletes or releases the objects of a unit that is being deleted.
    ///
    /// # Errors
    /// Fails at the first object that could not be given up.
    pub async fn remove(
        &self,
        writes: &WriteMode,
        unit: &Unit<'_, O::Source>,
    ) -> Result<(), MemberError> {
        for one in unit.refs() {
            match self.requests.path(&one).await {
                Ok(path) => self.remove_object(writes, &one, &path).await?,
                // What cannot exist was never applied.
                Err(MemberError::NotServed { .. } | MemberError::Manifest { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.forget(&unit.key);
        Ok(())
    }

    async fn remove_object(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
    ) -> Result<(), MemberError> {
        // The cache is behind at worst: then the uid is that of a former object.
        let cached = self.watches.get(&one.kind(), &one.key());
        let cached = cached.map(|object| object.value());
        if let Removal::Delete { uid } = self.removal(one, cached.as_ref()) {
            match self.requests.delete(writes, path, &uid).await {
                Ok(_) => return Ok(()),
                // It is gone, or another is in its place.
                Err(error) if error.is_missing() || error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        let object = self.requests.get(path).await?;
        let removed = match self.removal(one, object.as_ref()) {
            Removal::Nothing => return Ok(()),
            Removal::Delete { uid } => self.requests.delete(writes, path, &uid).await,
            Removal::Release { patch } => self.requests.release(writes, path, &patch).await,
        };
        match removed {
            Err(error) if !error.is_missing() => Err(error),
            _ => Ok(()),
        }
    }

    fn removal(&self, one: &ManifestRef<'_, O::Source>, object: Option<&Value>) -> Removal {
        object.map_or(Removal::Nothing, |object| {
            self.ownership.removal(one.unit, object)
        })
    }
}

//! The memory and the descriptors of the programs over time.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};

use crate::programs::{Binary, Running};

/// The resources that a program uses at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The time since the beginning.
    pub(super) at: Duration,
    /// Resident memory, in KiB.
    pub(super) memory: u64,
    /// Open descriptors.
    pub(super) descriptors: usize,
}

/// The resources that each program used, by its name.
#[derive(Debug, Default)]
pub(super) struct Vitals(BTreeMap<&'static str, Vec<Sample>>);

impl Vitals {
    /// Takes a sample of each program.
    pub(super) fn take(&mut self, at: Duration, programs: &[(Binary, Running)]) -> Result<()> {
        for (program, running) in programs {
            let sample = Sample {
                at,
                memory: running.memory()?,
                descriptors: running.descriptors()?,
            };
            self.0.entry(program.name()).or_default().push(sample);
        }
        Ok(())
    }

    /// Returns the samples of each program.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &[Sample])> {
        self.0
            .iter()
            .map(|(name, samples)| (*name, samples.as_slice()))
    }

    /// Returns a line of each program: its resources in the third quarter, and in the last.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.all().map(|(name, samples)| {
            let [third, last] = last_quarters(samples).map(most);
            format!(
                "{name}: {} KiB and {} descriptors in the third quarter, {} KiB and {} in the last",
                third.0, third.1, last.0, last.1
            )
        })
    }

    /// Checks that no program used more in the last quarter than in the third, but for a tenth and 2 MiB, and for eight
    /// descriptors: connections come and go.
    pub(super) fn are_level(&self) -> Result<()> {
        for (name, samples) in self.all() {
            let [third, last] = last_quarters(samples).map(most);
            ensure!(
                last.0 <= third.0 + third.0 / 10 + 2048,
                "the memory of {name} grows from {} to {} KiB",
                third.0,
                last.0
            );
            ensure!(
                last.1 <= third.1 + 8,
                "the descriptors of {name} grow from {} to {}",
                third.1,
                last.1
            );
        }
        Ok(())
    }
}

/// Returns the samples of the third quarter of the time, and those of the last.
fn last_quarters(samples: &[Sample]) -> [&[Sample]; 2] {
    let end = samples.last().map_or(Duration::ZERO, |sample| sample.at);
    let from = |quarters: u32| samples.partition_point(|sample| sample.at < end / 4 * quarters);
    [&samples[from(2)..from(3)], &samples[from(3)..]]
}

fn most(samples: &[Sample]) -> (u64, usize) {
    let memory = samples.iter().map(|sample| sample.memory).max();
    let descriptors = samples.iter().map(|sample| sample.descriptors).max();
    (memory.unwrap_or_default(), descriptors.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vitals(memory: [u64; 8]) -> Vitals {
        let samples = (1..).zip(memory).map(|(minute, memory)| Sample {
            at: Duration::from_mins(minute),
            memory,
            descriptors: 10,
        });
        Vitals(BTreeMap::from([("scheduler", samples.collect())]))
    }

    /// Memory may grow while caches fill, and not afterwards.
    #[test]
    fn growth_is_found() {
        let filled = [4_000, 8_000, 16_000, 20_000, 20_000, 21_000, 20_000, 22_000];
        vitals(filled).are_level().unwrap();
        let leaking = [4_000, 8_000, 12_000, 16_000, 20_000, 24_000, 28_000, 32_000];
        let error = vitals(leaking).are_level().unwrap_err().to_string();
        assert_eq!(
            error,
            "the memory of scheduler grows from 20000 to 32000 KiB"
        );
    }
}

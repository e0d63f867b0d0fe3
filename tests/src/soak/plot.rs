//! The plot of the resources that the programs used.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

use super::vitals::{Sample, Vitals};

/// In pixels.
const SIZE: (u32, u32) = (960, 640);

/// Draws the memory of each program, and below it the descriptors, into a file in SVG.
pub(super) fn draw(vitals: &Vitals, file: &Path) -> Result<()> {
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (memory, descriptors) = root.split_vertically(SIZE.1 / 2);
    let mebibytes =
        |sample: &Sample| f64::from(u32::try_from(sample.memory).unwrap_or(u32::MAX)) / 1024.0;
    lines(&memory, "Resident memory, MiB", vitals, mebibytes)?;
    let count = |sample: &Sample| f64::from(u32::try_from(sample.descriptors).unwrap_or(u32::MAX));
    lines(&descriptors, "Open descriptors", vitals, count)?;
    root.present()?;
    Ok(())
}

fn lines(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    vitals: &Vitals,
    value: impl Fn(&Sample) -> f64,
) -> Result<()> {
    let samples = || vitals.all().flat_map(|(_, samples)| samples);
    let minutes = |sample: &Sample| sample.at.as_secs_f64() / 60.0;
    let end = samples().map(minutes).fold(0.0, f64::max);
    let most = samples().map(&value).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..end, 0.0..most * 1.1)?;
    chart.configure_mesh().x_desc("minutes").draw()?;
    for (place, (name, samples)) in vitals.all().enumerate() {
        let colour = Palette99::pick(place).to_rgba();
        let points = samples
            .iter()
            .map(|sample| (minutes(sample), value(sample)));
        chart
            .draw_series(LineSeries::new(points, colour))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

//! The pictures of the sandbox's page in the documentation.

use std::{cmp::Reverse, collections::HashMap, fs, io::Cursor, path::Path};

use anyhow::{Context, Result, ensure};
use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Transformations};

use crate::{
    chromium::{Chromium, Tab, View, With},
    sandbox::Sandbox,
};

const VIEW: View = View {
    width: 1600,
    height: 1260,
    dark: false,
};

/// The most bytes of a picture: a page of the documentation loads quickly.
const LARGEST: usize = 200_000;

/// The part of a plot that must be filled before the first picture, in samples of at most a second.
const SAMPLES: usize = 200;

const PALETTE: usize = 256;

/// The squared distance over all channels below which two colours look the same.
const APART: u32 = 150;

type Colour = [u8; 3];

/// Plays an outage and writes `healthy.png`, `failing.png` and `recovered.png` into a folder; then holds a
/// new version back from two clusters, and writes `paused.png`; then describes a Remedy, and writes
/// `planned.png`; then breaks the placed workload, and writes `placements.png`.
pub async fn take(folder: &Path) -> Result<()> {
    let sandbox = Sandbox::start(&[]).await?;
    let chromium = Chromium::start().await?;
    let tab = chromium.open(&sandbox.page, VIEW).await?;
    let filled = format!("histories.get('member1')?.length > {SAMPLES}");
    tab.until("the plots are filled", &filled).await?;
    picture(&tab, &folder.join("healthy.png")).await?;
    tab.press("Cluster member1", "Refuse", With::Mouse).await?;
    tab.until("no request goes to member1", &timeline_has("traffic-gone"))
        .await?;
    longer(&tab).await?;
    picture(&tab, &folder.join("failing.png")).await?;
    tab.press("Cluster member1", "Mend", With::Mouse).await?;
    tab.until("requests go there again", &timeline_has("traffic-back"))
        .await?;
    longer(&tab).await?;
    picture(&tab, &folder.join("recovered.png")).await?;
    hold_version_back(&tab).await?;
    picture(&tab, &folder.join("paused.png")).await?;
    describe_window(&tab).await?;
    picture(&tab, &folder.join("planned.png")).await?;
    break_the_store(&tab).await?;
    picture(&tab, &folder.join("placements.png")).await?;
    chromium.stop().await?;
    sandbox.stop().await
}

/// Pauses two clusters, and gives the Deployment a new version, which runs in the third.
async fn hold_version_back(tab: &Tab) -> Result<()> {
    const PART: &str = "Rollout of web";
    for cluster in ["member2", "member3"] {
        let pause = format!("Pause the rollout to {cluster}");
        tab.press(PART, &pause, With::Mouse).await?;
        let is_paused =
            format!("state.rollout.clusters.find(({{ name }}) => name === {cluster:?}).paused");
        tab.until("it is paused", &is_paused).await?;
    }
    tab.press(PART, "New version", With::Mouse).await?;
    let runs = "state.rollout.clusters[0].runs === state.rollout.wanted";
    let held = "state.rollout.clusters.filter(waits).length === 2";
    tab.until("one runs it, and two wait", &format!("{runs} && {held}"))
        .await?;
    tab.until("the top is in sight", "(scrollTo(0, 0), scrollY === 0)")
        .await?;
    longer(tab).await
}

/// Describes a Remedy that takes the traffic of a cluster away for a while, and does not create it.
async fn describe_window(tab: &Tab) -> Result<()> {
    const PART: &str = "Remedies of the fleet";
    tab.press(PART, "New Remedy", With::Mouse).await?;
    tab.fill(PART, "Name", "maintenance-member1-upgrade")
        .await?;
    tab.tick(PART, "member1").await?;
    tab.press(PART, "In 1 h", With::Mouse).await?;
    let told = "byId('plan').innerText.includes('left: member2, member3')";
    tab.until("the plan is told", told).await?;
    let aimed = "(byId('rules').scrollIntoView({ block: 'end', behavior: 'instant' }), true)";
    tab.until("it is in sight", aimed).await
}

/// Places a version that never becomes available, and waits until it is stuck in the first wave.
async fn break_the_store(tab: &Tab) -> Result<()> {
    tab.press("Remedies of the fleet", "Cancel", With::Mouse)
        .await?;
    tab.press("Placements of the hub", "Break it", With::Mouse)
        .await?;
    tab.until("it is stuck", &timeline_has("placement-stuck"))
        .await?;
    longer(tab).await?;
    let aimed = "(byId('placed').scrollIntoView({ block: 'end', behavior: 'instant' }), true)";
    tab.until("it is in sight", aimed).await
}

fn timeline_has(stage: &str) -> String {
    format!("[...events.values()].some(({{ stage }}) => stage === {stage:?})")
}

/// Waits until the plots show the change.
async fn longer(tab: &Tab) -> Result<()> {
    let now: u64 = tab.value("state.now_ms").await?;
    let later = format!("state.now_ms > {}", now + 12_000);
    tab.until("the plots show it", &later).await
}

async fn picture(tab: &Tab, file: &Path) -> Result<()> {
    let png = with_palette(&tab.screenshot().await?)?;
    let size = png.len();
    ensure!(size <= LARGEST, "{} has {size} bytes", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, png).with_context(|| format!("cannot write {}", file.display()))
}

/// Reduces a picture to its most common distinct colours, and others to the nearest of these: a third
/// of the size.
fn with_palette(png: &[u8]) -> Result<Vec<u8>> {
    let (pixels, width, height) = decoded(png)?;
    let mut counts = HashMap::<Colour, usize>::new();
    for pixel in &pixels {
        *counts.entry(*pixel).or_default() += 1;
    }
    let mut colours: Vec<_> = counts.iter().collect();
    colours.sort_unstable_by_key(|(colour, count)| (Reverse(**count), **colour));
    let colours: Vec<Colour> = colours.into_iter().map(|(colour, _)| *colour).collect();
    let mut palette = Vec::<Colour>::new();
    for colour in &colours {
        let differs = palette
            .iter()
            .all(|other| distance(*colour, *other) > APART);
        if differs && palette.len() < PALETTE {
            palette.push(*colour);
        }
    }
    let indices: HashMap<Colour, u8> = colours
        .iter()
        .map(|colour| (*colour, nearest(&palette, *colour)))
        .collect();
    let pixels: Vec<u8> = pixels.iter().map(|pixel| indices[pixel]).collect();

    let mut made = Vec::new();
    let mut encoder = Encoder::new(&mut made, width, height);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(palette.concat());
    encoder.set_compression(Compression::High);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(made)
}

fn nearest(palette: &[Colour], colour: Colour) -> u8 {
    let indexed = (0..=u8::MAX).zip(palette);
    let nearest = indexed.min_by_key(|(_, other)| distance(colour, **other));
    nearest.map_or(0, |(index, _)| index)
}

fn distance(one: Colour, other: Colour) -> u32 {
    let channels = one.into_iter().zip(other);
    channels
        .map(|(one, other)| u32::from(one.abs_diff(other)).pow(2))
        .sum()
}

/// Decodes a PNG file into its pixels row by row, its width and its height.
fn decoded(png: &[u8]) -> Result<(Vec<Colour>, u32, u32)> {
    let mut decoder = Decoder::new(Cursor::new(png));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().context("it is too large")?];
    let info = reader.next_frame(&mut bytes)?;
    bytes.truncate(info.buffer_size());
    let samples = info.color_type.samples();
    ensure!(samples >= 3, "a picture in {:?}", info.color_type);
    let pixels = bytes
        .chunks_exact(samples)
        .map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect();
    Ok((pixels, info.width, info.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colours stay, but those that look like a more common one.
    #[test]
    fn similar_colours_become_one() {
        let (white, blue, amber) = ([255, 255, 255], [29, 91, 184], [138, 90, 0]);
        let nearly_white = [250, 255, 255];
        let pixels = [white, white, blue, nearly_white, blue, amber];
        let mut png = Vec::new();
        let mut encoder = Encoder::new(&mut png, 3, 2);
        encoder.set_color(ColorType::Rgb);
        let written = encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(pixels.as_flattened()));
        written.unwrap();
        let (found, width, height) = decoded(&with_palette(&png).unwrap()).unwrap();
        assert_eq!((width, height), (3, 2));
        assert_eq!(found, [white, white, blue, white, blue, amber]);
    }
}

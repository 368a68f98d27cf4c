//! A picture to draw on: rectangles with smooth edges, and text.

use std::path::Path;

use rlx::io::image::{Channels, Image, ImageError, Pixels, write_png};

use crate::typeface;

/// Red, green, blue.
pub(crate) type Color = [u8; 3];

/// A rectangle, in pixels from the top left corner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rectangle {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rectangle {
    /// Smaller by `inset` on each side, or larger if that is negative.
    pub(crate) fn inset(self, inset: f64) -> Self {
        Self {
            left: self.left + inset,
            top: self.top + inset,
            width: self.width - 2.0 * inset,
            height: self.height - 2.0 * inset,
        }
    }

    /// Distance from a point to the edge of the rectangle with rounded corners; negative inside.
    fn distance(&self, x: f64, y: f64, radius: f64) -> f64 {
        let (half_width, half_height) = (self.width / 2.0, self.height / 2.0);
        let radius = radius.min(half_width).min(half_height);
        let across = (x - self.left - half_width).abs() - half_width + radius;
        let down = (y - self.top - half_height).abs() - half_height + radius;
        across.max(0.0).hypot(down.max(0.0)) + across.max(down).min(0.0) - radius
    }
}

/// The picture. What lies outside it is not drawn.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// A picture of one colour.
    pub(crate) fn new(width: usize, height: usize, color: Color) -> Self {
        Self { width, height, pixels: color.repeat(width * height) }
    }

    /// Fills a rectangle, with corners of the given radius. `opacity` is 0..=1.
    pub(crate) fn fill(&mut self, area: Rectangle, radius: f64, color: Color, opacity: f64) {
        self.paint(area, color, |x, y| opacity * (0.5 - area.distance(x, y, radius)).clamp(0.0, 1.0));
    }

    /// Draws the edge of a rectangle, `thickness` wide and inside it.
    pub(crate) fn outline(&mut self, area: Rectangle, radius: f64, color: Color, thickness: f64) {
        self.paint(area, color, |x, y| {
            let distance = area.distance(x, y, radius);
            (0.5 - distance).clamp(0.0, 1.0) * (0.5 + distance + thickness).clamp(0.0, 1.0)
        });
    }

    /// Writes text with its top left corner at a point; a pixel of the typeface becomes `scale` × `scale` pixels.
    pub(crate) fn text(&mut self, left: f64, top: f64, scale: usize, color: Color, text: &str) {
        let scale = scale as f64;
        for (position, letter) in text.chars().enumerate() {
            for (row, bits) in typeface::rows(letter).into_iter().enumerate() {
                for column in
                    (0..typeface::WIDTH).filter(|column| bits >> (typeface::WIDTH - 1 - column) & 1 == 1)
                {
                    let across = (position * typeface::ADVANCE + column) as f64 * scale;
                    let pixel = Rectangle {
                        left: left.round() + across,
                        top: top.round() + row as f64 * scale,
                        width: scale,
                        height: scale,
                    };
                    self.fill(pixel, 0.0, color, 1.0);
                }
            }
        }
    }

    /// Mixes a colour into the pixels of an area; `coverage` says how much of it at the middle of a pixel.
    fn paint(&mut self, area: Rectangle, color: Color, coverage: impl Fn(f64, f64) -> f64) {
        let clip = |low: f64, length: f64, limit: usize| {
            let first = (low.floor().max(0.0) as usize).min(limit);
            first..((low + length).ceil().max(0.0) as usize).clamp(first, limit)
        };
        let columns = clip(area.left, area.width, self.width);
        for y in clip(area.top, area.height, self.height) {
            for x in columns.clone() {
                let part = coverage(x as f64 + 0.5, y as f64 + 0.5);
                let first = (y * self.width + x) * 3;
                for (pixel, &wanted) in self.pixels[first..first + 3].iter_mut().zip(&color) {
                    *pixel = (f64::from(*pixel) * (1.0 - part) + f64::from(wanted) * part).round() as u8;
                }
            }
        }
    }

    /// Writes the picture as a PNG file.
    pub(crate) fn save(self, path: &Path) -> Result<(), ImageError> {
        let image =
            Image::new(self.height as u32, self.width as u32, Channels::Rgb, Pixels::U8(self.pixels))?;
        write_png(path, &image)
    }
}

/// Width of a text in pixels, without the gap after its last letter.
pub(crate) fn text_width(text: &str, scale: usize) -> f64 {
    ((text.chars().count() * typeface::ADVANCE).saturating_sub(1) * scale) as f64
}

/// Height of a text in pixels.
pub(crate) fn text_height(scale: usize) -> f64 {
    (typeface::HEIGHT * scale) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Color = [255; 3];

    fn grey(canvas: &Canvas, x: usize, y: usize) -> u8 {
        canvas.pixels[(y * canvas.width + x) * 3]
    }

    #[test]
    fn a_rectangle_covers_its_pixels_and_parts_of_pixels() {
        let mut canvas = Canvas::new(8, 8, [0; 3]);
        canvas.fill(Rectangle { left: 2.0, top: 2.0, width: 3.5, height: 2.0 }, 0.0, WHITE, 1.0);
        let row: Vec<u8> = (0..8).map(|x| grey(&canvas, x, 2)).collect();
        assert_eq!(row, [0, 0, 255, 255, 255, 128, 0, 0]);
        assert_eq!((grey(&canvas, 2, 1), grey(&canvas, 2, 4)), (0, 0));
    }

    #[test]
    fn an_outline_leaves_the_inside_as_it_was() {
        let mut canvas = Canvas::new(8, 8, [0; 3]);
        canvas.outline(Rectangle { left: 1.0, top: 1.0, width: 6.0, height: 6.0 }, 0.0, WHITE, 1.0);
        assert_eq!((grey(&canvas, 1, 4), grey(&canvas, 3, 3), grey(&canvas, 0, 0)), (255, 0, 0));
    }

    #[test]
    fn what_lies_outside_the_picture_is_left_out() {
        let mut canvas = Canvas::new(4, 4, [0; 3]);
        canvas.fill(Rectangle { left: -10.0, top: 3.0, width: 100.0, height: 100.0 }, 0.0, WHITE, 1.0);
        canvas.fill(Rectangle { left: 50.0, top: -9.0, width: 1.0, height: 1.0 }, 0.0, WHITE, 1.0);
        assert_eq!((grey(&canvas, 3, 3), grey(&canvas, 3, 2)), (255, 0));
    }

    #[test]
    fn text_is_as_wide_as_announced() {
        let mut canvas = Canvas::new(40, 20, [0; 3]);
        canvas.text(1.0, 1.0, 2, WHITE, "H-");
        let inked = |x: usize| (0..20).any(|y| grey(&canvas, x, y) > 0);
        let last = (0..40).filter(|&x| inked(x)).max();
        assert_eq!(last, Some(text_width("H-", 2) as usize));
        assert!(inked(1) && !inked(0));
    }
}

//! PNG files in and out, as arrays of height × width × channels.
//!
//! Palettes and depths below 8 bits are expanded when read; 16-bit samples stay 16-bit. A picture is refused before
//! anything is allocated for it if it is larger than the limit, or larger than its file could hold.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};

/// A picture in memory: samples in the order height, width, channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    height: u32,
    width: u32,
    channels: Channels,
    pixels: Pixels,
}

/// What the channels of a picture are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// One: grey.
    Grey,
    /// Two: grey, opacity.
    GreyAlpha,
    /// Three: red, green, blue.
    Rgb,
    /// Four: red, green, blue, opacity.
    Rgba,
}

/// The samples of a picture, as deep as the file stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pixels {
    /// 8 bits, 0..=255.
    U8(Vec<u8>),
    /// 16 bits, 0..=65535.
    U16(Vec<u16>),
}

/// Why a picture could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be understood; the source says why.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        source: Box<ImageError>,
    },
    /// The stream could not be read or written.
    #[error("{0}")]
    Stream(#[from] io::Error),
    /// The bytes are not a PNG file, or break its rules.
    #[error("not a valid PNG file: {0}")]
    Malformed(String),
    /// The picture is larger than the reader's limit.
    #[error("a picture of {width} x {height} takes {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes of its samples.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The file is too short to hold the picture that its header announces, however well it is compressed.
    #[error("a picture of {width} x {height} cannot be held by a file of {file_bytes} bytes")]
    Truncated {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Length of the file.
        file_bytes: u64,
    },
    /// The number of samples is not height × width × channels, or a side is zero.
    #[error("a picture of {width} x {height} with {channels} channels cannot have {samples} samples")]
    Size {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Number of channels.
        channels: usize,
        /// Samples given.
        samples: usize,
    },
}

/// The limit of [`read_png`]: 512 MiB of samples, a picture of about 13,000 × 13,000 in colour.
pub const DEFAULT_BYTE_LIMIT: u64 = 512 << 20;

/// Deflate turns at most 258 bytes into 2 bits, about 1032 : 1 (zlib technical details, "maximum compression factor").
const DEFLATE_LARGEST_RATIO: u64 = 1032;

impl Channels {
    /// How many they are.
    pub fn count(self) -> usize {
        match self {
            Channels::Grey => 1,
            Channels::GreyAlpha => 2,
            Channels::Rgb => 3,
            Channels::Rgba => 4,
        }
    }
}

impl Pixels {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            Pixels::U8(samples) => samples.len(),
            Pixels::U16(samples) => samples.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Image {
    /// A picture from samples in the order height, width, channels.
    ///
    /// # Errors
    /// [`ImageError::Size`] if the number of samples does not fit, or a side is zero (PNG has no empty pictures).
    ///
    /// ```
    /// use rlx::io::image::{Channels, Image, Pixels};
    /// let red_and_blue = Image::new(1, 2, Channels::Rgb, Pixels::U8(vec![255, 0, 0, 0, 0, 255]))?;
    /// assert_eq!(red_and_blue.shape(), [1, 2, 3]);
    /// assert_eq!(red_and_blue.to_f32(), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), rlx::io::image::ImageError>(())
    /// ```
    pub fn new(height: u32, width: u32, channels: Channels, pixels: Pixels) -> Result<Self, ImageError> {
        let expected = u128::from(height) * u128::from(width) * channels.count() as u128;
        if expected == 0 || expected != pixels.len() as u128 {
            let (channels, samples) = (channels.count(), pixels.len());
            return Err(ImageError::Size { width, height, channels, samples });
        }
        Ok(Self { height, width, channels, pixels })
    }

    /// `[height, width, channels]`.
    pub fn shape(&self) -> [usize; 3] {
        [self.height as usize, self.width as usize, self.channels.count()]
    }

    /// What its channels are.
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// The samples as stored.
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// The samples as 8-bit numbers; 16-bit ones are rounded to the nearest: `round(v · 255 / 65535)`.
    pub fn into_u8(self) -> Vec<u8> {
        match self.pixels {
            Pixels::U8(samples) => samples,
            Pixels::U16(samples) => samples
                .into_iter()
                .map(|sample| ((u32::from(sample) * 255 + 32_767) / 65_535) as u8)
                .collect(),
        }
    }

    /// The samples as numbers in 0..=1: `v / 255` or `v / 65535`.
    pub fn to_f32(&self) -> Vec<f32> {
        match &self.pixels {
            Pixels::U8(samples) => samples.iter().map(|&sample| f32::from(sample) / 255.0).collect(),
            Pixels::U16(samples) => samples.iter().map(|&sample| f32::from(sample) / 65_535.0).collect(),
        }
    }
}

/// Reads a PNG file of at most [`DEFAULT_BYTE_LIMIT`] bytes of samples.
///
/// # Errors
/// [`ImageError::File`] if it cannot be read, else [`ImageError::InFile`] with what [`decode_png`] says.
pub fn read_png(path: impl AsRef<Path>) -> Result<Image, ImageError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| ImageError::File { path: path.to_owned(), source })?;
    decode_png(&bytes, DEFAULT_BYTE_LIMIT)
        .map_err(|source| ImageError::InFile { path: path.to_owned(), source: Box::new(source) })
}

/// Reads a PNG file that is in memory; of an animation, the first frame. Neither the samples nor anything else that
/// the decoder keeps takes more than `byte_limit` bytes.
///
/// # Errors
/// [`ImageError::Malformed`], [`ImageError::TooLarge`] or [`ImageError::Truncated`].
pub fn decode_png(bytes: &[u8], byte_limit: u64) -> Result<Image, ImageError> {
    let limits = png::Limits { bytes: usize::try_from(byte_limit).unwrap_or(usize::MAX) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(decoding_error)?;
    let (width, height) = (header.width, header.height);

    let bits_per_pixel = u128::from(header.bit_depth as u8) * header.color_type.samples() as u128;
    let packed_bytes = u128::from(width) * u128::from(height) * bits_per_pixel / 8;
    if packed_bytes > bytes.len() as u128 * u128::from(DEFLATE_LARGEST_RATIO) {
        return Err(ImageError::Truncated { width, height, file_bytes: bytes.len() as u64 });
    }
    let mut reader = decoder.read_info().map_err(decoding_error)?;
    // The decoder expands colours in threes and panics on a rest.
    if reader.info().palette.as_ref().is_some_and(|palette| !palette.len().is_multiple_of(3)) {
        return Err(ImageError::Malformed("its palette is no whole number of colours".to_owned()));
    }
    let (channels, depth) = sample_layout(&reader)?;
    let sample_bytes = if depth == png::BitDepth::Sixteen { 2 } else { 1 };
    let total = u128::from(width) * u128::from(height) * channels.count() as u128 * sample_bytes;
    if total > u128::from(byte_limit) {
        let bytes = u64::try_from(total).unwrap_or(u64::MAX);
        return Err(ImageError::TooLarge { width, height, bytes, limit: byte_limit });
    }
    let mut samples = vec![0; total as usize];
    reader.next_frame(&mut samples).map_err(decoding_error)?;
    let pixels = if depth == png::BitDepth::Sixteen {
        Pixels::U16(samples.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect())
    } else {
        Pixels::U8(samples)
    };
    Image::new(height, width, channels, pixels)
}

/// Channels and depth of the samples that the decoder will give.
fn sample_layout<R: BufRead + io::Seek>(
    reader: &png::Reader<R>,
) -> Result<(Channels, png::BitDepth), ImageError> {
    let (color, depth) = reader.output_color_type();
    let channels = match color {
        png::ColorType::Grayscale => Channels::Grey,
        png::ColorType::GrayscaleAlpha => Channels::GreyAlpha,
        png::ColorType::Rgb => Channels::Rgb,
        png::ColorType::Rgba => Channels::Rgba,
        png::ColorType::Indexed => return Err(ImageError::Malformed("its palette is missing".to_owned())),
    };
    Ok((channels, depth))
}

fn decoding_error(error: png::DecodingError) -> ImageError {
    match error {
        png::DecodingError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ImageError::Malformed("it ends too early".to_owned())
        }
        png::DecodingError::IoError(error) => ImageError::Stream(error),
        other => ImageError::Malformed(other.to_string()),
    }
}

/// Writes a PNG file.
///
/// # Errors
/// [`ImageError::File`] if it cannot be created, else [`ImageError::InFile`] with what [`encode_png`] says.
pub fn write_png(path: impl AsRef<Path>, image: &Image) -> Result<(), ImageError> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|source| ImageError::File { path: path.to_owned(), source })?;
    encode_png(BufWriter::new(file), image)
        .map_err(|source| ImageError::InFile { path: path.to_owned(), source: Box::new(source) })
}

/// Writes a PNG file to a stream.
///
/// # Errors
/// [`ImageError::Stream`] if writing fails.
pub fn encode_png(mut stream: impl Write, image: &Image) -> Result<(), ImageError> {
    let mut encoder = png::Encoder::new(&mut stream, image.width, image.height);
    encoder.set_color(match image.channels {
        Channels::Grey => png::ColorType::Grayscale,
        Channels::GreyAlpha => png::ColorType::GrayscaleAlpha,
        Channels::Rgb => png::ColorType::Rgb,
        Channels::Rgba => png::ColorType::Rgba,
    });
    let big_endian: Vec<u8>;
    let samples = match &image.pixels {
        Pixels::U8(samples) => {
            encoder.set_depth(png::BitDepth::Eight);
            samples
        }
        Pixels::U16(samples) => {
            encoder.set_depth(png::BitDepth::Sixteen);
            big_endian = samples.iter().flat_map(|sample| sample.to_be_bytes()).collect();
            &big_endian
        }
    };
    let mut writer = encoder.write_header().map_err(encoding_error)?;
    writer.write_image_data(samples).map_err(encoding_error)?;
    writer.finish().map_err(encoding_error)?;
    Ok(stream.flush()?)
}

fn encoding_error(error: png::EncodingError) -> ImageError {
    match error {
        png::EncodingError::IoError(error) => ImageError::Stream(error),
        other => ImageError::Stream(io::Error::other(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_png(&mut bytes, image).unwrap();
        bytes
    }

    fn ramp(height: u32, width: u32, channels: Channels) -> Image {
        let length = height as usize * width as usize * channels.count();
        Image::new(height, width, channels, Pixels::U8((0..length).map(|n| (n * 37 % 256) as u8).collect()))
            .unwrap()
    }

    /// A 2 × 1 picture with a palette of two colours, one bit a pixel.
    fn palette_picture() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 2, 1);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::One);
        encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&[0b0100_0000]).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn a_picture_comes_back_as_it_was_written() {
        for channels in [Channels::Grey, Channels::GreyAlpha, Channels::Rgb, Channels::Rgba] {
            let image = ramp(3, 5, channels);
            let found = decode_png(&encoded(&image), DEFAULT_BYTE_LIMIT).unwrap();
            assert_eq!(found, image);
            assert_eq!(found.shape(), [3, 5, channels.count()]);
        }
    }

    #[test]
    fn sixteen_bit_samples_keep_their_depth() {
        let image = Image::new(1, 3, Channels::Grey, Pixels::U16(vec![0, 32_768, 65_535])).unwrap();
        let found = decode_png(&encoded(&image), DEFAULT_BYTE_LIMIT).unwrap();
        assert_eq!(found, image);
        assert_eq!(found.to_f32(), [0.0, 32_768.0 / 65_535.0, 1.0]);
        assert_eq!(found.into_u8(), [0, 128, 255]);
    }

    #[test]
    fn palettes_are_expanded_to_colours() {
        let image = decode_png(&palette_picture(), DEFAULT_BYTE_LIMIT).unwrap();
        assert_eq!(image.channels(), Channels::Rgb);
        assert_eq!(image.into_u8(), [10, 20, 30, 40, 50, 60]);
    }

    #[test]
    fn a_palette_that_ends_within_a_colour_is_refused() {
        let mut picture = palette_picture();
        let at = picture.windows(4).position(|w| w == b"PLTE").unwrap();
        let length = u32::from_be_bytes(picture[at - 4..at].try_into().unwrap());
        picture[at - 4..at].copy_from_slice(&(length - 2).to_be_bytes());
        let end = at + 4 + length as usize;
        picture.drain(end - 2..end);
        let crc = crc32(&picture[at..end - 2]);
        picture[end - 2..end + 2].copy_from_slice(&crc.to_be_bytes());
        assert!(matches!(decode_png(&picture, DEFAULT_BYTE_LIMIT), Err(ImageError::Malformed(_))));
    }

    #[test]
    fn a_picture_over_the_limit_is_refused() {
        let bytes = encoded(&ramp(100, 100, Channels::Rgb));
        assert!(matches!(
            decode_png(&bytes, 29_999),
            Err(ImageError::TooLarge { width: 100, height: 100, bytes: 30_000, limit: 29_999 })
        ));
        assert!(decode_png(&bytes, 30_000).is_ok());
    }

    #[test]
    fn a_header_larger_than_its_file_could_hold_is_refused_before_allocating() {
        let mut header = encoded(&ramp(1, 1, Channels::Rgb));
        header[16..20].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
        header[20..24].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
        let checksum = crc32(&header[12..29]);
        header[29..33].copy_from_slice(&checksum.to_be_bytes());
        let refused = decode_png(&header, u64::MAX);
        assert!(matches!(refused, Err(ImageError::Truncated { width: 0x7fff_ffff, .. })), "{refused:?}");
    }

    fn crc32(bytes: &[u8]) -> u32 {
        let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        !bytes.iter().fold(!0_u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
    }

    #[test]
    fn every_cut_and_no_changed_byte_ends_in_a_typed_error() {
        let whole = encoded(&ramp(4, 4, Channels::Rgb));
        let data_end = whole.len() - 12;
        for position in 0..whole.len() {
            if position < data_end {
                let cut = decode_png(&whole[..position], DEFAULT_BYTE_LIMIT);
                assert!(
                    matches!(cut, Err(ImageError::Malformed(_) | ImageError::Truncated { .. })),
                    "{cut:?}"
                );
            }
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[position] = value;
                let _ = decode_png(&changed, DEFAULT_BYTE_LIMIT);
            }
        }
    }

    #[test]
    fn samples_that_do_not_fill_the_picture_are_refused() {
        let refused = Image::new(2, 2, Channels::Rgb, Pixels::U8(vec![0; 11]));
        assert!(matches!(refused, Err(ImageError::Size { width: 2, height: 2, channels: 3, samples: 11 })));
        assert!(matches!(
            Image::new(0, 2, Channels::Grey, Pixels::U8(vec![])),
            Err(ImageError::Size { height: 0, .. })
        ));
    }
}

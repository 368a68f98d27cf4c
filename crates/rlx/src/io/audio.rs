//! WAV files in and out, and conversion between sample rates.
//!
//! Samples are `f32` with full scale at ±1, interleaved by channel. Reading allocates in step with the samples that the
//! file really holds, whatever its header claims.

mod resample;

pub use resample::{MAX_RATE_RATIO, resample};

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Sound in memory: `f32` samples, interleaved by channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Audio {
    sample_rate: u32,
    channels: u16,
    samples: Vec<f32>,
}

/// How [`write_wav`] stores a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WavFormat {
    /// 16-bit integers: what every player reads. Samples are clamped to ±1 and rounded to the nearest step.
    Int16,
    /// 32-bit floats: the samples as they are.
    Float32,
}

/// Why sound could not be read, written or converted.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
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
        source: Box<AudioError>,
    },
    /// The stream could not be read or written.
    #[error("{0}")]
    Stream(#[from] io::Error),
    /// The bytes are not a WAV file, or break its rules.
    #[error("not a valid WAV file: {0}")]
    Malformed(&'static str),
    /// A WAV file in an encoding that is not read (ADPCM, µ-law, 64-bit floats …).
    #[error(
        "this WAV encoding is not supported: expected integers of 8, 16, 24 or 32 bits, or 32-bit floats"
    )]
    UnsupportedEncoding,
    /// The file ends before the samples that its header announces.
    #[error("the WAV file is cut short: its header announces {expected} samples, it holds {found}")]
    Truncated {
        /// Samples (over all channels) announced by the header.
        expected: u64,
        /// Samples read before the end.
        found: u64,
    },
    /// The samples do not divide into frames of this many channels.
    #[error("{samples} samples do not divide into {channels} channels")]
    Channels {
        /// Number of samples given.
        samples: usize,
        /// Number of channels asked for.
        channels: u16,
    },
    /// The sound has no frames per second.
    #[error("the sample rate is zero")]
    ZeroRate,
    /// The sound is longer than the 4 GiB that a WAV file can hold.
    #[error("{bytes} bytes of sound do not fit into a WAV file, which ends at 4 GiB")]
    TooLong {
        /// Bytes that the samples would take.
        bytes: u64,
    },
    /// A sample rate of zero, or a pair of rates [`MAX_RATE_RATIO`] times apart or more.
    #[error(
        "cannot convert from {from} Hz to {to} Hz: rates are positive and less than {MAX_RATE_RATIO} times apart"
    )]
    Rate {
        /// Rate of the samples.
        from: u32,
        /// Rate asked for.
        to: u32,
    },
}

impl Audio {
    /// Sound from interleaved samples.
    ///
    /// # Errors
    /// [`AudioError::Channels`] if the samples do not divide into frames, [`AudioError::ZeroRate`] if the rate is zero.
    pub fn new(sample_rate: u32, channels: u16, samples: Vec<f32>) -> Result<Self, AudioError> {
        if sample_rate == 0 {
            return Err(AudioError::ZeroRate);
        }
        if channels == 0 || !samples.len().is_multiple_of(usize::from(channels)) {
            return Err(AudioError::Channels { samples: samples.len(), channels });
        }
        Ok(Self { sample_rate, channels, samples })
    }

    /// Frames per second.
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Samples per frame.
    pub fn channels(&self) -> u16 {
        self.channels
    }

    /// Number of frames: samples per channel.
    pub fn frames(&self) -> usize {
        self.samples.len() / usize::from(self.channels)
    }

    /// The interleaved samples, `[frames, channels]` in row-major order.
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }

    /// The interleaved samples, without a copy.
    pub fn into_samples(self) -> Vec<f32> {
        self.samples
    }

    /// One channel: the mean of all channels, frame by frame.
    pub fn into_mono(self) -> Self {
        if self.channels == 1 {
            return self;
        }
        let channels = usize::from(self.channels);
        let mean = |frame: &[f32]| {
            (frame.iter().map(|&sample| f64::from(sample)).sum::<f64>() / channels as f64) as f32
        };
        let samples = self.samples.chunks_exact(channels).map(mean).collect();
        Self { sample_rate: self.sample_rate, channels: 1, samples }
    }

    /// The same sound at another sample rate: [`resample`] of each channel.
    ///
    /// # Errors
    /// [`AudioError::Rate`] as for [`resample`].
    pub fn resampled(self, sample_rate: u32) -> Result<Self, AudioError> {
        if sample_rate == self.sample_rate {
            return Ok(self);
        }
        let channels = usize::from(self.channels);
        let mut converted = Vec::with_capacity(channels);
        for channel in 0..channels {
            let one: Vec<f32> = self.samples.iter().skip(channel).step_by(channels).copied().collect();
            converted.push(resample(&one, self.sample_rate, sample_rate)?);
        }
        let frames = converted.first().map_or(0, Vec::len);
        let samples = (0..frames).flat_map(|frame| converted.iter().map(move |one| one[frame])).collect();
        Ok(Self { sample_rate, channels: self.channels, samples })
    }
}

/// Reads a WAV file: integers of 8, 16, 24 or 32 bits or 32-bit floats, any number of channels.
///
/// # Errors
/// [`AudioError::File`] if it cannot be opened, else [`AudioError::InFile`] with what [`decode_wav`] says.
pub fn read_wav(path: impl AsRef<Path>) -> Result<Audio, AudioError> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|source| AudioError::File { path: path.to_owned(), source })?;
    decode_wav(BufReader::new(file))
        .map_err(|source| AudioError::InFile { path: path.to_owned(), source: Box::new(source) })
}

/// Reads a WAV file from a stream. An integer sample of `b` bits is divided by `2^(b-1)`, so that full scale is ±1.
///
/// # Errors
/// [`AudioError::Malformed`], [`AudioError::UnsupportedEncoding`], [`AudioError::Truncated`], [`AudioError::ZeroRate`]
/// or [`AudioError::Stream`].
pub fn decode_wav(stream: impl Read) -> Result<Audio, AudioError> {
    let mut reader = hound::WavReader::new(stream).map_err(header_error)?;
    let spec = reader.spec();
    let expected = u64::from(reader.len());
    let samples = match spec.sample_format {
        hound::SampleFormat::Float => collect_samples(reader.samples::<f32>(), expected)?,
        hound::SampleFormat::Int if (8..=32).contains(&spec.bits_per_sample) => {
            let scale = 1.0 / (1_u64 << (spec.bits_per_sample - 1)) as f64;
            let scaled = reader
                .samples::<i32>()
                .map(|sample| sample.map(|integer| (f64::from(integer) * scale) as f32));
            collect_samples(scaled, expected)?
        }
        hound::SampleFormat::Int => return Err(AudioError::UnsupportedEncoding),
    };
    Audio::new(spec.sample_rate, spec.channels, samples)
}

/// Collects samples without trusting the announced number: the vector starts small and grows with what is there.
fn collect_samples(
    stream: impl Iterator<Item = Result<f32, hound::Error>>,
    expected: u64,
) -> Result<Vec<f32>, AudioError> {
    const FIRST_ALLOCATION: u64 = 1 << 16;
    let mut samples = Vec::with_capacity(expected.min(FIRST_ALLOCATION) as usize);
    for sample in stream {
        match sample {
            Ok(sample) => samples.push(sample),
            // The reader wraps the end of the stream in an error of its own kind, so the count is what tells.
            Err(hound::Error::IoError(error))
                if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::Other) =>
            {
                return Err(AudioError::Truncated { expected, found: samples.len() as u64 });
            }
            Err(error) => return Err(header_error(error)),
        }
    }
    Ok(samples)
}

fn header_error(error: hound::Error) -> AudioError {
    match error {
        hound::Error::IoError(error)
            if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::Other) =>
        {
            AudioError::Malformed("it ends inside its header")
        }
        hound::Error::IoError(error) => AudioError::Stream(error),
        hound::Error::FormatError(reason) => AudioError::Malformed(reason),
        hound::Error::UnfinishedSample => AudioError::Malformed("its last frame lacks samples"),
        hound::Error::TooWide | hound::Error::Unsupported | hound::Error::InvalidSampleFormat => {
            AudioError::UnsupportedEncoding
        }
    }
}

/// Writes a WAV file.
///
/// # Errors
/// [`AudioError::File`] if it cannot be created, else [`AudioError::InFile`] with what [`encode_wav`] says.
pub fn write_wav(path: impl AsRef<Path>, audio: &Audio, format: WavFormat) -> Result<(), AudioError> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|source| AudioError::File { path: path.to_owned(), source })?;
    encode_wav(io::BufWriter::new(file), audio, format)
        .map_err(|source| AudioError::InFile { path: path.to_owned(), source: Box::new(source) })
}

/// The most sample bytes in a WAV file: its length is a `u32`, which counts the headers too.
const LARGEST_DATA: u64 = u32::MAX as u64 - 128;

/// Writes a WAV file to a stream.
///
/// # Errors
/// [`AudioError::Stream`] if writing fails, [`AudioError::TooLong`] if the sound does not fit into a WAV file.
pub fn encode_wav(stream: impl Write + Seek, audio: &Audio, format: WavFormat) -> Result<(), AudioError> {
    let (bits_per_sample, sample_format) = match format {
        WavFormat::Int16 => (16, hound::SampleFormat::Int),
        WavFormat::Float32 => (32, hound::SampleFormat::Float),
    };
    let byte_length = audio.samples.len() as u64 * u64::from(bits_per_sample / 8);
    if byte_length > LARGEST_DATA {
        return Err(AudioError::TooLong { bytes: byte_length });
    }
    let spec = hound::WavSpec {
        channels: audio.channels,
        sample_rate: audio.sample_rate,
        bits_per_sample,
        sample_format,
    };
    let mut writer = hound::WavWriter::new(stream, spec).map_err(header_error)?;
    for &sample in &audio.samples {
        match format {
            WavFormat::Int16 => {
                let steps = (f64::from(sample).clamp(-1.0, 1.0) * f64::from(i16::MAX)).round();
                writer.write_sample(steps as i16)
            }
            WavFormat::Float32 => writer.write_sample(sample),
        }
        .map_err(header_error)?;
    }
    writer.finalize().map_err(header_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn encoded(bits_per_sample: u16, sample_format: hound::SampleFormat, values: &[i32]) -> Vec<u8> {
        let spec = hound::WavSpec { channels: 2, sample_rate: 8000, bits_per_sample, sample_format };
        let mut bytes = Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
        for &value in values {
            match sample_format {
                hound::SampleFormat::Int => writer.write_sample(value).unwrap(),
                hound::SampleFormat::Float => writer.write_sample(value as f32).unwrap(),
            }
        }
        writer.finalize().unwrap();
        bytes.into_inner()
    }

    #[test]
    fn integers_of_every_width_are_scaled_to_one() {
        for bits in [8_u16, 16, 24, 32] {
            let full = 1_i64 << (bits - 1);
            let values = [-full as i32, (full / 2) as i32, 0, (-full / 4) as i32];
            let audio = decode_wav(&encoded(bits, hound::SampleFormat::Int, &values)[..]).unwrap();
            assert_eq!(audio.samples(), [-1.0, 0.5, 0.0, -0.25], "{bits} bits");
            assert_eq!((audio.channels(), audio.sample_rate(), audio.frames()), (2, 8000, 2));
        }
    }

    #[test]
    fn floats_come_through_unchanged() {
        let audio = Audio::new(48_000, 2, vec![0.1, -2.5, f32::MIN_POSITIVE, 1.0]).unwrap();
        let mut bytes = Cursor::new(Vec::new());
        encode_wav(&mut bytes, &audio, WavFormat::Float32).unwrap();
        assert_eq!(decode_wav(&bytes.into_inner()[..]).unwrap(), audio);
    }

    #[test]
    fn sixteen_bit_output_clamps_and_rounds() {
        let audio = Audio::new(48_000, 1, vec![2.0, -2.0, 0.5]).unwrap();
        let mut bytes = Cursor::new(Vec::new());
        encode_wav(&mut bytes, &audio, WavFormat::Int16).unwrap();
        let steps: Vec<f32> =
            decode_wav(&bytes.into_inner()[..]).unwrap().samples().iter().map(|s| s * 32768.0).collect();
        assert_eq!(steps, [32767.0, -32767.0, 16384.0]);
    }

    #[test]
    fn mono_is_the_mean_of_the_channels() {
        let audio = Audio::new(8000, 2, vec![1.0, 0.0, 0.5, -0.5]).unwrap().into_mono();
        assert_eq!((audio.channels(), audio.samples()), (1, &[0.5, 0.0][..]));
    }

    #[test]
    fn samples_that_do_not_divide_into_channels_are_refused() {
        assert!(matches!(
            Audio::new(8000, 2, vec![0.0; 3]),
            Err(AudioError::Channels { samples: 3, channels: 2 })
        ));
        assert!(matches!(Audio::new(8000, 0, vec![]), Err(AudioError::Channels { .. })));
        assert!(matches!(Audio::new(0, 1, vec![]), Err(AudioError::ZeroRate)));
    }

    #[test]
    fn a_file_cut_short_says_how_much_is_missing() {
        let whole = encoded(16, hound::SampleFormat::Int, &[1, 2, 3, 4]);
        let cut = &whole[..whole.len() - 3];
        assert!(matches!(decode_wav(cut), Err(AudioError::Truncated { expected: 4, found: 2 })));
    }

    #[test]
    fn a_header_that_announces_four_gigabytes_costs_no_memory() {
        let mut bytes = encoded(16, hound::SampleFormat::Int, &[1, 2]);
        let data = bytes.windows(4).position(|w| w == b"data").unwrap();
        bytes[data + 4..data + 8].copy_from_slice(&0xffff_fffc_u32.to_le_bytes());
        assert!(matches!(decode_wav(&bytes[..]), Err(AudioError::Truncated { found: 2, .. })));
    }

    #[test]
    fn no_single_changed_byte_makes_the_reader_panic() {
        let whole = encoded(16, hound::SampleFormat::Int, &[1, 2, 3, 4]);
        let mut refused = 0;
        for position in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[position] = value;
                refused += usize::from(decode_wav(&changed[..]).is_err());
            }
            assert!(decode_wav(&whole[..position]).is_err(), "cut at {position}");
        }
        assert!(refused > 0);
    }

    #[test]
    fn channels_are_resampled_apart() {
        let ramp = |slope: f32| -> Vec<f32> { (0..4410).map(|n| n as f32 * slope).collect() };
        let (left, right) = (ramp(1e-4), ramp(-2e-4));
        let both: Vec<f32> = left.iter().zip(&right).flat_map(|(&l, &r)| [l, r]).collect();
        let converted = Audio::new(44_100, 2, both).unwrap().resampled(22_050).unwrap();
        let expected: Vec<f32> = resample(&right, 44_100, 22_050).unwrap();
        assert_eq!(converted.samples().iter().skip(1).step_by(2).copied().collect::<Vec<_>>(), expected);
        assert_eq!(converted.sample_rate(), 22_050);
    }
}

//! Runs the basic-pitch model through the `rlx` command, windows in and likelihoods out as `.npy` files, and lets it
//! write the compiler's report.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::notes::{KEYS, WINDOW_SAMPLES, WindowOutput};

/// Names in the model's file.
const INPUT: &str = "serving_default_input_2:0";
const NOTE: &str = "StatefulPartitionedCall:1";
const ONSET: &str = "StatefulPartitionedCall:2";

/// The windows, in the folder of the demonstration.
const WINDOWS: &str = "windows.npy";

/// What the model says about each window.
///
/// # Errors
/// If the command fails, or what it wrote is not what the model's outputs look like.
pub(crate) fn listen(
    rlx: &Path,
    model: &Path,
    windows: &[Vec<f32>],
    folder: &Path,
) -> anyhow::Result<Vec<WindowOutput>> {
    let input = folder.join(WINDOWS);
    let samples: Vec<f32> = windows.concat();
    write_npy(&input, [windows.len(), WINDOW_SAMPLES, 1], &samples)?;
    // What an earlier run left must not be taken for the answer of this one.
    let outputs = folder.join("outputs");
    if outputs.exists() {
        std::fs::remove_dir_all(&outputs).with_context(|| format!("removing {}", outputs.display()))?;
    }
    std::fs::create_dir(&outputs).with_context(|| format!("creating {}", outputs.display()))?;
    let mut command = Command::new(rlx);
    command.arg("run").arg(model).arg("--input").arg(assignment(&input)).arg("--output").arg(&outputs);
    succeed(&mut command)?;
    let note = read_output(&outputs, NOTE, windows.len())?;
    let onset = read_output(&outputs, ONSET, windows.len())?;
    Ok(note.into_iter().zip(onset).map(|(note, onset)| WindowOutput { note, onset }).collect())
}

/// Writes the compiler's report on the windows of [`listen`] as a page: its graph, its memory, the time of each step.
///
/// # Errors
/// If the command fails.
pub(crate) fn explain(rlx: &Path, model: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let page = folder.join("report.html");
    let mut command = Command::new(rlx);
    command.arg("explain").arg(model).arg("--run").arg("--input").arg(assignment(&folder.join(WINDOWS)));
    command.arg("--html").arg(&page).stdout(Stdio::null());
    succeed(&mut command)?;
    Ok(page)
}

/// `--input`'s value for the model's only input.
fn assignment(file: &Path) -> OsString {
    let mut assignment = OsString::from(format!("{INPUT}="));
    assignment.push(file);
    assignment
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let what = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("starting {program}"))?;
    ensure!(status.success(), "`{program} {what}` failed: {status}");
    Ok(())
}

/// One output, by window.
fn read_output(folder: &Path, name: &str, windows: usize) -> anyhow::Result<Vec<Vec<f32>>> {
    let path = folder.join(format!("{name}.npy"));
    let (shape, values) = read_npy(&path)?;
    let &[found, frames, keys] = &shape[..] else {
        bail!("{}: expected three axes, found {shape:?}", path.display());
    };
    ensure!(
        found == windows && keys == KEYS && frames > 0,
        "{}: expected [{windows}, frames, {KEYS}], found {shape:?}",
        path.display()
    );
    Ok(values.chunks_exact(frames * keys).map(<[f32]>::to_vec).collect())
}

/// Writes numbers as a `.npy` file, format 1.0 (NumPy enhancement proposal 1).
fn write_npy(path: &Path, shape: [usize; 3], values: &[f32]) -> anyhow::Result<()> {
    let axes = shape.map(|size| size.to_string()).join(", ");
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({axes}), }}");
    // The numbers begin at a multiple of 64 bytes; ten bytes come before the header, a newline ends it.
    let padding = (header.len() + 11).next_multiple_of(64) - header.len() - 11;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Reads the `.npy` files that `rlx run` writes for f32: format 1.0, row by row.
fn read_npy(path: &Path) -> anyhow::Result<(Vec<usize>, Vec<f32>)> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    decode_npy(&bytes).with_context(|| format!("{}: not the f32 array expected", path.display()))
}

fn decode_npy(bytes: &[u8]) -> Option<(Vec<usize>, Vec<f32>)> {
    let rest = bytes.strip_prefix(b"\x93NUMPY\x01\x00")?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (header, values) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let header = std::str::from_utf8(header).ok()?;
    if !header.contains("'<f4'") || !header.contains("'fortran_order': False") {
        return None;
    }
    let (_, shape) = header.split_once("'shape': (")?;
    let (shape, _) = shape.split_once(')')?;
    let axes = shape.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let shape: Vec<usize> = axes.map(|axis| axis.parse().ok()).collect::<Option<_>>()?;
    let (values, []) = values.as_chunks::<4>() else { return None };
    let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
    (count == values.len()).then(|| (shape, values.iter().map(|&value| f32::from_le_bytes(value)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header is that of `numpy.save` for an array of this shape (NumPy 2).
    #[test]
    fn arrays_are_written_as_numpy_writes_them_and_read_back() {
        let path = std::env::temp_dir().join(format!("rlx-demo-{}.npy", std::process::id()));
        write_npy(&path, [2, 1, 3], &[0.0, 1.0, -2.5, f32::MAX, 4.0, 5.0]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let read = read_npy(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read, (vec![2, 1, 3], vec![0.0, 1.0, -2.5, f32::MAX, 4.0, 5.0]));
        assert_eq!(bytes.len(), 128 + 24);
        let header =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3), }  ";
        assert_eq!(&bytes[..header.len()], header);
        assert_eq!(bytes[127], b'\n');
    }

    #[test]
    fn an_array_of_another_type_or_length_is_refused() {
        let file = |descr: &str, values: usize| {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            bytes.extend(vec![0; 4 * values]);
            bytes
        };
        assert_eq!(decode_npy(&file("<f4", 2)), Some((vec![2], vec![0.0; 2])));
        assert_eq!(decode_npy(&file("<f8", 2)), None);
        assert_eq!(decode_npy(&file("<f4", 3)), None);
        assert_eq!(decode_npy(&file("<f4", 2)[..40]), None);
    }
}

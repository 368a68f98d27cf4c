//! Values of inputs: from the sources of `--input` to constants of the declared types.

use crate::input::json::{Elements, JsonArray};
use crate::input::{InputArgument, InputSpec, Size};
use anyhow::{Context, bail};
use rlx::io::literal::literal_from_npy;
use rlx::io::npz::NpzOptions;
use rlx::io::{audio, image, npy, npz};
use rlx::ir::{Bindings, Builder, DType, DTypeClass, Dim, Literal, Symbol, TensorType};
use std::path::Path;

/// Where random numbers begin, and the sizes that `--set` gives.
pub(crate) struct Sources<'a> {
    /// The values of symbols.
    pub(crate) bindings: &'a Bindings,
    /// The seed.
    pub(crate) seed: u64,
}

impl Sources<'_> {
    /// The value of the input `name`, declared as `declared`.
    pub(crate) fn literal(
        &self,
        name: &str,
        spec: &InputSpec,
        declared: &TensorType,
    ) -> anyhow::Result<Literal> {
        let literal = match spec {
            InputSpec::Npy(path) => read_npy(path, Some(declared.dtype))?,
            InputSpec::Npz { path, member } => {
                read_npz(path, member.as_deref().unwrap_or(name), Some(declared.dtype))?
            }
            InputSpec::Json(path) => from_json(JsonArray::read(path)?, Some(declared.dtype))?,
            InputSpec::Value(value) => from_json(value.clone(), Some(declared.dtype))?,
            InputSpec::Wav(path) => from_sound(path, declared)?,
            InputSpec::Png(path) => from_picture(path, declared)?,
            InputSpec::Random(sizes) => self.random(name, sizes.as_deref(), declared)?,
        };
        if literal.dtype() != declared.dtype {
            bail!(
                "input {name:?}: expected {declared}, found {} (numpy: array.astype(…) before saving)",
                literal.tensor_type()
            );
        }
        Ok(literal)
    }

    fn random(&self, name: &str, sizes: Option<&[Size]>, declared: &TensorType) -> anyhow::Result<Literal> {
        let dims: Vec<Dim> = match sizes {
            None => declared.dims().to_vec(),
            Some(sizes) => sizes
                .iter()
                .map(|size| match size {
                    Size::Number(n) => Dim::from(*n),
                    Size::Symbol(symbol) => Dim::symbol(symbol),
                })
                .collect(),
        };
        let dims: Vec<usize> = dims
            .iter()
            .map(|dim| dim.eval_size(self.bindings))
            .collect::<Result<_, _>>()
            .with_context(|| format!("input {name:?} ({declared}): set its sizes with --set SYMBOL=N"))?;
        let bytes =
            declared.dtype.storage_bytes(&dims).with_context(|| format!("input {name:?}: too large"))?;
        if bytes > LARGEST_RANDOM {
            bail!("input {name:?}: {bytes} random bytes are over the limit of {LARGEST_RANDOM}");
        }
        random_literal(declared.dtype, &dims, self.seed ^ name_hash(name))
    }
}

/// Random inputs are for trying a model out; larger ones come from files.
const LARGEST_RANDOM: usize = 4 << 30;

/// FNV-1a, so that inputs differ from each other and stay the same from run to run.
fn name_hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Normal numbers for floats, 0 to 9 for integers, coin tosses for bools: the uniform bits of the oracle's generator.
fn random_literal(dtype: DType, dims: &[usize], seed: u64) -> anyhow::Result<Literal> {
    use rlx::eval::numeric::philox;
    let count: usize = dims.iter().product();
    match dtype.class() {
        DTypeClass::Float | DTypeClass::Complex => {
            let bits = philox::random_bits([seed, 0], 0, count * 2);
            let normal: Vec<f64> =
                bits.chunks_exact(2).map(|b| philox::box_muller([b[0], b[1]])[0]).collect();
            cast(Literal::from_slice(dims, &normal)?, dtype)
        }
        DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Bool => {
            let most = if dtype == DType::Bool { 2 } else { 10 };
            let bits = philox::random_bits([seed, 0], 0, count);
            let small: Vec<i64> = bits.iter().map(|b| i64::from(b % most)).collect();
            cast(Literal::from_slice(dims, &small)?, dtype)
        }
        DTypeClass::String | DTypeClass::Block => bail!("there are no random numbers of {dtype}"),
    }
}

/// The same numbers in another type, rounded as a cast of the graph rounds.
fn cast(literal: Literal, to: DType) -> anyhow::Result<Literal> {
    let mut b = Builder::verbatim("cast");
    let x = b.constant(literal);
    let y = b.cast(x, to)?;
    let mut results = rlx::eval::evaluate(&b.finish([("y", y)])?, &[])?;
    results.pop().context("a cast has one result")
}

/// The value of a source for which no type is declared: its own type; integers are i64, other numbers f32.
pub(crate) fn untyped_literal(argument: &InputArgument) -> anyhow::Result<Literal> {
    match &argument.source {
        InputSpec::Npy(path) => read_npy(path, None),
        InputSpec::Npz { path, member } => read_npz(path, member.as_deref().unwrap_or(&argument.name), None),
        InputSpec::Json(path) => from_json(JsonArray::read(path)?, None),
        InputSpec::Value(value) => from_json(value.clone(), None),
        InputSpec::Wav(_) | InputSpec::Png(_) | InputSpec::Random(_) => {
            bail!(
                "input {:?}: a constant comes from a .npy, .npz or .json file, or is written out",
                argument.name
            )
        }
    }
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

fn read_npy(path: &Path, untyped: Option<DType>) -> anyhow::Result<Literal> {
    let array = npy::read_npy(&read_file(path)?).with_context(|| path.display().to_string())?;
    literal_from_npy(array, untyped).with_context(|| path.display().to_string())
}

fn read_npz(path: &Path, member: &str, untyped: Option<DType>) -> anyhow::Result<Literal> {
    let arrays = npz::read_npz(&read_file(path)?, &NpzOptions::default())
        .with_context(|| path.display().to_string())?;
    let names: Vec<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
    let Some((_, array)) = arrays.into_iter().find(|(name, _)| name == member) else {
        bail!("{}: there is no array {member:?}; there are {names:?}", path.display());
    };
    literal_from_npy(array, untyped).with_context(|| path.display().to_string())
}

fn from_json(array: JsonArray, declared: Option<DType>) -> anyhow::Result<Literal> {
    match array.elements {
        Elements::Bool(v) => {
            let literal = Literal::from_slice(array.shape, &v)?;
            declared.map_or_else(|| Ok(literal.clone()), |dtype| cast(literal.clone(), dtype))
        }
        Elements::Integer(v) => {
            let to = declared.unwrap_or(DType::I64);
            if to == DType::U64 {
                let v: Vec<u64> = v.into_iter().map(u64::try_from).collect::<Result<_, _>>()?;
                return Ok(Literal::from_slice(array.shape, &v)?);
            }
            let v: Vec<i64> = v.into_iter().map(i64::try_from).collect::<Result<_, _>>()?;
            let literal = Literal::from_slice(array.shape, &v)?;
            let narrow = cast(literal.clone(), to)?;
            // A number that does not fit must not wrap unseen.
            if to.is_int() && cast(narrow.clone(), DType::I64)? != literal {
                bail!("not every element fits {to}");
            }
            Ok(narrow)
        }
        Elements::Float(v) => {
            let to = declared.unwrap_or(DType::F32);
            if !to.is_float() {
                bail!("expected elements of {to}, found numbers with fractions");
            }
            cast(Literal::from_slice(array.shape, &v)?, to)
        }
    }
}

/// Sizes for `count` elements in one axis: the others are 1. The axis is the last one, or the one before it where the
/// declared type ends in sizes of 1.
fn single_axis(declared: &TensorType, count: usize) -> Vec<usize> {
    let mut dims = vec![1; declared.rank()];
    let axis = declared.dims().iter().rposition(|d| d.as_const() != Some(1)).unwrap_or(0);
    if let Some(slot) = dims.get_mut(axis) {
        *slot = count;
    }
    dims
}

/// Mono sound, −1 to 1, in one axis of the declared type.
fn from_sound(path: &Path, declared: &TensorType) -> anyhow::Result<Literal> {
    let sound = audio::read_wav(path)?.into_mono();
    let literal = Literal::from_slice(single_axis(declared, sound.frames()), sound.samples())?;
    cast(literal, declared.dtype)
}

/// A picture: 0 to 255 for integers, 0 to 1 for floats; channels first if the third axis from the end is 1, 3 or 4.
fn from_picture(path: &Path, declared: &TensorType) -> anyhow::Result<Literal> {
    let picture = image::read_png(path)?;
    let [height, width, channels] = picture.shape();
    let literal = if declared.dtype.is_float() {
        Literal::from_slice([height, width, channels], &picture.to_f32())?
    } else {
        Literal::from_slice([height, width, channels], &picture.into_u8())?
    };
    let mut b = Builder::verbatim("picture");
    let x = b.constant(literal);
    let rank = declared.rank();
    let first = rank.checked_sub(3).map(|axis| &declared.dims()[axis]);
    let channels_first = first.is_some_and(|d| matches!(d.as_const(), Some(1 | 3 | 4)));
    let x = if channels_first { b.transpose(x, &[2, 0, 1])? } else { x };
    let mut dims = b.shape(x).to_vec();
    while dims.len() < rank {
        dims.insert(0, Dim::ONE);
    }
    let x = b.reshape(x, &dims)?;
    let x = b.cast(x, declared.dtype)?;
    let mut results = rlx::eval::evaluate(&b.finish([("y", x)])?, &[])?;
    results.pop().context("a picture is one value")
}

/// `N=4` of `--set`.
pub(crate) fn parse_setting(text: &str) -> Result<(Symbol, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected SYMBOL=NUMBER")?;
    let value: i64 = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
    if value < 0 { Err(format!("a size of {value}")) } else { Ok((Symbol::new(name), value)) }
}

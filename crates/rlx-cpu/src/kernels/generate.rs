//! Elements made from little: random bits, and the numbers that blocks of quantised formats stand for.
#![allow(unsafe_code)]

use super::carrier::{Carried, PIECE, Rounding, for_pieces, store};
use super::transfer::Address;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_eval::numeric::philox::philox4x32;
use rlx_ir::block::BlockFormat;
use rlx_ir::{DType, Op, Primitive};

/// Words that one thread draws at a time.
const PART: usize = 8 << 10;

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    match op {
        Op::Primitive(Primitive::RandomBits(_)) => Some(Box::new(RandomBits)),
        Op::Primitive(Primitive::Dequantise(op)) => Some(Box::new(Dequantise { to: op.to })),
        _ => None,
    }
}

struct RandomBits;

impl Kernel for RandomBits {
    fn bind(&self, _: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(RandomBits))
    }
}

impl Bound for RandomBits {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (key, counter) = (arguments.operand(0).slice::<u64>(), arguments.operand(1).slice::<u64>());
        let (&[seed, stream], &[counter]) = (key, counter) else {
            return Err(Fault::Unsupported { what: "random_bits".into(), found: "another key".into() });
        };
        let halves = |x: u64| [x as u32, (x >> 32) as u32];
        let ([k0, k1], [c2, c3]) = (halves(seed), halves(stream));
        let out = arguments.result(0);
        cx.pool.for_ranges(out.layout().count(), PART, |range| {
            // The position of the part's first word, within a block of four words.
            let first = counter.wrapping_add(range.start as u64);
            let (mut block, mut word) = (first / 4, (first % 4) as usize);
            let mut rest = out.slice_at::<u32>(range.start, range.len());
            while !rest.is_empty() {
                let [c0, c1] = halves(block);
                let words = philox4x32([c0, c1, c2, c3], [k0, k1]);
                let count = (4 - word).min(rest.len());
                let (now, later) = rest.split_at_mut(count);
                now.copy_from_slice(&words[word..word + count]);
                // Positions wrap at 2^64, and with them the blocks at 2^62.
                (block, word, rest) = (block.wrapping_add(1) & (u64::MAX >> 2), 0, later);
            }
        });
        Ok(())
    }
}

struct Dequantise {
    to: DType,
}

struct BoundDequantise {
    to: DType,
    format: BlockFormat,
}

impl Kernel for Dequantise {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let DType::Block(format) = cx.operands[0].dtype else {
            return Err(Fault::Unsupported {
                what: "dequantise".into(),
                found: cx.operands[0].dtype.to_string(),
            });
        };
        Ok(Box::new(BoundDequantise { to: self.to, format }))
    }
}

impl Bound for BoundDequantise {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, out) = (arguments.operand(0), arguments.result(0));
        if out.layout().count() == 0 {
            return Ok(());
        }
        let (length, bytes) = (self.format.block_len(), self.format.block_bytes());
        let blocks = x.bytes();
        if self.to == DType::F32 {
            let each = (PART / length).max(1);
            return super::index::FirstFault::for_ranges(cx.pool, blocks.len() / bytes, each, |range| {
                let to = out.slice_at::<f32>(range.start * length, range.len() * length);
                let from = &blocks[range.start * bytes..range.end * bytes];
                Ok(rlx_eval::quant::dequantise(self.format, from, to)?)
            });
        }
        let to = Address(out.pointer());
        // A piece is whole blocks, and the elements are one row: blocks fill bytes of any type.
        for_pieces(cx.pool, &[out.layout().count()], false, |piece| {
            let first = piece.first() / length;
            let from = &blocks[first * bytes..(first + piece.count / length) * bytes];
            let mut numbers = [0f32; PIECE];
            // A piece has whole blocks, which is all that could be amiss.
            if rlx_eval::quant::dequantise(self.format, from, &mut numbers[..piece.count]).is_ok() {
                let elements = Carried::Float(numbers.map(f64::from));
                // SAFETY: a piece of the result, which only this call writes.
                unsafe { store(self.to, to, piece, &elements, Rounding::NEAREST) };
            }
        });
        Ok(())
    }
}

//! How elements are held while a region works on them.

use rlx_ir::DType;

/// The Rust type that holds an element in a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Lane {
    F64,
    F32,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
}

impl Lane {
    /// The lane of an element type: narrow floats are held as f32, bools as u8 (0 or 1).
    pub fn of(dtype: DType) -> Option<Lane> {
        Some(match dtype {
            DType::F64 => Lane::F64,
            DType::F32 | DType::F16 | DType::BF16 => Lane::F32,
            DType::I64 => Lane::I64,
            DType::I32 => Lane::I32,
            DType::I16 => Lane::I16,
            DType::I8 => Lane::I8,
            DType::U64 => Lane::U64,
            DType::U32 => Lane::U32,
            DType::U16 => Lane::U16,
            DType::U8 | DType::Bool => Lane::U8,
            _ => return None,
        })
    }

    /// Bytes of a lane.
    pub fn width(self) -> usize {
        match self {
            Lane::F64 | Lane::I64 | Lane::U64 => 8,
            Lane::F32 | Lane::I32 | Lane::U32 => 4,
            Lane::I16 | Lane::U16 => 2,
            Lane::I8 | Lane::U8 => 1,
        }
    }
}

/// Calls a macro-like body with the Rust type of a lane.
macro_rules! with_lane {
    ($lane:expr, $t:ident => $body:expr) => {
        match $lane {
            $crate::kernels::region::Lane::F64 => {
                type $t = f64;
                $body
            }
            $crate::kernels::region::Lane::F32 => {
                type $t = f32;
                $body
            }
            other => with_integer_lane!(other, $t => $body),
        }
    };
}

/// The same for lanes of integers; floats do not come here.
macro_rules! with_integer_lane {
    ($lane:expr, $t:ident => $body:expr) => {
        match $lane {
            $crate::kernels::region::Lane::I64 => {
                type $t = i64;
                $body
            }
            $crate::kernels::region::Lane::I32 => {
                type $t = i32;
                $body
            }
            $crate::kernels::region::Lane::I16 => {
                type $t = i16;
                $body
            }
            $crate::kernels::region::Lane::I8 => {
                type $t = i8;
                $body
            }
            $crate::kernels::region::Lane::U64 => {
                type $t = u64;
                $body
            }
            $crate::kernels::region::Lane::U32 => {
                type $t = u32;
                $body
            }
            $crate::kernels::region::Lane::U16 => {
                type $t = u16;
                $body
            }
            _ => {
                type $t = u8;
                $body
            }
        }
    };
}

pub(crate) use {with_integer_lane, with_lane};

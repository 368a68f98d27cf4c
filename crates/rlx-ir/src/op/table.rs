//! The list of all operations. Adding one here makes the compiler ask for everything else.

use super::*;

macro_rules! table {
    (
        primitives { $($pfamily:ident: $($prim:ident),* ;)* }
        composites { $($cfamily:ident: $($comp:ident),* ;)* }
    ) => {
        /// A primitive operation: executors implement each.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Primitive { $($($prim($pfamily::$prim),)*)* Custom(Custom) }

        /// The kinds of primitives, for exhaustive lists.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum PrimitiveKind { $($($prim,)*)* Custom }

        /// A composite operation: it keeps its name and attributes, and decomposes into simpler ones.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Composite { $($($comp($cfamily::$comp),)*)* }

        /// The kinds of composites, for exhaustive lists.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum CompositeKind { $($($comp,)*)* }

        impl PrimitiveKind {
            /// Every primitive.
            pub const ALL: &'static [PrimitiveKind] = &[$($(PrimitiveKind::$prim,)*)* PrimitiveKind::Custom];
        }

        impl CompositeKind {
            /// Every composite.
            pub const ALL: &'static [CompositeKind] = &[$($(CompositeKind::$comp,)*)*];
        }

        $($(
            impl From<$pfamily::$prim> for Op {
                fn from(op: $pfamily::$prim) -> Op { Op::Primitive(Primitive::$prim(op)) }
            }
        )*)*
        $($(
            impl From<$cfamily::$comp> for Op {
                fn from(op: $cfamily::$comp) -> Op { Op::Composite(Composite::$comp(op)) }
            }
        )*)*

        impl Primitive {
            /// Its kind.
            pub fn kind(&self) -> PrimitiveKind {
                match self { $($(Primitive::$prim(_) => PrimitiveKind::$prim,)*)* Primitive::Custom(_) => PrimitiveKind::Custom }
            }
        }

        impl Composite {
            /// Its kind.
            pub fn kind(&self) -> CompositeKind {
                match *self { $($(Composite::$comp(_) => CompositeKind::$comp,)*)* }
            }

            /// The name in the text form.
            pub fn name(&self) -> &'static str {
                match *self { $($(Composite::$comp(ref op) => op.name(),)*)* }
            }

            /// Builds the equivalent of this operation on `operands`.
            pub fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
                match *self { $($(Composite::$comp(ref op) => op.decompose(b, operands),)*)* }
            }
        }

        impl Op {
            /// The name in the text form.
            pub fn name(&self) -> &str {
                match self {
                    $($(Op::Primitive(Primitive::$prim(op)) => op.name(),)*)*
                    Op::Primitive(Primitive::Custom(op)) => op.name(),
                    Op::Composite(composite) => composite.name(),
                }
            }

            /// The types of the results on operands of these types.
            pub fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
                match self {
                    $($(Op::Primitive(Primitive::$prim(op)) => op.infer(cx),)*)*
                    Op::Primitive(Primitive::Custom(op)) => op.infer(cx),
                    Op::Composite(composite) => match *composite {
                        $($(Composite::$comp(ref op) => op.infer(cx),)*)*
                    },
                }
            }

            pub(crate) fn print_fields(&self, p: &mut Printer<'_>) {
                match self {
                    $($(Op::Primitive(Primitive::$prim(op)) => op.print_fields(p),)*)*
                    Op::Primitive(Primitive::Custom(op)) => op.print_fields(p),
                    Op::Composite(composite) => match *composite {
                        $($(Composite::$comp(ref op) => op.print_fields(p),)*)*
                    },
                }
            }

            /// Calls `visit` with every size in the attributes, those of subgraphs included.
            pub fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
                match self {
                    $($(Op::Primitive(Primitive::$prim(op)) => op.for_each_dim(visit),)*)*
                    Op::Primitive(Primitive::Custom(_)) => {}
                    Op::Composite(composite) => match *composite {
                        $($(Composite::$comp(ref op) => op.for_each_dim(visit),)*)*
                    },
                }
            }

            /// Reads the attributes of the operation called `name`; `None` if there is no such operation.
            pub(crate) fn parse_fields(name: &str, p: &mut Parser<'_>) -> Option<Result<Op, ParseError>> {
                // A table of functions, not a branch an operation: subgraphs nest, and a frame with room for the
                // attributes of every operation would nest with them.
                const READERS: &[(&[&str], Reader)] = &[
                    $($(($pfamily::$prim::NAMES, read::<$pfamily::$prim>),)*)*
                    $($(($cfamily::$comp::NAMES, read::<$cfamily::$comp>),)*)*
                ];
                let (_, read) = READERS.iter().find(|(names, _)| names.contains(&name))?;
                Some(read(name, p))
            }
        }

        pub(super) fn entries() -> Vec<OpInfo> {
            let mut all = Vec::new();
            $($(OpInfo::of::<$pfamily::$prim>(stringify!($pfamily), OpKind::Primitive(PrimitiveKind::$prim), &mut all);)*)*
            $($(OpInfo::of::<$cfamily::$comp>(stringify!($cfamily), OpKind::Composite(CompositeKind::$comp), &mut all);)*)*
            all
        }
    };
}

/// Reads the attributes of the operation of this name.
type Reader = fn(&str, &mut Parser<'_>) -> Result<Op, ParseError>;

fn read<T: Attributes>(name: &str, p: &mut Parser<'_>) -> Result<Op, ParseError>
where
    Op: From<T>,
{
    T::parse_fields(name, p).map(Op::from)
}

/// Primitive or composite, and which.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpKind {
    /// A primitive.
    Primitive(PrimitiveKind),
    /// A composite.
    Composite(CompositeKind),
}

/// An operation with its attributes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Executors implement it.
    Primitive(Primitive),
    /// It decomposes into simpler ones.
    Composite(Composite),
}

table! {
    primitives {
        source: Input, Constant, Iota, DimValue, BindDim;
        elementwise: Unary, Binary, Compare, Select, Cast, Bitcast, MakeComplex;
        movement: Reshape, Transpose, Broadcast, Slice, Pad, Concat, Reverse;
        reduce: Reduce, SumTo, Cumulative, ArgReduce, Sort, TopK;
        contract: Dot, Conv, IntegerDot;
        window: ReduceWindow, ReduceWindowGrad;
        index: Gather, GatherAlong, Scatter, ScatterAlong, DynamicSlice, DynamicUpdate, NonZero, NonMaxSuppression;
        random: RandomBits;
        spectral: Fft;
        quant: Dequantise;
        linalg: Cholesky, TriangularSolve, Lu, Qr, Eigh, Svd;
        control: If, While, Scan, Call;
    }
    composites {
        activation: Activation, LeakyRelu, PRelu, Elu, Celu, Selu, Swish, Softplus, HardSigmoid, HardTanh, Shrink,
            Threshold, Logit, Glu, Clip;
        softmax: Softmax;
        statistics: Summary, Spread;
        norm: RmsNorm, LayerNorm, SkipNorm, GroupNorm, InstanceNorm, BatchNorm, BatchNormTraining, Lrn, LpNormalize,
            MeanVarianceNorm;
        loss: NllLoss, SoftmaxCrossEntropy, BinaryCrossEntropy, BinaryCrossEntropyWithLogits, ElementLoss, HuberLoss,
            SmoothL1Loss, KlDivergence, CosineSimilarity, CosineEmbeddingLoss;
        sample: RandomUniform, RandomNormal, Bernoulli, Multinomial, Dropout;
        matrix: Eye, Triangle, Diagonal, DiagonalMatrix, Trace, Outer, Cross;
        solve: Det, SlogDet, Inverse, Solve, LeastSquares, PseudoInverse, MatrixPower, MatrixExp;
        manifold: BiMap, SpectralMap, ReEig, AffineInvariantDistance, SpdGeodesic, KarcherMean, SpdBatchNorm;
        pool: MaxPool, MaxPoolGrad, MaxUnpool, LpPool, GlobalLpPool, GlobalPool, AdaptivePool;
        average_pool: AveragePool, AveragePoolGrad;
        unfold: Im2col, Col2im;
        convolution: ConvBias, ConvTranspose, ConvInputGrad, ConvWeightGrad, CausalConv;
        resize: Resize;
        arrange: DepthToSpace, SpaceToDepth, Tile, RepeatElements, Roll, PadFrom, CenterCropPad, OneHot, ReverseSequence;
        selection: Compress, Unique;
        vision: GridSample, AffineGrid, DeformConv;
        region: RoiAlign, MaxRoiPool;
        einsum: Einsum;
        linear_quantisation: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear;
        quantised_matmul: MatmulInteger, ConvInteger, QlinearMatmul, QlinearConv, MatmulNbits;
        audio: Dft, Stft, Istft, CosineWindow, LogMelSpectrogram;
        mel: MelFilters, MelWeightMatrix;
        attention: Attention, LinearAttention;
        rotary: RotaryEmbedding, RotaryFromPositions;
        gated: Gated, LoraMatmul, CodebookMatmul;
        experts: Routing, MixtureOfExperts;
        recurrent: Rnn, Gru, Lstm;
        state_space: SelectiveScan, HeadwiseScan;
    }
}

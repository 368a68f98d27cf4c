//! The case table: for each operation its cases, one file a family as in `rlx-ir/src/op/`.
//!
//! The two matches are exhaustive, so that an operation without cases does not compile; a test checks that every name
//! of a family has one.

#![allow(clippy::type_complexity, reason = "a table of names and functions reads best where it is used")]

mod activation;
mod arrange;
mod attention;
mod audio;
mod contract;
mod control;
mod convolution;
mod custom;
mod dynamic_slice;
mod einsum;
mod elementwise;
mod experts;
mod gated;
mod index;
mod linalg;
mod loss;
mod manifold;
mod matrix;
mod movement;
mod norm;
mod pool;
mod quant;
mod quantisation;
mod random;
mod recurrent;
mod reduce;
mod rotary;
mod sample;
mod scatter;
mod softmax;
mod solve;
mod sort;
mod source;
mod spectral;
mod state_space;
mod statistics;
mod vision;
mod window;

use crate::case::Case;
use rlx_ir::op::{CompositeKind, PrimitiveKind};

/// The cases of a primitive.
pub fn primitive_cases(kind: PrimitiveKind) -> Vec<Case> {
    use PrimitiveKind::*;
    match kind {
        Input => source::input(),
        Constant => source::constant(),
        Iota => source::iota(),
        DimValue => source::dim_value(),
        BindDim => source::bind_dim(),
        Unary => elementwise::unary(),
        Binary => elementwise::binary(),
        Compare => elementwise::compare(),
        Select => elementwise::select(),
        Cast => elementwise::cast(),
        Bitcast => elementwise::bitcast(),
        MakeComplex => elementwise::make_complex(),
        Reshape => movement::reshape(),
        Transpose => movement::transpose(),
        Broadcast => movement::broadcast(),
        Slice => movement::slice(),
        Pad => movement::pad(),
        Concat => movement::concat(),
        Reverse => movement::reverse(),
        Reduce => reduce::reduce(),
        SumTo => reduce::sum_to(),
        Cumulative => reduce::cumulative(),
        ArgReduce => reduce::arg_reduce(),
        Sort => sort::sort(),
        TopK => sort::top_k(),
        Dot => contract::dot(),
        Conv => convolution::conv(),
        IntegerDot => contract::integer_dot(),
        ReduceWindow => window::reduce_window(),
        ReduceWindowGrad => window::reduce_window_grad(),
        Gather => index::gather(),
        GatherAlong => index::gather_along(),
        Scatter => scatter::scatter(),
        ScatterAlong => scatter::scatter_along(),
        DynamicSlice => dynamic_slice::dynamic_slice(),
        DynamicUpdate => dynamic_slice::dynamic_update(),
        NonZero => index::nonzero(),
        NonMaxSuppression => index::non_max_suppression(),
        RandomBits => random::random_bits(),
        Fft => spectral::fft(),
        Dequantise => quant::dequantise(),
        Cholesky => linalg::cholesky(),
        TriangularSolve => linalg::triangular_solve(),
        Lu => linalg::lu(),
        Qr => linalg::qr(),
        Eigh => linalg::eigh(),
        Svd => linalg::svd(),
        If => control::conditional(),
        While => control::loops(),
        Scan => control::scan(),
        Call => control::call(),
        Custom => custom::custom(),
    }
}

/// The cases of a composite.
pub fn composite_cases(kind: CompositeKind) -> Vec<Case> {
    use CompositeKind::*;
    match kind {
        RmsNorm => norm::rms_norm(),
        Activation => activation::activation(),
        // One list for all of them: the operations differ by name.
        LeakyRelu => activation::parametric(),
        Elu | Celu | Selu | Swish | Softplus | HardSigmoid | HardTanh | Shrink | Threshold | Logit => {
            Vec::new()
        }
        PRelu => activation::prelu(),
        Glu => activation::glu(),
        Clip => activation::clip(),
        Softmax => softmax::softmax_family(),
        Summary => statistics::summary(),
        Spread => statistics::spread_family(),
        LayerNorm => norm::layer_norm(),
        SkipNorm => norm::skip_norm(),
        GroupNorm => norm::group_norm(),
        InstanceNorm => norm::instance_norm(),
        BatchNorm => norm::batch_norm(),
        BatchNormTraining => norm::batch_norm_training(),
        Lrn => norm::lrn(),
        LpNormalize => norm::lp_normalize(),
        MeanVarianceNorm => norm::mean_variance_norm(),
        NllLoss => loss::nll_loss(),
        SoftmaxCrossEntropy => loss::softmax_cross_entropy(),
        BinaryCrossEntropy => loss::binary_cross_entropy(),
        BinaryCrossEntropyWithLogits => loss::binary_cross_entropy_with_logits(),
        ElementLoss => loss::element_loss(),
        HuberLoss => loss::huber_loss(),
        SmoothL1Loss => loss::smooth_l1_loss(),
        KlDivergence => loss::kl_divergence(),
        CosineSimilarity => loss::cosine_similarity(),
        CosineEmbeddingLoss => loss::cosine_embedding_loss(),
        RandomUniform => sample::random_uniform(),
        RandomNormal => sample::random_normal(),
        Bernoulli => sample::bernoulli(),
        Multinomial => sample::multinomial(),
        Dropout => sample::dropout(),
        Eye => matrix::eye(),
        Triangle => matrix::triangle(),
        Diagonal => matrix::diagonal(),
        DiagonalMatrix => matrix::diagonal_matrix(),
        Trace => matrix::trace(),
        Outer => matrix::outer(),
        Cross => matrix::cross(),
        Det => solve::det(),
        SlogDet => solve::slog_det(),
        Inverse => solve::inverse(),
        Solve => solve::solve(),
        LeastSquares => solve::least_squares(),
        PseudoInverse => solve::pseudo_inverse(),
        MatrixPower => solve::matrix_power(),
        MatrixExp => solve::matrix_exp(),
        BiMap => manifold::bi_map(),
        SpectralMap => manifold::spectral_map(),
        ReEig => manifold::re_eig(),
        AffineInvariantDistance => manifold::affine_invariant_distance(),
        SpdGeodesic => manifold::spd_geodesic(),
        KarcherMean => manifold::karcher_mean(),
        SpdBatchNorm => manifold::spd_batch_norm(),
        MaxPool => pool::max_pool(),
        MaxPoolGrad => pool::max_pool_grad(),
        MaxUnpool => pool::max_unpool(),
        LpPool => pool::lp_pool(),
        GlobalLpPool => pool::global_lp_pool(),
        GlobalPool => pool::global_pool(),
        AdaptivePool => pool::adaptive_pool(),
        AveragePool => pool::average_pool(),
        AveragePoolGrad => pool::average_pool_grad(),
        Im2col => pool::im2col(),
        Col2im => pool::col2im(),
        ConvBias => convolution::conv_bias(),
        ConvTranspose => convolution::conv_transpose(),
        ConvInputGrad => convolution::conv_input_grad(),
        ConvWeightGrad => convolution::conv_weight_grad(),
        DeformConv => convolution::deform_conv(),
        Resize => vision::resize(),
        GridSample => vision::grid_sample(),
        AffineGrid => vision::affine_grid(),
        RoiAlign => vision::roi_align(),
        MaxRoiPool => vision::max_roi_pool(),
        DepthToSpace => arrange::depth_to_space(),
        SpaceToDepth => arrange::space_to_depth(),
        Tile => arrange::tile(),
        RepeatElements => arrange::repeat_elements(),
        Roll => arrange::roll(),
        PadFrom => arrange::pad_from(),
        CenterCropPad => arrange::center_crop_pad(),
        OneHot => arrange::one_hot(),
        ReverseSequence => arrange::reverse_sequence(),
        Compress => arrange::compress(),
        Unique => arrange::unique(),
        Einsum => einsum::einsum(),
        QuantizeLinear => quantisation::quantize_linear(),
        DequantizeLinear => quantisation::dequantize_linear(),
        DynamicQuantizeLinear => quantisation::dynamic_quantize_linear(),
        MatmulInteger => quantisation::matmul_integer(),
        ConvInteger => quantisation::conv_integer(),
        QlinearMatmul => quantisation::qlinear_matmul(),
        QlinearConv => quantisation::qlinear_conv(),
        MatmulNbits => quantisation::matmul_nbits(),
        Dft => audio::dft(),
        Stft => audio::stft(),
        Istft => audio::istft(),
        CosineWindow => audio::cosine_window(),
        LogMelSpectrogram => audio::log_mel_spectrogram(),
        MelFilters => audio::mel_filters(),
        MelWeightMatrix => audio::mel_weight_matrix(),
        Attention => attention::attention(),
        LinearAttention => attention::linear_attention(),
        RotaryEmbedding => rotary::rotary_embedding(),
        RotaryFromPositions => rotary::rotary_from_positions(),
        Gated => gated::gated(),
        LoraMatmul => gated::lora_matmul(),
        CodebookMatmul => gated::codebook_matmul(),
        Routing => experts::routing(),
        MixtureOfExperts => experts::mixture_of_experts(),
        Rnn => recurrent::rnn(),
        Gru => recurrent::gru(),
        Lstm => recurrent::lstm(),
        CausalConv => [state_space::causal_conv(), convolution::causal_conv()].concat(),
        SelectiveScan => state_space::selective_scan(),
        HeadwiseScan => state_space::headwise_scan(),
    }
}

/// Every case of the table.
pub fn all() -> Vec<Case> {
    let primitives = PrimitiveKind::ALL.iter().flat_map(|kind| primitive_cases(*kind));
    let composites = CompositeKind::ALL.iter().flat_map(|kind| composite_cases(*kind));
    primitives.chain(composites).collect()
}

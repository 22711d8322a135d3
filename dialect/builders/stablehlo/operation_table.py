"""The operations of StableHLO and CHLO: the fields of each, in the order of MLIR's bindings.

A line has the name of a class, the name of the operation, and its fields, in the order in which a
constructor takes them: `>name` is the type of a result (absent if MLIR can infer it), `name` an
operand, `name:kind` an attribute, `#name` a number of regions. `*` marks several, `?` marks
optional ones, and fields behind a comma go by keyword. `{n}` is the number of regions.

Kinds: I integers of dimensions, D elements of a tensor of integers, B bools of dimensions, i and w
an integer of 64 and 32 bits, b a bool, u a mark that is present or absent, f a 32-bit float, s a
text, y a symbol, a an attribute.
"""

STABLEHLO = """
AbsOp abs operand
AddOp add lhs rhs
AfterAllOp after_all *inputs
AllGatherOp all_gather >*result *operands_ all_gather_dim:i replica_groups:a , channel_handle:a?
    use_global_device_ids:u?
AllReduceOp all_reduce >*result *operands_ replica_groups:a , channel_handle:a?
    use_global_device_ids:u? {1}
AllToAllOp all_to_all *operands_ split_dimension:i concat_dimension:i split_count:i
    replica_groups:a , channel_handle:a?
AndOp and lhs rhs
AsyncDoneOp async_done operand
AsyncStartOp async_start >result *operands_ {1}
Atan2Op atan2 lhs rhs
BatchNormGradOp batch_norm_grad operand scale mean variance grad_output epsilon:f
    feature_index:i
BatchNormInferenceOp batch_norm_inference operand scale offset mean variance epsilon:f
    feature_index:i
BatchNormTrainingOp batch_norm_training operand scale offset epsilon:f feature_index:i
BitcastConvertOp bitcast_convert >result operand
BroadcastInDimOp broadcast_in_dim >result operand broadcast_dimensions:I
BroadcastOp broadcast operand broadcast_sizes:I
CaseOp case >*result index #num_branches {0+}
CbrtOp cbrt operand , result_accuracy:a?
CeilOp ceil operand
CholeskyOp cholesky a , lower:b?
ClampOp clamp min operand max
ClzOp count_leading_zeros operand
CollectiveBroadcastOp collective_broadcast *operands_ replica_groups:a , channel_handle:a?
    has_dynamic_root:u?
CollectivePermuteOp collective_permute operand source_target_pairs:D , channel_handle:a?
CollectiveReduceOp collective_reduce >*result *operands_ replica_groups:a , channel_handle:a?
    use_global_device_ids:u? has_dynamic_root:u? {1}
CompareOp compare lhs rhs comparison_direction:a , compare_type:a?
ComplexOp complex lhs rhs
CompositeOp composite >*result *inputs name:s decomposition:y #num_composite_regions ,
    composite_attributes:a? version:w? {0+}
ConcatenateOp concatenate *inputs dimension:i
ConstantOp constant value:a
ConvertOp convert >result operand
ConvolutionOp convolution >result lhs rhs dimension_numbers:a feature_group_count:i
    batch_group_count:i , window_strides:I? padding:D? lhs_dilation:I? rhs_dilation:I?
    window_reversal:B? precision_config:a?
CosineOp cosine operand , result_accuracy:a?
CreateTokenOp create_token
CrossReplicaSumOp cross-replica-sum operand replica_groups:D
CustomCallOp custom_call >*result *inputs call_target_name:s , has_side_effect:b?
    backend_config:a? api_version:a? called_computations:a? operand_layouts:a? result_layouts:a?
    output_operand_aliases:a? result_tilings:a?
DivOp divide lhs rhs
DotGeneralOp dot_general >result lhs rhs dot_dimension_numbers:a , precision_config:a?
    algorithm:a?
DotOp dot >result lhs rhs , precision_config:a?
DynamicBroadcastInDimOp dynamic_broadcast_in_dim >result operand output_dimensions
    broadcast_dimensions:I , known_expanding_dimensions:I? known_nonexpanding_dimensions:I?
DynamicConvOp dynamic_conv >result lhs rhs padding dimension_numbers:a feature_group_count:i
    batch_group_count:i , window_strides:I? lhs_dilation:I? rhs_dilation:I? window_reversal:B?
    precision_config:a?
DynamicGatherOp dynamic_gather operand start_indices slice_sizes dimension_numbers:a ,
    indices_are_sorted:b?
DynamicIotaOp dynamic_iota >result output_shape iota_dimension:i
DynamicPadOp dynamic_pad >result operand padding_value edge_padding_low edge_padding_high
    interior_padding
DynamicReshapeOp dynamic_reshape >result operand output_shape
DynamicSliceOp dynamic_slice operand *start_indices slice_sizes:I
DynamicUpdateSliceOp dynamic_update_slice operand update *start_indices
EinsumOp einsum >result lhs rhs einsum_config:s
ExpOp exponential operand , result_accuracy:a?
Expm1Op exponential_minus_one operand , result_accuracy:a?
FftOp fft operand fft_type:a fft_length:I
FloorOp floor operand
GatherOp gather operand start_indices dimension_numbers:a slice_sizes:I , indices_are_sorted:b?
GetDimensionSizeOp get_dimension_size operand dimension:i
GetTupleElementOp get_tuple_element operand index:i
IfOp if >*result pred {2}
ImagOp imag operand
InfeedOp infeed >*result token , infeed_config:s? layout:a?
IotaOp iota >output iota_dimension:i
IsFiniteOp is_finite x
Log1pOp log_plus_one operand , result_accuracy:a?
LogOp log operand , result_accuracy:a?
LogisticOp logistic operand , result_accuracy:a?
MapOp map >result *inputs dimensions:I {1}
MaxOp maximum lhs rhs
MinOp minimum lhs rhs
MulOp multiply lhs rhs
NegOp negate operand
NotOp not operand
OptimizationBarrierOp optimization_barrier *operand
OrOp or lhs rhs
OutfeedOp outfeed *inputs token , outfeed_config:s?
PadOp pad operand padding_value edge_padding_low:I edge_padding_high:I interior_padding:I
PartitionIdOp partition_id
PopulationCountOp popcnt operand
PowOp power lhs rhs
RealDynamicSliceOp real_dynamic_slice >result operand start_indices limit_indices strides
RealOp real operand
RecvOp recv >*result token channel_handle:a , is_host_transfer:b? source_target_pairs:D?
ReduceOp reduce >*result *inputs *init_values dimensions:I {1}
ReducePrecisionOp reduce_precision operand exponent_bits:w mantissa_bits:w
ReduceScatterOp reduce_scatter >result operand scatter_dimension:i replica_groups:a ,
    channel_handle:a? use_global_device_ids:u? {1}
ReduceWindowOp reduce_window >*result *inputs *init_values window_dimensions:I ,
    window_strides:I? base_dilations:I? window_dilations:I? padding:D? {1}
RemOp remainder lhs rhs
ReplicaIdOp replica_id
ReshapeOp reshape >result operand
ReturnOp return *results_
ReverseOp reverse operand dimensions:I
RngBitGeneratorOp rng_bit_generator >output_state >output rng_algorithm:a initial_state
RngOp rng a b shape rng_distribution:a
RoundNearestEvenOp round_nearest_even operand
RoundOp round_nearest_afz operand
RsqrtOp rsqrt operand , result_accuracy:a?
ScatterOp scatter >*result *inputs scatter_indices *updates scatter_dimension_numbers:a ,
    indices_are_sorted:b? unique_indices:b? {1}
SelectAndScatterOp select_and_scatter >result operand source init_value , window_dimensions:I?
    window_strides:I? padding:D? {2}
SelectOp select pred on_true on_false
SendOp send *inputs token channel_handle:a , is_host_transfer:b? source_target_pairs:D?
SetDimensionSizeOp set_dimension_size operand size dimension:i
ShiftLeftOp shift_left lhs rhs
ShiftRightArithmeticOp shift_right_arithmetic lhs rhs
ShiftRightLogicalOp shift_right_logical lhs rhs
SignOp sign operand
SineOp sine operand , result_accuracy:a?
SliceOp slice operand start_indices:I limit_indices:I strides:I
SortOp sort >*result *inputs , dimension:i? is_stable:b? {1}
SqrtOp sqrt operand , result_accuracy:a?
SubtractOp subtract lhs rhs
TanOp tan operand , result_accuracy:a?
TanhOp tanh operand , result_accuracy:a?
TorchIndexSelectOp torch_index_select >result operand index dim:i batch_dims:i
TransposeOp transpose operand permutation:I
TriangularSolveOp triangular_solve a b left_side:b lower:b unit_diagonal:b transpose_a:a
TupleOp tuple *val
UnaryEinsumOp unary_einsum >result operand einsum_config:s
UniformDequantizeOp uniform_dequantize operand
UniformQuantizeOp uniform_quantize >result operand
WhileOp while >*result *operand {2}
XorOp xor lhs rhs
"""

CHLO = """
AcosOp acos operand
AcoshOp acosh operand
AsinOp asin operand
AsinhOp asinh operand
AtanOp atan operand
AtanhOp atanh operand
BesselI1eOp bessel_i1e operand
BroadcastAddOp broadcast_add lhs rhs , broadcast_dimensions:I?
BroadcastAndOp broadcast_and lhs rhs , broadcast_dimensions:I?
BroadcastAtan2Op broadcast_atan2 lhs rhs , broadcast_dimensions:I?
BroadcastCompareOp broadcast_compare lhs rhs comparison_direction:a , broadcast_dimensions:I?
    compare_type:a?
BroadcastComplexOp broadcast_complex lhs rhs , broadcast_dimensions:I?
BroadcastDivOp broadcast_divide lhs rhs , broadcast_dimensions:I?
BroadcastMaxOp broadcast_maximum lhs rhs , broadcast_dimensions:I?
BroadcastMinOp broadcast_minimum lhs rhs , broadcast_dimensions:I?
BroadcastMulOp broadcast_multiply lhs rhs , broadcast_dimensions:I?
BroadcastNextAfterOp broadcast_next_after lhs rhs , broadcast_dimensions:I?
BroadcastOrOp broadcast_or lhs rhs , broadcast_dimensions:I?
BroadcastPolygammaOp broadcast_polygamma lhs rhs , broadcast_dimensions:I?
BroadcastPowOp broadcast_power lhs rhs , broadcast_dimensions:I?
BroadcastRemOp broadcast_remainder lhs rhs , broadcast_dimensions:I?
BroadcastSelectOp broadcast_select pred on_true on_false
BroadcastShiftLeftOp broadcast_shift_left lhs rhs , broadcast_dimensions:I?
BroadcastShiftRightArithmeticOp broadcast_shift_right_arithmetic lhs rhs ,
    broadcast_dimensions:I?
BroadcastShiftRightLogicalOp broadcast_shift_right_logical lhs rhs , broadcast_dimensions:I?
BroadcastSubOp broadcast_subtract lhs rhs , broadcast_dimensions:I?
BroadcastXorOp broadcast_xor lhs rhs , broadcast_dimensions:I?
BroadcastZetaOp broadcast_zeta lhs rhs , broadcast_dimensions:I?
ConjOp conj operand
ConstantLikeOp constant_like value:a operand
ConstantOp constant value:a
CoshOp cosh operand
DigammaOp digamma operand
ErfInvOp erf_inv operand
ErfOp erf operand
ErfcOp erfc operand
IsInfOp is_inf operand
IsNegInfOp is_neg_inf operand
IsPosInfOp is_pos_inf operand
LgammaOp lgamma operand
MulhiOp mulhi lhs rhs
NextAfterOp next_after x y
PolygammaOp polygamma n x
RaggedDotOp ragged_dot >result lhs rhs group_sizes ragged_dot_dimension_numbers:a ,
    precision_config:a?
ScanOp scan >*outputs >*carries *inputs *inits dimension:i , scan_dim_size:i? is_reverse:b?
    is_associative:b? {1}
SinhOp sinh operand
SquareOp square operand
TanOp tan operand
TopKOp top_k operand k:i , is_stable:b?
ZetaOp zeta x q
"""

"""Operations with an argument `out_sharding` for the placement of the result."""

from __future__ import annotations

from axir._devices.result_layouts import lies_where_told
from axir.dialect.ops.contraction import dot_general as contraction
from axir.dialect.ops.convolution import conv_general_dilated as convolution
from axir.dialect.ops.reductions import reduce
from axir.dialect.ops.shape import broadcasting, rearranging

broadcast = lies_where_told(broadcasting.broadcast)
broadcast_in_dim = lies_where_told(broadcasting.broadcast_in_dim)
conv_general_dilated = lies_where_told(convolution.conv_general_dilated)
dot = lies_where_told(contraction.dot)
dot_general = lies_where_told(contraction.dot_general)
reduce_max = lies_where_told(reduce.reduce_max)
reduce_min = lies_where_told(reduce.reduce_min)
reduce_sum = lies_where_told(reduce.reduce_sum)
reshape = lies_where_told(rearranging.reshape)

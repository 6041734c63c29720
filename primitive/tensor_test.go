package primitive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/primitive"
)

func TestTensor(t *testing.T) {
	a, err := primitive.TensorOf([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2, 3, 2)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3, 2}, a.Shape())
	require.Equal(t, 12, a.Len())
	require.Equal(t, 8, a.At(1, 0, 1))
	a.Set(80, 1, 0, 1)
	require.Equal(t, 80, a.Data()[7])

	row := a.Slice(ccl.Range{Lo: 1, Hi: 2}) // shares memory
	require.Equal(t, []int{7, 80, 9, 10, 11, 12}, row.Data())
	column := a.Slice(ccl.Range{Lo: 0, Hi: 2}, ccl.Range{Lo: 1, Hi: 3}, ccl.Range{Lo: 1, Hi: 2})
	require.Equal(t, []int{2, 2, 1}, column.Shape())
	require.Nil(t, column.Data())
	require.Equal(t, []int{4, 6, 10, 12}, elements(column))
	column.Fill(0)
	require.Equal(t, []int{1, 2, 3, 0, 5, 0, 7, 80, 9, 0, 11, 0}, a.Data())
	inner := column.Slice(ccl.Range{Lo: 1, Hi: 2}, ccl.Range{Lo: 1, Hi: 2}) // a slice of a slice
	inner.Set(-1, 0, 0, 0)
	require.Equal(t, -1, a.At(1, 2, 1))

	b := primitive.NewTensor[int](2, 2, 1)
	require.NoError(t, b.CopyFrom(column))
	require.Equal(t, []int{0, 0, 0, -1}, b.Data())
	require.NoError(t, b.CopyFrom(b))
	var wrong *ccl.InvalidArgumentError
	require.ErrorAs(t, b.CopyFrom(a), &wrong)

	scalar := primitive.NewTensor[float64]()
	scalar.Set(2)
	require.Equal(t, 2.0, scalar.At())
	require.Equal(t, 1, scalar.Len())
	empty := primitive.NewTensor[float64](3, 0)
	require.Equal(t, 0, empty.Len())
	empty.Fill(1)
	require.NoError(t, empty.CopyFrom(primitive.NewTensor[float64](3, 0)))
	require.Equal(t, 0, (*primitive.Tensor[int])(nil).Len())
	require.Equal(t, []int{0, 0}, a.Slice(ccl.Range{Lo: 2, Hi: 2}, ccl.Range{Lo: 3, Hi: 3}).Shape()[:2])
}

func TestTensorMistakes(t *testing.T) {
	var wrong *ccl.InvalidArgumentError
	require.Equal(t, 0, new(primitive.Tensor[int]).Len())
	require.Empty(t, new(primitive.Tensor[int]).Data())
	_, err := primitive.TensorOf([]int{}, 1<<32, 1<<32)
	require.ErrorAs(t, err, &wrong)
	for _, shape := range [][]int{{3}, {2, 3}, {}, {-1, -4}, make([]int, primitive.MaxDims+1)} {
		_, err := primitive.TensorOf(make([]int, 4), shape...)
		require.ErrorAs(t, err, &wrong, "%v", shape)
	}
	a := primitive.NewTensor[int](2, 3)
	for _, f := range []func(){
		func() { primitive.NewTensor[int](2, -1) },
		func() { primitive.NewTensor[int](make([]int, primitive.MaxDims+1)...) },
		func() { a.At(1) },
		func() { a.At(1, 3) },
		func() { a.Set(1, -1, 0) },
		func() { a.Slice(ccl.Range{Lo: 0, Hi: 3}) },
		func() { a.Slice(ccl.Range{Lo: 2, Hi: 1}) },
		func() { a.Slice(ccl.Range{Lo: -1, Hi: 1}) },
		func() { a.Slice(make([]ccl.Range, 3)...) },
	} {
		require.Panics(t, f)
	}
}

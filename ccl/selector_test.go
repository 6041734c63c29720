package ccl

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/topology"
)

// Without WithSelector, calls use direct, or the registered algorithm that they name.
func TestWithoutSelector(t *testing.T) {
	previous := defaultRegistry
	defer func() { defaultRegistry = previous }()
	defaultRegistry = Registry{}
	_, err := newRegistered(4)
	require.EqualError(t, err, "no algorithm direct is registered; import github.com/goccl/goccl/algorithms, or pass WithSelector")

	type params struct {
		Chunk ByteSize `yaml:"chunk"`
	}
	kernel := &Kernel{Doc: "for tests", Cost: func(Shape) Cost { return Cost{} }, Run: func(*Call) error { return nil }}
	picky := *kernel
	picky.Supports = func(s Shape) error {
		switch {
		case s.Eager || s.Params.(*params).Chunk != 4096:
			return errors.New("other parameters")
		case s.DType == Int8:
			return errors.New("int8 is too short")
		case s.DType == Int16:
			panic("int16")
		}
		return nil
	}
	Register(&Algorithm{Name: "direct", Doc: "for tests", Kernels: map[Collective]*Kernel{CollAllReduce: kernel, CollGather: kernel}})
	Register(&Algorithm{
		Name: "chain", Doc: "for tests", Params: func() any { return &params{4096} },
		Kernels: map[Collective]*Kernel{CollAllReduce: &picky},
	})
	Register(&Algorithm{
		Name: "grid", Doc: "for tests", Topologies: []topology.Kind{topology.Torus2D},
		Kernels: map[Collective]*Kernel{CollAllReduce: kernel},
	})
	whole, err := newRegistered(4)
	require.NoError(t, err)
	s, err := whole.ForGroup(3, "a group")
	require.NoError(t, err)
	require.Equal(t, 3, s.WorldSize())
	require.Equal(t, topology.Ring1D, s.Topology().Kind())
	require.Equal(t, time.Minute, s.Timeout())
	require.False(t, s.Debug())
	require.Equal(t, []string{"chain", "direct", "grid"}, s.Entries())
	require.Equal(t, "algorithms.chain.module=chain\nalgorithms.chain.params.chunk=4KiB\nalgorithms.direct.module=direct\nalgorithms.grid.module=grid\n", s.Agreement())

	shape := Shape{Collective: CollAllReduce, Ranks: 3, Bytes: 8, DType: Float32, Eager: true, Params: "of the caller"}
	choice, err := s.Choose(shape, "")
	require.NoError(t, err)
	require.Equal(t, "direct", choice.Entry)
	require.Equal(t, "default", choice.Why)
	require.Same(t, kernel, choice.Kernel)
	require.Nil(t, choice.Params)
	choice, err = s.Choose(shape, "chain")
	require.NoError(t, err)
	require.Equal(t, "chain", choice.Entry)
	require.Equal(t, "option", choice.Why)
	require.Equal(t, &params{4096}, choice.Params)

	for _, c := range []struct {
		coll  Collective
		dtype DType
		entry string
		want  string
	}{
		{CollBroadcast, Float32, "", "ccl: broadcast (float32, 8 bytes, 3 ranks): not implemented by direct: algorithm direct has no kernel for broadcast (chosen by default)"},
		{CollAllReduce, Int8, "chain", "ccl: all_reduce (int8, sum, 8 bytes, 3 ranks): not implemented by chain: int8 is too short (chosen by option)"},
		{CollAllReduce, Float32, "chian", `ccl: all_reduce: no algorithm "chian" is registered (did you mean chain?); registered: chain, direct, grid`},
		{CollAllReduce, Float32, "grid", "ccl: all_reduce: algorithm grid is for the topologies [torus_2d], but here it is ring_1d"},
	} {
		shape.Collective, shape.DType = c.coll, c.dtype
		_, err := s.Choose(shape, c.entry)
		require.EqualError(t, err, c.want)
		if c.entry == "chian" || c.entry == "grid" {
			require.ErrorAs(t, err, new(*InvalidArgumentError))
		} else {
			require.ErrorIs(t, err, ErrNotImplemented)
		}
	}
	shape.Collective, shape.DType = CollAllReduce, Int16
	_, err = s.Choose(shape, "chain")
	require.ErrorIs(t, err, ErrNotImplemented)
	var panicked *KernelPanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "chain all_reduce", panicked.Kernel)
}

package ccl

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// DefaultRegistry returns a copy of what Register has added. Register panics on a name that is taken
// and on an invalid algorithm.
func TestRegister(t *testing.T) {
	previous := defaultRegistry
	defer func() { defaultRegistry = previous }()
	defaultRegistry = Registry{}
	good := func(name string) *Algorithm {
		return &Algorithm{Name: name, Doc: "for tests", Kernels: map[Collective]*Kernel{
			CollBroadcast: {Doc: "for tests", Cost: func(Shape) Cost { return Cost{} }, Run: func(*Call) error { return nil }},
		}}
	}
	b, a := good("b"), good("a")
	Register(b)
	before := DefaultRegistry()
	Register(a)
	require.Equal(t, Registry{"b": b}, before)
	require.Equal(t, []string{"a", "b"}, slices.Sorted(maps.Keys(DefaultRegistry())))
	require.Same(t, a, DefaultRegistry()["a"])

	require.PanicsWithValue(t, `ccl: algorithm "a" is registered twice`, func() { Register(good("a")) })
	for want, spoil := range map[string]func(*Algorithm){
		`ccl: algorithm has no name`:                                       func(a *Algorithm) { a.Name = "" },
		`ccl: algorithm "c" is undocumented; its Doc has to be a sentence`: func(a *Algorithm) { a.Doc = "" },
		`ccl: algorithm "c" has no kernels`:                                func(a *Algorithm) { a.Kernels = nil },
		`ccl: algorithm "c" has a kernel for barrier, which no kernel does`: func(a *Algorithm) {
			a.Kernels[CollBarrier] = a.Kernels[CollBroadcast]
		},
		`ccl: algorithm "c": the kernel for broadcast has no Run`:                                                     func(a *Algorithm) { a.Kernels[CollBroadcast].Run = nil },
		`ccl: algorithm "c": the kernel for broadcast is undocumented; its Doc has to be a sentence, with the source`: func(a *Algorithm) { a.Kernels[CollBroadcast].Doc = "" },
		`ccl: algorithm "c": the kernel for broadcast declares no Cost`:                                               func(a *Algorithm) { a.Kernels[CollBroadcast].Cost = nil },
		`ccl: algorithm "c": the kernel for broadcast is Eager but not AnyRunner`:                                     func(a *Algorithm) { a.Kernels[CollBroadcast].Eager = true },
		`ccl: algorithm "c" is faulty: its Params returns a int, and has to return a pointer to a struct`: func(a *Algorithm) {
			a.Params = func() any { return 3 }
		},
	} {
		bad := good("c")
		spoil(bad)
		require.PanicsWithValue(t, want, func() { Register(bad) })
		require.EqualError(t, bad.Validate(), want)
	}
	var none *Algorithm
	require.EqualError(t, none.Validate(), "ccl: algorithm is nil")
}

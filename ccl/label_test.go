package ccl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The request of a call has its label, also if the call has other options or is started by another
// package's option.
func TestRequestHasLabel(t *testing.T) {
	label := func(opts ...CallOption) string {
		return new(engine).ask(CollBarrier, 0, Buffer{}, Buffer{}, opts).opts.label
	}
	require.Empty(t, label())
	require.Equal(t, "loss", label(WithLabel("loss")))
	require.Equal(t, "loss", label(WithLabel("first"), WithLabel("loss"), WithLabel(""), WithAlgorithm("ring")))
	require.Equal(t, "loss", label(WithTorchNames(WithTimeout(-1), WithLabel("loss"))))
}

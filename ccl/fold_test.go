package ccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/reduce"
)

// Results are stored past the caches if all of them are large and none is stored
// where it was read.
func TestPastCaches(t *testing.T) {
	const ranks = 4
	share := (reduce.CacheBytes() + 31) / (2 * ranks * ranks) // of inputs and outputs, by four ranks
	var inputs, outputs [][]byte
	for range ranks {
		inputs, outputs = append(inputs, make([]byte, 1)), append(outputs, make([]byte, 1))
	}
	mixed := append([][]byte{inputs[1]}, outputs[1:]...)
	for _, c := range []struct {
		name    string
		outputs [][]byte
		share   int
		want    bool
	}{
		{"apart", outputs, share, true},
		{"apart, but in the caches", outputs, share - 1, false},
		{"in place", inputs, 100 * share, false},
		{"one in place", mixed, 100 * share, false},
		{"to one rank, which reads it next", outputs[:1], 100 * share, false},
	} {
		f := newFolder(ranks)
		for _, b := range inputs {
			f.from(b)
		}
		for _, b := range c.outputs {
			f.to(b)
		}
		require.Equal(t, c.want, f.pastCaches(c.share), c.name)
	}
}

package reducer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/transport/local"
)

// Results are stored past the caches if all of them are large and none overwrites an input.
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
		f := New(ranks)
		for _, b := range inputs {
			f.From(b)
		}
		for _, b := range c.outputs {
			f.To(b)
		}
		require.Equal(t, c.want, f.pastCaches(c.share), c.name)
	}
}

// A copy past the caches is right wherever its buffers begin and end.
func TestCopy(t *testing.T) {
	ep := local.New(1)[0]
	f := New(1)
	src := make([]byte, 2*chunkBytes+200)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	for _, work := range []int{0, reduce.CacheBytes() + 1} {
		for _, n := range []int{0, 1, 63, 64, 65, 1000, chunkBytes + 1, 2*chunkBytes + 100} {
			for _, at := range []int{0, 1, 32, 63} {
				dst := make([]byte, len(src)+64)
				require.True(t, f.Copy(dst[at:at+n], src[at/2:at/2+n], work, ep))
				require.Equal(t, src[at/2:at/2+n], dst[at:at+n])
				require.Equal(t, make([]byte, at), dst[:at])
				require.Equal(t, make([]byte, len(dst)-at-n), dst[at+n:])
			}
		}
	}
}

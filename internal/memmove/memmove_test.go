package memmove

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Copy writes the right bytes and nothing around them, for lengths around the thresholds and at
// random alignments.
func TestCopy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 3*least)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	lengths := []int{0, 1, 63, 64, 65, least - 1, least, least + 1, 2*least + 17}
	for _, n := range lengths {
		for range 40 {
			from, to := r.IntN(100), r.IntN(100)
			dst := bytes.Repeat([]byte{0xa5}, n+200)
			want := bytes.Clone(dst)
			copy(want[to:], src[from:from+n])
			Copy(dst[to:], src[from:from+n])
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes from %d to %d", n, from, to)
			}
		}
	}
}

func TestCopyRefusesWhatIsTooShort(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a destination that is too short was accepted")
		}
	}()
	Copy(make([]byte, 2*least-1), make([]byte, 2*least))
}

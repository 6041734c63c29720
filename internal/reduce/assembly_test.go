//go:build amd64 && !noasm && !race

package reduce

import (
	"testing"
)

// A goroutine cannot be stopped in assembly: no call works on more than 256 KiB,
// unless there are so many buffers that a block of each is more.
func TestCallsAreShort(t *testing.T) {
	for buffers := 1; buffers <= 1024; buffers++ {
		piece := pieceBytes(buffers)
		if piece*buffers > 256<<10 {
			t.Errorf("%d buffers: %d bytes of each are too many", buffers, piece)
		}
		if piece < 256 || piece%256 != 0 {
			t.Errorf("%d buffers: %d bytes of each are not whole blocks", buffers, piece)
		}
	}
}

// The Go loops are left the elements for which there is no instruction, and no
// more.
func TestAssemblyFolds(t *testing.T) {
	rest := map[implementation]int{plain: 1 << 20, avx2: 32, avx512: 1}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, typ := range []Type{Uint8, Int32, Int64, Float32, Float64, Float16, BFloat16} {
			for bytes := 0; bytes <= 1000; bytes += typ.Size() {
				rest := rest[m]
				if m == avx512 && bytes < 64 {
					rest = 32
				}
				p := pointers([]buffer[uint8]{full(bytes, uint8(0)), full(bytes, uint8(0))})
				if done := m.fold(typ, Sum, p, p, bytes, 1, false); done != bytes-bytes%rest {
					t.Fatalf("%v, %d bytes: assembly folds %d", typ, bytes, done)
				}
			}
		}
	})
}

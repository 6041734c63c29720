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
// more, and the operations that have no assembly: averages of the types that are not
// divided there, and complex products.
func TestAssemblyFolds(t *testing.T) {
	missing := func(typ Type, op Op) bool {
		switch typ {
		case Int8, Int16, Uint16, Uint32, Uint64:
			return op == Avg
		case Complex64, Complex128:
			return op == Product
		}
		return false
	}
	rest := map[implementation]int{plain: 1 << 20, avx2: 32, avx512: 1}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for typ := range Type(len(types)) {
			for _, op := range opsOf(typ) {
				for bytes := 0; bytes <= 1000; bytes += typ.Size() {
					rest := rest[m]
					if m == avx512 && bytes < 64 {
						rest = 32
					}
					if missing(typ, op) {
						rest = 1 << 20
					}
					p := pointers([]buffer[uint8]{full(bytes, uint8(0)), full(bytes, uint8(0))})
					if done := m.fold(typ, op, p, p, 0, bytes, 1, false); done != bytes-bytes%rest {
						t.Fatalf("%v of %v, %d bytes: assembly folds %d", op, typ, bytes, done)
					}
				}
			}
		}
	})
}

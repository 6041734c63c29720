//go:build amd64 && !noasm && !race

package reduce

import (
	"testing"
)

// A goroutine cannot be stopped in assembly, so no call works on more than 256 KiB, unless one block
// of each buffer exceeds that.
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

// The loops in Go reduce the elements that do not fill a vector, and the operations for which no
// type's assembly gives the right bits.
func TestAssemblyReduces(t *testing.T) {
	missing := func(typ Type, op Op) bool {
		switch typ {
		case Int16, Uint16:
			return op == Sum || op == Avg || op == Product || op == Min || op == Max
		case Int8, Uint32, Uint64:
			return op == Avg || op == Min || op == Max
		case Complex64, Complex128:
			return op == Product
		}
		return false
	}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for typ := range Type(len(types)) {
			for _, op := range opsOf(typ) {
				for bytes := 0; bytes <= 1000; bytes += typ.Size() {
					rest := bytes % 32
					if m == plain || missing(typ, op) {
						rest = bytes
					}
					p := pointers([]buffer[uint8]{full(bytes, uint8(0)), full(bytes, uint8(0))})
					if done := m.reduce(typ, op, p, p, 0, bytes, 1, false); done != bytes-rest {
						t.Fatalf("%v of %v, %d bytes: assembly reduces %d", op, typ, bytes, done)
					}
				}
			}
		}
	})
}

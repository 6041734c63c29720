package packet

import "github.com/goccl/goccl/internal/interleave"

// poolSizes are the lengths in bytes of memory for packets.
var poolSizes = [...]int{256, ShortBytes, PartBytes, MaxBytes}

// Pool is memory for packets of a wire.
type Pool struct {
	mu   interleave.Mutex
	free [len(poolSizes)][][]byte
}

// Take returns n bytes.
func (p *Pool) Take(n int) []byte {
	if n > MaxBytes {
		return make([]byte, n) // rarely: what is long goes where it is needed
	}
	class := 0
	for n > poolSizes[class] {
		class++
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	free := &p.free[class]
	if last := len(*free) - 1; last >= 0 {
		b := (*free)[last]
		*free = (*free)[:last]
		return b[:n]
	}
	return make([]byte, n, poolSizes[class])
}

// Return takes back what Take has returned.
func (p *Pool) Return(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class, size := range poolSizes {
		if cap(b) == size {
			p.free[class] = append(p.free[class], b)
		}
	}
}

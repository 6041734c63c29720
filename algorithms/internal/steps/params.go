package steps

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Params are the parameters of an algorithm that sends long vectors in chunks.
type Params struct {
	// Chunk is the length of the longest message, in bytes, at least 64. A power of two
	// keeps the chunks aligned.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"longest message, in bytes"`
}

// Validate rejects a chunk that cannot hold an element of every type.
func (p *Params) Validate() error {
	if p.Chunk < 64 {
		return fmt.Errorf("chunk is %v, want at least 64 bytes", p.Chunk)
	}
	return nil
}

// Parts returns the number of parts, at least 1, into which a vector is cut so that each
// is at most n chunks long.
func Parts(bytes, n int, chunk ccl.ByteSize) int {
	longest := n * int(chunk)
	return max(1, (bytes+longest-1)/longest)
}

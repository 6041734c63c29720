// Package blocked provides the algorithm "blocked": an all-reduce through a window,
// a block at a time.
package blocked

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

func init() { ccl.Register(Algorithm) }

// Params are what an entry with `module: blocked` can say under params.
type Params struct {
	// Block bounds what is folded at once, so that the blocks of all ranks fit
	// into the cache together.
	Block ccl.ByteSize `yaml:"block" doc:"most that is folded at once, in bytes"`
}

// Validate reports a block that holds no element.
func (p *Params) Validate() error {
	if p.Block < 64 {
		return fmt.Errorf("block is %v, want at least 64 bytes", p.Block)
	}
	return nil
}

// Algorithm is the algorithm that `module: blocked` in ccl.yaml names.
var Algorithm = &ccl.Algorithm{
	Name:   "blocked",
	Doc:    "every rank folds its share of everybody's buffers, a block at a time",
	Params: func() any { return &Params{Block: 16 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:          "folds blocks of a window in rank order",
			Supports:     supports,
			Cost:         cost,
			Eager:        true, // short inputs may come with the synchronisation
			AnyRunner:    true, // no messages: any goroutine may run it for any rank
			ReadsOwnPart: true, // and of the others' inputs it looks at its share only
			Run:          allReduce,
		},
	},
}

// supports leaves the average of integers, which is cut, to others.
func supports(s ccl.Shape) error {
	if s.Op == ccl.Avg && s.DType != ccl.Float32 && s.DType != ccl.Float64 {
		return errors.New("averages are for floats here")
	}
	return nil
}

func allReduce(c *ccl.Call) error {
	block := int(ccl.ParamsOf[Params](c).Block) / c.Shape().DType.Size()
	return c.View(func(w *ccl.View) error {
		share := w.Mine() // what this rank is to fold of this piece
		for lo := share.Lo; lo < share.Hi; lo += block {
			if err := w.ReduceToAll(ccl.Range{Lo: lo, Hi: min(lo+block, share.Hi)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// cost: every byte is read from all ranks but the one that folds it, and stored to
// as many. What came with the synchronisation costs nothing.
func cost(s ccl.Shape) ccl.Cost {
	if s.Eager {
		return ccl.Cost{}
	}
	return ccl.Cost{Steps: 1, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

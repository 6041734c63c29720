// Package blocked provides the algorithm "blocked": an all-reduce through a view,
// block by block.
package blocked

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: blocked`.
type Params struct {
	// Block is the most that is reduced at once. The blocks of all ranks should fit
	// into the cache together.
	Block ccl.ByteSize `yaml:"block" doc:"most that is reduced at once, in bytes"`
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
	Doc:    "every rank reduces its part of all ranks' buffers, block by block",
	Params: func() any { return &Params{Block: 16 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:          "reduces blocks of a view in rank order",
			Supports:     supports,
			Cost:         cost,
			Eager:        true, // short inputs may come with the synchronisation
			AnyRunner:    true, // no messages: any goroutine may run it for any rank
			ReadsOwnPart: true, // and it reads only its own part of the other ranks' inputs
			Run:          allReduce,
		},
	},
}

// supports rejects the average of integers, which is truncated.
func supports(s ccl.Shape) error {
	if s.Op == ccl.Avg && s.DType != ccl.Float32 && s.DType != ccl.Float64 {
		return errors.New("averages are for floats here")
	}
	return nil
}

func allReduce(c *ccl.Call) error {
	block := int(ccl.ParamsOf[Params](c).Block) / c.Shape().DType.Size()
	return c.View(func(v *ccl.View) error {
		part := v.Part() // the part of this piece that this rank reduces
		for lo := part.Lo; lo < part.Hi; lo += block {
			if err := v.ReduceToAll(ccl.Range{Lo: lo, Hi: min(lo+block, part.Hi)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// cost: every byte is read from all ranks except the one that reduces it, and stored to
// as many. Inputs that came with the synchronisation cost nothing.
func cost(s ccl.Shape) ccl.Cost {
	if s.Eager {
		return ccl.Cost{}
	}
	return ccl.Cost{Steps: 1, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

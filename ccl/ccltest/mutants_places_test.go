package ccltest

import "github.com/goccl/goccl/ccl"

// placeMutants write where they may not, or do not get along with where their
// buffers lie.
func placeMutants() []mutant {
	reduce, gather := ccl.CollAllReduce, ccl.CollAllGather
	return []mutant{
		{"writes to its input", "Guards", reduce, after(func(c *ccl.Call, err error) error {
			c.In().Bytes()[0]++
			return err
		}), nil},
		{string(peersInput), "Guards", reduce, viewReduceKernel(peersInput), nil},
		{"writes to the gaps of an all-gather", "Guards", gather, gapWriter(), nil},
		{string(packs), "Guards", gather, ringGatherKernel(packs), nil},
		{"works out of place only", "InPlace", reduce, outOfPlace(), nil},
		{"takes all ranks to work in place if its own does", "InPlace", gather, allAlike(), hangs},
	}
}

// gapWriter clears its whole output before it gathers.
func gapWriter() *ccl.Kernel {
	k := ringGatherKernel(none)
	k.Run = func(c *ccl.Call) error {
		mine := append([]byte(nil), c.In().Bytes()...)
		clear(c.Out().Bytes())
		copy(c.OutBlock(c.Rank()).Bytes(), mine)
		return ringGather(none)(c)
	}
	return k
}

// outOfPlace clears its output before it reads its input.
func outOfPlace() *ccl.Kernel {
	k := ringReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		clear(c.Out().Bytes())
		return ringReduce(none)(c)
	}
	return k
}

// allAlike passes a token around before it gathers, but not where it works in place.
func allAlike() *ccl.Kernel {
	k := ringGatherKernel(none)
	k.Run = func(c *ccl.Call) error {
		mine := c.OutBlock(c.Rank())
		if mine.Len() == 0 || c.In().Len() == 0 || &mine.Bytes()[0] != &c.In().Bytes()[0] {
			next, prev := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
			if err := c.SendRecv(next, ccl.Buffer{}, prev, ccl.Buffer{}); err != nil {
				return err
			}
		}
		return ringGather(none)(c)
	}
	return k
}

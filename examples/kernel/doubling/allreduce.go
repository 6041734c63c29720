package doubling

import (
	"math/bits"

	"github.com/goccl/goccl/ccl"
)

// parts returns the number of rounds, the largest with 2^rounds <= ranks, and the number
// of ranks that are left over.
func parts(ranks int) (rounds, extra int) {
	rounds = bits.Len(uint(ranks)) - 1
	return rounds, ranks - 1<<rounds
}

func allReduce(c *ccl.Call) error {
	me, in, out := c.Rank(), c.In(), c.Out()
	rounds, extra := parts(c.Size())
	power := 1 << rounds
	if me >= power { // a rank that is left over: another acts for it
		if err := c.Send(me-power, in); err != nil {
			return err
		}
		return c.Recv(me-power, out)
	}
	have, next, spare := in, c.Scratch(in.Len()), out // out may be in: it comes last
	if me < extra {
		if err := c.RecvReduce(me+power, next, have); err != nil {
			return err
		}
		have, next, spare = next, spare, next
	}

	for d := 1; d < power; d *= 2 {
		if err := c.SendRecvReduce(me^d, have, me^d, next, have); err != nil {
			return err
		}
		have, next, spare = next, spare, next
	}
	c.Epilogue(have)
	if err := c.Copy(out, have); err != nil || me >= extra {
		return err
	}
	return c.Send(me+power, out)
}

func cost(s ccl.Shape) ccl.Cost {
	rounds, extra := parts(s.Ranks)
	return ccl.Cost{Steps: rounds + 2*min(extra, 1), Bytes: (rounds<<rounds + 2*extra) * s.Bytes}
}

package ccltest

import (
	"errors"
	"runtime/debug"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// culprit is a rank whose kernel panicked or failed by itself. Its call returns another
// error if another rank failed first, perhaps as a consequence.
type culprit struct {
	rank int
	err  error
}

// runKernel runs the subject's kernel, records culprits, and calls observe unless that is
// nil. runFrame contains its name.
func (g *group) runKernel(c *ccl.Call, observe func(*ccl.Call)) (err error) {
	defer func() {
		v := recover()
		if v != nil {
			name := g.s.entry() + " " + g.s.coll.String()
			err = &ccl.KernelPanicError{Kernel: name, Value: v, Stack: debug.Stack()}
		}
		if v != nil || err != nil && g.byItself(c.Rank(), err) {
			g.culprit.CompareAndSwap(nil, &culprit{c.Rank(), err})
		}
	}()

	err = g.s.kernel().Run(c)
	if observe != nil {
		observe(c)
	}
	return err
}

// byItself reports whether the error of rank's kernel did not come from a verb.
func (g *group) byItself(rank int, err error) bool {
	return !g.ranks[rank].trace.verb() && weight(err) == ownFault && !errors.Is(err, transport.ErrFailed)
}

// The values of weight.
const (
	anEcho = iota // a consequence of another rank's error
	aMiss         // messages did not match
	ownFault
)

// weight rates how close err is to the cause of a failure.
func weight(err error) int {
	_, aborted := errors.AsType[*transport.AbortedError](err)
	_, lost := errors.AsType[*transport.PeerLostError](err)
	switch {
	case aborted || lost:
		return anEcho
	case blame(err) == "Messages":
		return aMiss
	}
	return ownFault
}

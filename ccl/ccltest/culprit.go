package ccltest

import (
	"errors"
	"runtime/debug"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// culprit is a rank whose kernel panicked or failed by itself. What with is lost to
// its call if another rank has failed before, perhaps by a consequence.
type culprit struct {
	rank int
	err  error
}

// runKernel runs the subject's kernel, looks for culprits, and calls observe, unless
// that is nil. By its name kernels are found in stacks: see runFrame.
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

// byItself reports whether no verb has led to the error of rank's kernel.
func (g *group) byItself(rank int, err error) bool {
	return !g.ranks[rank].trace.verb() && weight(err) == ownFault && !errors.Is(err, transport.ErrFailed)
}

// How near errors are to the cause, see weight.
const (
	anEcho = iota // what another rank's error led to
	aMiss         // messages missed each other
	ownFault
)

// weight says how near err is to the cause of what went wrong.
func weight(err error) int {
	_, aborted := errors.AsType[*ccl.AbortedError](err)
	_, lost := errors.AsType[*ccl.PeerLostError](err)
	switch {
	case aborted || lost:
		return anEcho
	case blame(err) == "Messages":
		return aMiss
	}
	return ownFault
}

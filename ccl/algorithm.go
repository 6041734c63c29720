package ccl

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/goccl/goccl/topology"
)

// Algorithm is a family of kernels that `module:` in ccl.yaml names: a
// documented value, registered from an init function (see Register).
type Algorithm struct {
	// Name is what `module:` says; Doc is one sentence or more about it.
	Name, Doc string
	// Topologies are the kinds the algorithm is for; nil means any.
	Topologies []topology.Kind
	// Params returns a fresh pointer to a struct that holds the defaults; an
	// entry's `params:` are filled in strictly, by the fields' yaml tags, and
	// kernels get it through ParamsOf. Fields can be bool, int, string,
	// time.Duration and ByteSize; a doc tag describes one in a few words. nil: the
	// algorithm has no parameters. If the struct has a method Validate() error,
	// it is called after filling.
	Params func() any
	// Kernels holds one kernel for each collective the algorithm implements.
	Kernels map[Collective]*Kernel
}

// Kernel is one collective done by one algorithm.
type Kernel struct {
	// Doc is a sentence about how it is done, with the source.
	Doc string
	// Supports says in words why a shape is not supported; nil: all are. A call
	// of a shape that is not is refused before any data moves.
	Supports func(Shape) error
	// Cost declares what an execution costs. The conformance suite measures it. For a
	// scan through a window it is what that takes where ranks share memory: where its
	// inputs are copied, every rank folds for itself, and reads those of all ranks
	// before it.
	Cost func(Shape) Cost
	// Eager: for small inputs the kernel's window may show the payloads that
	// travel with the synchronisation instead of the ranks' own buffers. It
	// saves the second synchronisation.
	Eager bool
	// AnyRunner: the kernel uses a window and no messages, and does not ask who
	// runs it: its Run may be executed for any rank by any goroutine.
	AnyRunner bool
	// ReadsOwnPart: of the inputs of others the kernel looks at its part (View.Mine) of each piece only,
	// as ReduceToAll does, or in a reduce-scatter at its block. What a rank would look at of its own need not be copied to
	// where others see it, where it has to be copied at all.
	ReadsOwnPart bool
	// Ordered: the kernel folds ranks in their order, x0 op x1 op x2 ..., whatever it
	// brackets, so that operations that do not commute are safe with it. Others are
	// refused such operations.
	Ordered bool
	// Run executes the call on one rank. It is not called in groups of one rank,
	// nor where nothing moves (Shape.Total is 0): there is nothing to do.
	Run func(*Call) error
}

// Shape is what all ranks of a call share and what decides which kernel runs. The
// root and the lengths of blocks are not in it: Supports and Cost depend on Bytes and
// Total, and where blocks that are not alike cost otherwise, Cost is that of such as
// are.
type Shape struct {
	Collective Collective
	Ranks      int
	Bytes      int // of one rank's input; of the longest, where they differ
	Total      int // bytes of the result on one rank; of the longest
	DType      DType
	Op         Op // Sum where the collective does not reduce
	Topology   *topology.Topology
	Params     any  // of the algorithm's entry, as its Params made them
	Eager      bool // the inputs travel with the synchronisation
}

// String describes the shape for messages: "all_reduce (float32, sum, 65536 bytes, 4 ranks)".
func (s Shape) String() string {
	text := s.Collective.String() + " ("
	if slices.Contains(DTypes(), s.DType) {
		text += s.DType.String() + ", "
	}
	if s.Collective.Reduces() {
		text += s.Op.String() + ", "
	}
	return text + fmt.Sprintf("%d bytes, %d ranks)", s.Bytes, s.Ranks)
}

// Cost is what one call of a kernel costs, over all ranks.
type Cost struct {
	// Steps is the number of messages on the longest chain in which each has to
	// wait for the one before it; an empty message counts, and a window counts as
	// one.
	Steps int
	// Bytes is what all ranks together send to others, or read from and store to
	// the buffers of others through a window. Payloads that travel with the
	// synchronisation are free.
	Bytes int
}

// Validate says what is missing in an algorithm's description.
func (a *Algorithm) Validate() error {
	switch {
	case a == nil:
		return fmt.Errorf("ccl: algorithm is nil")
	case a.Name == "":
		return fmt.Errorf("ccl: algorithm has no name")
	case a.Doc == "":
		return fmt.Errorf("ccl: algorithm %q is undocumented; its Doc has to be a sentence", a.Name)
	case len(a.Kernels) == 0:
		return fmt.Errorf("ccl: algorithm %q has no kernels", a.Name)
	}
	for coll, k := range a.Kernels {
		switch {
		case !slices.Contains(Collectives(), coll):
			return fmt.Errorf("ccl: algorithm %q has a kernel for %v, which no kernel does", a.Name, coll)
		case k == nil || k.Run == nil:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v has no Run", a.Name, coll)
		case k.Doc == "":
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v is undocumented; its Doc has to be a sentence, with the source", a.Name, coll)
		case k.Cost == nil:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v declares no Cost", a.Name, coll)
		case k.Eager && !k.AnyRunner:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v is Eager but not Shared", a.Name, coll)
		}
	}
	_, err := a.Parameters()
	return err
}

// Supports returns why the algorithm cannot do calls of this shape, nil if it can: it has
// no kernel for the collective, the operation does not commute and the kernel is not
// Ordered, or the kernel's own Supports says no. If that panics, the error is a
// *KernelPanicError.
func (a *Algorithm) Supports(shape Shape) (err error) {
	kernel := a.Kernels[shape.Collective]
	if kernel == nil {
		return fmt.Errorf("algorithm %s has no kernel for %s", a.Name, shape.Collective)
	}
	if shape.Collective.Reduces() && !kernel.Ordered && !shape.Op.commutes() {
		return fmt.Errorf("operation %v does not commute, and the kernel does not keep the order of ranks", shape.Op)
	}
	if kernel.Supports == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = &KernelPanicError{Kernel: a.Name + " " + shape.Collective.String(), Value: v, Stack: debug.Stack()}
		}
	}()
	return kernel.Supports(shape)
}

package ccl

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/goccl/goccl/bytesize"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/params"
	"github.com/goccl/goccl/topology"
)

// Algorithm is a family of kernels that `module:` in ccl.yaml names. Packages register it from an
// init function (see Register).
type Algorithm struct {
	// Name is the value of `module:`. Doc describes the algorithm in one sentence or more.
	Name, Doc string
	// Topologies are the kinds of topology that the algorithm supports; nil: all.
	Topologies []topology.Kind
	// Params returns a new pointer to a struct with the default parameters; nil: the algorithm
	// has none. An entry's `params:` are filled in by the fields' yaml tags; unknown keys are
	// errors. Kernels get the struct through ParamsOf. Fields can be bool, int, string,
	// time.Duration and ByteSize; a doc tag describes one in a few words. If the struct has a
	// method Validate() error, it is called after filling.
	Params func() any
	// Kernels holds one kernel for each collective the algorithm implements.
	Kernels map[Collective]*Kernel
}

// ByteSize is a number of bytes in an algorithm's parameters, such as 64KiB.
type ByteSize = bytesize.Size

// Kernel is how one algorithm does one collective.
type Kernel struct {
	// Doc is a sentence about the method, with its source.
	Doc string
	// Supports returns an error with the reason if a shape is not supported; nil: all shapes are. A
	// call of an unsupported shape is rejected before any data moves.
	Supports func(Shape) error
	// Cost declares the cost of a call. The conformance suite measures it. For a scan through a
	// view it is the cost where ranks share memory; where inputs are copied, every rank reduces
	// for itself and reads the inputs of all ranks before it.
	Cost func(Shape) Cost
	// Eager: for small inputs the view may show the payloads that travel with the
	// synchronisation instead of the ranks' own buffers, which saves the second
	// synchronisation.
	Eager bool
	// AnyRunner: any goroutine may execute Run for any rank. The kernel uses a view and no
	// messages, and does not depend on the goroutine that runs it. It reduces means of float16 by
	// verbs of the view, which hold sums in float32. Other kernels get the inputs of such a call as
	// float32.
	AnyRunner bool
	// ReadsOwnPart: from other ranks' inputs the kernel reads only its own part of each piece
	// (View.Part), as ReduceToAll does. In a reduce-scatter, a scatter and an all-to-all that is its
	// own block; in a gather, nothing except on the root. Transports that copy can then skip the part
	// of a rank's input that only the rank itself reads, and those that send can send each rank its
	// part alone. It has no effect on other collectives.
	ReadsOwnPart bool
	// TwoLevels: the kernel works through Call.Node and Call.Leaders, and supports only groups with
	// two levels (Shape.Nodes). Its calls on the levels synchronise the ranks: the engine does not
	// synchronise them after Run.
	TwoLevels bool
	// Ordered: the kernel reduces in rank order, x0 op x1 op x2 ..., with any brackets. Other
	// kernels reject operations that do not commute.
	Ordered bool
	// Pairwise: verbs of the view reduce in the order of a balanced binary tree over the ranks, and
	// not from the first to the last: (x0 op x1) op (x2 op x3). Of n ranks the left subtree has the
	// largest power of two below n. The kernel supports built-in operations only.
	Pairwise bool
	// Native: Run calls the transport's own collective, through Call.Native, and uses neither a view
	// nor messages. On transports that have none calls are rejected.
	Native bool
	// Run executes the call on one rank. It is not called in groups of one rank, nor if no data
	// moves (Shape.Total is 0).
	Run func(*Call) error
}

// Shape is the facts about a call that are the same on all ranks and that determine the kernel.
// It does not include the root and the lengths of blocks: Supports and Cost depend on Bytes and
// Total. If blocks of different lengths change the cost, Cost is for blocks of the same length.
type Shape struct {
	Collective Collective
	Ranks      int
	Nodes      int // if the group has two levels (see Call.Node), the number of nodes; otherwise 1, or 0 for it
	Bytes      int // of the longest input of a rank
	Total      int // bytes of the longest result of a rank
	DType      DType
	Op         Op                 // Sum if it does not reduce; logical ones have inputs 0 and 1
	Topology   *topology.Topology // kind, extents and neighbours of the group
	Params     any                // of the algorithm's entry
	Eager      bool               // the inputs travel with the synchronisation
	Native     bool               // the transport has collectives of its own
}

// String describes the shape for messages: "all_reduce (float32, sum, 65536 bytes, 4 ranks)".
func (s Shape) String() string {
	text := s.Collective.String() + " ("
	if slices.Contains(DTypes(), s.DType) {
		text += s.DType.String() + ", "
	}
	if s.Collective.Traits().Reduces {
		text += s.Op.String() + ", "
	}
	text += fmt.Sprintf("%d bytes, %d ranks", s.Bytes, s.Ranks)
	if s.Nodes > 1 {
		text += fmt.Sprintf(" on %d nodes", s.Nodes)
	}
	return text + ")"
}

// Cost is the cost of one call, over all ranks.
type Cost struct {
	// Steps is the number of messages on the longest chain in which each message waits for the
	// one before it. An empty message counts; a view counts as one.
	Steps int
	// Bytes is the number of bytes that all ranks together send, or read from and store to the
	// buffers of others through a view. Payloads that travel with the synchronisation are free.
	Bytes int
}

// Validate returns an error that names what is missing or invalid in the algorithm.
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
		// Properties that exclude or need each other.
		case k.TwoLevels && k.AnyRunner:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v is TwoLevels and AnyRunner", a.Name, coll)
		case k.Eager && !k.AnyRunner:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v is Eager but not AnyRunner", a.Name, coll)
		case k.Pairwise && !k.AnyRunner:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v is Pairwise but not AnyRunner", a.Name, coll)
		case k.Native && k.AnyRunner:
			return fmt.Errorf("ccl: algorithm %q: the kernel for %v is Native, but AnyRunner as well", a.Name, coll)
		}
	}

	_, err := params.Defaults(a.Name, a.Params)
	return err
}

// What a kernel can lack in a group, whatever the call. A group of some ranks can lack it where the
// whole has it.
var (
	errOneLevel  = errors.New("the ranks are on one node, or each on a node of its own, or not placed node by node")
	errNotNative = errors.New("it needs a transport that has collectives of its own, as mpi has")
)

// Supports returns why the algorithm cannot do calls of this shape, nil if it can: it has no kernel
// for the collective, the operation does not commute and the kernel is not Ordered, the kernel is
// Native and the transport is not, or the kernel's own Supports rejects the shape. If that panics,
// the error is a *KernelPanicError.
func (a *Algorithm) Supports(shape Shape) (err error) {
	kernel := a.Kernels[shape.Collective]
	if kernel == nil {
		return fmt.Errorf("algorithm %s has no kernel for %s", a.Name, shape.Collective)
	}
	if shape.Collective.Traits().Reduces && !kernel.Ordered && !shape.Op.commutes() {
		return fmt.Errorf("operation %v does not commute, and the kernel does not keep the order of ranks", shape.Op)
	}

	if kernel.Pairwise && !shape.Op.isBuiltin() {
		return fmt.Errorf("operation %v is not built in, and the kernel reduces as package reduce does", shape.Op)
	}
	if kernel.TwoLevels && shape.Nodes < 2 {
		return errOneLevel
	}
	if kernel.Native && !shape.Native {
		return errNotNative
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

// Registry holds algorithms by the names that `module:` in ccl.yaml uses.
type Registry map[string]*Algorithm

// defaultRegistry has the algorithms of Register.
var (
	defaultRegistry = Registry{}
	defaultMu       interleave.Mutex
)

// DefaultRegistry returns the algorithms that Register has added so far. Any goroutine may call it.
func DefaultRegistry() Registry {
	defaultMu.Lock()
	defer defaultMu.Unlock()
	return maps.Clone(defaultRegistry)
}

// Register adds an algorithm to those of the program. An algorithm's package calls it from an init
// function and is imported for that side effect.
//
// It panics if the algorithm is invalid (see Algorithm.Validate) or its name is taken: both are
// defects of the program that show when it starts.
func Register(a *Algorithm) {
	if err := a.Validate(); err != nil {
		panic(err.Error())
	}
	defaultMu.Lock()
	defer defaultMu.Unlock()
	if defaultRegistry[a.Name] != nil {
		panic(fmt.Sprintf("ccl: algorithm %q is registered twice", a.Name))
	}
	defaultRegistry[a.Name] = a
}

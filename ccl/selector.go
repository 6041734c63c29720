package ccl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/params"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// Selector chooses the kernels for one group's calls and holds the group's settings. Package
// ccl/config makes one of a ccl.yaml. All methods may be called concurrently, and each
// returns the same on every call.
type Selector interface {
	// WorldSize returns the number of ranks. New rejects a transport that connects another number.
	WorldSize() int
	// Topology returns how the ranks are arranged.
	Topology() *topology.Topology
	// Timeout returns how long a call may wait for other ranks; 0 means no limit.
	Timeout() time.Duration
	// Debug reports whether calls check that no one changes their buffers while they run.
	Debug() bool
	// Choose returns the kernel for a shape, whose Params and Eager it ignores. An entry that
	// is not empty was named by WithAlgorithm. Every rank must choose the same entry.
	Choose(shape Shape, entry string) (Choice, error)
	// Entries returns every name that Choose can return as Choice.Entry.
	Entries() []string
	// Agreement returns the settings that all ranks must share, as lines "key=value". New
	// compares the texts of all ranks byte by byte, and reports the first key that differs. A method
	// OriginOf(key string) string, if there is one, tells where a rank has its value from.
	Agreement() string
	// ForGroup returns the selector for a subgroup with that many of the ranks. The text
	// origin describes the subgroup in error messages.
	ForGroup(ranks int, origin string) (Selector, error)
}

// Choice is the kernel for the calls of one shape, and the reason for it.
type Choice struct {
	Entry     string // in ccl.yaml; without a Selector, the algorithm's name
	Algorithm *Algorithm
	Kernel    *Kernel
	Params    any    // of the entry; nil if the algorithm has none
	Why       string // such as "ccl.yaml:31: rule 1", "ccl.yaml:5: defaults.algorithm", "option"
}

// Shape returns s, the shape of a call, as the chosen kernel sees it: with Params and Eager, and
// with float32 in place of float16 for a mean, unless the kernel is AnyRunner. payloadLimit is the
// PayloadLimit of the group's transport.Endpoint.
func (ch *Choice) Shape(s Shape, payloadLimit int) Shape {
	s.Params = ch.Params
	s.Eager = ch.Kernel.Eager && s.Bytes <= payloadLimit
	if ch.Kernel.isWide(&s) {
		s.DType, s.Bytes, s.Total = Float32, 2*s.Bytes, 2*s.Total
	}
	return s
}

// WithSelector sets the group's Selector, usually a *config.Settings. Without it, or if s is nil,
// calls use the algorithm direct of the default registry, or hierarchical where a group has two
// levels and inputs are longer than 4 KiB; WithAlgorithm takes the name of any registered
// algorithm, parameters have their defaults, and the timeout is one minute.
func WithSelector(s Selector) Option { return Option{selector: s} }

// registered is the Selector of a group without WithSelector.
type registered struct {
	ring       *topology.Topology
	algorithms Registry
}

const (
	defaultEntry  = "direct"
	twoLevelEntry = "hierarchical"
)

// flatBytes is the length in bytes of the longest input for which two levels are not worth while:
// it travels with the synchronisation. The built-in ccl.yaml has it too.
const flatBytes = 4 << 10

func newRegistered(ranks int) (Selector, error) {
	algorithms := DefaultRegistry()
	if algorithms[defaultEntry] == nil {
		return nil, errors.New("no algorithm direct is registered; import github.com/goccl/goccl/algorithms, or pass WithSelector")
	}
	ring, err := topology.New(topology.Ring1D, ranks, 0, 0)
	return registered{ring, algorithms}, err
}

func (registered) Debug() bool                                    { return false }
func (registered) Timeout() time.Duration                         { return time.Minute }
func (r registered) Entries() []string                            { return slices.Sorted(maps.Keys(r.algorithms)) }
func (r registered) Topology() *topology.Topology                 { return r.ring }
func (r registered) WorldSize() int                               { return r.ring.Count() }
func (registered) ForGroup(ranks int, _ string) (Selector, error) { return newRegistered(ranks) }

func (r registered) Agreement() string {
	var lines strings.Builder
	for _, name := range r.Entries() {
		fmt.Fprintf(&lines, "algorithms.%s.module=%s\n", name, name)
		all, _ := params.Defaults(name, r.algorithms[name].Params) // Register has checked them
		for _, p := range all {
			fmt.Fprintf(&lines, "algorithms.%s.params.%s=%s\n", name, p.Key, p)
		}
	}
	return lines.String()
}

func (r registered) Choose(shape Shape, entry string) (Choice, error) {
	name := cmp.Or(entry, defaultEntry)
	if two := r.algorithms[twoLevelEntry]; two != nil && entry == "" && shape.Bytes > flatBytes && two.Supports(shape) == nil {
		name = twoLevelEntry
	}
	a := r.algorithms[name]
	if a == nil {
		names := r.Entries()
		return Choice{}, &InvalidArgumentError{shape.Collective.String(), fmt.Sprintf("no algorithm %s is registered%s; registered: %s",
			text.Quote(name), text.DidYouMean(name, names), text.List(names))}
	}

	if a.Topologies != nil && !slices.Contains(a.Topologies, topology.Ring1D) {
		return Choice{}, &InvalidArgumentError{shape.Collective.String(), fmt.Sprintf("algorithm %s is for the topologies %v, but here it is ring_1d", name, a.Topologies)}
	}
	ch := Choice{Entry: name, Algorithm: a, Kernel: a.Kernels[shape.Collective], Why: "default"}
	if entry != "" {
		ch.Why = "option"
	}

	if a.Params != nil {
		ch.Params = a.Params()
	}
	shape.Params, shape.Eager = ch.Params, false
	if err := a.Supports(shape); err != nil {
		return Choice{}, fmt.Errorf("ccl: %s: %w by %s: %w (chosen by %s)", shape, ErrNotImplemented, name, err, ch.Why)
	}
	return ch, nil
}

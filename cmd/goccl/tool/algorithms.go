package tool

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/params"
	"github.com/goccl/goccl/topology"
)

// catalogue is the result of `goccl explain --algorithms`, and its JSON.
type catalogue struct {
	Algorithms []algorithm `json:"algorithms"`
}

type algorithm struct {
	Name       string      `json:"name"`
	Doc        string      `json:"doc"`
	Topologies []string    `json:"topologies"` // empty: any
	Parameters []parameter `json:"parameters"`
	Kernels    []kernel    `json:"kernels"`
}

// parameter is a key of an entry's params.
type parameter struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
}

// kernel is one collective of an algorithm, with the default parameters.
type kernel struct {
	Collective ccl.Collective `json:"collective"`
	Doc        string         `json:"doc"`
	Eager      bool           `json:"eager"`
	Shared     bool           `json:"shared"`
	TwoLevels  bool           `json:"two_levels"` // for groups with two levels; the shapes have two nodes
	Native     bool           `json:"native"`     // it calls the transport's own collective
	Sampled    int            `json:"sampled"`    // number of shapes that Supports was called with; 0: it supports all
	Refuses    []refusal      `json:"refuses"`    // those that it does not support
	Costs      []costSample   `json:"costs"`
}

// refusal is a reason why shapes are not supported.
type refusal struct {
	Reason  string `json:"reason"`
	Shapes  int    `json:"shapes"`  // how many of the sampled ones
	Example string `json:"example"` // the first one
}

// costSample is the declared cost of a call, with float32 and sum.
type costSample struct {
	Topology string `json:"topology"` // "torus_2d 3x2 (6 ranks)"
	Ranks    int    `json:"ranks"`
	Bytes    int    `json:"bytes"` // of one rank's input
	Eager    bool   `json:"eager"` // the inputs travel with the synchronisation
	Steps    int    `json:"steps"`
	Moved    int    `json:"moved"` // bytes, over all ranks
	Refused  bool   `json:"refused"`

	topology *topology.Topology
}

// The numbers of ranks and lengths for which the costs of kernels are shown, and the
// numbers of ranks for which Supports is called.
var (
	costRanks    = []int{2, 4, 8, 16}
	costBytes    = []int{1 << 10, 64 << 10, 1 << 20, 64 << 20}
	supportRanks = []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 16}
)

// eagerBytes is a length that travels with the synchronisation on every transport that
// allows any.
const eagerBytes = 8

func describeAlgorithms(w io.Writer, registry ccl.Registry, c *explainCommand) error {
	all := catalogue{Algorithms: []algorithm{}}
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		described, err := describe(registry[name])
		if err != nil {
			return err
		}
		all.Algorithms = append(all.Algorithms, described)
	}
	return show(w, c.JSON, all, func(w io.Writer) error { return all.write(w, c.page("--algorithms")) })
}

func describe(a *ccl.Algorithm) (algorithm, error) {
	d := algorithm{Name: a.Name, Doc: a.Doc, Topologies: []string{}, Parameters: []parameter{}}
	for _, k := range a.Topologies {
		d.Topologies = append(d.Topologies, k.String())
	}
	all, err := params.Defaults(a.Name, a.Params)
	if err != nil {
		return d, err
	}
	for _, p := range all {
		d.Parameters = append(d.Parameters, parameter{p.Key, p.Type(), p.String(), p.Doc})
	}

	for _, coll := range ccl.Collectives() {
		if a.Kernels[coll] != nil {
			k, err := describeKernel(a, coll)
			if err != nil {
				return d, err
			}
			d.Kernels = append(d.Kernels, k)
		}
	}
	return d, nil
}

func describeKernel(a *ccl.Algorithm, coll ccl.Collective) (kernel, error) {
	p := probe{a, coll, a.Kernels[coll]}
	d := kernel{Collective: coll, Doc: p.Doc, Eager: p.Eager, Shared: p.AnyRunner, TwoLevels: p.TwoLevels, Native: p.Native, Refuses: []refusal{}}
	err := p.eachTopology(costRanks, func(t *topology.Topology) {
		for _, bytes := range costBytes {
			d.Costs = append(d.Costs, p.cost(p.shape(ccl.Float32, ccl.Sum, bytes, t)))
		}
		if p.Eager {
			s := p.shape(ccl.Float32, ccl.Sum, eagerBytes, t)
			s.Eager = true
			d.Costs = append(d.Costs, p.cost(s))
		}
	})

	if err != nil || p.Supports == nil {
		return d, err
	}

	err = p.eachTopology(supportRanks, func(t *topology.Topology) {
		for _, s := range p.shapes(t) {
			if p.tooFewRanks(s) {
				continue
			}
			d.Sampled++
			if err := p.Supports(s); err != nil {
				d.refuse(s, err.Error())
			}
		}
	})
	return d, err
}

// probe queries a kernel.
type probe struct {
	algorithm *ccl.Algorithm
	coll      ccl.Collective
	*ccl.Kernel
}

// eachTopology calls f with a topology of each kind that the algorithm has, for each number of
// ranks.
func (p probe) eachTopology(ranks []int, f func(*topology.Topology)) error {
	for _, kind := range orElse(p.algorithm.Topologies, topology.Ring1D) {
		for _, n := range ranks {
			t, err := arrange(kind, n)
			if err != nil {
				return err
			}
			f(t)
		}
	}
	return nil
}

func (p probe) shape(dtype ccl.DType, op ccl.Op, bytes int, t *topology.Topology) ccl.Shape {
	s := measure.ShapeOf(p.coll, dtype, op, bytes, t)
	s.Nodes = 1
	if p.TwoLevels {
		s.Nodes = 2
	}
	if p.algorithm.Params != nil {
		s.Params = p.algorithm.Params()
	}
	return s
}

// tooFewRanks reports whether no group with two levels has so few ranks, and the kernel needs one.
func (p probe) tooFewRanks(s ccl.Shape) bool { return p.TwoLevels && s.Ranks <= s.Nodes }

// shapes returns shapes of all types and operations, and of the lengths costBytes.
func (p probe) shapes(t *topology.Topology) (all []ccl.Shape) {
	ops := []ccl.Op{ccl.Sum}
	if p.coll.Traits().Reduces {
		ops = ccl.Ops()
	}

	for _, dtype := range ccl.DTypes() {
		for _, op := range ops {
			if p.coll.Traits().Reduces && op.Check(p.coll, dtype) != nil {
				continue
			}
			for _, bytes := range costBytes {
				all = append(all, p.shape(dtype, op, bytes, t))
			}
		}
	}
	return all
}

func (p probe) cost(s ccl.Shape) costSample {
	c := costSample{Topology: s.Topology.String(), Ranks: s.Ranks, Bytes: s.Bytes, Eager: s.Eager, topology: s.Topology}
	asked := s
	asked.Eager = false // as in config.Settings.Choose
	if p.tooFewRanks(s) || p.Supports != nil && p.Supports(asked) != nil {
		c.Refused = true
		return c
	}
	declared := p.Cost(s)
	c.Steps, c.Moved = declared.Steps, declared.Bytes
	return c
}

// arrange returns a topology of n ranks; a grid is as square as possible.
func arrange(kind topology.Kind, n int) (*topology.Topology, error) {
	if kind == topology.Ring1D {
		return topology.New(kind, n, 0, 0)
	}
	h := 1
	for i := 2; i*i <= n; i++ {
		if n%i == 0 {
			h = i
		}
	}
	return topology.New(kind, n, n/h, h)
}

// refuse records why a shape is not supported.
func (k *kernel) refuse(s ccl.Shape, reason string) {
	for i := range k.Refuses {
		if k.Refuses[i].Reason == reason {
			k.Refuses[i].Shapes++
			return
		}
	}
	kind := s.DType.String()
	if s.Collective.Traits().Reduces {
		kind += " by " + s.Op.String()
	}
	k.Refuses = append(k.Refuses, refusal{reason, 1, fmt.Sprintf("%v of %s on %v", ccl.ByteSize(s.Bytes), kind, s.Topology)})
}

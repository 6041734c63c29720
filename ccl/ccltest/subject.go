package ccltest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/topology"
)

// subject is the tested algorithm, and one of its kernels in one kind of topology.
type subject struct {
	algorithm   *ccl.Algorithm
	coll        ccl.Collective
	params      string // fields for ccl.yaml
	rankOrdered bool
	topology    topology.Kind
	more        []size           // of groups, by options
	w, h        int              // extents; 0: as close to a square as possible
	timeout     time.Duration    // of calls
	patience    time.Duration    // with groups
	short       bool             // fewer calls
	fewGroups   bool             // shortRanks only
	made        map[string]error // results of calls, see calls
}

func newSubject(a *ccl.Algorithm, opts []Option) *subject {
	s := &subject{algorithm: a, timeout: callTimeout, patience: patience, short: testing.Short() || raceEnabled, fewGroups: testing.Short()}
	for _, o := range opts {
		s.rankOrdered = s.rankOrdered || o.rankOrdered
		s.more = append(s.more, o.sizes...)
		s.params = cmp.Or(o.params, s.params)
	}
	return s
}

// at returns s in groups with the extents of z.
func (s subject) at(z size) *subject {
	s.w, s.h = z.w, z.h
	return &s
}

// moreSizes returns the sizes of groups by options that the topology has.
func (s *subject) moreSizes() []size {
	return slices.DeleteFunc(slices.Clone(s.more), func(z size) bool { return z.w > 0 && s.topology == topology.Ring1D })
}

// validateSizes checks the options Ranks and Extents.
func (s *subject) validateSizes() error {
	grids := slices.ContainsFunc(s.algorithm.Topologies, func(k topology.Kind) bool { return k != topology.Ring1D })
	for _, z := range s.more {
		switch {
		case z.w == 0 && z.h == 0 && (z.ranks < 2 || z.ranks > config.MaxRanks):
			return fmt.Errorf("the option Ranks has %d; from 2 to %d are allowed", z.ranks, config.MaxRanks)
		case z.w == 0 && z.h == 0:
		case z.w < 1 || z.h < 1 || z.w > config.MaxRanks || z.h > config.MaxRanks || z.ranks < 2 || z.ranks > config.MaxRanks:
			return fmt.Errorf("the option Extents has %d and %d; both must be positive, and their product from 2 to %d", z.w, z.h, config.MaxRanks)
		case !grids:
			return errors.New("the option Extents is for algorithms whose Topologies have extents")
		}
	}

	return nil
}

func (s subject) of(kind topology.Kind) *subject {
	s.topology = kind
	return &s
}

// kernels returns a subject for each kernel of the algorithm.
func (s *subject) kernels() []*subject {
	var all []*subject
	for _, coll := range ccl.Collectives() {
		if s.algorithm.Kernels[coll] != nil {
			kernel := *s
			kernel.coll, kernel.made = coll, make(map[string]error)
			all = append(all, &kernel)
		}
	}
	return all
}

func (s *subject) kernel() *ccl.Kernel { return s.algorithm.Kernels[s.coll] }

// validate checks the algorithm's declarations without running it.
func (s *subject) validate() error {
	if err := s.algorithm.Validate(); err != nil {
		return err
	}
	if err := s.validateSizes(); err != nil {
		return err
	}
	if p := s.algorithm.Params; p != nil && p() == p() {
		return errors.New("Params returns the same pointer twice; every entry needs its own")
	}

	for _, kernel := range s.targets() {
		if err := kernel.validateKernel(); err != nil {
			return fmt.Errorf("%v: %w", kernel.coll, err)
		}
	}
	return nil
}

// validateKernel looks for a call that the kernel supports, without making the call.
func (s *subject) validateKernel() error {
	var none error
	for _, z := range s.sizes()[1:] {
		none = s.supportsAt(z)
		if _, skip := errors.AsType[*skipped](none); !skip {
			return none
		}
	}
	return fmt.Errorf("on 2 to %d ranks it supports no call of the suite (the option Ranks adds others): %w", mostRanks, errors.Unwrap(none))
}

// supportsAt returns a *skipped if the kernel supports no call of the suite on a size of groups.
func (s *subject) supportsAt(z size) error {
	settings, err := s.at(z).settings(z.ranks, nil)
	if err != nil {
		return err
	}
	g := &group{s: s, settings: settings, ranks: make([]*rank, z.ranks)}
	_, err = g.supported(g.jobs())
	return err
}

// sizes returns all sizes of groups, from one rank on.
func (s *subject) sizes() []size {
	var all []size
	for n := range mostRanks {
		all = append(all, size{ranks: n + 1})
	}
	return append(all, s.moreSizes()...)
}

// settings returns the configuration of a group of n ranks in which the algorithm does its
// collectives: unless run is nil, only that of the kernel, with run in place of its own Run.
func (s *subject) settings(n int, run func(*ccl.Call) error) (*config.Settings, error) {
	only := *s.algorithm
	if run != nil {
		kernel := *s.kernel()
		kernel.Run = run
		only.Kernels = map[ccl.Collective]*ccl.Kernel{s.coll: &kernel}
	}

	params := ""
	if s.params != "" {
		params = ", params: {" + s.params + "}"
	}
	extents := ""
	if s.topology != topology.Ring1D {
		w, h := s.w, s.h
		if w == 0 {
			h = int(math.Sqrt(float64(n))) // as close to a square as n allows
			for n%h != 0 {
				h--
			}
			w = n / h
		}
		extents = fmt.Sprintf(", count: %d, w: %d, h: %d", n, w, h)
	}
	text := fmt.Sprintf(`version: 1
defaults: {algorithm: %q, timeout: %v}
algorithms: {%[1]q: {module: %[3]q%[4]s}}
topology: {kind: %[5]v%[6]s}
`, s.entry(), s.timeout, only.Name, params, s.topology, extents)

	cfg, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w\nin:\n%s", err, text)
	}
	return cfg.Resolve(config.Request{Registry: ccl.Registry{only.Name: &only}, Ranks: n})
}

// parsed has the configurations that parse has returned, by their text: the suite connects
// thousands of groups with few of them.
var parsed sync.Map

func parse(text string) (*config.Config, error) {
	if cfg, ok := parsed.Load(text); ok {
		return cfg.(*config.Config), nil
	}
	cfg, err := config.Parse("ccltest", []byte(text))
	if err == nil {
		parsed.Store(text, cfg)
	}
	return cfg, err
}

// entry returns the algorithm's name in the configuration, and so in errors: its own name,
// if an entry can have that.
func (s *subject) entry() string {
	name := s.algorithm.Name
	text := fmt.Sprintf("version: 1\nalgorithms: {%q: {module: %[1]q}}\n", name)
	if _, err := parse(text); err != nil {
		return "subject"
	}
	return name
}

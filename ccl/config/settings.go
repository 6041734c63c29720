package config

import (
	"cmp"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// Request is what a program asks for: its options, which take the place of what
// the environment and the file say.
type Request struct {
	Registry  *ccl.Registry // where modules are looked up; nil: DefaultRegistry
	Algorithm string        // takes the place of defaults.algorithm; "": as configured
	Transport string        // takes the place of defaults.transport; "": as configured
	Timeout   time.Duration // takes the place of defaults.timeout; 0: as configured; negative: none
	Ranks     int           // how many ranks there are, hosted or launched; at least 1
	RanksFrom string        // who says so, a clause for messages: "dist.Spawn hosts 4 ranks: dist.WithRanks(4)"
}

// Settings is the effective configuration of one group. It is immutable and safe
// for concurrent use.
type Settings struct {
	config     *Config
	ranks      int
	ranksFrom  string // where that is asked for, such as "ccl.yaml:12 (defaults.world_size)"
	topology   *topology.Topology
	transport  given[string]
	timeout    given[time.Duration]
	debug      given[bool]
	algorithm  given[string]
	instead    string       // of a group for which the configured algorithm is not: why rules choose
	candidates []*candidate // one for each entry, in the order of the file
	values     []Setting
	agreement  string
}

// Resolve makes the effective configuration of one group: it finds the modules of
// all entries and fills their parameters, then settles the world size, then the
// topology (S4.7, S4.8). A mistake in the file, or an algorithm that is not for
// this group, is a *Error; a number of ranks other than the configured
// world size is a *MissingConfigurationError. Nothing is left of a Resolve that
// failed.
func (c *Config) Resolve(r Request) (*Settings, error) {
	if r.Ranks < 1 || r.Ranks > MaxRanks {
		return nil, &ccl.InvalidArgumentError{Operation: "Resolve", Message: fmt.Sprintf("Request.Ranks is %d; from 1 to %d are allowed", r.Ranks, MaxRanks)}
	}
	s := &Settings{
		config:    c,
		ranks:     r.Ranks,
		algorithm: override(c.algorithm, r.Algorithm, r.Algorithm != ""),
		transport: override(c.transport, r.Transport, r.Transport != ""),
		timeout:   override(c.timeout, max(r.Timeout, 0), r.Timeout != 0),
		debug:     c.debug,
	}
	steps := []func(Request) error{s.checkOptions, s.findAlgorithms, s.resolveWorldSize, s.arrange, s.checkUse, s.checkRules}
	for _, step := range steps {
		if err := step(r); err != nil {
			return nil, err
		}
	}
	s.collectValues()
	return s, nil
}

func override[T any](configured given[T], option T, isSet bool) given[T] {
	if isSet {
		return given[T]{option, fromOption}
	}
	return configured
}

// checkOptions looks at the names that came in as options or by the environment;
// those in the file have been checked when it was read.
func (s *Settings) checkOptions(Request) error {
	if name := s.algorithm.value; name != auto && s.config.entry(name) == nil {
		return s.config.errorAt(s.algorithm.origin, "defaults.algorithm", "%s", s.config.unknownEntry(name))
	}
	if _, err := text.Named("transport", s.transport.value, transports); err != nil {
		return s.config.errorAt(s.transport.origin, "defaults.transport", "%v", err)
	}
	return nil
}

// findAlgorithms looks up the modules and fills their parameters.
func (s *Settings) findAlgorithms(r Request) error {
	registry := cmp.Or(r.Registry, ccl.DefaultRegistry())
	for _, e := range s.config.entries {
		algorithm, ok := registry.Lookup(e.module.value)
		if !ok {
			names := registry.Names()
			return s.config.errorAt(e.module.origin, "algorithms."+e.name+".module",
				"no algorithm %s is registered%s; registered: %s; a program has to import the package that registers it",
				text.Quote(e.module.value), text.DidYouMean(e.module.value, names), text.List(names))
		}
		k := &candidate{entry: e, algorithm: algorithm}
		if err := k.makeParams(s.config); err != nil {
			return err
		}
		s.candidates = append(s.candidates, k)
	}
	return nil
}

// resolveWorldSize compares the world size that is configured with the ranks that
// there are (S4.5).
func (s *Settings) resolveWorldSize(r Request) error {
	there := r.RanksFrom
	if there == "" {
		there = fmt.Sprintf("the number of ranks is %d", r.Ranks)
	}
	s.ranksFrom = there
	size, key := s.config.configuredSize(s.algorithm.value)
	if size.value == 0 {
		return nil
	}
	s.ranksFrom = s.config.sizePlace(size, key)
	if size.value == r.Ranks {
		return nil
	}
	return &ccl.MissingConfigurationError{
		Missing: []string{key},
		Message: fmt.Sprintf("the world size is %d by %s, but %s; start %d ranks, or set %s to %d",
			size.value, s.ranksFrom, there, size.value, key, r.Ranks),
	}
}

// arrange makes the topology. A ring takes any number of ranks; the extents of a
// grid are those of the file (S4.10, S4.20).
func (s *Settings) arrange(Request) (err error) {
	t := &s.config.topology
	if count := t.count.value; count != 0 && count != s.ranks && t.kind.value != topology.Ring1D {
		return s.config.errorAt(t.origin, "topology",
			"%s with count=%d w=%d h=%d, but the world size is %d (%s); change count, w and h, or choose ring_1d",
			t.kind.value, count, t.w.value, t.h.value, s.ranks, s.ranksFrom)
	}
	s.topology, err = s.config.arrange(s.ranks, "; count is the world size ("+s.ranksFrom+")")
	return err
}

// checkUse judges which entries are for this group, and fails if one that is in
// use is not: the one that is chosen, or those of the rules where rules choose.
func (s *Settings) checkUse(Request) error {
	for _, k := range s.candidates {
		k.unfit = k.misfit(s)
	}
	if s.algorithm.value != auto {
		if k := s.candidate(s.algorithm.value); k.unfit != "" {
			return s.config.errorAt(s.algorithm.origin, "defaults.algorithm", "%s", k.unfit)
		}
		return nil
	}
	if len(s.config.rules) == 0 {
		return s.config.errorAt(s.algorithm.origin, "rules",
			"the file is without rules, and defaults.algorithm is auto: nothing says which algorithm does a call; add a rule such as {algorithm: direct}, or name an algorithm")
	}
	for i, r := range s.config.rules {
		if k := s.candidate(r.algorithm.value); k.unfit != "" {
			return s.config.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"), "%s", k.unfit)
		}
	}
	return nil
}

// candidate returns the entry called name, nil if there is none.
func (s *Settings) candidate(name string) *candidate {
	for _, k := range s.candidates {
		if k.entry.name == name {
			return k
		}
	}
	return nil
}

// WorldSize returns the number of ranks.
func (s *Settings) WorldSize() int { return s.ranks }

// Topology returns how the ranks are arranged.
func (s *Settings) Topology() *topology.Topology { return s.topology }

// Transport returns "auto", "local" or "shm". Whether it can be had is for those
// to say who connect the ranks.
func (s *Settings) Transport() string { return s.transport.value }

// Timeout returns how long a call may wait for others, 0 for ever.
func (s *Settings) Timeout() time.Duration { return s.timeout.value }

// Algorithm returns the name of the entry that does all calls, or "auto" where
// the rules choose.
func (s *Settings) Algorithm() string { return s.algorithm.value }

// Debug reports whether calls check that no one changes their buffers while they run.
func (s *Settings) Debug() bool { return s.debug.value }

// Entries returns the names of the entries, in the order of the file.
func (s *Settings) Entries() []string { return s.config.Entries() }

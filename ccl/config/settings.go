package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// Request holds a program's options, which override environment variables and the file, and
// the number of ranks.
type Request struct {
	Registry  ccl.Registry  // where modules are looked up; nil: DefaultRegistry
	Algorithm string        // overrides defaults.algorithm, unless ""
	Transport string        // overrides defaults.transport, unless ""
	Timeout   time.Duration // overrides defaults.timeout, unless 0; negative: no limit
	Flags     bool          // the three above were typed as flags; origins are "--algorithm" and so on, not "option"
	Ranks     int           // number of ranks, hosted or launched; 1 to MaxRanks
	RanksFrom string        // origin of Ranks, for messages: "dist.Spawn hosts 4 ranks: dist.WithRanks(4)"
}

// Settings is the effective configuration of one group. It implements ccl.Selector, is
// immutable, and may be used concurrently.
type Settings struct {
	config     *Config
	ranks      int
	ranksFrom  string // origin of ranks, such as "ccl.yaml:12 (defaults.world_size)"
	topology   *topology.Topology
	transport  given[string]
	timeout    given[time.Duration]
	debug      given[bool]
	algorithm  given[string]
	instead    string       // why rules choose, if the configured algorithm does not support the subgroup
	candidates []*candidate // one per entry, in the order of the file
	values     []Setting
	agreement  string
}

// Resolve returns the effective configuration of one group. It looks up the modules of all
// entries, fills their parameters, compares the world size with r.Ranks, and builds the
// topology, in this order.
//
// Errors are *Error for a mistake in the file or an algorithm that does not support the group
// (Errors for several),
// *transport.MissingConfigurationError if the configured world size is not r.Ranks, and
// *ccl.InvalidArgumentError if r.Ranks is out of range.
func (c *Config) Resolve(r Request) (*Settings, error) {
	if r.Ranks < 1 || r.Ranks > MaxRanks {
		return nil, &ccl.InvalidArgumentError{Operation: "Resolve", Message: fmt.Sprintf("Request.Ranks is %d; from 1 to %d are allowed", r.Ranks, MaxRanks)}
	}

	s := &Settings{
		config:    c,
		ranks:     r.Ranks,
		algorithm: override(r, c.algorithm, r.Algorithm, r.Algorithm != "", "--algorithm"),
		transport: override(r, c.transport, r.Transport, r.Transport != "", "--transport"),
		timeout:   override(r, c.timeout, max(r.Timeout, 0), r.Timeout != 0, "--timeout"),
		debug:     c.debug,
	}

	steps := []func(Request) error{s.checkOptions, s.findAlgorithms, s.resolveWorldSize, s.arrange, s.checkUse, s.checkRules}
	for _, step := range steps {
		if err := inOrder(step(r)); err != nil {
			return nil, err
		}
	}
	s.collectValues()
	return s, nil
}

func override[T any](r Request, configured given[T], option T, isSet bool, flag string) given[T] {
	switch {
	case !isSet:
		return configured
	case r.Flags:
		return given[T]{option, origin{by: flag}}
	}
	return given[T]{option, origin{by: "option"}}
}

// checkOptions checks the names in options and environment variables. Parse has checked those
// in the file.
func (s *Settings) checkOptions(Request) error {
	mistake, _ := s.config.errorAt(s.transport.origin, "defaults.transport", "").(*Error) //nolint:errorlint // made here
	if err := unknownTransport(s.transport.value, mistake); err != nil {
		return err
	}
	if name := s.algorithm.value; name != auto && s.config.entry(name) == nil {
		return s.config.errorAt(s.algorithm.origin, "defaults.algorithm", "%s", s.config.unknownEntry(name))
	}
	return nil
}

// findAlgorithms looks up the modules and fills their parameters. Of a file with mistakes it
// skips entries without a module.
func (s *Settings) findAlgorithms(r Request) error {
	registry := r.Registry
	if registry == nil {
		registry = ccl.DefaultRegistry()
	}
	var errs []error
	for _, e := range s.config.entries {
		if !e.module.isSet() {
			continue
		}

		algorithm := registry[e.module.value]
		if algorithm == nil {
			names := slices.Sorted(maps.Keys(registry))
			errs = append(errs, s.config.errorAt(e.module.origin, "algorithms."+e.name+".module",
				"no algorithm %s is registered%s; registered: %s; a program has to import the package that registers it",
				text.Quote(e.module.value), text.DidYouMean(e.module.value, names), text.List(names)))
			continue
		}
		k := &candidate{entry: e, algorithm: algorithm}
		errs = append(errs, k.makeParams(s.config))
		s.candidates = append(s.candidates, k)
	}

	return errors.Join(errs...)
}

// resolveWorldSize compares the configured world size with the number of ranks.
func (s *Settings) resolveWorldSize(r Request) error {
	actual := r.RanksFrom
	if actual == "" {
		actual = fmt.Sprintf("the number of ranks is %d", r.Ranks)
	}
	s.ranksFrom = actual
	size, key, origin := s.config.configuredSize(s.algorithm.value)
	if size == 0 {
		return nil
	}

	s.ranksFrom = origin
	if size == r.Ranks {
		return nil
	}
	return &transport.MissingConfigurationError{
		Missing: []string{key},
		Message: fmt.Sprintf("the world size is %d by %s, but %s; start %d ranks, or set %s to %d",
			size, origin, actual, size, key, r.Ranks),
	}
}

// arrange builds the topology. A ring takes any number of ranks; a grid needs the file's
// extents.
func (s *Settings) arrange(Request) (err error) {
	t := &s.config.topology
	if count := t.count.value; count != 0 && count != s.ranks && t.kind.value != topology.Ring1D {
		return s.config.errorAt(t.origin, "topology",
			"%s with count=%d, but the world size is %d (%s); change count, w and h, or choose ring_1d",
			t.kind.value, count, s.ranks, s.ranksFrom)
	}
	s.topology, err = s.config.arrange(s.ranks, "; count is the world size ("+s.ranksFrom+")")
	return err
}

// checkUse determines which entries support the group. It fails if the configured algorithm,
// or with auto an entry of a rule, does not.
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
			"defaults.algorithm is auto, but the file is without rules; add a rule such as {algorithm: direct}, or name an algorithm")
	}
	var errs []error
	for i, r := range s.config.rules {
		if k := s.candidate(r.algorithm.value); k.unfit != "" {
			errs = append(errs, s.config.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"), "%s", k.unfit))
		}
	}
	return errors.Join(errs...)
}

// candidate returns the entry called name, or nil.
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

// Transport returns "auto" or the name of a transport. The caller that connects the ranks checks
// whether it is available.
func (s *Settings) Transport() string { return s.transport.value }

// TransportError returns err, which says why the transport cannot be used, as an *Error that wraps
// it and names the option, the variable, or the line that chose the transport. If none did, it
// returns err.
func (s *Settings) TransportError(err error) error {
	switch by := s.transport.by; {
	case !s.transport.isSet() || s.transport.value == auto:
		return err
	case by == "GOCCL_TRANSPORT":
		return &Error{File: "environment", Key: by, Message: err.Error(), Err: err}
	}
	mistake, _ := s.config.errorAt(s.transport.origin, "defaults.transport", "%v", err).(*Error) //nolint:errorlint // made here
	mistake.Err = err
	return mistake
}

// Timeout returns how long a call may wait for other ranks; 0 means no limit.
func (s *Settings) Timeout() time.Duration { return s.timeout.value }

// Algorithm returns the name of the entry that executes all calls, or "auto" if the rules
// choose.
func (s *Settings) Algorithm() string { return s.algorithm.value }

// Debug reports whether calls check that no one changes their buffers while they run.
func (s *Settings) Debug() bool { return s.debug.value }

// Entries returns the names of the entries, in the order of the file.
func (s *Settings) Entries() []string { return s.config.Entries() }

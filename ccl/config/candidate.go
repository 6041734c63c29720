package config

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/params"
)

// candidate is an entry of algorithms with its module and parameters.
type candidate struct {
	entry     *entry
	algorithm *ccl.Algorithm
	params    any                // the result of algorithm.Params, filled; nil without parameters
	fields    []params.Parameter // the fields of params
	lines     map[string]int     // of the parameters in the file
	unfit     string             // why the entry does not support the group; "" if it does
}

// makeParams sets the parameters to the module's defaults, then to the entry's values.
func (k *candidate) makeParams(c *Config) (err error) {
	key, at := "algorithms."+k.entry.name+".params", k.entry.origin
	if k.entry.params.isSet() {
		at = k.entry.params.origin
	}
	if k.algorithm.Params == nil {
		if k.entry.params.isSet() || k.entry.variation != nil {
			return c.errorAt(at, key, "algorithm %s has no parameters", k.algorithm.Name)
		}
		return nil
	}

	k.params = k.algorithm.Params()
	if k.fields, err = params.Of(k.params); err != nil {
		return c.errorAt(at, key, "algorithm %s is faulty: %v", k.algorithm.Name, err)
	}
	if k.entry.params.isSet() {
		if k.lines, err = fill(k.entry.params.value, k.fields); err != nil {
			return err
		}
	}

	if k.entry.variation != nil {
		if _, err := fill(*k.entry.variation, k.fields); err != nil {
			return err
		}
	}
	if v, ok := k.params.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return &Error{File: c.file, Line: at.line, Column: at.column, Key: key, Message: err.Error(), Err: err}
		}
	}
	return nil
}

// misfit returns why the entry does not support the group of s, "" if it does.
func (k *candidate) misfit(s *Settings) string {
	e, c := k.entry, s.config
	kind, kindFrom := s.topology.Kind(), c.locate(c.topology.kind.origin)
	switch {
	case e.worldSize.isSet() && e.worldSize.value != s.ranks:
		return fmt.Sprintf("%s is for a world size of %d (%s), but here it is %d (%s)",
			e.name, e.worldSize.value, c.locate(e.worldSize.origin), s.ranks, s.ranksFrom)

	case e.topology.isSet() && e.topology.value != kind:
		return fmt.Sprintf("%s is for the topology %s (%s), but here it is %s (%s)",
			e.name, e.topology.value, c.locate(e.topology.origin), kind, kindFrom)
	case k.algorithm.Topologies != nil && !slices.Contains(k.algorithm.Topologies, kind):
		return fmt.Sprintf("%s is the algorithm %s, which is for the topologies %v, but here it is %s (%s)",
			e.name, k.algorithm.Name, k.algorithm.Topologies, kind, kindFrom)
	}
	return ""
}

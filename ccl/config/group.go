package config

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// ForGroup returns the settings of a subgroup: a copy of s without the world size, on a ring.
//
// Rules whose entry does not support the subgroup are left out. If the configured algorithm does
// not support it, rules choose, or without rules the first entry that supports the call. The error
// is an *Error if no entry supports the subgroup.
func (s *Settings) ForGroup(ranks int, from string) (ccl.Selector, error) {
	c := *s.config
	c.worldSize = given[int]{}
	if c.topology.kind.value == topology.Ring1D {
		c.topology.count = given[int]{}
	} else {
		c.topology = arrangement{kind: given[topology.Kind]{value: topology.Ring1D}}
	}
	g := &Settings{
		config: &c, ranks: ranks, ranksFrom: from,
		algorithm: s.algorithm, transport: s.transport, timeout: s.timeout, debug: s.debug, instead: s.instead,
	}

	var err error
	if g.topology, err = c.arrange(ranks, "; "+from); err != nil {
		return nil, err
	}

	for _, k := range s.candidates {
		k := *k
		k.unfit = k.misfit(g)
		g.candidates = append(g.candidates, &k)
	}
	unfit := ""
	if g.algorithm.value != auto {
		unfit = g.candidate(g.algorithm.value).unfit
	}

	c.rules = nil
	for _, r := range s.config.rules {
		if g.candidate(r.algorithm.value).unfit == "" {
			c.rules = append(c.rules, r)
		}
	}
	if unfit != "" {
		err := c.errorAt(g.algorithm.origin, "defaults.algorithm", "%s; add an entry that supports groups of any size, such as direct: {module: direct}", unfit)
		g.instead = "auto, since " + unfit
		g.algorithm = given[string]{auto, origin{by: g.instead}}
		if len(c.rules) == 0 { // a rule per entry that supports the subgroup, in the order of the file
			for _, k := range g.candidates {
				if k.unfit == "" {
					c.rules = append(c.rules, rule{origin: k.entry.origin, algorithm: given[string]{k.entry.name, k.entry.origin}})
				}
			}
		}
		if len(c.rules) == 0 {
			return nil, err
		}
	}
	g.collectValues()
	return g, nil
}

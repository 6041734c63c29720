package ccl

import "github.com/goccl/goccl/topology"

// forGroup returns the settings of a group of some of the ranks: those of the whole,
// without the world size, and without a grid, which some of its ranks do not make. What
// is not for so few ranks, a rule or, by its name, an algorithm, is left out.
func (s *Settings) forGroup(ranks int, from string) (*Settings, error) {
	c := *s.config
	c.worldSize = given[int]{}
	if c.topology.kind.value == topology.Ring1D {
		c.topology.count = given[int]{}
	} else {
		c.topology = arrangement{kind: given[topology.Kind]{value: topology.Ring1D}}
	}
	g := &Settings{
		config: &c, ranks: ranks, ranksFrom: from,
		algorithm: s.algorithm, transport: s.transport, timeout: s.timeout, debug: s.debug,
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
	if g.algorithm.value != auto {
		if k := g.candidate(g.algorithm.value); k.unfit != "" {
			return nil, c.errorAt(g.algorithm.origin, "defaults.algorithm", "%s", k.unfit)
		}
	}
	c.rules = nil
	for _, r := range s.config.rules {
		if g.candidate(r.algorithm.value).unfit == "" {
			c.rules = append(c.rules, r)
		}
	}
	g.collectValues()
	return g, nil
}

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Setting is one effective value. Key and Value must be equal on all ranks of a group; Origin
// may differ.
type Setting struct {
	Key    string `json:"key"` // such as "algorithms.ring.params.chunk"; rules count from 1: "rules[1].bytes"
	Value  string `json:"value"`
	Origin string `json:"origin"` // "ccl.yaml:7", "default", "option", "--algorithm", or Request.RanksFrom
}

// collectValues lists the effective values.
func (s *Settings) collectValues() {
	c := s.config
	add := func(key string, value any, origin string) {
		s.values = append(s.values, Setting{key, fmt.Sprint(value), origin})
	}

	add("world_size", s.ranks, s.ranksFrom)
	add("defaults.algorithm", s.algorithm.value, c.locate(s.algorithm.origin))
	add("defaults.transport", s.transport.value, c.locate(s.transport.origin))
	if s.timeout.value == 0 {
		add("defaults.timeout", "none", c.locate(s.timeout.origin))
	} else {
		add("defaults.timeout", s.timeout.value, c.locate(s.timeout.origin))
	}
	add("defaults.debug", s.debug.value, c.locate(s.debug.origin))
	add("topology.kind", s.topology.Kind(), c.locate(c.topology.kind.origin))
	add("topology.w", s.topology.W(), c.locate(c.topology.w.origin))
	add("topology.h", s.topology.H(), c.locate(c.topology.h.origin))

	// Unset fields of entries and rules are left out. Parameters always have a value.
	addGiven := func(key string, value any, o origin) {
		if o.isSet() {
			add(key, value, c.locate(o))
		}
	}

	for _, k := range s.candidates {
		e, key := k.entry, "algorithms."+k.entry.name
		addGiven(key+".module", e.module.value, e.module.origin)
		addGiven(key+".topology", e.topology.value, e.topology.origin)
		addGiven(key+".world_size", e.worldSize.value, e.worldSize.origin)
		for _, p := range k.fields {
			add(key+".params."+p.Key, p, c.locate(origin{line: k.lines[p.Key]}))
		}
	}

	for i, r := range c.rules {
		addGiven(ruleKey(i, "collective"), written(r.collective.value), r.collective.origin)
		addGiven(ruleKey(i, "bytes"), written(r.bytes.value), r.bytes.origin)
		addGiven(ruleKey(i, "ranks"), written(r.ranks.value), r.ranks.origin)
		addGiven(ruleKey(i, "nodes"), written(r.nodes.value), r.nodes.origin)
		addGiven(ruleKey(i, "dtype"), written(r.dtype.value), r.dtype.origin)
		addGiven(ruleKey(i, "op"), written(r.op.value), r.op.origin)
		addGiven(ruleKey(i, "algorithm"), r.algorithm.value, r.algorithm.origin)
	}
	slices.SortFunc(s.values, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })

	var lines strings.Builder
	for _, v := range s.values {
		fmt.Fprintf(&lines, "%s=%s\n", v.Key, v.Value)
	}
	s.agreement = lines.String()
}

// Values returns all effective values, sorted by key. The caller may keep and change the slice.
func (s *Settings) Values() []Setting { return slices.Clone(s.values) }

// OriginOf returns where the value of a key is from, or the file that has none.
//
// A file that is there has its full path, since ranks may have different working directories.
func (s *Settings) OriginOf(key string) string {
	file := s.config.file
	origin := file
	if i := slices.IndexFunc(s.values, func(v Setting) bool { return v.Key == key }); i >= 0 {
		origin = s.values[i].Origin
	}
	line, isFile := strings.CutPrefix(origin, file)
	_, missing := os.Stat(file)
	if path, err := filepath.Abs(file); isFile && errors.Join(missing, err) == nil {
		return path + line
	}
	return origin
}

// Agreement returns all effective values as lines "key=value", sorted by key. Ranks whose
// texts differ cannot form a group.
func (s *Settings) Agreement() string { return s.agreement }

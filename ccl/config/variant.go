package config

import (
	"slices"

	"github.com/goccl/goccl/internal/strictyaml"
	"github.com/goccl/goccl/topology"
)

// WithVariant returns the configuration with one more entry, called name: a copy of an entry with
// other values of some of its parameters, as YAML: "chunk: 64KiB". It fails with *Error if
// the entry does not exist or params is no YAML; Resolve checks keys and values.
func (c *Config) WithVariant(name, entry, params string) (*Config, error) {
	from := c.entry(entry)
	if from == nil {
		return nil, c.errorAt(origin{}, "algorithms", "%s", c.unknownEntry(entry))
	}

	node, err := strictyaml.Parse([]byte(params), func(_, _ int, key, message string) error {
		return c.errorAt(from.origin, "algorithms."+name+".params", "%s: %s", key, message)
	})
	if err != nil {
		return nil, err
	}
	variant := *from
	variant.name, variant.variation = name, &node
	with := *c
	with.entries = append(slices.Clip(c.entries), &variant)
	return &with, nil
}

// WithTopology returns the configuration with another topology of any number of ranks. w and h are
// the extents of a 2-D kind; 0: the ranks form a square.
func (c *Config) WithTopology(kind topology.Kind, w, h int) *Config {
	by := origin{by: "option"}
	with := *c
	with.topology = arrangement{origin: by, kind: given[topology.Kind]{kind, by}, w: given[int]{value: w}, h: given[int]{value: h}}
	if w > 0 {
		with.topology.w.origin, with.topology.h.origin = by, by
	}
	return &with
}

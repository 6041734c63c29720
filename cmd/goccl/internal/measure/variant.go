package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/topology"
)

// Param is a parameter of an entry with the values to measure.
type Param struct {
	Entry, Key string
	Values     []string
}

// UnmarshalText parses ENTRY.KEY=VALUE,VALUE.
func (p *Param) UnmarshalText(text []byte) error {
	name, values, _ := strings.Cut(string(text), "=")
	entry, key, _ := strings.Cut(name, ".")
	*p = Param{entry, key, strings.Split(values, ",")}
	if entry == "" || key == "" || slices.Contains(p.Values, "") {
		return fmt.Errorf("%q: want an entry, a parameter and its values, as in ring.chunk=64KiB,1MiB", text)
	}
	return CheckTwins(p.Values)
}

// MarshalText writes the form that UnmarshalText parses.
func (p Param) MarshalText() ([]byte, error) {
	return []byte(p.Entry + "." + p.Key + "=" + strings.Join(p.Values, ",")), nil
}

// Grid is a topology to measure: a kind, and for the 2-D kinds extents, unless the ranks form a
// square.
type Grid struct {
	Kind topology.Kind
	W, H int
}

// UnmarshalText parses KIND or KIND:WxH.
func (g *Grid) UnmarshalText(text []byte) error {
	name, extents, given := strings.Cut(string(text), ":")
	kind, err := topology.ParseKind(name)
	if err != nil {
		return err
	}
	*g = Grid{Kind: kind}
	if !given {
		return nil
	}

	w, h, _ := strings.Cut(extents, "x")
	var errW, errH error
	g.W, errW = strconv.Atoi(w)
	g.H, errH = strconv.Atoi(h)
	if errW != nil || errH != nil || g.W < 1 || g.H < 1 || kind == topology.Ring1D {
		return fmt.Errorf("%q: want a kind, and for a 2-D kind its extents, as in torus_2d:3x2", text)
	}
	return nil
}

// MarshalText writes the form that UnmarshalText parses.
func (g Grid) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// String returns the form that UnmarshalText parses.
func (g Grid) String() string {
	if g.W == 0 {
		return g.Kind.String()
	}
	return fmt.Sprintf("%v:%dx%d", g.Kind, g.W, g.H)
}

// variant is an entry with values of some of its parameters.
type variant struct {
	entry, params string // params: "chunk=64KiB", or ""
	yaml          string // of the same
}

// name is the variant's name in the configuration of Vary.
func (v variant) name() string {
	if v.params == "" {
		return v.entry
	}
	return v.entry + " " + v.params
}

// variants returns what is measured: the entries, or Auto, in their order, then those that only
// have parameters; an entry with parameters once for each combination of their values.
func (s *Setup) variants() (all []variant) {
	entries := slices.Clone(s.Entries)
	for _, p := range s.Params {
		if !slices.Contains(entries, p.Entry) {
			entries = append(entries, p.Entry)
		}
	}

	for _, entry := range entries {
		of := []variant{{entry: entry}}
		for _, p := range s.Params {
			if p.Entry != entry {
				continue
			}

			var more []variant
			for _, v := range of {
				for _, value := range p.Values {
					more = append(more, variant{
						entry: entry, params: strings.TrimLeft(v.params+" "+p.Key+"="+value, " "), yaml: v.yaml + p.Key + ": " + value + "\n",
					})
				}
			}
			of = more
		}
		all = append(all, of...)
	}
	return all
}

// Vary applies the topology and the parameters of its entries to Config.
func (s *Setup) Vary() (err error) {
	if s.Grid != nil {
		s.Config = s.Config.WithTopology(s.Grid.Kind, s.Grid.W, s.Grid.H)
	}
	for _, v := range s.variants() {
		if v.params == "" || !s.has(v.entry) {
			continue
		}
		if s.Config, err = s.Config.WithVariant(v.name(), v.entry, v.yaml); err != nil {
			return err
		}
	}
	return nil
}

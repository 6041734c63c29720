package measure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"
)

// Baseline is a set of ratios of calls for `goccl bench --check`, without times, which
// vary from day to day.
type Baseline struct {
	About   string     `json:"about"`   // how to renew the file
	Version int        `json:"version"` // of this format: 1
	Date    time.Time  `json:"date"`
	Machine Machine    `json:"machine"`
	Cases   []Expected `json:"cases"`
}

// Expected is a case of a Baseline: the ratio of each entry's median to each yardstick's
// median; see Result.Ratios.
type Expected struct {
	Case
	Ratios map[string]map[string]float64 `json:"ratios"`
}

// Entries returns the entries of the case, sorted; a barrier has the entry "".
func (e Expected) Entries() []string { return slices.Sorted(maps.Keys(e.Ratios)) }

// Ratios returns the median of one of the result's rows divided by the medians of the yardsticks
// for checks, of whole calls, since from the arrival of the last of more ranks than cores a copy
// has been made by the others and a collective has not: the copies, or core to core for a barrier, which copies nothing. Missing
// measurements are omitted.
func (r Result) Ratios(row Row) map[string]float64 {
	all := map[string]float64{}
	for _, name := range r.heldTo() {
		y := r.Yardstick(name)
		if x := ratio(cmp.Or(row.Whole, row.P50), cmp.Or(y.Whole, y.P50)); x > 0 {
			all[name] = x
		}
	}
	return all
}

func (c Case) heldTo() []string {
	switch {
	case c.Collective == barrier:
		return []string{CoreToCore}
	case IsOperator(c.Collective):
		return []string{Floor}
	}
	return []string{OwnCopy, PeerCopy}
}

// WriteFile writes the baseline as JSON, with a line for each case.
func (b *Baseline) WriteFile(path string) error {
	head := *b
	head.About = "ratios for goccl bench --check FILE; goccl bench --check FILE --renew measures them anew"
	head.Version = formatVersion
	head.Cases = []Expected{}
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var lines [][]byte
	for _, e := range b.Cases {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	text = bytes.TrimSuffix(text, []byte("]\n}"))
	text = fmt.Appendf(text, "\n    %s\n  ]\n}\n", bytes.Join(lines, []byte(",\n    ")))
	return os.WriteFile(path, text, 0o666)
}

// ReadBaseline reads a file of WriteFile. Ratios may be missing, for cases that were
// added by hand; every other inconsistency is an error.
func ReadBaseline(path string) (*Baseline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var b Baseline
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&b); err == nil {
		if _, after := d.Token(); !errors.Is(after, io.EOF) {
			err = errors.New("it goes on after its end")
		}
	}
	if err == nil {
		err = b.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a baseline of goccl bench --check: %w", path, err)
	}
	return &b, nil
}

func (b *Baseline) validate() error {
	switch {
	case b.Version != formatVersion:
		return fmt.Errorf("its version is %d, and this program knows %d", b.Version, formatVersion)
	case b.Machine.UsableCores() < 1:
		return errors.New("its machine has no cores")
	case len(b.Cases) == 0:
		return errors.New("it has no cases")
	}
	var before []Case
	for i, e := range b.Cases {
		if slices.Contains(before, e.Case) {
			return fmt.Errorf("case %d, %s, is there twice", i+1, e.Name())
		}
		if err := e.validate(); err != nil {
			return fmt.Errorf("case %d, %s: %w", i+1, e.Name(), err)
		}
		before = append(before, e.Case)
	}
	return nil
}

// Name is the title of the case with its length.
func (c Case) Name() string {
	if c.Collective == barrier {
		return c.Title()
	}
	return fmt.Sprintf("%s, %d bytes", c.Title(), c.Bytes)
}

// validate returns an error if the case cannot be measured or compared.
func (e Expected) validate() error {
	// The case must be one of a plan with its values: then all its values are known and
	// apply to it.
	p := Plan{
		Collectives: []string{e.Collective}, DTypes: []string{e.DType}, Ops: []string{e.Op}, Ranks: []int{e.Ranks},
		Bytes: []int{e.Bytes}, InPlace: []bool{e.InPlace}, Root: e.Root, Consume: e.Consume,
		Compute: e.Compute, Jitter: e.Jitter, Buckets: e.Buckets,
	}
	if e.Collective == barrier {
		p.DTypes = nil
	}
	if !e.collective().Reduces() {
		p.Ops = nil
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if !slices.Contains(p.Cases(), e.Case) || e.Bytes < 1 && e.Collective != barrier {
		return errors.New("there is no such call")
	}
	if len(e.Ratios) == 0 {
		return errors.New("it has no ratios")
	}
	for _, entry := range e.Entries() {
		if (entry == "") != (e.Collective == barrier) {
			return fmt.Errorf("entry %q: a barrier has one without a name, everything else has names", entry)
		}
		for yardstick, x := range e.Ratios[entry] {
			if !slices.Contains(e.heldTo(), yardstick) || x <= 0 {
				return fmt.Errorf("%q: %v over %q is no ratio", entry, x, yardstick)
			}
		}
	}
	return nil
}

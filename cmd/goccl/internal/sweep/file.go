package sweep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// File is a sweep file.
type File struct {
	Path  string
	Text  string // as it stands on disk
	Title string
	// Config is the configuration file, relative to the sweep file's directory, or "".
	Config    string
	Transport string
	Entries   []string
	Plan      measure.Plan
	Budget    measure.Budget
}

// Load reads the file at path.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(text))
}

// Parse parses the text of a sweep file; path is its name.
func Parse(path, text string) (*File, error) {
	f := &File{
		Path: path,
		Text: text,
		Plan: measure.Plan{
			Collectives: []string{ccl.CollAllReduce.String()},
			DTypes:      []string{ccl.Float32.String()},
			Ops:         []string{ccl.Sum.String()},
			InPlace:     []bool{true},
		},
		Budget: measure.DefaultBudget,
	}
	root, err := parseYAML(path, text)
	if err != nil {
		return nil, err
	}
	if err := root.read(f.keys(), "version", "ranks", "bytes"); err != nil {
		return nil, err
	}
	if f.Title == "" {
		f.Title = filepath.Base(path)
	}
	if err := errors.Join(f.Budget.Validate(), f.Plan.Validate()); err != nil { // mistakes in combinations of values
		return nil, root.errorf("%v", err)
	}
	return f, nil
}

// keys has the reader of each key's value.
func (f *File) keys() map[string]func(node) error {
	return map[string]func(node) error{
		"version": func(n node) error {
			if n.Value != "1" {
				return n.errorf("want 1, got %q", n.Value)
			}
			return nil
		},
		"title": one(&f.Title, asText),
		"config": one(&f.Config, func(s string) (string, error) {
			if !filepath.IsAbs(s) {
				s = filepath.Join(filepath.Dir(f.Path), s)
			}
			return s, nil
		}),
		"transport":   one(&f.Transport, asText),
		"collectives": some(&f.Plan.Collectives, func(s string) (string, error) { return s, (&measure.Plan{Collectives: []string{s}}).Validate() }),
		"algorithms":  some(&f.Entries, asText),
		"ranks": some(&f.Plan.Ranks, func(s string) (int, error) {
			n, err := asNumber(s)
			if err == nil {
				err = (&measure.Plan{Ranks: []int{n}}).Validate()
			}
			return n, err
		}),
		"bytes":     f.readBytes,
		"dtypes":    some(&f.Plan.DTypes, func(s string) (string, error) { return s, (&measure.Plan{DTypes: []string{s}}).Validate() }),
		"ops":       some(&f.Plan.Ops, func(s string) (string, error) { return s, (&measure.Plan{Ops: []string{s}}).Validate() }),
		"in_place":  some(&f.Plan.InPlace, asBool),
		"root":      one(&f.Plan.Root, asNumber),
		"consume":   one(&f.Plan.Consume, asBool),
		"time":      one(&f.Budget.Time, asDuration),
		"warmup":    one(&f.Budget.Warmup, asNumber),
		"min_calls": one(&f.Budget.MinCalls, asNumber),
		"max_calls": one(&f.Budget.MaxCalls, asNumber),
	}
}

// readBytes reads sizes: a list, or begin, end and factor.
func (f *File) readBytes(n node) error {
	if !n.isMapping() {
		return some(&f.Plan.Bytes, asSize)(n)
	}
	var begin, end int
	factor := 4
	err := n.read(map[string]func(node) error{
		"begin":  one(&begin, asSize),
		"end":    one(&end, asSize),
		"factor": one(&factor, asNumber),
	}, "begin", "end")
	switch {
	case err != nil:
		return err
	case factor < 2:
		return n.errorf("factor is %d; sizes have to grow, by at least 2", factor)
	case begin > end:
		return n.errorf("begin is more than end")
	}
	f.Plan.Bytes = measure.Sizes(measure.Size(begin), measure.Size(end), factor)
	return nil
}

func asText(s string) (string, error) { return s, nil }

func asBool(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, fmt.Errorf("want true or false, got %q", s)
	}
	return s == "true", nil
}

func asNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("want a whole number, got %q", s)
	}
	return n, nil
}

func asDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("want a duration with its unit, such as 200ms; got %q", s)
	}
	return d, nil
}

func asSize(s string) (int, error) {
	var size measure.Size
	err := size.UnmarshalText([]byte(s))
	return int(size), err
}

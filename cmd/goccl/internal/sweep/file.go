package sweep

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/strictyaml"
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
	root, err := strictyaml.Parse([]byte(text), func(line int, key, message string) error {
		return &config.Error{File: path, Line: line, Key: key, Message: message}
	})
	if err != nil {
		return nil, err
	}
	if err := root.Read(f.keys(), "version", "ranks", "bytes"); err != nil {
		return nil, err
	}
	if f.Title == "" {
		f.Title = filepath.Base(path)
	}
	if err := errors.Join(f.Budget.Validate(), f.Plan.Validate()); err != nil { // mistakes in combinations of values
		return nil, root.Errorf("%v", err)
	}
	return f, nil
}

// keys returns the reader of each key.
func (f *File) keys() strictyaml.Fields {
	var version int
	return strictyaml.Fields{
		"version":     one(&version, strictyaml.Node.Version),
		"title":       one(&f.Title, asText),
		"config":      one(&f.Config, f.asPath),
		"transport":   one(&f.Transport, asText),
		"collectives": some(&f.Plan.Collectives, planned(func(name string) measure.Plan { return measure.Plan{Collectives: []string{name}} })),
		"algorithms":  some(&f.Entries, asText),
		"ranks":       some(&f.Plan.Ranks, func(n strictyaml.Node) (int, error) { return n.Whole(1, config.MaxRanks) }),
		"bytes":       f.readBytes,
		"dtypes":      some(&f.Plan.DTypes, planned(func(name string) measure.Plan { return measure.Plan{DTypes: []string{name}} })),
		"ops":         some(&f.Plan.Ops, planned(func(name string) measure.Plan { return measure.Plan{Ops: []string{name}} })),
		"in_place":    some(&f.Plan.InPlace, strictyaml.Node.Bool),
		"root":        one(&f.Plan.Root, asNumber),
		"consume":     one(&f.Plan.Consume, strictyaml.Node.Bool),
		"time":        one(&f.Budget.Time, strictyaml.Node.Duration),
		"warmup":      one(&f.Budget.Warmup, asNumber),
		"min_calls":   one(&f.Budget.MinCalls, asNumber),
		"max_calls":   one(&f.Budget.MaxCalls, asNumber),
	}
}

// readBytes reads sizes: a list, or begin, end and factor.
func (f *File) readBytes(n strictyaml.Node) error {
	if !n.IsMapping() {
		return some(&f.Plan.Bytes, asSize)(n)
	}
	var begin, end int
	factor := 4
	err := n.Read(strictyaml.Fields{
		"begin":  one(&begin, asSize),
		"end":    one(&end, asSize),
		"factor": one(&factor, asNumber),
	}, "begin", "end")
	switch {
	case err != nil:
		return err
	case factor < 2:
		return n.Errorf("factor is %d; sizes have to grow, by at least 2", factor)
	case begin > end:
		return n.Errorf("begin is more than end")
	}
	f.Plan.Bytes = measure.Sizes(measure.Size(begin), measure.Size(end), factor)
	return nil
}

// one returns a reader of a single value.
func one[T any](into *T, read func(strictyaml.Node) (T, error)) func(strictyaml.Node) error {
	return func(n strictyaml.Node) (err error) {
		*into, err = read(n)
		return err
	}
}

// some returns a reader of a list without duplicates. A single value needs no brackets.
func some[T comparable](into *[]T, read func(strictyaml.Node) (T, error)) func(strictyaml.Node) error {
	return func(n strictyaml.Node) error {
		*into = nil
		add := func(n strictyaml.Node) error {
			value, err := read(n)
			if err == nil && slices.Contains(*into, value) {
				return n.Errorf("%s stands in the list twice", n.Value())
			}
			*into = append(*into, value)
			return err
		}
		if !n.IsList() {
			return add(n)
		}
		err := n.Elements(add)
		if err == nil && *into == nil {
			return n.Errorf("the list is empty")
		}
		return err
	}
}

func asText(n strictyaml.Node) (string, error) {
	return strictyaml.Scalar(n, func(s string) (string, error) { return s, nil })
}

func asNumber(n strictyaml.Node) (int, error) { return n.Whole(math.MinInt, math.MaxInt) }

func asSize(n strictyaml.Node) (int, error) {
	return strictyaml.Scalar(n, func(s string) (int, error) {
		var size measure.Size
		err := size.UnmarshalText([]byte(s))
		return int(size), err
	})
}

// asPath reads a path relative to the directory of the sweep file.
func (f *File) asPath(n strictyaml.Node) (string, error) {
	path, err := asText(n)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.Path), path)
	}
	return path, err
}

// planned returns a reader of a name that a plan must accept.
func planned(plan func(name string) measure.Plan) func(strictyaml.Node) (string, error) {
	return func(n strictyaml.Node) (string, error) {
		return strictyaml.Scalar(n, func(name string) (string, error) {
			p := plan(name)
			return name, p.Validate()
		})
	}
}

package sweep

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
	// All combinations of these are measured, each with all cases of Plan. None: what a program
	// finds, or what is configured.
	Configs    []string // configuration files; in the text relative to the sweep file's directory
	Topologies []measure.Grid
	Transports []string
	Job        measure.Job // entries, parameters, memory and budget
	Plan       measure.Plan

	values map[value]strictyaml.Node // where they are
}

// value is a value that a measure.Mistake can be about.
type value struct {
	of   measure.MistakeOf
	name string
}

// At returns a mistake with its line.
func (f *File) At(m *measure.Mistake) error {
	if node, ok := f.values[value{m.Of, m.Value}]; ok {
		return node.Errorf("%s", m.Message)
	}
	return m
}

// keep returns a reader of texts that keeps where they are.
func (f *File) keep(of measure.MistakeOf) func(strictyaml.Node) (string, error) {
	return func(n strictyaml.Node) (string, error) {
		text, err := asText(n)
		f.values[value{of, text}] = n
		return text, err
	}
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
		Job:    measure.Job{Budget: measure.DefaultBudget},
		values: make(map[value]strictyaml.Node),
	}
	root, err := strictyaml.Parse([]byte(text), func(line, column int, key, message string) error {
		return &config.Error{File: path, Line: line, Column: column, Key: key, Message: message}
	})
	if err != nil {
		return nil, err
	}
	var ranks computing
	if err := root.Read(f.keys(&ranks), strictyaml.Required{"version": "", "ranks": "", "bytes": ""}, nil); err != nil {
		return nil, err
	}
	if f.Title == "" {
		f.Title = filepath.Base(path)
	}
	f.Plan.SetCompute(ranks.compute, ranks.jitter, ranks.buckets)
	if err := errors.Join(f.Job.Validate(), f.Plan.Validate()); err != nil { // mistakes in combinations of values
		return nil, root.Errorf("%v", err)
	}
	return f, nil
}

// computing is what a file says of how ranks compute, as Plan.SetCompute takes it.
type computing struct {
	compute time.Duration
	jitter  *float64
	buckets int
}

// keys returns the reader of each key.
func (f *File) keys(ranks *computing) strictyaml.Fields {
	var version int
	return strictyaml.Fields{
		"version":     one(&version, strictyaml.Node.Version),
		"title":       one(&f.Title, asText),
		"config":      some(&f.Configs, f.asPath),
		"topology":    some(&f.Topologies, asGrid),
		"transport":   some(&f.Transports, f.keep(measure.OfTransport)),
		"collectives": some(&f.Plan.Collectives, planned(func(name string) measure.Plan { return measure.Plan{Collectives: []string{name}} })),
		"algorithms":  f.readEntries,
		"params":      f.readParams,
		"memory":      some(&f.Job.Memory, asText),
		"ranks":       some(&f.Plan.Ranks, func(n strictyaml.Node) (int, error) { return n.Whole(1, config.MaxRanks) }),
		"bytes":       f.readBytes,
		"dtypes":      some(&f.Plan.DTypes, planned(func(name string) measure.Plan { return measure.Plan{DTypes: []string{name}} })),
		"ops":         some(&f.Plan.Ops, planned(func(name string) measure.Plan { return measure.Plan{Ops: []string{name}} })),
		"in_place":    some(&f.Plan.InPlace, strictyaml.Node.Bool),
		"root":        one(&f.Plan.Root, asNumber),
		"consume":     one(&f.Plan.Consume, strictyaml.Node.Bool),
		"compute":     one(&ranks.compute, strictyaml.Node.Duration),
		"jitter":      one(&ranks.jitter, asShare),
		"buckets":     one(&ranks.buckets, func(n strictyaml.Node) (int, error) { return n.Whole(1, measure.MaxBuckets) }),
		"time":        one(&f.Job.Budget.Time, strictyaml.Node.Duration),
		"warmup":      one(&f.Job.Budget.Warmup, asNumber),
		"min_calls":   one(&f.Job.Budget.MinCalls, asNumber),
		"max_calls":   one(&f.Job.Budget.MaxCalls, asNumber),
	}
}

// readEntries reads the entries to compare.
func (f *File) readEntries(n strictyaml.Node) error {
	f.Job.EntriesBy = fmt.Sprintf("%s:%d", f.Path, n.Line)
	return some(&f.Job.Entries, f.keep(measure.OfAlgorithm))(n)
}

// readParams reads the values of parameters, by entry and key.
func (f *File) readParams(n strictyaml.Node) error {
	f.Job.Params = nil
	if f.Job.EntriesBy == "" {
		f.Job.EntriesBy = fmt.Sprintf("%s:%d", f.Path, n.Line)
	}
	return n.Each(func(of strictyaml.Node, entry string) error {
		f.values[value{measure.OfParam, entry}] = of.AtKey()
		before := len(f.Job.Params)
		err := of.Each(func(values strictyaml.Node, key string) error {
			p := measure.Param{Entry: entry, Key: key}
			f.values[value{measure.OfParam, entry + "." + key}] = values
			err := some(&p.Values, asValue)(values)
			f.Job.Params = append(f.Job.Params, p)
			return err
		})
		if err == nil && len(f.Job.Params) == before {
			err = of.Errorf("there is no parameter; give one, or remove the key")
		}
		return err
	})
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
	}, strictyaml.Required{"begin": "", "end": ""}, nil)
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
	return one(into, func(n strictyaml.Node) ([]T, error) { return strictyaml.List(n, read) })
}

func asText(n strictyaml.Node) (string, error) {
	return strictyaml.Scalar(n, func(s string) (string, error) { return s, nil })
}

// asValue reads a value of a parameter, by its letters, as --param has it.
func asValue(n strictyaml.Node) (string, error) {
	switch v := n.Value(); {
	case n.IsList() || n.IsMapping():
		return "", n.Errorf("want a value, got %s", n.What())
	case v == "" || strings.ContainsAny(v, ",\n"):
		return "", n.Errorf("%q is no value of a parameter: several values need a list, such as [1KiB, 2KiB]", v)
	default:
		return v, nil
	}
}

func asGrid(n strictyaml.Node) (measure.Grid, error) {
	return strictyaml.Scalar(n, func(s string) (g measure.Grid, err error) {
		err = g.UnmarshalText([]byte(s))
		return g, err
	})
}

// asShare reads a jitter.
func asShare(n strictyaml.Node) (*float64, error) {
	return strictyaml.Scalar(n, func(s string) (*float64, error) {
		share, err := strconv.ParseFloat(s, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("%s is not a share: want a number from 0 to 1", s)
		}
		return &share, nil
	})
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

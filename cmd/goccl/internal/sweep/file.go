package sweep

import (
	"cmp"
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
//
// All combinations of Configs, Topologies and Transports are measured, each with all cases of Plan.
// An empty list stands for what a program finds, or what is configured.
type File struct {
	Path       string
	Text       string // as it stands on disk
	Title      string
	Configs    []string // files; in the text relative to the sweep file's directory
	Topologies []measure.Grid
	Transports []string
	Setup      measure.Setup // entries, parameters, memory and budget
	Plan       measure.Plan

	values map[value]strictyaml.Node // their positions
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
	root, err := strictyaml.Parse([]byte(text), func(line, column int, key, message string) error {
		return &config.Error{File: path, Line: line, Column: column, Key: key, Message: message}
	})
	if err != nil {
		return nil, err
	}
	f := &File{
		Path: path, Text: text,
		Plan: measure.Plan{
			Collectives: []string{ccl.CollAllReduce.String()},
			DTypes:      []string{ccl.Float32.String()},
			Ops:         []string{ccl.Sum.String()},
			InPlace:     []bool{true},
		},
		Setup:  measure.Setup{Budget: measure.DefaultBudget},
		values: make(map[value]strictyaml.Node),
	}
	if err := f.read(root); err != nil {
		return nil, err
	}
	f.Title = cmp.Or(f.Title, filepath.Base(path))
	if err := errors.Join(f.Setup.Validate(), f.Plan.Validate()); err != nil { // mistakes in combinations of values
		return nil, root.Errorf("%v", err)
	}
	return f, nil
}

// read fills f from the file.
func (f *File) read(root strictyaml.Node) error {
	var version, buckets int
	var compute time.Duration
	var jitter *float64
	plan, budget := &f.Plan, &f.Setup.Budget
	err := root.Read(strictyaml.Fields{
		"version":     readInto(&version, strictyaml.Node.Version),
		"title":       readInto(&f.Title, readText),
		"config":      readList(&f.Configs, f.readPath),
		"topology":    readList(&f.Topologies, readGrid),
		"transport":   readList(&f.Transports, f.readValue(measure.OfTransport)),
		"collectives": readList(&plan.Collectives, readName(measure.CheckCollective)),
		"algorithms":  f.readEntries,
		"params":      f.readParams,
		"memory":      readList(&f.Setup.Memory, readText),
		"ranks":       readList(&plan.Ranks, func(n strictyaml.Node) (int, error) { return n.Whole(1, config.MaxRanks) }),
		"bytes":       f.readBytes,
		"dtypes":      readList(&plan.DTypes, readName(measure.CheckDType)),
		"ops":         readList(&plan.Ops, readName(measure.CheckOp)),
		"in_place":    readList(&plan.InPlace, strictyaml.Node.Bool),
		"root":        readInto(&plan.Root, readNumber),
		"consume":     readInto(&plan.Consume, strictyaml.Node.Bool),
		"compute":     readInto(&compute, strictyaml.Node.Duration),
		"jitter":      readInto(&jitter, readShare),
		"buckets":     readInto(&buckets, func(n strictyaml.Node) (int, error) { return n.Whole(1, measure.MaxBuckets) }),
		"time":        readInto(&budget.Time, strictyaml.Node.Duration),
		"warmup":      readInto(&budget.Warmup, readNumber),
		"min_calls":   readInto(&budget.MinCalls, readNumber),
		"max_calls":   readInto(&budget.MaxCalls, readNumber),
	}, strictyaml.Required{"version": "", "ranks": "", "bytes": ""}, nil)
	plan.SetCompute(compute, jitter, buckets)
	return err
}

func (f *File) readEntries(n strictyaml.Node) error {
	f.Setup.EntriesBy = fmt.Sprintf("%s:%d", f.Path, n.Line)
	return readList(&f.Setup.Entries, f.readValue(measure.OfAlgorithm))(n)
}

// readParams reads the values of parameters, by entry and key.
func (f *File) readParams(n strictyaml.Node) error {
	f.Setup.EntriesBy = cmp.Or(f.Setup.EntriesBy, fmt.Sprintf("%s:%d", f.Path, n.Line))

	return n.Each(func(params strictyaml.Node, entry string) error {
		f.values[value{measure.OfParam, entry}] = params.AtKey()
		before := len(f.Setup.Params)
		err := params.Each(func(values strictyaml.Node, key string) error {
			f.values[value{measure.OfParam, entry + "." + key}] = values
			p := measure.Param{Entry: entry, Key: key}
			err := readList(&p.Values, readParam)(values)
			f.Setup.Params = append(f.Setup.Params, p)
			return err
		})

		if err == nil && len(f.Setup.Params) == before {
			err = params.Errorf("there is no parameter; give one, or remove the key")
		}
		return err
	})
}

// readBytes reads sizes: a list, or begin, end and factor.
func (f *File) readBytes(n strictyaml.Node) error {
	if !n.IsMapping() {
		return readList(&f.Plan.Bytes, readSize)(n)
	}
	var begin, end int
	factor := 4
	err := n.Read(strictyaml.Fields{
		"begin":  readInto(&begin, readSize),
		"end":    readInto(&end, readSize),
		"factor": readInto(&factor, readNumber),
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

// readInto returns a reader of a single value.
func readInto[T any](into *T, read func(strictyaml.Node) (T, error)) func(strictyaml.Node) error {
	return func(n strictyaml.Node) (err error) {
		*into, err = read(n)
		return err
	}
}

// readList returns a reader of a list without duplicates. A single value needs no brackets.
func readList[T comparable](into *[]T, read func(strictyaml.Node) (T, error)) func(strictyaml.Node) error {
	return readInto(into, func(n strictyaml.Node) ([]T, error) { return strictyaml.List(n, read) })
}

// readName returns a reader of a name that passes a check.
func readName(check func(string) error) func(strictyaml.Node) (string, error) {
	return func(n strictyaml.Node) (string, error) {
		return strictyaml.Scalar(n, func(name string) (string, error) { return name, check(name) })
	}
}

var readText = readName(func(string) error { return nil })

// readValue returns a reader of texts that remembers where they are.
func (f *File) readValue(of measure.MistakeOf) func(strictyaml.Node) (string, error) {
	return func(n strictyaml.Node) (string, error) {
		text, err := readText(n)
		f.values[value{of, text}] = n
		return text, err
	}
}

// readPath reads a path relative to the directory of the sweep file.
func (f *File) readPath(n strictyaml.Node) (string, error) {
	path, err := readText(n)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.Path), path)
	}
	return path, err
}

// readParam reads a value of a parameter by its letters, as --param has it.
func readParam(n strictyaml.Node) (string, error) {
	switch v := n.Value(); {
	case n.IsList() || n.IsMapping():
		return "", n.Errorf("want a value, got %s", n.What())
	case v == "" || strings.ContainsAny(v, ",\n"):
		return "", n.Errorf("%q is no value of a parameter: several values need a list, such as [1KiB, 2KiB]", v)
	default:
		return v, nil
	}
}

// readShare reads a jitter.
func readShare(n strictyaml.Node) (*float64, error) {
	return strictyaml.Scalar(n, func(s string) (*float64, error) {
		share, err := strconv.ParseFloat(s, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("%s is not a share: want a number from 0 to 1", s)
		}
		return &share, nil
	})
}

func readGrid(n strictyaml.Node) (measure.Grid, error) {
	return strictyaml.Scalar(n, func(s string) (g measure.Grid, err error) {
		err = g.UnmarshalText([]byte(s))
		return g, err
	})
}

func readSize(n strictyaml.Node) (int, error) {
	return strictyaml.Scalar(n, func(s string) (int, error) {
		var size measure.Size
		err := size.UnmarshalText([]byte(s))
		return int(size), err
	})
}

func readNumber(n strictyaml.Node) (int, error) { return n.Whole(math.MinInt, math.MaxInt) }

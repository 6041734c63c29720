package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/strictyaml"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// maxRules bounds the time that a hostile file can cost.
const maxRules = 256

// Parse parses the text of a ccl.yaml, UTF-8 of at most 64 KiB. Messages call the file by the
// name file. Unknown or unexpected content is an *Error with its line and, for a misspelt
// name, the nearest valid one.
func Parse(file string, data []byte) (*Config, error) {
	c := defaults(file)
	root, err := strictyaml.Parse(data, func(line int, key, message string) error {
		return &Error{File: file, Line: line, Key: key, Message: message}
	})
	if err != nil {
		return nil, err
	}
	if err := c.read(root); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// into returns a reader that stores what parse returns, and the line.
func into[T any](g *given[T], parse func(strictyaml.Node) (T, error)) func(strictyaml.Node) error {
	return func(n strictyaml.Node) (err error) {
		g.value, err = parse(n)
		g.line = n.Line
		return err
	}
}

// read fills c from the file.
func (c *Config) read(root strictyaml.Node) error {
	var version given[int]
	err := root.Read(strictyaml.Fields{
		"version": into(&version, strictyaml.Node.Version),
		"defaults": func(n strictyaml.Node) error {
			return n.Read(strictyaml.Fields{
				"algorithm":  into(&c.algorithm, strictyaml.Node.Text),
				"transport":  into(&c.transport, named("transport", transports)),
				"timeout":    into(&c.timeout, readTimeout),
				"world_size": into(&c.worldSize, readSize),
				"debug":      into(&c.debug, strictyaml.Node.Bool),
			})
		},
		"algorithms": func(n strictyaml.Node) error { return n.Each(c.readEntry) },
		"topology":   func(n strictyaml.Node) error { return c.topology.read(n) },
		"rules":      func(n strictyaml.Node) error { return n.Elements(c.readRule) },
	})
	if err == nil && !version.isSet() {
		return root.Errorf("the version is missing; the file has to begin with version: 1")
	}
	return err
}

func (c *Config) readEntry(n strictyaml.Node, name string) error {
	switch {
	case !text.IsName(name):
		return n.Errorf("the name of an entry has only letters a to z, digits and underscores")
	case name == auto:
		return n.Errorf("auto cannot be the name of an entry: it means that the rules choose")
	}
	e := &entry{origin: origin{line: n.Line}, name: name}
	err := n.Read(strictyaml.Fields{
		"module":     into(&e.module, strictyaml.Node.Text),
		"topology":   into(&e.topology, readKind),
		"world_size": into(&e.worldSize, readSize),
		// The parameters' keys are the algorithm's, which Resolve finds.
		"params": into(&e.params, func(n strictyaml.Node) (strictyaml.Node, error) { return n, nil }),
	})
	if err == nil && !e.module.isSet() {
		return n.Errorf("the module is missing: the algorithm that the entry is for, such as module: ring")
	}
	c.entries = append(c.entries, e)
	return err
}

func (t *arrangement) read(n strictyaml.Node) error {
	t.line = n.Line
	return n.Read(strictyaml.Fields{
		"kind":  into(&t.kind, readKind),
		"count": into(&t.count, readCount),
		"w":     into(&t.w, readSize),
		"h":     into(&t.h, readSize),
	})
}

func (c *Config) readRule(n strictyaml.Node) error {
	r := rule{origin: origin{line: n.Line}}
	err := n.Read(strictyaml.Fields{
		"collective": into(&r.collective, readCollective),
		"bytes":      into(&r.bytes, readSpan(parseByteSize)),
		"ranks":      into(&r.ranks, readSpan(parseRanks)),
		"dtype":      into(&r.dtype, named("dtype", ccl.DTypes())),
		"op":         into(&r.op, named("op", ccl.Ops())),
		"algorithm":  into(&r.algorithm, strictyaml.Node.Text),
	})
	switch {
	case err != nil:
		return err
	case !r.algorithm.isSet():
		return n.Errorf("the algorithm is missing: the entry that the rule chooses")
	case len(c.rules) == maxRules:
		return n.Errorf("the file has more than %d rules", maxRules)
	case r.op.isSet() && r.collective.isSet() && !r.collective.value.Reduces():
		return n.Errorf("%s takes no op: the rule would never match", r.collective.value)
	}
	c.rules = append(c.rules, r)
	return nil
}

// check finds mistakes that only the whole file shows.
func (c *Config) check() error {
	if name := c.algorithm.value; name != auto && c.entry(name) == nil {
		return c.errorAt(c.algorithm.origin, "defaults.algorithm", "%s", c.unknownEntry(name))
	}
	for i, r := range c.rules {
		if name := r.algorithm.value; c.entry(name) == nil {
			return c.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"), "%s", c.unknownEntry(name))
		}
	}
	if c.topology.count.value == 0 {
		return nil // Resolve knows the number of ranks
	}
	_, err := c.arrange(c.topology.count.value, "")
	return err
}

// arrange returns the file's topology for count ranks. The error message ends in why, which
// explains that number.
func (c *Config) arrange(count int, why string) (*topology.Topology, error) {
	t, err := topology.New(c.topology.kind.value, count, c.topology.w.value, c.topology.h.value)
	if err != nil {
		return nil, &Error{
			File:    c.file,
			Line:    c.topology.line,
			Key:     "topology",
			Message: withoutPackage(err) + why,
			Err:     err,
		}
	}
	return t, nil
}

func withoutPackage(err error) string { return strings.TrimPrefix(err.Error(), "topology: ") }

// ruleKey returns the path of a field of c.rules[i]; the first rule is number 1.
func ruleKey(i int, field string) string { return fmt.Sprintf("rules[%d].%s", i+1, field) }

// readSize reads a number of ranks: of a group, or along one side of a grid.
func readSize(n strictyaml.Node) (int, error) { return n.Whole(1, MaxRanks) }

const wantTimeout = "want a duration with its unit, such as 60s, or none"

func readTimeout(n strictyaml.Node) (time.Duration, error) {
	if !n.IsText() {
		return 0, n.Errorf("%s; got %s", wantTimeout, n.What())
	}
	return strictyaml.Scalar(n, parseTimeout)
}

// parseTimeout parses a timeout; it returns 0 for none.
func parseTimeout(s string) (time.Duration, error) {
	if s == "none" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s; got the text %s", wantTimeout, text.Quote(s))
	}
	if d <= 0 {
		return 0, fmt.Errorf("%s is not more than zero; write none to wait for ever", text.Quote(s))
	}
	return d, nil
}

func readKind(n strictyaml.Node) (topology.Kind, error) {
	name, err := n.Text()
	if err != nil {
		return 0, err
	}
	k, err := topology.ParseKind(name)
	if err != nil {
		return 0, n.Errorf("%s", withoutPackage(err))
	}
	return k, nil
}

// readCount reads the number of ranks of a topology; it returns 0 for auto.
func readCount(n strictyaml.Node) (int, error) {
	switch {
	case !n.IsText():
		return readSize(n)
	case n.Value() != auto:
		return 0, n.Errorf("want auto, or a whole number without quotes; got %s", n.What())
	}
	return 0, nil
}

func readSpan[T int | ccl.ByteSize](parse func(string) (T, error)) func(strictyaml.Node) (span[T], error) {
	return func(n strictyaml.Node) (span[T], error) {
		return strictyaml.Scalar(n, func(s string) (span[T], error) { return parseSpan(s, parse) })
	}
}

func readCollective(n strictyaml.Node) (ccl.Collective, error) {
	if n.Value() == ccl.CollBarrier.String() {
		return 0, n.Errorf("the engine executes barriers itself: they need no algorithm and no rule")
	}
	return named("collective", ccl.Collectives())(n)
}

// named returns a reader of the name of one of the values.
func named[T any](what string, values []T) func(strictyaml.Node) (T, error) {
	return func(n strictyaml.Node) (v T, err error) {
		if _, err := n.Text(); err != nil {
			return v, err
		}
		return strictyaml.Scalar(n, func(name string) (T, error) { return text.Named(what, name, values) })
	}
}
